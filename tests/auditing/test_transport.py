from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from evenhand.auditing.transport import Matched, transport
from evenhand.metrics.gower import gower_distances, gower_neighbours

RNG = np.random.default_rng(0)


def line(values: np.ndarray):  # type: ignore[no-untyped-def]
    return lambda a, b: np.abs(values[a][:, None] - values[b]).astype(np.float32)


def made(n: int, rng: np.random.Generator) -> pd.DataFrame:
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n))
    return pd.DataFrame(
        {"age": age, "pay": rng.normal(size=n), "job": rng.choice(["cook", "clerk", None], n)}
    )


def test_distances_are_those_of_the_neighbours() -> None:
    frame = made(60, RNG)
    everybody = np.arange(60)
    distances = gower_distances(frame)(everybody, everybody)
    near = gower_neighbours(frame, 5)
    np.testing.assert_allclose(
        1 - np.take_along_axis(distances, near.indices, axis=1), near.similarity, atol=1e-6
    )


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 30), seed=st.integers(0, 2**20))
def test_groups_of_one_size_are_assigned_one_to_one_at_the_least_cost(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    distances = gower_distances(made(2 * n, rng))
    ones, others = np.arange(n), np.arange(n, 2 * n)
    there, back = transport(distances, ones, others, batch=100, rng=rng)
    cost = distances(ones, others).astype(float) ** 2
    least = cost[linear_sum_assignment(cost)].sum()
    assert cost[there.people, there.counterparts - n] @ there.shares == pytest.approx(least, abs=1e-5)
    assert sorted(zip(there.people, there.counterparts, strict=True)) == sorted(
        zip(back.counterparts, back.people, strict=True)
    )


def test_groups_of_two_sizes_are_matched_as_the_linear_programme_says() -> None:
    rng = np.random.default_rng(3)
    n, m = 6, 9
    distances = gower_distances(made(n + m, rng))
    ones, others = np.arange(n), np.arange(n, n + m)
    there, back = transport(distances, ones, others, batch=100, rng=rng)
    cost = distances(ones, others).astype(float) ** 2
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)] + [
        np.kron(np.ones(n), np.eye(m)[j]) for j in range(m)
    ]
    solved = linprog(cost.ravel(), A_eq=np.array(rows), b_eq=[1 / n] * n + [1 / m] * m)
    for side, size in ((there, n), (back, m)):
        moved = cost[
            np.minimum(side.people, side.counterparts), np.maximum(side.people, side.counterparts) - n
        ]
        assert moved @ side.shares / size == pytest.approx(solved.fun, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)), batch=st.integers(2, 50), seed=st.integers(0, 99)
)
def test_everybody_has_a_whole_counterpart_in_the_other_group(
    sizes: tuple[int, int], batch: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ones, others = np.arange(sizes[0]), np.arange(sizes[0], sum(sizes))
    there, back = transport(line(rng.normal(size=sum(sizes))), ones, others, batch=batch, rng=rng)
    for side, mine, theirs in ((there, ones, others), (back, others, ones)):
        np.testing.assert_allclose(np.bincount(side.people, side.shares)[mine], 1)
        assert set(side.people) == set(mine)
        assert set(side.counterparts) <= set(theirs)


@given(seed=st.integers(0, 2**20))
def test_people_keep_their_rank_however_far_the_group_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Multiples of 0.05: distances have single precision, which can't tell apart people who are closer there.
    here, away = (np.sort(rng.choice(100, 30, replace=False)) / 20 for _ in range(2))
    values = np.concatenate([here, away + 50])
    there, _ = transport(line(values), np.arange(30), np.arange(30, 60), batch=100, rng=rng)
    assert (there.counterparts - there.people == 30).all()


def test_batches_come_near_the_exact_map() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=600), rng.normal(size=600) + 3])
    there, _ = transport(line(values), np.arange(600), np.arange(600, 1200), batch=150, rng=rng)
    moved = values[there.counterparts] - values[there.people]
    assert moved.mean() == pytest.approx(3, abs=0.2)
    assert moved.std() < 0.4


def test_shares_are_of_each_person() -> None:
    found = Matched.normed(np.array([0, 0, 1]), np.array([2, 3, 3]), np.array([0.2, 0.3, 0.5]))
    assert found.shares.tolist() == [0.4, 0.6, 1.0]


def test_the_extra_is_named_where_pot_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'evenhand\[audit\]'"):
        transport(line(np.arange(4.0)), np.array([0, 1]), np.array([2, 3]), batch=10, rng=RNG)


def test_weights_count_people_as_so_many() -> None:
    rng = np.random.default_rng(5)
    values, weights = rng.normal(size=14), rng.integers(0, 4, 14).astype(float)
    ones, others = np.arange(6), np.arange(6, 14)
    there, back = transport(line(values), ones, others, batch=100, rng=rng, weights=weights)
    many = np.repeat(np.arange(14), weights.astype(int))
    copies = np.flatnonzero(many < 6), np.flatnonzero(many >= 6)
    plain, again = transport(line(values[many]), *copies, batch=100, rng=rng)
    for weighted, repeated in ((there, plain), (back, again)):
        counts = np.zeros((14, 14))
        np.add.at(counts, (weighted.people, weighted.counterparts), weighted.shares)
        expected = np.zeros((14, 14))
        np.add.at(expected, (many[repeated.people], many[repeated.counterparts]), repeated.shares)
        expected /= np.maximum(weights, 1)[:, None]
        np.testing.assert_allclose(counts, expected, atol=1e-9)
    assert not np.isin(there.people, np.flatnonzero(weights == 0)).any()


def test_repeated_batches_come_nearer_to_the_exact_map() -> None:
    values = np.concatenate([RNG.normal(size=200), RNG.normal(size=200) + 3])
    ones, others = np.arange(200), np.arange(200, 400)
    exact, _ = transport(line(values), ones, others, batch=200, rng=np.random.default_rng(0))

    def mean(**how: int) -> np.ndarray:
        found, _ = transport(line(values), ones, others, rng=np.random.default_rng(0), **how)
        return np.bincount(found.people, found.shares * values[found.counterparts])

    truth = np.bincount(exact.people, exact.shares * values[exact.counterparts])
    once, often = (np.abs(mean(batch=20, repeats=n) - truth).mean() for n in (1, 10))
    assert often < 0.6 * once
    np.testing.assert_array_equal(mean(batch=200, repeats=10), mean(batch=200))
