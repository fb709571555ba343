"""Exact nearest neighbours by Gower's similarity, on tables of numbers and categories.

Two people differ in a number by |difference| / range and in a category by 0 or 1. Their similarity is one
minus the weighted mean difference over the features. A feature that either person lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from evenhand.arrays import Codes, Floats
from evenhand.checks import integer, jobs
from evenhand.cuda import check_engine
from evenhand.frames import as_pandas
from evenhand.metrics import gower_kernel as kernel
from evenhand.metrics.gower_coarse import (
    coarsen,
    lay_out,
    on_cache_lines,
    places_of,
    similar_first,
    span_of,
    together_of,
)
from evenhand.metrics.gower_cuda import on_gpu
from evenhand.metrics.gower_features import Features, features_of, scales_of


class Neighbours(NamedTuple):
    """Each person's nearest neighbours, nearest first: positions and similarities, both (people, k)."""

    indices: Codes
    similarity: Floats


def gower_neighbours(
    X: Any,
    k: int = 5,
    *,
    weights: Mapping[Any, float] | Sequence[float] | None = None,
    categorical: Sequence[Any] | None = None,
    people: npt.ArrayLike | None = None,
    n_jobs: int = -1,
    engine: str = "cpu",
) -> Neighbours:
    """Return each person's k nearest neighbours in X by Gower's similarity.

    The search is exact and needs no people × people matrix. Equally similar people come in the order of their
    index. Each feature's share of a distance is rounded to 2⁻⁴⁰ (10⁻¹²) of the largest weight before the
    shares are summed. So ties do not depend on the order of the columns or the number of threads.

    Parameters
    ----------
    X : DataFrame or 2-d array
        One row per person. Missing values are None or NaN.
    k : int
        The number of neighbours; less than the number of people.
    weights : mapping of column to weight, or one weight per column
        1 for each column by default, and for columns that a mapping leaves out.
    categorical : columns, by name or (for an array) position
        By default the columns that are neither numbers nor dates; True and False are categories.
    people : positions of rows
        The people to find neighbours for; everybody by default. Anybody in X can be a neighbour.
    n_jobs : int
        The number of threads; -1 uses all cores.
    engine : {'cpu', 'cuda'}
        Where the search runs. 'cuda' is a GPU and needs `evenhand[cuda]`. Both give the same result.

    Notes
    -----
    A number that is the same for everybody adds no difference. Two people with no feature in common have
    similarity 0. Ranges are taken from X.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [20, 30, 60, 21], "job": ["cook", "cook", "cook", "clerk"]})
    >>> near = gower_neighbours(X, k=2)
    >>> near.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [0, 1]]
    >>> near.similarity[0].tolist()
    [0.875, 0.5]
    """
    check_engine(engine)
    frame = as_frame(X)
    n = len(frame)
    if integer("k", k) >= n:
        raise ValueError(f"Got k={k}, but expected less than the number of people, {n}.")
    asked = _positions(people, n)
    features = features_of(frame, weights, categorical)
    if engine == "cuda":
        found = on_gpu(features, scales_of(features), asked, k)
    else:
        found = _on_cpu(features, scales_of(features), asked, k, jobs(n_jobs))
    return Neighbours(found[0], 1 - found[1])


def _on_cpu(features: Features, scales: Floats, asked: Codes, k: int, threads: int) -> tuple[Codes, Floats]:
    """Return the neighbours of the people at positions `asked`, and their distances."""
    span = span_of(features, scales, k)
    coarse, costs, margin = coarsen(features, scales, span)
    order = similar_first(coarse, costs, len(scales), kernel.BLOCK)
    blocks, low, high = (on_cache_lines(part) for part in lay_out(coarse, order, kernel.BLOCK))
    together = together_of(coarse, costs, len(scales))
    del coarse
    places = places_of(order, asked)
    by_place = np.argsort(places)

    def search(chosen: Codes) -> Any:
        return kernel.search(
            *features, scales, costs, together, margin, span, blocks, low, high, order, places[chosen], k
        )

    indices, distances = np.empty((len(asked), k), dtype=np.int64), np.empty((len(asked), k))
    parts = np.array_split(by_place, min(max(1, len(asked) // kernel.TILE), 16 * threads))
    with ThreadPoolExecutor(threads) as pool:
        for chosen, found in zip(parts, pool.map(search, parts), strict=True):
            indices[chosen], distances[chosen] = found
    return indices, distances


def gower_distances(
    X: Any, *, weights: Mapping[Any, float] | None = None, categorical: Sequence[Any] | None = None
) -> Callable[[Codes, Codes], npt.NDArray[np.float32]]:
    """Return a function that gives Gower's distances between people at two lists of positions in X.

    >>> distances = gower_distances({"age": [20, 30, 60], "job": ["cook", "cook", "clerk"]})
    >>> distances(np.array([0]), np.array([1, 2])).tolist()
    [[0.125, 1.0]]
    """
    features = features_of(as_frame(X), weights, categorical)
    scales = scales_of(features)
    return lambda ones, others: kernel.between(*features, scales, ones, others)


def as_frame(X: Any) -> pd.DataFrame:
    """Return X as a pandas DataFrame with one row per person; an array's columns are named by position."""
    if sparse.issparse(X):
        raise TypeError("Got a sparse matrix, but expected a table or dense array of the original features.")
    X = as_pandas(X)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    if 0 in frame.shape:
        raise ValueError(f"Got X of shape {frame.shape}, but expected at least one person and one feature.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"Got column {twice!r} more than once in X, but expected distinct names.")
    return frame.infer_objects()


def _positions(people: npt.ArrayLike | None, n: int) -> Codes:
    if people is None:
        return np.arange(n)
    asked = np.asarray(people)
    if asked.ndim != 1 or asked.size == 0 or asked.dtype.kind not in "iu":
        raise ValueError(f"Got people={people!r}, but expected positions of rows: a list of whole numbers.")
    if asked.min() < 0 or asked.max() >= n:
        raise ValueError(f"Got people from {asked.min()} to {asked.max()}, but expected 0 to {n - 1}.")
    return asked.astype(np.int64)
