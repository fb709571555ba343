"""Another policy's log needs its propensities; only `update` may take the actions for the model's own."""

import numpy as np
import pytest

from evenhand import GradientBandit

X = np.random.default_rng(0).normal(size=(50, 2))
ACTIONS = np.arange(50) % 2
REWARDS = ((X[:, 0] > 0) == ACTIONS).astype(float)


def test_a_fit_from_a_log_needs_them():
    with pytest.raises(ValueError, match="Got no propensities, but expected the probability"):
        GradientBandit(random_state=0).fit_logged(X, ACTIONS, REWARDS, None)


@pytest.mark.parametrize("method", ["doubly_robust", "inverse_propensity", "self_normalised", "direct"])
def test_a_value_from_a_log_needs_them(method):
    bandit = GradientBandit(epochs=1, random_state=0).fit_logged(X, ACTIONS, REWARDS, np.full(50, 0.5))
    with pytest.raises(ValueError, match="Got no propensities, but expected the probability"):
        bandit.estimate_value(X, ACTIONS, REWARDS, None, method=method)
