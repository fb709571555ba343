"""Agreement rewards being sure: a small weight is cooperation, a large one ends with one decision for all."""

import warnings

import numpy as np
import pytest

from evenhand import Agreement, CooperativeBandits, Likelihood
from factories import make_arrays


def fitted(agreement, **options):
    X, y, s = make_arrays(1000)
    model = CooperativeBandits(reward=Likelihood() + agreement, random_state=0, **options)
    return model.fit(X, y, sensitive_features=s), X, s


@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")
def test_a_large_weight_decides_everybody_alike_and_is_warned_of():
    with pytest.warns(UserWarning, match="Got Agreement with a weight of 20.*at most 1.*or take LogRatio"):
        model, X, s = fitted(Agreement())
    assert len(set(model.predict(X, sensitive_features=s))) == 1


def test_a_small_weight_is_cooperation():
    decisions = []
    for weight in (0, 1):
        model, X, s = fitted(Agreement(weight))
        assert len(set(model.predict(X, sensitive_features=s))) == 2
        by_group = model.probabilities_by_group(X).argmax(2)
        decisions.append(np.mean(by_group[:, 0] != by_group[:, 1]))
    assert decisions[1] < decisions[0] / 2


def test_its_weight_is_no_reason_to_move_jointly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        jointly, alone = (
            fitted(Agreement(20), optimizer=optimizer, epochs=2)[0] for optimizer in ("joint_adam", "adam")
        )
    np.testing.assert_array_equal(jointly.policies_.W1, alone.policies_.W1)
