from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.baselines._chaining import choose_from_chains, play_rounds

intervals = st.lists(
    st.tuples(st.floats(-10, 10), st.floats(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=12,
)


def obvious_chain(ends, left):
    """Whoever overlaps, through any number of others, with the one of the highest upper end."""
    chain = {max(left, key=lambda i: ends[i][1])}
    while True:
        more = {i for i in left if any(ends[i][0] <= ends[j][1] and ends[j][0] <= ends[i][1] for j in chain)}
        if more == chain:
            return chain
        chain = more


@given(intervals, st.randoms(use_true_random=False))
def test_each_choice_is_in_the_top_chain_of_those_left(ends, random):
    lower, upper = (np.array(side) for side in zip(*ends, strict=True))
    draws = np.array([random.random() for _ in ends])
    left = set(range(len(ends)))
    for chosen in choose_from_chains(lower, upper, draws):
        assert chosen in obvious_chain(ends, left)
        left.remove(chosen)
    assert not left


@given(intervals)
def test_everyone_in_the_top_chain_can_be_chosen_and_no_one_else(ends):
    lower, upper = (np.array(side) for side in zip(*ends, strict=True))
    size = len(obvious_chain(ends, set(range(len(ends)))))
    draws = (np.arange(size) + 0.5) / size
    reached = {int(choose_from_chains(lower, upper, np.array([draw]))[0]) for draw in draws}
    assert reached == obvious_chain(ends, set(range(len(ends))))


def obvious_rounds(rows, rewards, groups, presented, draws, penalty, delta):
    """The method as it is written down: a fresh inverse for every interval."""
    n_groups, d = presented.shape[1], rows.shape[1]
    V = [penalty * np.eye(d) for _ in range(n_groups)]
    b = [np.zeros(d) for _ in range(n_groups)]
    selected = []
    for t, people in enumerate(presented, start=1):
        ends = []
        for arm, person in enumerate(people):
            x, inverse = rows[person], np.linalg.inv(V[arm])
            width = math.sqrt(x @ inverse @ x) * (
                math.sqrt(d * math.log((1 + t / penalty) / delta)) + math.sqrt(penalty)
            )
            estimate = inverse @ b[arm] @ x
            ends.append((estimate - width, estimate + width))
        chain = sorted(obvious_chain(ends, set(range(n_groups))), key=lambda i: -ends[i][1])
        arm = chain[int(draws[t - 1] * len(chain))]
        person = people[arm]
        V[arm] += np.outer(rows[person], rows[person])
        b[arm] += rewards[person] * rows[person]
        selected.append(person)
    coef = np.array([np.linalg.solve(V[arm], b[arm]) for arm in range(n_groups)])
    return coef, np.array([np.linalg.inv(one) for one in V]), selected


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_rounds_equal_the_obvious_ones(n_groups):
    rng = np.random.default_rng(n_groups)
    rows = rng.normal(size=(60, 4)) * 3
    rewards = rng.integers(0, 2, 60).astype(float)
    groups = np.arange(60) % n_groups
    presented = np.column_stack([rng.choice(np.flatnonzero(groups == g), 200) for g in range(n_groups)])
    draws = rng.random(200)
    coef, inverse = np.zeros((n_groups, 4)), np.repeat(np.eye(4)[None] / 0.5, n_groups, axis=0)
    selected = np.empty(200, dtype=np.int64)
    for start, stop in ((0, 77), (77, 200)):
        play_rounds(rows, rewards, presented, draws, start, stop, 0.5, 1.0, coef, inverse, selected)
    wanted_coef, wanted_inverse, wanted = obvious_rounds(rows, rewards, groups, presented, draws, 0.5, 1.0)
    assert selected.tolist() == wanted
    assert np.allclose(coef, wanted_coef)
    assert np.allclose(inverse, wanted_inverse)


def test_thousands_of_rank_one_updates_keep_the_inverse():
    rng = np.random.default_rng(0)
    rows = (rng.random((5000, 30)) < 0.2) * rng.normal(size=(5000, 30))
    coef, inverse = np.zeros((1, 30)), np.eye(30)[None].copy()
    order = np.arange(5000)[:, None]
    play_rounds(
        rows, np.ones(5000), order, np.zeros(5000), 0, 5000, 1.0, 0.5, coef, inverse, np.empty(5000, np.int64)
    )
    V = np.eye(30) + rows.T @ rows
    assert np.allclose(inverse[0] @ V, np.eye(30), atol=1e-9)
    assert np.allclose(coef[0], np.linalg.solve(V, rows.sum(axis=0)))
