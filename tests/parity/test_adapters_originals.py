"""The adapters decide as the libraries they wrap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.baselines import ExponentiatedGradientClassifier, OxonFairClassifier
from factories import make_arrays


@pytest.fixture
def people():
    return make_arrays(600, groups=(0, 1), labels=(0, 1))


def test_fairlearn(people):
    reductions = pytest.importorskip("fairlearn.reductions")
    X, y, s = people
    original = reductions.ExponentiatedGradient(
        LogisticRegression(max_iter=500), reductions.DemographicParity(difference_bound=0.01)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        original.fit(X, y, sensitive_features=s)
    model = ExponentiatedGradientClassifier().fit(X, y, sensitive_features=s)
    assert np.allclose(model.predict_proba(X), original._pmf_predict(X))


def test_oxonfair(people):
    oxonfair = pytest.importorskip("oxonfair")
    X, y, s = people
    estimator = LogisticRegression(max_iter=500).fit(X, y)
    known = {"data": X, "target": y, "groups": s}
    original = oxonfair.FairPredictor(estimator, known)
    original.fit(oxonfair.group_metrics.accuracy, oxonfair.group_metrics.demographic_parity, 0.02)
    model = OxonFairClassifier().fit(X, y, sensitive_features=s)
    assert (model.predict(X, sensitive_features=s) == original.predict(known)).all()
    scores = original.predict_proba(known, force_normalization=True)
    assert np.allclose(model.predict_proba(X, sensitive_features=s), scores)
