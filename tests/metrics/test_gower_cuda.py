"""Neighbours from the kernel equal the CPU's: on a device where there is one, else lane by lane in C++."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices import needs_device
from emulated import CXX, LIBRARY, Numpy, emulated, ptx
from evenhand import audit, cuda
from evenhand.metrics import consistency, gower, gower_cuda
from evenhand.metrics.gower import as_frame, gower_neighbours
from evenhand.metrics.gower_coarse import coarsen, largest_span
from evenhand.metrics.gower_cuda import (
    BLOCK,
    FARTHEST,
    GROUP,
    MOST_UNROLLED,
    source_of,
)
from evenhand.metrics.gower_features import features_of, scales_of
from evenhand.metrics.gower_kernel import MISSING, between


def people(n, numbers=3, categories=4, *, holes=0.0, whole=False, copies=1, seed=0):
    rng = np.random.default_rng(seed)
    columns = {}
    for at in range(numbers):
        values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        columns[f"number{at}"] = np.round(values) if whole else values
    for at in range(categories):
        columns[f"category{at}"] = rng.choice(list("abcdefgh")[: rng.integers(1, 9)], n).astype(object)
    frame = pd.DataFrame(columns)
    if holes:
        frame = frame.mask(rng.random(frame.shape) < holes)
    return frame.iloc[rng.integers(0, n // copies, n)].reset_index(drop=True) if copies > 1 else frame


def kinds(frame):
    return [name for name in frame if name.startswith("category")]


CASES = {
    "numbers and categories": (people(700), 5, None),
    "ties": (people(500, whole=True, numbers=2, categories=3), 7, None),
    "copies of each other": (people(900, copies=20), 6, None),
    "everybody alike": (pd.DataFrame({"number": [30.0] * 700, "category": ["cook"] * 700}), 3, None),
    "k near n": (people(60), 59, None),
    "two people": (people(2), 1, None),
    "one number": (people(600, 1, 0), 4, None),
    "one category": (people(600, 0, 1), 4, None),
    "all categories": (people(600, 0, 9), 4, None),
    "all numbers": (people(600, 8, 0), 4, None),
    "a number without a range": (people(300).assign(number1=7.0), 4, None),
    "missing values": (people(600, holes=0.3), 5, None),
    "mostly missing": (people(300, holes=0.9), 5, None),
    "some missing values": (people(600).assign(number1=people(600, holes=0.2)["number1"]), 5, None),
    "weights": (people(600), 5, {"number0": 2.5, "category1": 0.3, "category2": 0}),
    "one heavy column": (people(600), 5, {"number0": 1000.0}),
    "one column in every box": (people(BLOCK * GROUP + 1), 5, None),
    "more columns than are unrolled": (people(200, MOST_UNROLLED, 5, holes=0.02), 4, None),
    "more categories than codes": (
        pd.DataFrame({"category": np.r_[np.arange(34_000), 7].astype(str), "number": np.r_[np.arange(34_000.0), 7]}), 2, None
    ),
}  # fmt: skip


def assert_same(frame, k, weights=None, asked=None):
    given = {"weights": weights, "categorical": kinds(frame), "people": asked}
    want, got = (gower_neighbours(frame, k, engine=engine, **given) for engine in ("cpu", "cuda"))
    np.testing.assert_array_equal(got.indices, want.indices)
    np.testing.assert_array_equal(got.similarity, want.similarity)
    assert got.indices.dtype == want.indices.dtype


@pytest.mark.skipif(CXX is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("case", CASES)
def test_lanes_one_by_one_find_the_neighbours_of_the_cpu(case, monkeypatch):
    for module in (cuda, gower_cuda):
        monkeypatch.setattr(module, "cupy", Numpy)
    monkeypatch.setattr(gower_cuda, "compiled", lambda source: emulated(source, "nearest"))
    monkeypatch.setattr(gower_cuda, "ASKED_A_LAUNCH", 256)
    frame = CASES[case][0]
    assert_same(*CASES[case], asked=np.random.default_rng(0).permutation(len(frame))[:900])


@given(
    n=st.integers(2, 60), numbers=st.integers(0, 4), categories=st.integers(0, 4), whole=st.booleans(),
    holes=st.sampled_from([0.0, 0.3]), weight=st.sampled_from([1.0, 0.01, 300.0]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
@settings(max_examples=60)
def test_a_coarse_distance_bounds_the_exact_one(n, numbers, categories, whole, holes, weight, seed):
    if numbers + categories == 0:
        return
    frame = people(n, numbers, categories, holes=holes, whole=whole, seed=seed)
    features = features_of(frame, {frame.columns[0]: weight}, kinds(frame))
    scales = scales_of(features)
    span = min(largest_span(features.weights), float(FARTHEST))
    coarse, costs, margin = coarsen(features, scales, span)
    exact = between(*features, scales, np.arange(n), np.arange(n)).astype(float)
    total = np.zeros((n, n), np.int64)
    for f, row in enumerate(coarse.astype(np.int64)):
        apart = abs(row[:, None] - row) if f < numbers else (row[:, None] != row) * int(costs[f])
        total += np.where((row[:, None] == MISSING) | (row == MISSING), 0, apart)
    assert costs.sum(dtype=np.int64) <= FARTHEST
    assert total.max() <= FARTHEST
    assert (total <= exact * (1 + 1e-6) * span + margin).all()


@pytest.mark.skipif(LIBRARY is None, reason="nvidia-cuda-nvrtc-cu12 is not installed")
@pytest.mark.parametrize(
    ("numbers", "categories", "holed"), [(6, 8, 0), (6, 8, 1), (0, 3, 0), (1, 0, 0), (150, 4, 1)]
)
def test_the_kernel_compiles(numbers, categories, holed):
    features = numbers + categories
    failed, text = ptx(source_of([400] * features, [holed] * features, numbers), "--fmad=false")
    assert not failed, text
    assert ".entry nearest(" in text


def test_an_engine_that_is_not_there_is_named(monkeypatch):
    frame = people(20)
    with pytest.raises(ValueError, match="Got engine='gpu', but expected"):
        gower_neighbours(frame, 2, engine="gpu")
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    for ask in (gower_neighbours, lambda X, engine: consistency([0] * 20, X=X, engine=engine)):
        with pytest.raises(ImportError, match=r"engine='cuda' needs: pip install 'evenhand\[cuda\]'"):
            ask(frame, engine="cuda")


@pytest.mark.parametrize("case", [pytest.param(case, marks=needs_device) for case in CASES])
def test_a_device_finds_the_neighbours_of_the_cpu(case):
    assert_same(*CASES[case])


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=needs_device) for seed in range(8)])
def test_a_device_finds_the_neighbours_of_any_table(seed):
    rng = np.random.default_rng(seed)
    n, numbers = int(rng.integers(2, 5000)), int(rng.integers(0, 7))
    frame = people(
        n, numbers, int(rng.integers(numbers == 0, 9)), holes=float(rng.choice([0, 0.1])),
        whole=bool(rng.integers(2)), copies=int(rng.integers(1, 3)) if n > 9 else 1, seed=seed,
    )  # fmt: skip
    assert_same(frame, int(rng.integers(1, min(n, 40))))


@pytest.mark.parametrize("holes", [pytest.param(holes, marks=needs_device) for holes in (0.0, 0.05)])
def test_a_device_finds_the_neighbours_of_many(holes, monkeypatch):
    frame = people(100_000, 6, 8, holes=holes)
    asked = np.random.default_rng(1).integers(0, 100_000, 3000)
    assert_same(frame, 5, asked=asked)
    everybody = gower_neighbours(frame, 5, categorical=kinds(frame), engine="cuda")
    some = gower_neighbours(frame, 5, categorical=kinds(frame), people=asked)
    np.testing.assert_array_equal(everybody.indices[asked], some.indices)
    np.testing.assert_array_equal(everybody.similarity[asked], some.similarity)
    monkeypatch.setattr(gower_cuda, "ASKED_A_LAUNCH", 32 * 1001)
    again = gower_neighbours(frame, 5, categorical=kinds(frame), engine="cuda")
    np.testing.assert_array_equal(again.indices, everybody.indices)


@pytest.fixture
def pretended(monkeypatch):
    """A GPU that is none: searches are handed over, and done on the CPU; returns how many people each had."""
    asked = []

    def search(features, scales, people, k):
        asked.append(len(people))
        return gower._on_cpu(features, scales, people, k, 1)

    monkeypatch.setattr(cuda, "cupy", lambda: None)
    monkeypatch.setattr(gower, "on_gpu", search)
    return asked


def audited(engine, where=as_frame):
    frame = people(300, holes=0.1).assign(sex=["f", "m", "m"] * 100, said=["yes", "no"] * 150)
    options = {"sensitive_features": "sex", "n_bootstrap": 10, "engine": engine, "neighbour_people": 120}
    return audit("said", where(frame), None, **options).metrics


@pytest.mark.parametrize("where", ["in memory", "counted"])
def test_audits_and_consistency_hand_their_search_over(pretended, where):
    where = pytest.importorskip("duckdb").from_df if where == "counted" else as_frame
    pd.testing.assert_frame_equal(audited("cuda", where), audited("cpu", where))
    frame, decided = people(50), np.arange(50) % 3
    assert consistency(decided, X=frame, engine="cuda") == consistency(decided, X=frame)
    assert pretended == [120, 50]


@pytest.mark.parametrize("engine", [pytest.param("cuda", marks=needs_device)])
def test_an_audit_is_the_same_on_a_device(engine):
    pd.testing.assert_frame_equal(audited(engine), audited("cpu"))
