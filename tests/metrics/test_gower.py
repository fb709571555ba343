from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evenhand.metrics.gower import gower_neighbours
from evenhand.metrics.gower_features import UNIT


def missing(value: Any) -> bool:
    return value is None or value != value


def by_double_loop(frame: pd.DataFrame, k: int, weights: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """The definition, one pair and one feature at a time."""
    unit = {name: round(weights.get(name, 1) / max(weights.values()) * UNIT) for name in frame}
    is_number = {name: pd.api.types.is_numeric_dtype(frame[name]) for name in frame}
    rows = [list(row) for row in frame.itertuples(index=False)]
    spans = {}
    for name in frame:
        if is_number[name]:
            known = [value for value in frame[name] if not missing(value)]
            spans[name] = max(known) - min(known) if known else 0
    indices, similarity = [], []
    for i, mine in enumerate(rows):
        found = []
        for j, theirs in enumerate(rows):
            total = weight = 0
            for name, a, b in zip(frame, mine, theirs, strict=True):
                if missing(a) or missing(b):
                    continue
                weight += unit[name]
                if not is_number[name]:
                    total += unit[name] * (a != b)
                elif spans[name] > 0:
                    total += round(abs(a - b) * (unit[name] / spans[name]))
            if i != j:
                found.append((total / weight if weight else 1.0, j))
        found.sort()
        indices.append([j for _, j in found[:k]])
        similarity.append([1 - distance for distance, _ in found[:k]])
    return np.array(indices), np.array(similarity)


def people(seed: int, n: int, *, whole: bool, holes: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for at in range(rng.integers(0, 4)):
        values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        columns[f"number{at}"] = np.round(values) if whole else values
    for at in range(rng.integers(0 if columns else 1, 11)):
        columns[f"category{at}"] = rng.choice(list("abcde")[: rng.integers(1, 6)], n).astype(object)
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < holes) if holes else frame


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 40),
    whole=st.booleans(),
    holes=st.sampled_from([0.0, 0.2, 0.8]),
    data=st.data(),
)
def test_equals_the_double_loop_ties_included(
    seed: int, n: int, whole: bool, holes: float, data: st.DataObject
) -> None:
    frame = people(seed, n, whole=whole, holes=holes)
    k = data.draw(st.integers(1, n - 1))
    weights = {name: data.draw(st.sampled_from([1.0, 0.3, 2.5])) for name in frame}
    kinds = [name for name in frame if name.startswith("category")]
    got = gower_neighbours(frame, k, weights=weights, categorical=kinds, n_jobs=1)
    want, similarity = by_double_loop(frame.astype(dict.fromkeys(kinds, object)), k, weights)
    np.testing.assert_array_equal(got.indices, want)
    np.testing.assert_allclose(got.similarity, similarity, rtol=0, atol=1e-15)


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_equals_the_double_loop_over_many_blocks(holes: float) -> None:
    frame = people(4, 700, whole=True, holes=holes)
    kinds = [name for name in frame if name.startswith("category")]
    assert 0 < len(kinds) < frame.shape[1]
    want, _ = by_double_loop(frame.astype(dict.fromkeys(kinds, object)), 5, {"category0": 1})
    for n_jobs in (1, 2):
        got = gower_neighbours(frame, 5, categorical=kinds, n_jobs=n_jobs)
        np.testing.assert_array_equal(got.indices, want)


def test_many_people_alike_come_by_index() -> None:
    frame = pd.DataFrame({"age": [30.0] * 900, "job": ["cook"] * 900})
    near = gower_neighbours(frame, 3)
    assert near.indices[:5].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]]
    assert (near.indices[5:] == [0, 1, 2]).all()
    assert (near.similarity == 1).all()


def test_a_sum_of_shares_does_not_depend_on_their_order() -> None:
    # 0.1 + 0.2 + 0.3 in two orders differ in the last bit of a float; the two people are equally near.
    frame = pd.DataFrame(
        {"a": [0.0, 0.3, 0.1, 1.0], "b": [0.0, 0.2, 0.2, 1.0], "c": [0.0, 0.1, 0.3, 1.0], "d": [0.0, 0, 0, 1]}
    )
    near = gower_neighbours(frame, 3)
    assert near.indices[0].tolist() == [1, 2, 3]
    assert near.similarity[0, 0] == near.similarity[0, 1]


