"""Find the subgroups of people in which two groups are treated most differently.

Each feature is cut into parts: the most frequent categories, or the quarters of a number. Each part is a
subgroup, and so is each combination of two parts, for the features with the largest differences. Two groups
are compared if both have enough people in the subgroup. The intervals hold for all comparisons at once
(Bonferroni): all pairs of groups in all parts, and in all combinations that could have been examined, because
the choice of combinations depends on the decisions. Subgroups are ranked by the interval's low end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.groups import sorted_unique
from evenhand.metrics.shares import difference_limits, share_limits
from evenhand.tables.columns import is_number
from evenhand.tables.dates import days_of

_SIDES = [f"{what}_{side}" for side in ("least", "most") for what in ("group", "people", "rate")]
COLUMNS = ["subgroup", "people", "rate", *_SIDES, "difference", "low", "high"]
PARTS = 6
QUARTERS = [0.25, 0.5, 0.75]
NEARLY_ALL = 0.95  # a subgroup of so large a share of the people says nothing of its own, and is not listed
CROSSED = 10  # the number of columns to combine: those whose parts have the largest differences


class Cells(NamedTuple):
    """The number of people, and of those with the outcome, in each part and group: (parts, groups)."""

    hits: Codes
    people: Codes


class Search(NamedTuple):
    """The options of the search: the rate's name, the people needed per group, confidence, rows to list."""

    rate: str
    min_count: int
    confidence: float
    n_listed: int


class Parts(NamedTuple):
    """A feature cut into parts: each person's part, and the parts' names."""

    codes: Codes
    names: list[str]


def find_subgroups(
    frame: pd.DataFrame, outcome: Array, own: Array, groups: list[Any], search: Search
) -> tuple[pd.DataFrame, int]:
    """Return the subgroups with the largest certain difference in rates, and the number examined.

    Subgroups of at least 95 % of the people (`NEARLY_ALL`) are examined, but not listed.

    >>> frame = pd.DataFrame({"job": ["cook"] * 200 + ["clerk"] * 200})
    >>> own = np.arange(400) % 2
    >>> search = Search("yes", min_count=30, confidence=0.95, n_listed=5)
    >>> hired = (own == 1) & (frame["job"] == "cook")
    >>> found, examined = find_subgroups(frame, hired, own, ["f", "m"], search)
    >>> examined, found[["subgroup", "people", "rate_least", "rate_most"]].values.tolist()
    (2, [['job = cook', 200, 0.0, 1.0]])
    """
    parts = {name: cut(frame[name]) for name in frame.columns}
    outcome, n_groups = np.asarray(outcome, dtype=bool), len(groups)

    def counted(codes: Codes, n_parts: int) -> Cells:
        cell = codes * n_groups + own
        hits, people = (np.bincount(of, minlength=n_parts * n_groups) for of in (cell[outcome], cell))
        return Cells(hits.reshape(-1, n_groups), people.reshape(-1, n_groups))

    def crossed(chosen: list[Any]) -> Iterator[Cells]:
        for one, other in itertools.combinations([parts[name] for name in chosen], 2):
            width = len(other.names)
            yield counted(one.codes * width + other.codes, len(one.names) * width)

    single = {name: counted(part.codes, len(part.names)) for name, part in parts.items()}
    names = {name: part.names for name, part in parts.items()}
    return search_cells(names, single, crossed, groups, search)


