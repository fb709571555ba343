"""Rename values of a table: 'yes' to 1, or several names to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from evenhand.checks import did_you_mean
from evenhand.tables.matching import plain_number
from evenhand.wording import listed


def mapped(
    frame: pd.DataFrame, changes: Mapping[Any, Any] | None, labels: Sequence[str], origin: str = ""
) -> pd.DataFrame:
    """Return a table with some values renamed; None makes a value missing.

    A key of `changes` is a value in the columns `labels`, or 'column:value' for another column. If `origin`
    says where the table comes from, a value that does not occur there is an error.

    >>> people = pd.DataFrame({"sex": [0, 1], "hired": ["yes", "no"]})
    >>> mapped(people, {"yes": 1, "no": 0, "sex:0": "f"}, ["hired"]).values.tolist()
    [['f', 1], [1, 0]]
    """
    wanted: dict[str, dict[str, Any]] = {}
    for key, new in (changes or {}).items():
        column, colon, rest = str(key).partition(":")
        named = colon and column in frame.columns
        value = plain_number(rest if named else str(key))
        columns = [column] if named else [name for name in labels if name in frame.columns]
        there = [str(known) for name in columns for known in frame[name].dropna().unique().tolist()]
        if origin and value not in map(plain_number, there):
            near = did_you_mean(value, there) or f" It has {listed(there, most=10)}."
            where = " or ".join(map(repr, columns))
            raise ValueError(f"Got {value!r} in map, but {where} of {origin} has no such value.{near}")
        for name in columns:
            wanted.setdefault(name, {})[value] = new
    for name, values in wanted.items():
        renamed = frame[name].astype(object).map(partial(_renamed, values), na_action="ignore")
        frame = frame.assign(**{name: renamed.infer_objects()})
    return frame


def _renamed(values: dict[str, Any], value: Any) -> Any:
    return values.get(plain_number(str(value)), value)