def test_more_categories_than_16_bits_hold() -> None:
    rng = np.random.default_rng(0)
    names = np.arange(40_000)
    frame = pd.DataFrame({"id": names.astype(str), "x": rng.random(40_000)})
    frame.loc[39_999, "id"] = "7"
    near = gower_neighbours(frame, 1, people=[7, 39_999, 32_756])
    assert near.indices[:2, 0].tolist() == [39_999, 7]
    # 32,756 and 7 share a coarse code; they are different people all the same.
    gaps = np.abs(frame["x"].to_numpy() - frame["x"][32_756])
    gaps[32_756] = np.inf
    assert near.indices[2, 0] == np.argmin(gaps)


def test_people_asked_for_are_searched_among_all() -> None:
    frame = people(6, 300, whole=False, holes=0)
    everybody = gower_neighbours(frame, 4)
    some = gower_neighbours(frame, 4, people=[250, 3, 3, 77])
    np.testing.assert_array_equal(some.indices, everybody.indices[[250, 3, 3, 77]])
    np.testing.assert_array_equal(some.similarity, everybody.similarity[[250, 3, 3, 77]])


def test_tables_and_arrays_of_every_kind_agree() -> None:
    frame = pd.DataFrame({"a": [1, 5, 2, 9, 4], "b": [True, False, True, True, False], "c": list("xyxyx")})
    want = gower_neighbours(frame, 2).indices
    for same in (
        pl.from_pandas(frame),
        frame.to_numpy(dtype=object),
        frame.astype({"a": "Int64", "b": "boolean", "c": "category"}),
        frame.assign(a=pd.to_datetime("2020-01-01") + pd.to_timedelta(frame["a"], unit="D")),
    ):
        np.testing.assert_array_equal(gower_neighbours(same, 2).indices, want)
    numbers = np.array([[1, 0], [5, 1], [2, 0], [9, 1]], dtype=np.float32)
    as_category = gower_neighbours(numbers, 1, categorical=[1])
    assert as_category.indices.ravel().tolist() == [2, 3, 0, 1]


def test_weights_by_name_leave_the_others_at_one() -> None:
    frame = pd.DataFrame({"a": [0.0, 1, 0], "b": ["x", "x", "y"]})
    assert gower_neighbours(frame, 1).indices[0] == 1
    assert gower_neighbours(frame, 1, weights={"b": 0.5}).indices[0] == 2
    assert gower_neighbours(frame, 1, weights=[0, 1]).similarity[0] == 1
    assert gower_neighbours(frame, 1, weights={"b": 0.5}).similarity[0] == pytest.approx(1 - 0.5 / 1.5)


def test_nothing_in_common_is_similarity_zero() -> None:
    frame = pd.DataFrame({"a": [1.0, math.nan, 2.0], "b": [math.nan, 1.0, 1.0]})
    near = gower_neighbours(frame, 2)
    assert near.indices[0].tolist() == [1, 2]  # both at distance 1
    assert near.similarity[0].tolist() == [0, 0]
    assert near.similarity[1].tolist() == [1, 0]


@pytest.mark.parametrize("extreme", [1e-320, 1e308])
def test_a_range_no_float_can_divide_by_counts_as_none(extreme: float) -> None:
    frame = pd.DataFrame({"a": [extreme, -extreme, 0.0], "b": ["x", "y", "x"]})
    assert gower_neighbours(frame, 1).indices.ravel().tolist() == [2, 0, 0]


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    frame = pd.DataFrame({"age": [1.0, 2, 3], "job": ["a", "b", "c"]})
    for arguments, message in [
        ({"k": 3}, "Got k=3, but expected less than the number of people, 3"),
        ({"k": 0}, "whole number of at least 1"),
        ({"weights": [1, 2, 3]}, "Got 3 weights, but expected one for each of 2 columns"),
        ({"weights": {"agee": 1}}, "Got 'agee' in weights.*Did you mean 'age'"),
        ({"weights": {"age": -1}}, "Got weight -1 for column 'age'"),
        ({"weights": [0, 0]}, "only zero weights"),
        ({"categorical": ["jobs"]}, "Got 'jobs' in categorical.*Did you mean 'job'"),
        ({"categorical": []}, "Column 'job' holds no numbers; name it in categorical"),
        ({"people": [3]}, "expected 0 to 2"),
        ({"people": [0.5]}, "positions of rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            gower_neighbours(frame, **{"k": 1, **arguments})
    with pytest.raises(ValueError, match="infinite value in column 'age'"):
        gower_neighbours(frame.assign(age=[1, math.inf, 2]), 1)
    with pytest.raises(ValueError, match=r"shape \(0, 2\)"):
        gower_neighbours(frame[:0], 1)
    with pytest.raises(ValueError, match="column 'age' more than once"):
        gower_neighbours(frame.set_axis(["age", "age"], axis=1), 1)
    with pytest.raises(TypeError, match="sparse matrix"):
        gower_neighbours(sparse.eye(4, format="csr"), 1)
