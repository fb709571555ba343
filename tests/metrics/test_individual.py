from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.metrics.divergence import DIVERGENCES
from evenhand.metrics.gower import gower_neighbours
from evenhand.metrics.individual import (
    consistency,
    consistency_from_neighbours,
    flip_rate,
    metric_free_gap,
    person_flips,
    person_gaps,
)

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 6))
def test_consistency_is_the_papers_formula_for_two_decisions(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    X, decisions = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    indices = gower_neighbours(X, k).indices
    off = [abs(decisions[i] - np.mean([decisions[j] for j in indices[i]])) for i in range(20)]
    want = 1 - np.mean(off)
    assert consistency(decisions, X=X, k=k) == pytest.approx(want)
    assert consistency(np.where(decisions, "yes", "no"), neighbours=indices) == pytest.approx(want)


def test_consistency_of_many_checkpoints_and_of_some_people() -> None:
    rng = np.random.default_rng(0)
    near = gower_neighbours(rng.normal(size=(50, 2)), 4)
    checkpoints = rng.integers(0, 3, (7, 50))
    together = consistency_from_neighbours(checkpoints, near.indices)
    assert together.tolist() == pytest.approx([consistency(row, neighbours=near) for row in checkpoints])
    some = np.array([4, 40, 9])
    for row, got in zip(
        checkpoints, consistency_from_neighbours(checkpoints, near.indices[some], some), strict=True
    ):
        apart = [np.mean(row[near.indices[i]] != row[i]) for i in some]
        assert got == pytest.approx(1 - np.mean(apart))


def test_everybody_alike_is_consistent() -> None:
    assert consistency([1, 1, 1, 1], X=[[1], [2], [3], [4]], k=2) == 1


@given(seeds, st.integers(1, 4), st.integers(2, 4), st.sampled_from(sorted(DIVERGENCES)))
def test_gaps_and_flips_equal_loops_over_people_and_groups(
    seed: int, n_groups: int, n_actions: int, name: str
) -> None:
    rng = np.random.default_rng(seed)
    said = rng.dirichlet(np.ones(n_actions), size=(12, n_groups))
    own = rng.integers(0, n_groups, 12)
    gaps, flips = [], []
    for i in range(12):
        others = [g for g in range(n_groups) if g != own[i]]
        gaps.append(max((DIVERGENCES[name](said[i, own[i]], said[i, g]) for g in others), default=0.0))
        flips.append(any(said[i, g].argmax() != said[i, own[i]].argmax() for g in others))
    np.testing.assert_allclose(person_gaps(said, own, divergence=name), gaps)
    found = metric_free_gap(said, own, divergence=name, epsilon=0.1)
    assert found.mean == pytest.approx(np.mean(gaps))
    assert found.p95 == pytest.approx(np.quantile(gaps, 0.95))
    assert found.maximum == pytest.approx(max(gaps))
    assert found.share == np.mean([gap >= 0.1 for gap in gaps])
    np.testing.assert_array_equal(person_flips(said.argmax(axis=2), own), flips)
    assert flip_rate(said.argmax(axis=2), own) == np.mean(flips)


def test_epsilon_itself_counts() -> None:
    by_group = [[[0.9, 0.1], [0.6, 0.4]]]
    assert metric_free_gap(by_group, [0], divergence="total_variation", epsilon=0.3).share == 1
    assert metric_free_gap(by_group, [0], divergence="total_variation", epsilon=0.301).share == 0


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    good = [[[0.5, 0.5], [0.5, 0.5]]] * 3
    for said, own, message in [
        ([[[0.5, 0.6], [0.5, 0.5]]], [0], r"probabilities_by_group\[\(0, 0\)\].*sum to one"),
        ([[[0.5, np.nan], [0.5, 0.5]]], [0], "sum to one"),
        ([[[1.5, -0.5], [0.5, 0.5]]], [0], "sum to one"),
        ([[0.5, 0.5]], [0], r"expected \(people, groups, actions\)"),
        (good, [0, 1], r"own of shape \(2,\)"),
        (good, ["f", "m", "m"], "position of the group"),
        (good, [0, 1, 2], "groups 0 to 2 in own, but expected 0 to 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            metric_free_gap(said, own)
    with pytest.raises(ValueError, match="Did you mean 'kl'"):
        metric_free_gap(good, [0, 0, 0], divergence="k")
    with pytest.raises(ValueError, match="Got epsilon=-1"):
        metric_free_gap(good, [0, 0, 0], epsilon=-1)
    with pytest.raises(ValueError, match=r"decisions_by_group of shape \(3,\)"):
        flip_rate([0, 1, 1], [0, 0, 0])
    with pytest.raises(ValueError, match="both or neither of X and neighbours"):
        consistency([0, 1])
    with pytest.raises(ValueError, match="Got 2 decisions and neighbours of shape"):
        consistency([0, 1], neighbours=np.zeros((3, 1), dtype=int))
    with pytest.raises(ValueError, match=r"y_pred of shape \(2, 2\)"):
        consistency([[0, 1], [1, 0]], neighbours=np.zeros((2, 1), dtype=int))
    with pytest.raises(ValueError, match="Got k=5, but expected less than the number of people, 2"):
        consistency([0, 1], X=[[1], [2]])
