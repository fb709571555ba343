"""Gower's nearest neighbours against faiss, scikit-learn and the `gower` package, in one run.

    python benchmarks/gower.py                 # about two minutes on two cores
    python benchmarks/gower.py --people 2000   # a quick look

Uniformly random people, which prune worst: 6 numbers and 8 categories of 12 values. All find 5 neighbours on
all cores; faiss and scikit-learn search by L1 on one-hot columns (a category counts half a column twice),
which gives the same order. Shown: the best time of several, and how many times ours it is. The last line is
the added peak memory and time of 115,143 people × 126 features, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import options
import pandas as pd
from peak import measured

from evenhand.metrics import gower_neighbours

K = 5
sys.path.pop(0)  # This folder: else `import gower` would find this file.


def best_of(times: int, work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def uniform_people(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    numbers, codes = rng.random((n, 6)), rng.integers(0, 12, (n, 8))
    frame = pd.DataFrame(numbers).add_prefix("number")
    for at in range(8):
        frame[f"category{at}"] = pd.Categorical.from_codes(codes[:, at], list("abcdefghijkl"))
    scaled = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0)
    one_hot = (codes[:, :, None] == np.arange(12)).reshape(n, -1) * 0.5
    return frame, np.hstack([scaled, one_hot]).astype(np.float32)


def by_faiss(one_hot: np.ndarray) -> np.ndarray:
    import faiss

    index = faiss.IndexFlat(one_hot.shape[1], faiss.METRIC_L1)
    index.add(one_hot)
    return index.search(one_hot, K + 1)[0]


def by_sklearn(one_hot: np.ndarray) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=K, metric="manhattan", algorithm="brute", n_jobs=-1).fit(one_hot)
    return search.kneighbors()[0]


def by_gower(frame: pd.DataFrame) -> np.ndarray:
    import gower

    category = [name.startswith("category") for name in frame]
    return np.argsort(gower.gower_matrix(frame.astype(object), cat_features=category), axis=1)[:, 1 : K + 1]


def compare(n: int, with_gower: bool) -> None:
    frame, one_hot = uniform_people(n)
    ours = best_of(7, lambda: gower_neighbours(frame, K))
    print(f"{n:>7,} people × 14   evenhand     {ours:8.3f} s", flush=True)
    theirs = by_sklearn(one_hot[:500])  # warm up, and show that the task is the same
    small = 1 - gower_neighbours(frame[:500], K).similarity
    assert np.allclose(small * 14, theirs, atol=0.05), "not the same neighbours"
    peers: list[tuple[str, Callable[[], Any], int]] = [
        ("faiss", lambda: by_faiss(one_hot), 3),
        ("scikit-learn", lambda: by_sklearn(one_hot), 2),
        ("gower", lambda: by_gower(frame), 1),
    ]
    for name, work, times in peers:
        module = {"scikit-learn": "sklearn"}.get(name, name)
        if find_spec(module) is None:
            print(f"{'':20}  {name:<12} not installed, skipped")
        elif name != "gower" or with_gower:
            taken = best_of(times, work)
            print(f"{'':20}  {name:<12} {taken:8.3f} s  {taken / ours:8.1f} ×", flush=True)


def large() -> None:
    """115,143 people × 126 features, mostly counts with many zeros, as in the Health data."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.poisson(rng.gamma(0.3, 2.0, (115_143, 1)), (115_143, 126)).astype(np.float32))
    gower_neighbours(X[:1000], K)
    took = measured(lambda: gower_neighbours(X, K))[1]
    print(f"115,143 people × 126  evenhand     {took['seconds']:8.1f} s  {took['megabytes']:8.0f} MB added")


if __name__ == "__main__":
    chosen = options.asked(
        __doc__,
        people={"type": int, "help": "only this many people, all peers"},
        large={"action": "store_true", "help": "only the large table"},
    )
    if chosen.large:
        large()
    elif chosen.people:
        compare(chosen.people, with_gower=True)
    else:
        compare(7_300, with_gower=True)
        compare(22_000, with_gower=False)
        subprocess.run([sys.executable, __file__, "--large"], check=True)
