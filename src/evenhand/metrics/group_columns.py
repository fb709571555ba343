"""Find the columns of X that reveal the group: alone, or as the one-hot columns of one feature.

A column reveals the group, or a part of it (the race in groups of race and sex), if people fall into parts
that share neither a value of the column nor a group. Any column of distinct numbers does so trivially. So a
column counts only if chance is an unlikely explanation: if few of all ways to assign the groups to people are
as orderly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from evenhand.arrays import Array, Codes
from evenhand.groups import Groups

CHANCE = 1e-3  # the probability that any column seems to reveal the group although none does
HEAD = 5_000  # the first people, or values: usually enough to show that a column reveals nothing


class Telling(NamedTuple):
    """Columns that reveal the group."""

    alone: list[Any]  # they reveal nothing else: everybody in a group has the same value
    more: list[Any]  # they reveal more than the group: race, where the groups are black or not
    perhaps: list[Any]  # they seem to reveal it, but with so few people this may be chance


class _Parts(NamedTuple):
    n_values: int
    sizes: Array  # people per part
    constant: bool  # whether the column is constant within every group
    whole: bool  # whether every group is a part of its own
    bands: int | None  # runs of the same part when values are sorted; None if values have no order


def telling_columns(frame: pd.DataFrame, sensitive_features: Any, own: Codes) -> Telling:
    """Return the columns that reveal the group; those named like sensitive features aren't tested for chance.

    >>> race = ["black", "white", "asian", "black", "white"] * 10
    >>> X = pd.DataFrame({"race": race, "black": [r == "black" for r in race], "income": range(50)})
    >>> telling_columns(X, None, X["black"].to_numpy().astype(int))
    Telling(alone=['black'], more=['race'], perhaps=[])
    """
    found = Telling([], [], [])
    if np.unique(own).size < 2:
        return found
    named = set(getattr(sensitive_features, "columns", ())) | {getattr(sensitive_features, "name", None)}
    if isinstance(sensitive_features, dict):
        named |= set(sensitive_features)
    for columns in _features(frame, own):
        parts = _parts(frame, columns, own)
        known = [name for name in columns if name in named]
        if parts.sizes.size < 2:
            if known and parts.n_values > 1:
                raise ValueError(
                    f"Got sensitive_features named {known[0]!r}, but the column of X of that name holds "
                    "other values; expected the same groups in both, or another name."
                )
        elif known or _log_chance(parts) < np.log(CHANCE / frame.shape[1]):
            (found.alone if parts.constant else found.more).extend(columns)
        elif (parts.constant or parts.whole) and _few(parts):
            found.perhaps.extend(columns)
    return found


def sensitive_columns(frame: pd.DataFrame, sensitive_features: Any, own: Codes) -> list[Any]:
    """Return the columns of X that reveal the group, without those that only may, in their order."""
    telling = telling_columns(frame, sensitive_features, own)
    certain = {*telling.alone, *telling.more}
    return [name for name in frame.columns if name in certain]


def reveals(column: pd.Series[Any], own: Codes, people: Codes, n_columns: int) -> bool:
    """Return whether a column, one of `n_columns`, reveals the group; `people` counts the people per row.

    >>> column, own = pd.Series(["black", "white", "asian"]), np.array([1, 0, 0])
    >>> [reveals(column, own, np.full(3, people), 1) for people in (2, 20)]
    [False, True]
    """
    parts = _parts(column.to_frame("column"), ["column"], own, people)
    return bool(parts.sizes.size > 1 and _log_chance(parts) < np.log(CHANCE / n_columns))


def _few(parts: _Parts) -> bool:
    """Return whether values repeat, or each part is one run: few columns of distinct values are like that."""
    return parts.n_values <= parts.sizes.sum() / 2 or parts.bands == parts.sizes.size


def _log_chance(parts: _Parts) -> float:
    """Return an upper bound on the log of the share of assignments of people to parts as orderly as this."""
    k, m, bands = parts.sizes.size, parts.n_values, parts.bands
    ways = m * np.log(k)  # any part for each value
    if bands is not None and bands < 2 * k:  # each part is one run, or surrounds another once
        chosen = gammaln(m) - gammaln(bands) - gammaln(m - bands + 1)
        ways = min(ways, chosen + np.log(k) + (bands - 1) * np.log(k - 1))
    return float(ways - gammaln(parts.sizes.sum() + 1) + gammaln(parts.sizes + 1).sum())


def _parts(frame: pd.DataFrame, columns: list[Any], own: Codes, people: Codes | None = None) -> _Parts:
    groups = np.unique(own).size
    if len(frame) > 2 * HEAD and np.unique(own[:HEAD]).size == groups:
        head = _parts(frame.iloc[:HEAD], columns, own[:HEAD])
        if head.sizes.size == 1 and head.n_values > 1:  # more people can only merge parts
            return head
    codes, values = joint_codes(frame, columns)
    n_groups = int(own.max()) + 1
    met = pd.unique(codes * n_groups + own)  # pairs of a value and a group
    value, group = met // n_groups, len(values) + met % n_groups
    size = len(values) + n_groups
    links = coo_array((np.ones(len(met), dtype=np.int8), (value, group)), shape=(size, size))
    part = connected_components(links, directed=False)[1]
    _, of_value = np.unique(part[: len(values)], return_inverse=True)
    sizes = np.bincount(of_value[codes], people)
    bands = None
    if len(columns) == 1 and _kind(frame[columns[0]]) in "iufM":
        bands = _bands(values[:HEAD], of_value[:HEAD])
        if bands < 2 * sizes.size:  # more values can only add bands
            bands = _bands(values, of_value)
    return _Parts(len(values), sizes, len(met) == groups, sizes.size == groups, bands)


def _bands(values: Array, part: Array) -> int:
    ordered = part[np.argsort(values, kind="stable")]
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def joint_codes(frame: pd.DataFrame, columns: list[Any]) -> tuple[Array, Array]:
    """Return a code for each row's combination of some columns' values, and the codes' values.

    A missing value counts as a value like any other.

    >>> joint_codes(pd.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "x"]}), ["a", "b"])[0].tolist()
    [0, 1, 2]
    """
    codes, values = pd.factorize(frame[columns[0]], use_na_sentinel=False)
    for name in columns[1:]:
        more, others = pd.factorize(frame[name], use_na_sentinel=False)
        codes, values = pd.factorize(codes * len(others) + more)
    return codes.astype(np.int64), np.asarray(values)


def representatives(frame: pd.DataFrame, columns: list[Any], groups: Groups) -> list[list[tuple[int, float]]]:
    """Return, for each group, one person for each combination of the columns' values in it.

    Each comes with the share of the group that has these values; the most frequent come first.
    """
    own = groups.codes
    codes = joint_codes(frame, columns)[0] if columns else np.zeros(len(own), dtype=np.int64)
    found = []
    for group in range(len(groups.names)):
        members = np.flatnonzero(own == group)
        _, first, counts = np.unique(codes[members], return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found.append([(int(members[first[at]]), float(counts[at] / len(members))) for at in order])
    return found


def one_hot_features(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the columns by feature: adjacent 0/1 columns with exactly one 1 per person are one feature.

    >>> one_hot_features(pd.DataFrame({"age": [30, 40], "job_cook": [1, 0], "job_clerk": [0, 1]}))
    [['age'], ['job_cook', 'job_clerk']]
    """
    return list(_features(frame))


