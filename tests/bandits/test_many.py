"""A grid of models, each what a fit of its own gives."""

import numpy as np
import pytest
from sklearn.base import clone

from evenhand import CooperativeBandits, GradientBandit, fit_many
from factories import make_arrays

GRID = [
    {"divergence_weight": [0, 20], "hidden": [3, 5]},
    {"reward": ["correctness + log_ratio + parity"], "learning_rate": [0.1], "random_state": [0, 1]},
]


def same(one, other):
    for mine, theirs in zip(one.policies_, other.policies_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_model_is_what_a_fit_of_its_own_gives_in_the_order_of_the_grid(n_jobs):
    X, y, s = make_arrays(200)
    weights = np.random.default_rng(0).uniform(0.5, 2, 200)
    plain = CooperativeBandits(steps=300, random_state=5)
    models = fit_many(plain, GRID, X, y, weights, sensitive_features=s, n_jobs=n_jobs)
    varied = [(model.divergence_weight, model.hidden, model.random_state) for model in models]
    assert varied == [(0, 3, 5), (0, 5, 5), (20, 3, 5), (20, 5, 5), (20, 20, 0), (20, 20, 1)]
    for model in models:
        same(model, clone(model).fit(X, y, weights, sensitive_features=s))
    assert not hasattr(plain, "policies_")


def test_learners_without_groups_take_part():
    X, y, _ = make_arrays(200)
    models = fit_many(GradientBandit(steps=200), {"random_state": [3, 4]}, X, y)
    same(models[1], GradientBandit(steps=200, random_state=4).fit(X, y))


def test_what_is_wrong_is_said_before_anything_is_fitted():
    X, y, _ = make_arrays(50)
    with pytest.raises(ValueError, match="Got engine='gpu', but expected"):
        fit_many(GradientBandit(), {}, X, y, engine="gpu")
    with pytest.raises(ValueError, match="Invalid parameter 'hiden'"):
        fit_many(GradientBandit(), {"hiden": [3]}, X, y)
