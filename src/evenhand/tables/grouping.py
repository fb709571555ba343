"""The groups in a user's table: unknown groups, combinations of columns, merged small groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.checks import integer, one_of
from evenhand.groups import JOINT, NAMED, group_values, join_values
from evenhand.tables.columns import NO_NUMBER
from evenhand.tables.matching import each_once, met, plain_number, spellings, text_of
from evenhand.wording import listed, people

UNKNOWN = "unknown"  # the group of people whose group is unknown, if they are kept
_MARKS = {*NO_NUMBER} - {"none"}  # 'none' can be a group, of religions or disabilities


def has_no_group(column: pd.Series[Any]) -> Flags:
    """Return whose group is unknown: an empty cell, '?', 'unknown', 'N/A' and the like, ignoring case.

    >>> has_no_group(pd.Series(["f", "?", None, "N/A", "Unknown", "none"])).tolist()
    [False, True, True, True, True, False]
    """
    marks = [value for value in column.dropna().unique().tolist() if str(value).strip().lower() in _MARKS]
    return (column.isna() | column.isin(marks)).to_numpy()


def so_many(rows: pd.Index[Any], each: pd.Series[Any] | None) -> int:
    """Return how many people some rows stand for: one each, or as many as `each` says."""
    return len(rows) if each is None else int(each[rows].sum())


def with_known_groups(
    frame: pd.DataFrame, columns: list[str], unknown: str, notes: list[str],
    each: pd.Series[Any] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Return the people whose group is known; if `unknown` is 'keep', also the others, as a group 'unknown'.

    `each` is the number of people that each row stands for.
    """
    one_of("unknown", unknown, ("keep", "drop"))
    for name in columns:
        column = frame[name]
        lacking = has_no_group(column)
        if not lacking.any():
            continue
        marks = listed(column[lacking].dropna().unique().tolist(), most=5)
        written = ", ".join(filter(None, [marks, "empty cells" if column.isna().any() else ""]))
        who = f"{people(so_many(frame.index[lacking], each))} with unknown {name!r} ({written})"
        if unknown == "keep":
            notes.append(f"{who}: they are the group {UNKNOWN!r}.")
            texts = text_of(column).map(plain_number)
            frame = frame.assign(**{name: texts.where(~lacking, UNKNOWN)})
        else:
            notes.append(f"Left out: {who}. To keep them as a group: unknown='keep', or --unknown keep.")
            frame = frame[~lacking]
    return frame


def group_positions(
    columns: pd.DataFrame, groups: Array, merged: dict[str, str]
) -> tuple[Codes, pd.Series[Any]]:
    """Return each person's group as a position in `groups` (-1 if it is none) and as the table names it.

    A group may be written as another kind of number, be merged into another one, or be unknown.
    """
    told = [str(name) for name in columns]
    names = told if any(str(group).startswith(f"{told[0]}=") for group in groups) else None
    between = (JOINT if names is None else NAMED) if len(told) > 1 else None
    known = spellings([*groups, *merged], between)
    position = {str(name): code for code, name in enumerate(groups)}
    position |= {name: position[into] for name, into in merged.items()}
    texts = [text_of(columns[name]) for name in columns]
    said = join_values(texts, names)
    marked = join_values(
        [
            text.where(~has_no_group(columns[name]), UNKNOWN)
            for text, name in zip(texts, columns, strict=True)
        ],
        names,
    )
    found = [
        each_once(names, lambda value: position.get(met(value, known, "", between), -1)).to_numpy(np.int64)
        for names in (said, marked)
    ]
    return np.where(found[0] < 0, found[1], found[0]), said


def crossed(columns: pd.DataFrame) -> pd.Series[Any]:
    """Return one column of groups; the values of several sensitive columns are combined."""
    names = list(map(str, columns.columns))
    return pd.Series(group_values(columns, len(columns)), name=JOINT.join(names), dtype=object)


def with_small_merged(
    groups: pd.Series[Any], into: str | None, least: int, notes: list[str], each: Codes | None = None
) -> tuple[pd.Series[Any], dict[str, str]]:
    """Merge groups of fewer than `least` people into one; also return each merged group's new name.

    `each` is the number of people that each row stands for.

    >>> found, merged = with_small_merged(pd.Series(["a"] * 30 + ["b", "c"]), "other", 2, [])
    >>> found.value_counts().to_dict(), merged
    ({'a': 30, 'other': 2}, {'b': 'other', 'c': 'other'})
    """
    integer("min_group", least)
    counts = groups.value_counts() if each is None else pd.Series(each).groupby(groups).sum()
    small = {str(name): int(count) for name, count in counts.items() if count < least}
    if into is None or not small:
        return groups, {}
    told = ", ".join(f"{name!r} ({count:,})" for name, count in small.items())
    notes.append(f"Groups of fewer than {people(least)} are merged into {into!r}: {told}.")
    texts = groups.astype(str)
    return texts.where(~texts.isin(list(small)), into).astype(object), dict.fromkeys(small, into)
