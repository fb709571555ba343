"""People as Gower's similarity sees them: numbers and their scales, codes of categories, and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.arrays import Floats
from evenhand.checks import check_columns

UNIT = 2.0**40  # each feature's share of a distance is a whole number of units: sums are exact in any order


class Features(NamedTuple):
    """The features to compare, column by column."""

    numbers: Floats  # (people, numbers), NaN where missing
    codes: npt.NDArray[np.int32]  # (people, categories), -1 where missing
    weights: Floats  # numbers first, then categories


def features_of(frame: pd.DataFrame, weights: Any, categorical: Any) -> Features:
    """Return the columns with positive weight; the largest weight becomes UNIT."""
    weight_of = _weights(frame, weights)
    categories = set(_default_categories(frame) if categorical is None else categorical)
    check_columns("categorical", categories, frame.columns, "X has")
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
    return Features(values, codes, units)


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
    check_columns("weights", given, frame.columns, "X has")
    for name, weight in given.items():
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"Got weight {weight!r} for column {name!r}, but expected 0 or more, finite.")
    weight_of = {name: float(given.get(name, 1.0)) for name in columns}
    if not any(weight_of.values()):
        raise ValueError("Got only zero weights, but expected at least one above zero.")
    return weight_of


def scales_of(features: Features) -> Floats:
    """Return the factor for each number's difference; a number without a range is set to 0 for everybody."""
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
