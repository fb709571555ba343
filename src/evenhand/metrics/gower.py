"""Exact nearest neighbours by Gower's similarity, on tables of numbers and categories.

Two people differ in a number by |difference| / range and in a category by 0 or 1; their similarity is one
minus the weighted mean over the features. A feature that one of the two lacks is left out of that pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from evenhand.arrays import Codes, Flags, Floats
from evenhand.checks import did_you_mean, integer
from evenhand.frames import as_pandas
from evenhand.metrics import gower_kernel as kernel

UNIT = 2.0**40  # a feature's share of a distance is a whole number of units: sums are exact in any order
COARSE_CODES = 32749


class Neighbours(NamedTuple):
    """Each person's nearest others, nearest first: positions and similarities, both (people, k)."""

    indices: Codes
    similarity: Floats


class _Features(NamedTuple):
    numbers: Floats  # (people, numbers), NaN where missing
    codes: npt.NDArray[np.int32]  # (people, categories), -1 where missing
    weights: Floats  # numbers first, then categories


def gower_neighbours(
    X: Any,
    k: int = 5,
    *,
    weights: Mapping[Any, float] | Sequence[float] | None = None,
    categorical: Sequence[Any] | None = None,
    people: npt.ArrayLike | None = None,
    n_jobs: int = -1,
) -> Neighbours:
    """Return each person's k nearest others in X by Gower's similarity.

    The search is exact and needs no people × people matrix. Equally similar people come in the order of
    their index. Each feature's share of a distance is rounded to 2⁻⁴⁰ (10⁻¹²) of the heaviest weight before
    the shares are added, so that sums equal to that tolerance are equal, whatever the order of the columns or
    the number of threads.

    Parameters
    ----------
    X : DataFrame or 2-d array
        One row per person. Missing values are None or NaN.
    k : int
        How many neighbours; less than the number of people.
    weights : mapping of column to weight, or one weight per column
        1 for every column by default, and for those a mapping leaves out.
    categorical : columns, by name or (for an array) position
        By default those that contain neither numbers nor dates; True and False are categories.
    people : positions of rows
        Whose neighbours are wanted, everybody's by default. All of X are candidates in any case.
    n_jobs : int
        Threads; -1 is all cores.

    Notes
    -----
    A number that is the same for everybody counts as no difference. Two people with no feature in common have
    similarity 0. Ranges are those of X.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [20, 30, 60, 21], "job": ["cook", "cook", "cook", "clerk"]})
    >>> near = gower_neighbours(X, k=2)
    >>> near.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [0, 1]]
    >>> near.similarity[0].tolist()
    [0.875, 0.5]
    """
    frame = as_frame(X)
    n = len(frame)
    if integer("k", k) >= n:
        raise ValueError(f"Got k={k}, but expected less than the number of people, {n}.")
    asked = _positions(people, n)
    features = _features(frame, weights, categorical)
    scales = _scales(features)
    span = _span(features, scales, k)
    coarse, costs, margin = _coarsen(features, scales, span)
    n_numbers = features.numbers.shape[1]
    order = kernel.similar_first(coarse, costs, n_numbers)
    blocks, low, high = kernel.lay_out(coarse, order)
    together = _together(coarse, costs, n_numbers)
    del coarse
    place_of = np.empty(n, dtype=np.int64)
    place_of[order] = np.arange(n)
    places = place_of[asked]
    by_place = np.argsort(places)

    def search(chosen: Codes) -> Any:
        return kernel.search(
            *features, scales, costs, together, margin, span, blocks, low, high, order, places[chosen], k
        )

    indices, similarity = np.empty((len(asked), k), dtype=np.int64), np.empty((len(asked), k))
    threads = joblib.effective_n_jobs(n_jobs)
    parts = np.array_split(by_place, min(max(1, len(asked) // kernel.TILE), 16 * threads))
    with ThreadPoolExecutor(threads) as pool:
        for chosen, (who, distance) in zip(parts, pool.map(search, parts), strict=True):
            indices[chosen], similarity[chosen] = who, 1 - distance
    return Neighbours(indices, similarity)


def gower_distances(
    X: Any, *, weights: Mapping[Any, float] | None = None, categorical: Sequence[Any] | None = None
) -> Callable[[Codes, Codes], npt.NDArray[np.float32]]:
    """Return a function of two lists of positions in X: Gower's distances from the ones to the others.

    >>> distances = gower_distances({"age": [20, 30, 60], "job": ["cook", "cook", "clerk"]})
    >>> distances(np.array([0]), np.array([1, 2])).tolist()
    [[0.125, 1.0]]
    """
    features = _features(as_frame(X), weights, categorical)
    scales = _scales(features)
    return lambda ones, others: kernel.between(*features, scales, ones, others)


def as_frame(X: Any) -> pd.DataFrame:
    """Return X as a pandas DataFrame, one row per person; an array's columns are named by position."""
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


def _features(frame: pd.DataFrame, weights: Any, categorical: Any) -> _Features:
    weight_of = _weights(frame, weights)
    categories = set(_default_categories(frame) if categorical is None else categorical)
    for name in categories:
        _known_column(name, frame, "categorical")
    used = [name for name in frame.columns if weight_of[name] > 0]
    numbers = [name for name in used if name not in categories]
    others = [name for name in used if name in categories]
    heaviest = max(weight_of.values())
    values = np.empty((len(frame), len(numbers)))
    for at, name in enumerate(numbers):
        values[:, at] = _numbers(frame[name])
    codes = np.empty((len(frame), len(others)), dtype=np.int32)
    for at, name in enumerate(others):
        codes[:, at] = pd.factorize(frame[name])[0]
    units = np.array([np.rint(weight_of[name] / heaviest * UNIT) for name in numbers + others])
    return _Features(values, codes, units)


def _default_categories(frame: pd.DataFrame) -> list[Any]:
    def is_category(kind: Any) -> bool:
        numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
        return not (numeric or pd.api.types.is_datetime64_any_dtype(kind))

    return [name for name in frame.columns if is_category(frame[name].dtype)]


def _numbers(column: pd.Series[Any]) -> Floats:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = (column - column.min()) / pd.Timedelta(1, "D")
    try:
        values = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Column {column.name!r} holds no numbers; name it in categorical ({error})."
        ) from error
    if np.isinf(values).any():
        raise ValueError(f"Got an infinite value in column {column.name!r}, but expected finite numbers.")
    return values


def _weights(frame: pd.DataFrame, weights: Any) -> dict[Any, float]:
    columns = list(frame.columns)
    if weights is None:
        given: dict[Any, Any] = {}
    elif isinstance(weights, Mapping):
        given = dict(weights)
    else:
        if len(weights) != len(columns):
            raise ValueError(
                f"Got {len(weights)} weights, but expected one for each of {len(columns)} columns."
            )
        given = dict(zip(columns, weights, strict=True))
    for name, weight in given.items():
        _known_column(name, frame, "weights")
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"Got weight {weight!r} for column {name!r}, but expected 0 or more, finite.")
    weight_of = {name: float(given.get(name, 1.0)) for name in columns}
    if not any(weight_of.values()):
        raise ValueError("Got only zero weights, but expected at least one above zero.")
    return weight_of


def _known_column(name: Any, frame: pd.DataFrame, argument: str) -> None:
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        raise ValueError(f"Got {name!r} in {argument}, but X has no such column.{hint}")


def _scales(features: _Features) -> Floats:
    """Return what each number's difference is multiplied with; a number without a range becomes 0 for all."""
    numbers = features.numbers
    scales = np.zeros(numbers.shape[1])
    for f in range(numbers.shape[1]):
        column = numbers[:, f]
        known = ~np.isnan(column)
        low, high = (column[known].min(), column[known].max()) if known.any() else (0.0, 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scale = features.weights[f] / (high - low)
        if 0 < scale < np.inf:
            scales[f] = scale
        else:  # no range, or one that no float can divide by
            column[known] = 0.0
    return scales


def _span(features: _Features, scales: Floats, k: int) -> float:
    """Return the coarse length of distance 1: the finer, the nearer the neighbours of a few people are.

    The least span resolves distance 1; the largest spends all 16 bits on the heaviest feature.
    """
    n, weights = len(features.numbers), features.weights
    others = np.unique(np.linspace(0, n - 1, max(1024, k + 1)).astype(np.int64))
    people = others[:: max(1, len(others) // 32)]
    farthest = kernel.farthest_neighbour(*features, scales, people, others, k)
    most = float(kernel.FARTHEST) * float(weights.sum() / weights.max())
    return float(min(most, float(kernel.FARTHEST) / min(1.0, max(1e-9, 2 * farthest))))


def _coarsen(features: _Features, scales: Floats, span: float) -> tuple[Any, Any, float]:
    """Return the coarse features, their costs, and by how much a coarse distance may exceed an exact one.

    Rounding a number down moves a difference by less than the spread of what was cut off: summed over the
    numbers that is the margin. A category's cost is rounded down, which only lowers the coarse distance.
    """
    numbers, codes, weights = features
    costs = np.minimum(np.floor(weights / weights.sum() * span), kernel.FARTHEST)
    coarse = np.empty((len(weights), len(numbers)), dtype=np.int16)
    margin = 1.0  # for the rounding of the exact distance's last bits
    for f, scale in enumerate(scales):
        column = numbers[:, f]
        missing = np.isnan(column)
        low = 0.0 if missing.all() else column[~missing].min()
        step = scale / weights.sum() * span
        if step >= 16 and (np.floor(column - low) == column - low)[~missing].all():
            step = np.floor(step)  # Whole numbers in whole steps: a little short, but nothing is cut off.
        fine = np.where(missing, 0.0, (column - low) * step)
        whole = np.minimum(np.floor(fine), costs[f])
        cut = fine - whole
        margin += cut.max() - cut.min()
        coarse[f] = np.where(missing, kernel.MISSING, whole)
    for c in range(codes.shape[1]):
        coarse[len(scales) + c] = np.where(codes[:, c] < 0, kernel.MISSING, codes[:, c] % COARSE_CODES)
    return coarse, costs.astype(np.uint16), margin


def _together(coarse: Any, costs: Any, n_numbers: int) -> Flags:
    """Return from which features on four can be added at once: one kind, none missing, no overflow."""
    whole = (coarse != kernel.MISSING).all(axis=1)
    n_features = len(costs)
    together = np.zeros(n_features, dtype=bool)
    for f in range(n_features - 3):
        alike = f >= n_numbers or f + 4 <= n_numbers
        room = costs[f : f + 4].sum(dtype=np.int64) + int(kernel.FARTHEST) <= 2**16 - 1
        together[f] = alike and room and whole[f : f + 4].all()
    return together
