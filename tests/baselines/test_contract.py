"""What all baselines promise alike: scikit-learn's contract, groups, labels, sparse rows, checkpoints."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand.baselines import (
    ALFR,
    LFR,
    LR,
    ExponentiatedGradientClassifier,
    OxonFairClassifier,
    Rawlsian,
)

BASELINES = [
    LR(),
    LR(aware=True),
    Rawlsian(),
    LFR(),
    LFR(distance="euclidean"),
    ALFR(),
    ExponentiatedGradientClassifier(max_iter=5),
    OxonFairClassifier(),
]


# scikit-learn's checks feed labels drawn at random, or four people: there a collapse is the right answer
@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")
@parametrize_with_checks(BASELINES)
def test_scikit_learn(estimator, check):
    check(estimator)
