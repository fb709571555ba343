"""Subgroups: the parts of the people among which two groups are treated most differently.

Every feature is cut into parts (the commonest categories, or the quarters of a number); every part, and
every combination of two features' parts, is a subgroup. Two groups are compared where both have enough people
in it. The intervals hold for all comparisons at once (Bonferroni): every pair of groups in every part, and in
every combination that could have been examined, since which ones are depends on the decisions. Subgroups are
ranked by what is certain: the low end.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.metrics.shares import difference_limits, share_limits
from evenhand.tables.columns import days_of

_SIDES = [f"{what}_{side}" for side in ("least", "most") for what in ("group", "people", "rate")]
COLUMNS = ["subgroup", "people", "rate", *_SIDES, "difference", "low", "high"]
PARTS = 6
CROSSED = 10  # columns that are combined with each other: those in whose parts the differences are largest


class Parts(NamedTuple):
    """A feature cut into parts: each person's part, and the parts' names."""

    codes: Codes
    names: list[str]


def find_subgroups(
    frame: pd.DataFrame,
    outcome: Array,
    own: Array,
    groups: list[Any],
    *,
    rate: str,
    min_count: int,
    confidence: float,
    n_listed: int,
) -> tuple[pd.DataFrame, int]:
    """Return the subgroups with the largest certain difference of rates, and how many were examined.

    >>> frame = pd.DataFrame({"job": ["cook"] * 200 + ["clerk"] * 200})
    >>> own = np.arange(400) % 2
    >>> found, examined = find_subgroups(
    ...     frame, (own == 1) & (frame["job"] == "cook"), own, ["f", "m"], rate="yes", min_count=30,
    ...     confidence=0.95, n_listed=5
    ... )
    >>> examined, found[["subgroup", "people", "rate_least", "rate_most"]].values.tolist()
    (2, [['job = cook', 200, 0.0, 1.0]])
    """
    parts = {name: cut(frame[name]) for name in frame.columns}
    parts = {name: part for name, part in parts.items() if np.ptp(part.codes) > 0}
    outcome = np.asarray(outcome, dtype=bool)
    single, enough = [], []
    for part in parts.values():
        cells = _count(part.codes, len(part.names), outcome, own, len(groups))
        single.append(_compare(cells, part.names, min_count))
        enough.append(cells.people >= min_count)
    reach = [found["difference"].max() if len(found) else -1.0 for found in single]
    chosen = [list(parts)[at] for at in np.argsort(reach, kind="stable")[::-1][:CROSSED] if reach[at] >= 0]
    crossed = []
    for one, other in itertools.combinations(chosen, 2):
        left, right = parts[one], parts[other]
        names = [f"{a} & {b}" for a in left.names for b in right.names]
        codes = left.codes * len(right.names) + right.codes
        crossed.append(_compare(_count(codes, len(names), outcome, own, len(groups)), names, min_count))
    found = pd.concat(single + crossed, ignore_index=True) if parts else pd.DataFrame()
    if found.empty:
        return pd.DataFrame(columns=COLUMNS), 0
    examined = len(found)
    found = _with_intervals(found, 1 - (1 - confidence) / comparisons(enough))
    found = found[found["low"] > 0].sort_values("low", ascending=False, kind="stable").head(n_listed)
    for side in ("least", "most"):
        found[f"group_{side}"] = [groups[code] for code in found[f"group_{side}"]]
    return found.assign(rate=rate).reset_index(drop=True)[COLUMNS], examined


def cut(column: pd.Series[Any]) -> Parts:
    """Cut a feature into at most PARTS parts; missing values are a part of their own."""
    name = column.name
    dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
    numbers = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if dates or numbers:
        values = (days_of(column) // 1 if dates else column).to_numpy(dtype=float, na_value=np.nan)
        known = values[~np.isnan(values)]
        if len(np.unique(known[:10_000])) > PARTS:
            edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75], method="lower" if dates else "linear"))
            codes = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="left"))
            ends = [f"{pd.Timestamp(edge, unit='D'):%Y-%m-%d}" if dates else _number(edge) for edge in edges]
            middle = [f"{a} < {name} ≤ {b}" for a, b in itertools.pairwise(ends)]
            return Parts(codes, [f"{name} ≤ {ends[0]}", *middle, f"{name} > {ends[-1]}", f"{name} missing"])
    codes, found = pd.factorize(column)
    common = pd.Series(codes[codes >= 0]).value_counts(sort=True).index[: PARTS - 1].to_numpy()
    place = np.full(len(found) + 1, len(common))
    place[common] = np.arange(len(common))
    place[-1] = len(common) + 1  # where factorize's -1 for a missing value points
    names = [f"{name} = {found[at]}" for at in common]
    return Parts(place[codes], [*names, f"other {name}", f"{name} missing"])


def _number(edge: float) -> str:
    """Return a number as people write it: '0.25', '1,250,000'."""
    return f"{edge:,.0f}" if abs(edge) >= 10_000 else f"{edge:g}"


def comparisons(enough: list[Flags]) -> int:
    """Return how many pairs of groups could be compared in parts and in combinations of two features' parts.

    For every feature, `enough` says which groups have enough people in which part, (parts, groups). A group
    that has enough in a combination has enough in both parts, which bounds the number without combining any.

    >>> comparisons([np.array([[True, True, False], [True, True, True]]), np.array([[True, True, True]])])
    11
    """
    all_parts = np.concatenate(enough).astype(np.int64)
    total, start = int(_pairs(all_parts.sum(axis=1)).sum()), 0
    for parts in enough:
        start += len(parts)
        total += int(_pairs(parts.astype(np.int64) @ all_parts[start:].T).sum())
    return total


def _pairs(groups: Codes) -> Codes:
    return groups * (groups - 1) // 2


class Cells(NamedTuple):
    """How many people, and how many with the outcome, of every group in every part: (parts, groups)."""

    hits: Codes
    people: Codes


def _count(codes: Array, n_parts: int, outcome: Array, own: Array, n_groups: int) -> Cells:
    cell = codes * n_groups + own
    hits, people = (np.bincount(of, minlength=n_parts * n_groups) for of in (cell[outcome], cell))
    return Cells(hits.reshape(-1, n_groups), people.reshape(-1, n_groups))


def _compare(cells: Cells, names: list[str], min_count: int) -> pd.DataFrame:
    """Return, for every part with two groups of enough people, the two whose rates are farthest apart."""
    enough = cells.people >= min_count
    shares = cells.hits / np.maximum(cells.people, 1)
    at = np.flatnonzero(enough.sum(axis=1) >= 2)
    found = {"subgroup": [names[part] for part in at], "people": cells.people[at].sum(axis=1)}
    ends = {
        "least": np.where(enough, shares, np.inf).argmin(axis=1)[at],
        "most": np.where(enough, shares, -np.inf).argmax(axis=1)[at],
    }
    for side, group in ends.items():
        found[f"group_{side}"] = group
        found[f"hits_{side}"] = cells.hits[at, group]
        found[f"people_{side}"] = cells.people[at, group]
        found[f"rate_{side}"] = shares[at, group]
    return pd.DataFrame(found | {"difference": found["rate_most"] - found["rate_least"]})


def _with_intervals(found: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Add limits of the differences; the high end combines the shares' own limits, each at half the risk.

    That is wide, but holds this far out, where the high end of `difference_limits` no longer does.
    """
    most, least = (
        (found[f"hits_{side}"].to_numpy(), found[f"people_{side}"].to_numpy()) for side in ("most", "least")
    )
    half = (1 + confidence) / 2
    return found.assign(
        low=difference_limits(*most, *least, confidence)[0],
        high=share_limits(*most, half)[1] - share_limits(*least, half)[0],
    )
