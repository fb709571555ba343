"""Find the columns of X that reveal the group: alone, or as the one-hot columns of one feature.

A column reveals the group, or a part of it (the race in groups of race and sex), if people fall into parts
that share neither a value of the column nor a group, apart from a few strays. Any column of distinct numbers
does so trivially. So a column counts only if chance is an unlikely explanation: if few of all ways to assign
the groups to people are as orderly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.groups import Groups, as_columns
from evenhand.metrics.group_parts import (
    STRAY,
    Parts,
    exact_parts,
    joint_codes,
    kind_of,
    likeliest_parts,
    met_in,
    reveal_nothing,
    unlikely,
)
from evenhand.wording import as_plain, listed, people

MOST_NAMED = 5  # columns that a note names


class Strays(NamedTuple):
    """Who has a value of another group, in a column that reveals the group nevertheless."""

    agree: float  # the share of people with a value of their own group
    typical: Flags  # whose value is typical of their group


class Telling(NamedTuple):
    """Columns that reveal the group."""

    alone: list[Any]  # they reveal nothing else: everybody in a group has the same value
    more: list[Any]  # they reveal more than the group: race, where the groups are black or not
    perhaps: list[Any]  # they seem to reveal it, but with so few people this may be chance
    strays: dict[Any, Strays]  # of the columns alone and more, those that disagree with the group for some
    stand_in: list[Any]  # of these, those that agree with it for everybody, or are named like it

    def agreeing(self, names: list[Any]) -> str:
        """Name columns, with the share of people for whom they agree with the group, if it isn't all.

        >>> Telling([], [], [], {"sex": Strays(0.9993, np.ones(2, dtype=bool))}, []).agreeing(["sex", "race"])
        "'sex' (for 99.9 % of the people), 'race'"
        """
        told = [f"{as_plain(name)!r}{self._share(name)}" for name in names[:MOST_NAMED]]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return ", ".join(told) + more

    def _share(self, name: Any) -> str:
        if name not in self.strays:
            return ""
        # Rounded down: some disagree, so it is never 100 %.
        return f" (for {math.floor(1000 * self.strays[name].agree) / 10:.1f} % of the people)"

    def note(self, changed: list[Any], told: bool) -> str:
        """Return what to know about flips if some columns are changed, or if the model is told the group."""
        left = [name for name in self.more if name not in changed]
        mixed = [name for name in changed if name in self.strays]
        notes = []
        if mixed:
            notes.append(
                f"The group can be told from column {self.agreeing(mixed)}, which was set to the values that "
                "are typical of the other groups."
            )
        if left:
            text = f"The group can be told from column {self.agreeing(left)}"
            notes.append(
                f"{text} too, which was left as it was: more people may flip than we counted."
                if told or changed
                else f"{text}, which has too many values to try: flips were not measured."
            )
        elif self.perhaps and not told and not changed:
            notes.append(
                f"The group can be told from column {listed(self.perhaps, most=5)}, but among so few people "
                "that may be chance: flips were not measured. If it is the group, give sensitive_features "
                "the same name."
            )
        return "\n".join(notes)


def telling_columns(frame: pd.DataFrame, sensitive_features: Any, own: Codes) -> Telling:
    """Return the columns that reveal the group; those named like sensitive features aren't tested for chance.

    >>> race = ["black", "white", "asian", "black", "white"] * 10
    >>> X = pd.DataFrame({"race": race, "black": [r == "black" for r in race], "income": range(50)})
    >>> telling_columns(X, None, X["black"].to_numpy().astype(int))[:3]
    (['black'], ['race'], [])
    """
    found = Telling([], [], [], {}, [])
    names, own = np.unique(own, return_inverse=True)
    if names.size < 2:
        return found
    named = set(getattr(sensitive_features, "columns", ())) | {getattr(sensitive_features, "name", None)}
    if isinstance(sensitive_features, dict):
        named |= set(sensitive_features)
    for columns in _features(frame, own):
        known = [name for name in columns if name in named]
        if not known and reveal_nothing(frame, columns, own):
            continue
        met = met_in(frame, columns, own)
        ways = likeliest_parts(met)
        certain = [way for way in ways if known or unlikely(way, frame.shape[1])]
        if certain:
            parts = certain[0]
            (found.alone if parts.constant else found.more).extend(columns)
            if known or any(way.strays == 0 for way in certain):
                found.stand_in.extend(columns)
            if parts.typical is not None:
                found.strays.update(
                    dict.fromkeys(columns, Strays(1 - parts.strays / len(frame), parts.typical))
                )
        elif known and not met.single:
            raise _other_values(frame, known[0], sensitive_features)
        elif any((way.constant or way.whole) and _few(way) for way in ways):
            found.perhaps.extend(columns)
    return found


def sensitive_columns(frame: pd.DataFrame, sensitive_features: Any, own: Codes) -> list[Any]:
    """Return the columns of X that stand in for the group when people are compared, in their order.

    They agree with the group for everybody, or are named like it. A column with strays may be a legitimate
    feature, such as a job that few women have: people with different jobs are not alike.
    """
    found = set(telling_columns(frame, sensitive_features, own).stand_in)
    return [name for name in frame.columns if name in found]


def reveals(column: pd.Series[Any], own: Codes, counts: Codes, n_columns: int) -> bool:
    """Return whether a column, one of `n_columns`, reveals everybody's group; `counts` are people per row.

    >>> column, own = pd.Series(["black", "white", "asian"]), np.array([1, 0, 0])
    >>> [reveals(column, own, np.full(3, people), 1) for people in (2, 20)]
    [False, True]
    """
    own = np.unique(own, return_inverse=True)[1]
    met = met_in(column.to_frame("column"), ["column"], own, counts)
    parts = exact_parts(met)
    return parts.sizes.size > 1 and unlikely(parts, n_columns)


def _few(parts: Parts) -> bool:
    """Return whether values repeat, or each part is one run: few columns of distinct values are like that."""
    if parts.strays and not unlikely(parts, 1):
        return False
    return parts.n_values <= parts.sizes.sum() / 2 or parts.bands == parts.sizes.size


def _other_values(frame: pd.DataFrame, name: Any, sensitive_features: Any) -> ValueError:
    """Return the error for a column that is named like a sensitive feature, but doesn't agree with it."""
    theirs = as_columns(sensitive_features)[name].to_numpy()
    ours, groups = frame[name].astype(str).tolist(), theirs.astype(str).tolist()
    # A value that is written like no group stands for the group in which it is most frequent.
    differing = met_in(frame, [name], pd.factorize(theirs)[0]).differing()
    apart = np.where(np.isin(ours, groups), np.array(ours) != np.array(groups), differing)
    some = [f"{ours[at]!r} where the group is {groups[at]!r}" for at in np.flatnonzero(apart)]
    return ValueError(
        f"Got sensitive_features named {name!r}, but the column of X of that name holds other values for "
        f"{int(apart.sum()):,} of {people(len(frame))} ({', '.join(list(dict.fromkeys(some))[:3])}); "
        f"expected the same groups in both, for all but {100 * STRAY:g} % of each group. Correct the values."
    )


def representatives(
    frame: pd.DataFrame, columns: list[Any], groups: Groups, strays: Mapping[Any, Strays]
) -> list[list[tuple[int, float]]]:
    """Return, for each group, one person for each combination of the columns' values that are typical of it.

    Each comes with the share of the group that has these values; the most frequent come first.
    """
    typical = [strays[name].typical for name in columns if name in strays]
    usual = np.logical_and.reduce(typical) if typical else np.ones(len(frame), dtype=bool)
    own = groups.codes
    codes = joint_codes(frame, columns)[0] if columns else np.zeros(len(own), dtype=np.int64)
    found = []
    for group in range(len(groups.names)):
        members = np.flatnonzero(own == group)
        members = members[usual[members]] if usual[members].any() else members
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
            alone = (exact_parts(met_in(frame, [name], own)) for name in names[at:end])
            together = end > at + 1 and not any(parts.sizes.size > 1 for parts in alone)
        end = max(end, at + 1)
        yield from [names[at:end]] if together else ([name] for name in names[at:end])
        at = end


def _zero_one(column: pd.Series[Any]) -> Array | None:
    if kind_of(column) not in "biuf":
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
