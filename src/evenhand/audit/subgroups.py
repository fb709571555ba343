"""Subgroups: within which part of the people are two groups treated most differently?

Every feature is cut into parts (the commonest categories, or the quarters of a number); every part, and
every crossing of two features' parts, is a subgroup. Two groups are compared where both have enough people
in it. The intervals hold for all comparisons at once (Bonferroni), and subgroups are ranked by what is
certain: the low end.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

Array = npt.NDArray[Any]

COLUMNS = [
    "subgroup",
    "people",
    "rate",
    "group_least",
    "people_least",
    "rate_least",
    "group_most",
    "people_most",
    "rate_most",
    "difference",
    "low",
    "high",
]
PARTS = 6
CROSSED = 10  # Columns that are crossed with each other: those in whose parts the differences are largest.


class Parts(NamedTuple):
    """A feature cut into parts: each person's part, and the parts' names."""

    codes: npt.NDArray[np.int64]
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
    single = [
        _compare(part.codes, part.names, outcome, own, len(groups), min_count) for part in parts.values()
    ]
    reach = [found["difference"].max() if len(found) else -1.0 for found in single]
    chosen = [list(parts)[at] for at in np.argsort(reach, kind="stable")[::-1][:CROSSED] if reach[at] >= 0]
    crossed = []
    for one, other in itertools.combinations(chosen, 2):
        left, right = parts[one], parts[other]
        names = [f"{a} & {b}" for a in left.names for b in right.names]
        codes = left.codes * len(right.names) + right.codes
        crossed.append(_compare(codes, names, outcome, own, len(groups), min_count))
    found = pd.concat(single + crossed, ignore_index=True) if parts else pd.DataFrame()
    if found.empty:
        return pd.DataFrame(columns=COLUMNS), 0
    examined = len(found)
    found = _with_intervals(found, 1 - (1 - confidence) / examined)
    found = found[found["low"] > 0].sort_values("low", ascending=False, kind="stable").head(n_listed)
    for side in ("least", "most"):
        found[f"group_{side}"] = [groups[code] for code in found[f"group_{side}"]]
    return found.assign(rate=rate).reset_index(drop=True)[COLUMNS], examined


def cut(column: pd.Series[Any]) -> Parts:
    """Cut a feature into at most PARTS parts; what is missing is a part of its own."""
    name = column.name
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        known = values[~np.isnan(values)]
        if len(np.unique(known[:10_000])) > PARTS:
            edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75]))
            codes = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="left"))
            ends = [f"{edge:g}" for edge in edges]
            middle = [f"{a} < {name} ≤ {b}" for a, b in itertools.pairwise(ends)]
            return Parts(codes, [f"{name} ≤ {ends[0]}", *middle, f"{name} > {ends[-1]}", f"{name} missing"])
    codes, found = pd.factorize(column)
    common = pd.Series(codes[codes >= 0]).value_counts(sort=True).index[: PARTS - 1].to_numpy()
    place = np.full(len(found) + 1, len(common))
    place[common] = np.arange(len(common))
    place[-1] = len(common) + 1  # where factorize's -1 for a missing value points
    names = [f"{name} = {found[at]}" for at in common]
    return Parts(place[codes], [*names, f"other {name}", f"{name} missing"])


def _compare(
    codes: Array, names: list[str], outcome: Array, own: Array, n_groups: int, min_count: int
) -> pd.DataFrame:
    """Return, for every part with two groups of enough people, the two whose rates are farthest apart."""
    cell = codes * n_groups + own
    size = np.bincount(cell, minlength=len(names) * n_groups).reshape(-1, n_groups)
    hits = np.bincount(cell[outcome], minlength=len(names) * n_groups).reshape(-1, n_groups)
    enough = size >= min_count
    shares = hits / np.maximum(size, 1)
    least = np.where(enough, shares, np.inf).argmin(axis=1)
    most = np.where(enough, shares, -np.inf).argmax(axis=1)
    at = np.flatnonzero(enough.sum(axis=1) >= 2)
    low, high = least[at], most[at]
    return pd.DataFrame(
        {
            "subgroup": [names[part] for part in at],
            "people": size[at].sum(axis=1),
            "group_least": low,
            "people_least": size[at, low],
            "rate_least": shares[at, low],
            "group_most": high,
            "people_most": size[at, high],
            "rate_most": shares[at, high],
            "difference": shares[at, high] - shares[at, low],
        }
    )


def _with_intervals(found: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Add Agresti and Caffo's interval of a difference of shares: one hit and one miss more on each side."""
    middle, variance = np.zeros(len(found)), np.zeros(len(found))
    for side, sign in (("least", -1), ("most", 1)):
        n = found[f"people_{side}"].to_numpy() + 2
        p = (found[f"rate_{side}"].to_numpy() * (n - 2) + 1) / n
        middle += sign * p
        variance += p * (1 - p) / n
    half = norm.ppf((1 + confidence) / 2) * np.sqrt(variance)
    return found.assign(low=middle - half, high=np.minimum(middle + half, 1.0))