def search_cells(
    names: dict[Any, list[str]],
    cells: dict[Any, Cells],
    crossed: Callable[[list[Any]], Iterable[Cells]],
    groups: list[Any],
    search: Search,
) -> tuple[pd.DataFrame, int]:
    """Return the same as `find_subgroups`, given counts of people in the parts of each feature.

    `crossed` counts people in the combinations of parts, for each pair of the features that it gets.
    """
    cells = {name: of for name, of in cells.items() if (of.people.sum(axis=1) > 0).sum() > 1}
    single = [_compare(of, names[name], search.min_count) for name, of in cells.items()]
    reach = [found["difference"].max() if len(found) else -1.0 for found in single]
    chosen = [list(cells)[at] for at in np.argsort(reach, kind="stable")[::-1][:CROSSED] if reach[at] >= 0]
    pairs = []
    for (one, other), of in zip(itertools.combinations(chosen, 2), crossed(chosen), strict=True):
        both = [f"{a} & {b}" for a in names[one] for b in names[other]]
        pairs.append(_compare(of, both, search.min_count))
    found = pd.concat(single + pairs, ignore_index=True) if cells else pd.DataFrame()
    if found.empty:
        return pd.DataFrame(columns=COLUMNS), 0
    examined = len(found)
    enough = [of.people >= search.min_count for of in cells.values()]
    found = _with_intervals(found, 1 - (1 - search.confidence) / comparisons(enough))
    everybody = max(of.people.sum() for of in cells.values())
    found = found[(found["low"] > 0) & (found["people"] < NEARLY_ALL * everybody)]
    found = found.sort_values("low", ascending=False, kind="stable").head(search.n_listed)
    for side in ("least", "most"):
        found[f"group_{side}"] = [groups[code] for code in found[f"group_{side}"]]
    return found.assign(rate=search.rate).reset_index(drop=True)[COLUMNS], examined


def cut(column: pd.Series[Any]) -> Parts:
    """Cut a feature into at most PARTS parts, and one for missing values."""
    name = column.name
    dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if dates or is_number(column):
        values = (days_of(column) // 1 if dates else column).to_numpy(dtype=float, na_value=np.nan)
        known = values[~np.isnan(values)]
        if len(pd.unique(known)) > PARTS:
            edges = np.unique(np.quantile(known, QUARTERS, method="lower" if dates else "linear"))
            codes = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="left"))
            ends = [
                f"{pd.Timestamp(edge, unit='D'):%Y-%m-%d}" if dates else in_digits(edge) for edge in edges
            ]
            return Parts(codes, bands(name, ends))
    codes, found = pd.factorize(column)
    common = commonest(found, np.bincount(codes[codes >= 0], minlength=len(found)))
    place = np.full(len(found) + 1, len(common))
    place[common] = np.arange(len(common))
    place[-1] = len(common) + 1  # where factorize's -1 for a missing value points
    return Parts(place[codes], categories(name, [found[at] for at in common]))


def commonest(values: Any, people: Array) -> Codes:
    """Return the positions of the most frequent values; ties go to the first in sorted order.

    >>> commonest(["b", "a", "c"], np.array([2, 2, 9])).tolist()
    [2, 1, 0]
    """
    rank = sorted_unique(np.asarray(values, dtype=object))[1]
    return np.asarray(np.lexsort((rank, -people))[: PARTS - 1])


def bands(name: Any, ends: list[str]) -> list[str]:
    """Return names for the parts of a number with these ends, and for the part of missing values."""
    middle = [f"{a} < {name} ≤ {b}" for a, b in itertools.pairwise(ends)]
    return [f"{name} ≤ {ends[0]}", *middle, f"{name} > {ends[-1]}", f"{name} missing"]


def categories(name: Any, common: list[Any]) -> list[str]:
    """Return names for the parts of a category: its most frequent values, other values, missing values."""
    return [*(f"{name} = {value}" for value in common), f"other {name}", f"{name} missing"]


def in_digits(edge: float) -> str:
    """Return a number as people write it: '0.25', '1,250,000'."""
    return f"{edge:,.0f}" if abs(edge) >= 10_000 else f"{edge:g}"


def comparisons(enough: list[Flags]) -> int:
    """Return how many pairs of groups could be compared, in parts and in combinations of two features' parts.

    For each feature, `enough` says which groups have enough people in which part, (parts, groups). A group
    with enough people in a combination has enough in both parts; this bounds the number without combining.

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


def _compare(cells: Cells, names: list[str], min_count: int) -> pd.DataFrame:
    """Return, for each part with two large enough groups, the two groups whose rates are farthest apart."""
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

    This is wide, but it holds at such high confidence, where the high end of `difference_limits` does not.
    """
    most, least = (
        (found[f"hits_{side}"].to_numpy(), found[f"people_{side}"].to_numpy()) for side in ("most", "least")
    )
    half = (1 + confidence) / 2
    return found.assign(
        low=difference_limits(*most, *least, confidence)[0],
        high=share_limits(*most, half)[1] - share_limits(*least, half)[0],
    )
