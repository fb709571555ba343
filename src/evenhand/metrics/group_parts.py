"""The parts into which a column's values and the groups fall, and how likely chance makes parts like these.

People in different parts share neither a value of the column nor a group. A few strays may: one wrong cell
must not hide that a column is the group.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from evenhand.arrays import Array, Codes, Flags, Floats

CHANCE = 1e-3  # the probability that any column seems to reveal the group although none does
STRAY = 0.05  # the largest share of strays among everybody, and among the people of each part
HEAD = 5_000  # this many people, or values, are usually enough to show that a column reveals nothing
LEAST = 100  # of each group among them: by chance, most people with a small group's value may be strays
BINS, PER_BIN = 500, 4  # the most bins of a column of numbers, and the fewest people in each


class Met(NamedTuple):
    """Which values of a column, or of several together, occur in which groups."""

    codes: Codes  # each row's value
    own: Codes  # each row's group
    values: Array
    ordered: bool
    value: Codes  # of each pair that occurs
    group: Codes
    people: Codes  # with this pair
    each: Codes | None  # the people per row; None: one

    @property
    def single(self) -> bool:
        """Whether everybody has the same value."""
        return len(self.values) == 1

    def differing(self) -> Flags:
        """Return whose group is not the most frequent one with their value."""
        most = self.group[_largest(self.value, self.people)]
        return np.asarray(most[self.codes] != self.own)


class Parts(NamedTuple):
    """Parts of values and groups, with their people."""

    n_values: int
    sizes: Array  # people per part, by their group
    constant: bool  # whether every group has a single value, apart from strays
    whole: bool  # whether every group is a part of its own
    bands: int | None  # runs of the same part when values are sorted; None if values have no order
    strays: float  # people whose value is in another part than their group
    typical: Flags | None = None  # whose value is typical of their group; None: everybody's


def met_in(frame: pd.DataFrame, columns: list[Any], own: Codes, people: Codes | None = None) -> Met:
    """Return which values of some columns occur in which groups.

    `own` numbers the groups from 0, without gaps; `people` counts the people per row.
    """
    codes, values = joint_codes(frame, columns)
    ordered = len(columns) == 1 and kind_of(frame[columns[0]]) in "iufM"
    return _met(codes, own, values, ordered, people)


def _met(codes: Codes, own: Codes, values: Array, ordered: bool, people: Codes | None) -> Met:
    groups = int(own.max()) + 1
    pair, met = pd.factorize(codes * groups + own)
    n_people = np.bincount(pair, people).astype(np.int64)
    return Met(codes, own, values, ordered, met // groups, met % groups, n_people, people)


def reveal_nothing(frame: pd.DataFrame, columns: list[Any], own: Codes) -> bool:
    """Return whether every so many people are enough to see that some columns reveal nothing."""
    every = min(len(frame) // HEAD, int(np.bincount(own).min()) // LEAST)
    some = slice(None, None, every or None)
    if every < 2 or np.unique(own[some]).size <= own.max():
        return False
    met = met_in(frame[columns].iloc[some], columns, own[some])
    return not met.single and not likeliest_parts(met, 2 * STRAY)


def likeliest_parts(met: Met, share: float = STRAY) -> list[Parts]:
    """Return ways to part values and groups into several parts, the least likely by chance first.

    Numbers are also parted in bins, where strays don't tear each part into many bands.
    """
    strict = exact_parts(met)
    each_in_one = len(met.value) == len(met.values)  # no value occurs in two groups, so nobody is a stray
    lenient = strict if each_in_one else near_parts(met, share)
    found = sorted([parts for parts in (strict, lenient) if parts.sizes.size > 1], key=log_chance)
    bins = min(BINS, int(met.people.sum()) // PER_BIN)
    if met.ordered and 1 < bins < len(met.values):
        rank = np.empty(len(met.values), dtype=np.int64)
        rank[np.argsort(met.values, kind="stable")] = np.arange(len(rank))
        sizes = np.bincount(met.value, met.people)
        below = np.cumsum(sizes[np.argsort(rank)])[rank] - sizes
        at = np.unique((below * bins / sizes.sum()).astype(np.int64), return_inverse=True)
        binned = near_parts(_met(at[1][met.codes], met.own, at[0], True, met.each), share)
        found += [binned] if binned.sizes.size > 1 else []
    return found


def exact_parts(met: Met) -> Parts:
    """Return the parts that share neither a value nor a group."""
    of_value, of_group = _connected(met, slice(None))
    sizes = np.bincount(of_group[met.group], met.people)
    groups = len(of_group)
    return Parts(
        len(met.values), sizes, len(met.value) == groups, sizes.size == groups, _bands(met, of_value), 0
    )


def near_parts(met: Met, share: float = STRAY) -> Parts:
    """Return the parts that share few people: at most this share, or one person, of those in each part.

    Each value first joins the group in which it is most frequent, and groups without a value join that of
    their most frequent one. Then parts that share more people are joined. Strays may outnumber this share of
    the people with a value: a small group's values can be the group, although few of a large group have them.
    """
    of_value, of_group = _connected(met, _kept(met))
    while True:
        parts, own = of_value[met.value], of_group[met.group]
        sizes, strays = np.bincount(own, met.people), np.bincount(own, met.people * (parts != own))
        excess = (strays - np.maximum(1, share * sizes)) / sizes
        if sizes.size == 1 or excess.max() <= 0:
            break
        # All that are about as bad as the worst, since one at a time takes long for many groups.
        joined = _joined(parts, own, met.people, 2 * excess >= excess.max())
        of_value, of_group = joined[of_value], joined[of_group]
    if strays.sum() > share * sizes.sum():
        return exact_parts(met)
    # A value that is frequent among strays too is typical of nobody: in shares, as parts differ in size.
    astray, n = parts != own, len(met.values)
    often = met.people / sizes[own]
    mixed = np.bincount(met.value, often * astray, n) > share * np.bincount(met.value, often, n)
    kept_groups = met.group[~astray & ~mixed[met.value]]
    constant = len(kept_groups) == len(of_group) == np.unique(kept_groups).size
    typical = (of_value[met.codes] == of_group[met.own]) & ~mixed[met.codes] if astray.any() else None
    return Parts(
        n, sizes, constant, sizes.size == len(of_group), _bands(met, of_value), strays.sum(), typical
    )


def _kept(met: Met) -> Codes:
    """Return each value's most frequent pair, and that of each group in which no value is most frequent."""
    values, groups = _largest(met.value, met.people), _largest(met.group, met.people)
    without = np.setdiff1d(np.arange(len(groups)), met.group[values])
    return np.concatenate([values, groups[without]])


