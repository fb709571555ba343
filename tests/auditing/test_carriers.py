from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.auditing.carriers import agreeing, shapley
from evenhand.auditing.hybrids import Carriers, Model, Pairs, Surrogate, asked, carriers_of

CARRIERS = Carriers(list("abc"), [["a"], ["b"], ["c"]], None)


class Table:
    """Decides by a table of what is said for every combination of three binary columns."""

    classes_ = np.array([0, 1])

    def __init__(self, said: list[int]) -> None:
        self.said = np.array(said)

    def predict(self, X: pd.DataFrame) -> Any:
        return self.said[X["a"] + 2 * X["b"] + 4 * X["c"]]


def ask_of(said: list[int]) -> tuple[Model, Pairs]:
    """A model that says 0 of nobody's columns and 1 of all, and somebody with none of them beside all of them."""
    mine, theirs = (pd.DataFrame([[value] * 3], columns=list("abc")) for value in (0, 1))
    one = np.zeros(1, dtype=int)
    model = Model(Table([0, *said, 1]), mine, mine, None, one, [0, 1])
    return model, Pairs(mine, theirs, one, one, one, one, np.ones(1, dtype=int))


def by_hand(said: list[int]) -> np.ndarray:
    """Return Shapley values over all orders of three columns."""
    table, total = [0, *said, 1], np.zeros(3)
    for order in permutations(range(3)):
        have = 7
        for column in order:
            total[column] += table[have] - table[have - 2**column]
            have -= 2**column
    return total / 6


@settings(max_examples=25, deadline=None)
@given(said=st.lists(st.integers(0, 1), min_size=6, max_size=6))
def test_shares_are_shapley_values(said: list[int]) -> None:
    ask, pairs = ask_of(said)
    found = shapley(ask, CARRIERS, pairs, n_orders=2000, rng=np.random.default_rng(0))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found[0], by_hand(said), atol=0.06)


def test_columns_in_which_a_pair_does_not_differ_carry_nothing() -> None:
    ask, pairs = ask_of([0, 1, 1, 0, 1, 1])
    same = replace(pairs, theirs=pairs.theirs.assign(a=0), reached=np.array([1]))
    found = shapley(ask, CARRIERS, same, n_orders=2, rng=np.random.default_rng(0))
    assert found[0, 0] == 0
    assert found.sum() == pytest.approx(1)


def test_pairs_are_mixed_column_by_column() -> None:
    ask, pairs = ask_of([1, 0, 0, 0, 0, 0])  # 1 for a alone, and for all three
    taken = np.array([[True, False, False], [False, True, False], [True, True, True]])
    assert asked(ask, CARRIERS, pairs, np.zeros(3, dtype=int), taken)[0].tolist() == [1, 0, 1]
    assert agreeing(ask, CARRIERS, pairs)[0].tolist() == [True]
    assert agreeing(ask, CARRIERS, replace(pairs, reached=np.zeros(1, dtype=int)))[0].tolist() == [False]


def test_a_surrogate_knows_categories_gaps_dates_and_the_group() -> None:
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "job": rng.choice(["cook", "clerk", None], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "pay": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    own = rng.integers(0, 2, n)
    decided = (
        (((frame["job"] == "cook") & (frame["since"] > "2021-01-01")) | (own == 1)).to_numpy().astype(int)
    )
    surrogate = Surrogate(frame, own, decided, 2, rng)
    assert surrogate.fidelity > 0.95
    carriers = carriers_of(surrogate, frame, [], "sex")
    assert (carriers.names, carriers.group) == (["job", "since", "pay", "sex"], 3)
    unseen = surrogate(frame.assign(job="carter"), np.zeros(n, dtype=int), np.arange(n))
    assert unseen[1].shape == (n, 2)


def test_a_model_s_carriers_are_the_columns_that_it_takes() -> None:
    frame = pd.DataFrame({"sex": ["f", "m"] * 5, "a": range(10), "b": range(10)})

    class Two:
        classes_ = np.array([0, 1])
        feature_names_in_ = np.array(["b", "sex"])

        def predict(self, X: pd.DataFrame) -> Any:
            return np.zeros(len(X), dtype=int)

    ask = Model(Two(), frame, frame, frame["sex"], np.array([0, 1] * 5), [0, 1])
    assert carriers_of(ask, frame, ["sex"], "sex") == (["b", "sex"], [["b"], ["sex"]], 1)
    ask = Model(Table([0] * 6), frame, frame[["a", "b"]], frame["sex"], np.array([0, 1] * 5), [0, 1])
    assert carriers_of(ask, frame, ["sex"], "sex") == (["a", "b"], [["a"], ["b"]], None)
