import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.decisions.exploration import Explorer, Novelty, explored, with_floor


@given(st.integers(2, 5), st.floats(0, 1), st.integers(0, 10_000))
def test_a_floor_holds_and_moves_no_more_than_it_must(n_actions, share, seed):
    said = np.random.default_rng(seed).dirichlet(np.full(n_actions, 0.3), size=(20, 3))
    floor = share / n_actions
    found = with_floor(said, floor)
    np.testing.assert_allclose(found.sum(-1), 1)
    assert (found >= floor - 1e-12).all()
    kept = (said >= floor).all(-1)
    np.testing.assert_allclose(found[kept], said[kept])
    # Nobody who was above the floor gets more, and the order of actions stays.
    assert (found <= np.maximum(said, floor) + 1e-12).all()


def test_a_floor_differs_by_person_and_never_by_group():
    said = np.zeros((2, 2, 2))
    said[..., 0] = 1
    found = with_floor(said, [0.0, 0.1])
    np.testing.assert_allclose(found[:, :, 1], [[0, 0], [0.1, 0.1]])
    for bad in (0.6, -0.1, np.nan):
        with pytest.raises(ValueError, match="expected one from 0 to 1/2"):
            with_floor(said, bad)


def test_of_two_actions_as_many_are_explored_as_probability_is_moved():
    rng = np.random.default_rng(0)
    sure = np.tile([0.995, 0.005], (100_000, 1))
    share = explored(sure, with_floor(sure, 0.05), rng.random(100_000)).mean()
    assert share == pytest.approx(0.045, abs=0.003)
    assert not explored(sure, sure, rng.random(100_000)).any()


def test_novelty_is_the_variance_of_a_ridge_prediction():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    draws = []
    for seed in range(4000):  # Bayesian ridge, by simulation: prior and noise of unit variance
        again = np.random.default_rng(seed)
        weights = again.normal(size=3)
        y = Z @ weights + again.normal(size=50)
        draws.append(X @ (np.linalg.solve(np.eye(3) + Z.T @ Z, Z.T @ y) - weights))
    np.testing.assert_allclose(Novelty(3).learn(Z[:20]).learn(Z[20:]).of(X), np.var(draws, axis=0), rtol=0.1)


def test_groups_are_explored_alike_and_people_by_what_they_teach():
    rng = np.random.default_rng(0)
    explorer = Explorer(0.03)
    for day in range(40):
        s = rng.choice(["f", "m"], 50, p=[0.2, 0.8])
        teaches = rng.exponential(size=50) * np.where(s == "f", 10.0, 1.0)
        floors = explorer.floors(s, teaches, day)
        for group in ("f", "m"):
            assert (np.diff(floors[s == group][np.argsort(teaches[s == group])]) >= 0).all()
        explorer.note(s, floors, rng.random(50) < floors)
    report = explorer.report()
    assert report["f"].mean_floor == pytest.approx(report["m"].mean_floor, rel=0.1)
    assert report["f"].people + report["m"].people == 2000
    assert report["f"].explored / report["f"].people == pytest.approx(0.03, abs=0.03)


def test_a_budget_is_never_exceeded_and_begins_anew_each_day():
    rng = np.random.default_rng(0)
    explorer = Explorer(0.2, per_day=5)
    by_day = np.zeros(3, dtype=int)
    for day in range(3):
        for _ in range(200):
            floors = explorer.floors(["all"], day=day)
            differs = rng.random(1) < floors
            explorer.note(["all"], floors, differs)
            by_day[day] += differs.sum()
    assert by_day.tolist() == [5, 5, 5]
    assert explorer.report()["all"].explored == 15


def test_a_floor_that_can_not_be_kept_is_refused():
    with pytest.raises(ValueError, match="Got floor=0.7"):
        Explorer(0.7)
