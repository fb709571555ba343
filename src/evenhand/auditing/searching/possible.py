"""The people that a search may make up: all combinations of values in a table's ranges and categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Floats
from evenhand.auditing.ranges import ends_of, some_of
from evenhand.checks import check_columns
from evenhand.metrics.group_columns import one_hot_features
from evenhand.metrics.group_parts import joint_codes
from evenhand.tables.columns import is_number

GRID = 256  # evenly spaced numbers in a column's range, in addition to the numbers that people have


class Feature(NamedTuple):
    """The possible values of one column, or of the columns of one feature: one row per value."""

    values: pd.DataFrame
    ordered: int  # the number of values, at the start, that are sorted numbers or dates


class Possible(NamedTuple):
    """Possible people have one value of each feature; `real` has the values of people in the table."""

    features: list[Feature]
    real: Codes  # (people, features)
    people: Codes  # their positions in the table

    @property
    def sizes(self) -> Codes:
        """The number of values of each feature."""
        return np.array([len(feature.values) for feature in self.features])

    def rows(self, codes: Codes) -> pd.DataFrame:
        """Return people as rows of a table, with the table's types."""
        parts = (
            feature.values.iloc[codes[:, at]].reset_index(drop=True)
            for at, feature in enumerate(self.features)
        )
        return pd.concat(parts, axis=1)


def possible_people(
    frame: pd.DataFrame, together: Sequence[Sequence[Any]] = (), ranges: Mapping[Any, Any] | None = None
) -> Possible:
    """Return the possible people, by `ranges` or else by the values in the table.

    >>> possible = possible_people(pd.DataFrame({"age": [20, 22], "job": ["cook", "clerk"]}))
    >>> possible.sizes.tolist(), possible.rows(np.array([[1, 0]])).to_dict("records")
    ([3, 2], [{'age': 21, 'job': 'cook'}])
    """
    ranges = ranges or {}
    check_columns("together", (name for columns in together for name in columns), frame)
    check_columns("ranges", ranges, frame)
    taken = {name for columns in together for name in columns}
    rest = one_hot_features(frame[[name for name in frame.columns if name not in taken]])
    features, real = [], []
    for columns in (*map(list, together), *rest):
        column = frame[columns[0]]
        if len(columns) == 1 and (is_number(column) or pd.api.types.is_datetime64_any_dtype(column.dtype)):
            feature = _in_order(column, ranges.get(columns[0]))
            codes = pd.Index(feature.values[columns[0]]).get_indexer(column)
        else:
            codes = joint_codes(frame, columns)[0]
            feature = Feature(frame[columns].iloc[np.unique(codes, return_index=True)[1]], 0)
            for name in columns:
                if name in ranges:
                    feature, codes = _kept(feature, codes, name, ranges[name])
        features.append(feature)
        real.append(codes)
    within = np.column_stack(real)
    people = np.flatnonzero((within >= 0).all(axis=1))
    if not len(people):
        raise ValueError("Got ranges that exclude everybody in X, but a search starts from people in X.")
    return Possible(features, within[people], people)


def _in_order(column: pd.Series[Any], ends: Any) -> Feature:
    """Return sorted numbers or dates: those that people have and, for numbers, a grid between them."""
    known = column.dropna().drop_duplicates()
    if ends is not None:
        low, high = ends_of(column.name, ends, float if is_number(column) else pd.Timestamp)
        known = known[(known >= low) & (known <= high)]
    elif len(known):
        low, high = known.min(), known.max()
    if len(known) and is_number(column) and np.isfinite([float(low), float(high)]).all():
        between = pd.Series(_grid(float(low), float(high)), name=column.name)
        between = between.round() if (known == known.round()).all() else between
        known = pd.concat([known, between.astype(column.dtype)]).drop_duplicates()
        known = known[(known >= low) & (known <= high)]
    ordered = known.sort_values()
    missing = column[column.isna()].iloc[:1]
    return Feature(pd.concat([ordered, missing]).to_frame(column.name), len(ordered))


def _grid(low: float, high: float) -> Floats:
    """Return evenly spaced numbers, rounded to a tenth of their distance: no more digits than they need.

    >>> _grid(0.1234567, 0.9)[[0, 1, 2, -1]].tolist()
    [0.1234567, 0.1265, 0.1295, 0.9]
    """
    even, step = np.linspace(low, high, GRID), (high - low) / GRID
    if 0 < step < math.inf:
        even[1:-1] = np.round(even[1:-1], 1 - math.floor(math.log10(step)))
    return even


def _kept(feature: Feature, codes: Codes, name: Any, wanted: Any) -> tuple[Feature, Codes]:
    """Return a feature with only some of its categories, and people's codes for it; -1 for other values."""
    known = feature.values[name]
    stays = known.isin(some_of(name, wanted, known.tolist())).to_numpy()
    place = np.where(stays, np.cumsum(stays) - 1, -1)
    return Feature(feature.values[stays], 0), np.where(codes < 0, -1, place[codes])