def _features(frame: pd.DataFrame, own: Codes | None = None) -> Iterator[list[Any]]:
    """Yield the columns by feature: adjacent 0/1 columns with exactly one 1 per person are one feature.

    If one category has no column, each person has at most one 1. Among few people that may be chance, so
    such columns are joined only given `own`, and only if none of them reveals the group by itself.
    """
    names = list(frame.columns)
    dummy = {name: seen for name in names if (seen := _zero_one(frame[name])) is not None}
    at = 0
    while at < len(names):
        end = _complete(names, at, dummy, len(frame))
        together = end > at
        if not together and own is not None:
            end = _exclusive(names, at, dummy, len(frame))
            alone = (_parts(frame, [name], own) for name in names[at:end])
            together = end > at + 1 and not any(parts.sizes.size > 1 for parts in alone)
        end = max(end, at + 1)
        yield from [names[at:end]] if together else ([name] for name in names[at:end])
        at = end


def _kind(column: pd.Series[Any]) -> str:
    dtype = column.dtype.subtype if isinstance(column.dtype, pd.SparseDtype) else column.dtype
    return dtype.kind if isinstance(dtype, np.dtype) else "O"


def _zero_one(column: pd.Series[Any]) -> Array | None:
    if _kind(column) not in "biuf":
        return None
    values = column.to_numpy()
    return values == 1 if bool(((values == 0) | (values == 1)).all()) else None


def _complete(names: list[Any], start: int, dummy: dict[Any, Array], n_people: int) -> int:
    """Return the end of the columns from `start` with exactly one 1 per person; `start` if there are none."""
    total, end = 0, start
    while end < len(names) and names[end] in dummy and total < n_people:
        total += int(np.count_nonzero(dummy[names[end]]))
        end += 1
    if total != n_people or end - start < 2:
        return start
    return end if bool(np.logical_or.reduce([dummy[name] for name in names[start:end]]).all()) else start


def _exclusive(names: list[Any], start: int, dummy: dict[Any, Array], n_people: int) -> int:
    """Return the end of the columns from `start` with at most one 1 per person; at least one column."""
    end = start + 1
    if names[start] not in dummy:
        return end
    taken = dummy[names[start]].copy()
    while end < len(names) and names[end] in dummy and not (taken & dummy[names[end]]).any():
        if _complete(names, end, dummy, n_people) > end:
            break
        taken |= dummy[names[end]]
        end += 1
    return end