def _joined(parts: Codes, own: Codes, people: Codes, chosen: Flags) -> Codes:
    """Return new numbers of parts, with the chosen ones joined to those that most of their strays are in.

    Each of `people` has a value of one of `parts`, and is a member of another, their `own`.
    """
    astray = (parts != own) & chosen[own]
    k = len(chosen)
    pair, met = pd.factorize(own[astray] * k + parts[astray])
    most = met[_largest(met // k, np.bincount(pair, people[astray]))[np.flatnonzero(chosen)]]
    links = coo_array((np.ones(len(most), dtype=np.int8), (most // k, most % k)), shape=(k, k))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def unlikely(parts: Parts, n_columns: int) -> bool:
    """Return whether chance hardly ever makes parts like these in one of so many columns."""
    return log_chance(parts) < math.log(CHANCE / n_columns)


def log_chance(parts: Parts) -> float:
    """Return an upper bound on the log of the share of assignments of people to parts as orderly as this."""
    k, m, bands, n = parts.sizes.size, parts.n_values, parts.bands, parts.sizes.sum()
    ways = m * np.log(k)  # any part for each value
    if bands is not None and bands < 2 * k:  # each part is one run, or surrounds another once
        ways = min(ways, _log_choose(m - 1, bands - 1) + np.log(k) + (bands - 1) * np.log(k - 1))
    e = parts.strays
    if e:  # any of so many people, or fewer, in any other part
        ways += np.log(e + 1) + _log_choose(n, e) + e * np.log(k - 1)
    return float(ways - gammaln(n + 1) + gammaln(parts.sizes + 1).sum())


def _log_choose(n: float, k: float) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _largest(by: Codes, people: Array) -> Codes:
    """Return the position of the pair with most people for each value, or for each group."""
    order = np.argsort(people, kind="stable")
    found = np.empty(int(by.max()) + 1, dtype=np.int64)
    found[by[order]] = order  # the last one, which has most people, stays
    return found


def _connected(met: Met, pairs: Any) -> tuple[Codes, Codes]:
    """Return the part of each value and of each group, if these pairs connect them."""
    n, groups = len(met.values), int(met.own.max()) + 1
    value, group = met.value[pairs], n + met.group[pairs]
    shape = (n + groups, n + groups)
    links = coo_array((np.ones(len(value), dtype=np.int8), (value, group)), shape=shape)
    part = np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
    return part[:n], part[n:]


def _bands(met: Met, of_value: Codes) -> int | None:
    """Return the number of runs of the same part along the values, or a lower bound if there are many."""
    if not met.ordered:
        return None
    parts = int(of_value.max()) + 1
    for values, part in ((met.values[:HEAD], of_value[:HEAD]), (met.values, of_value)):
        ordered = part[np.argsort(values, kind="stable")]
        bands = 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
        if bands >= 2 * parts:  # more values can only add bands
            break
    return bands


def joint_codes(frame: pd.DataFrame, columns: list[Any]) -> tuple[Codes, Array]:
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


def kind_of(column: pd.Series[Any]) -> str:
    """Return the kind of a column's values as NumPy names it, 'O' for other types."""
    dtype = column.dtype.subtype if isinstance(column.dtype, pd.SparseDtype) else column.dtype
    return dtype.kind if isinstance(dtype, np.dtype) else "O"
