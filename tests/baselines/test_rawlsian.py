from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from evenhand.baselines import Rawlsian


@pytest.mark.parametrize("regularization", [1.0, 9.0])
def test_every_arm_is_the_ridge_regression_of_those_chosen(planted, regularization):
    X, y, s = planted
    model = Rawlsian(regularization, random_state=0).fit(X, y, sensitive_features=s)
    with_constant = np.hstack([X, np.ones((len(X), 1))])
    for code, name in enumerate(model.groups_):
        own = model.selected_[s[model.selected_] == name]
        ridge = Ridge(alpha=regularization, fit_intercept=False)
        ridge.fit(with_constant[own], y[own] == "yes")
        assert np.allclose(model.coef_[code], ridge.coef_)


def test_one_group_is_plain_ridge_on_everybody(planted):
    X, y, _ = planted
    model = Rawlsian(3.0, random_state=0).fit(X, y)
    ridge = Ridge(alpha=3.0, fit_intercept=False).fit(np.hstack([X, np.ones((len(X), 1))]), y == "yes")
    assert sorted(model.selected_) == list(range(len(X)))
    assert np.allclose(model.coef_[0], ridge.coef_)


def test_wide_intervals_choose_both_groups_alike_and_decide_as_ridge_does(planted):
    X, y, s = planted
    model = Rawlsian(delta=1e-300, n_rounds=20_000, random_state=0).fit(X, y, sensitive_features=s)
    share = (s[model.selected_] == "m").mean()
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / 20_000)
    decided = model.predict(X, sensitive_features=s)
    for name in ("f", "m"):
        own = s == name
        ridge = Ridge(alpha=1.0).fit(X[own], y[own] == "yes")
        assert (decided[own] == np.where(ridge.predict(X[own]) > 0.5, "yes", "no")).mean() > 0.99


def test_narrow_intervals_leave_the_worse_group_alone():
    X = np.ones((400, 1))
    s = np.arange(400) % 2
    y = 1 - s  # everybody of group 0 is qualified, nobody of group 1
    model = Rawlsian(delta=1.0, fit_intercept=False, n_rounds=5000, random_state=0)
    model.fit(X, y, sensitive_features=s)
    early, late = (s[part].mean() for part in (model.selected_[:10], model.selected_[-1000:]))
    assert early > 0.2  # intervals still overlap
    assert late == 0


def test_smaller_groups_come_more_often_and_nobody_is_left_out():
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(110, 2)), np.array(["few"] * 10 + ["many"] * 100)
    y = rng.integers(0, 2, 110)
    model = Rawlsian(delta=1e-300, n_rounds=1000, random_state=1).fit(X, y, sensitive_features=s)
    times = np.bincount(model.selected_, minlength=110)
    assert (times > 0).all()
    assert times[:10].mean() > 5 * times[10:].mean()


def test_the_probability_is_the_clipped_estimate(planted):
    X, y, s = planted
    model = Rawlsian(random_state=0).fit(X, y, sensitive_features=s)
    estimate = np.hstack([X, np.ones((len(X), 1))]) @ model.coef_[1]
    assert np.allclose(model.probabilities_by_group(X)[:, 1, 1], np.clip(estimate, 0, 1))
    assert estimate.max() > 1


def test_intervals_shrink_with_what_is_known(planted):
    X, y, s = planted

    def width(rounds):
        model = Rawlsian(n_rounds=rounds, random_state=0).fit(X, y, sensitive_features=s)
        lower, upper = model.intervals(X, sensitive_features=s)
        assert np.allclose((lower + upper) / 2, model._estimates(X, (s == "m").astype(int)))
        return (upper - lower).mean()

    assert width(2000) < width(200) / 2 < width(20) / 4


@given(seed=st.integers(0, 2**31 - 1), k=st.integers(1, 40), rounds=st.integers(1, 3000))
@settings(max_examples=30)
def test_an_interval_wholly_below_the_chain_is_never_chosen(seed, k, rounds):
    rng = np.random.default_rng(seed)
    X, s = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    y = (X[:, 0] + s > 0).astype(int)
    y[:2] = 0, 1
    model = Rawlsian(n_rounds=rounds, delta=1.0, random_state=0).fit(X, y, sensitive_features=s)
    pool, groups = rng.normal(size=(40, 2)) * 5, rng.choice(model.groups_, 40)
    lower, upper = model.intervals(pool, sensitive_features=groups)
    left = np.ones(40, dtype=bool)
    for chosen in model.select(pool, k, sensitive_features=groups, random_state=seed):
        # walk down from the top of those left; where a gap opens, everybody further down is clearly worse
        order = sorted(np.flatnonzero(left), key=lambda i: -upper[i])
        floor = np.inf
        for i in order:
            if upper[i] < floor and floor != np.inf:
                break
            floor = min(floor, lower[i])
        assert upper[chosen] >= floor
        left[chosen] = False
    assert left.sum() == 40 - k


def test_select_with_a_seed_is_the_same_twice_and_takes_no_more_than_the_pool(planted):
    X, y, s = planted
    model = Rawlsian(random_state=0).fit(X, y, sensitive_features=s)
    once = model.select(X[:50], 10, sensitive_features=s[:50], random_state=5)
    again = model.select(X[:50], 10, sensitive_features=s[:50], random_state=5)
    assert (once == again).all()
    assert len(set(once)) == 10
    with pytest.raises(ValueError, match="Got k=51, but expected at most the 50 people of the pool"):
        model.select(X[:50], 51, sensitive_features=s[:50])
    with pytest.raises(ValueError, match="Got k=0, but expected a whole number of at least 1"):
        model.select(X[:50], 0, sensitive_features=s[:50])
