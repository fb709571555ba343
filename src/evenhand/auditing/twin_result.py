"""The findings about people and their counterparts: as an object, dict or plain words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypedDict

import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing.people import as_records, plain, with_rows
from evenhand.wording import got, group_called, members_of, people

_NAMED = 5  # the most columns in a sentence
_NUMBERED = ("person", "counterpart")
_FEW = 4  # up to this number, all shares are put into words; otherwise only those beyond chance


class AboutTwins(TypedDict):
    """The people, groups and columns that were compared, and the settings."""

    people: int
    groups: dict[Any, int]
    column: str  # the name of the sensitive column; 'group' if it has none, or if there are several
    compared: list[Any]
    positive: Any
    columns: list[str]
    edges: list[str]  # of the graph, if counterparts are made by one
    batch: int
    batches: bool  # whether random batches were matched
    n_null: int
    n_pairs: int
    n_orders: int
    confidence: float
    surrogate: float | None  # the share of decisions that the surrogate gets right; None if none was used


@dataclass(frozen=True, repr=False)
class Twins:
    """People and their counterparts in other groups.

    Attributes
    ----------
    flips : DataFrame
        One row for each group and each group of counterparts. It has the share of people who did not get the
        positive decision while their counterpart did (without a positive label: who got a different one),
        with its interval over people; the mean and the upper limit of this share if groups are assigned at
        random; the probability of a share this large by chance, allowing for all rows (`p_value`); and
        whether the share is beyond chance (`clear`).
    columns : DataFrame
        For the clear rows, the columns that explain the share, ranked. Each has the part of the share that
        disappears if the column is taken from the person instead of the counterpart (Shapley values), with
        its interval; the same as a share of people (`points`), also by chance; and whether it is `clear`.
    people : DataFrame
        Some pairs of the clear rows, with the largest difference in probability first; `person` and
        `counterpart` are positions in X, from 0 (-1: made by a graph).
    steps : DataFrame
        From person to counterpart, column by column: both values, and the decision once this column and those
        above it are the counterpart's. Columns in which the two don't differ come last.
    notes : list of str
        What was left out, what was sampled, and what can't be known.
    about : dict
        Settings and counts.
    """

    flips: pd.DataFrame
    columns: pd.DataFrame
    people: pd.DataFrame
    steps: pd.DataFrame
    notes: list[str]
    about: AboutTwins

    def summary(self) -> str:
        """Return the findings in plain words, without a verdict."""
        rows = self.flips.to_dict("records")
        told = [row for row in rows if row["clear"] or len(rows) <= _FEW]
        lines = [how(self.about), *(_flips(row, self.about) + _carried(self.columns, row) for row in told)]
        if len(told) < len(rows):
            lines.append(_unclear(len(rows) - len(told), len(rows)))
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def numbered(self, rows: Codes) -> Twins:
        """Return the same findings with people numbered by their rows in a file, from 0."""
        people, steps = (with_rows(table, _NUMBERED, rows) for table in (self.people, self.steps))
        return replace(self, people=people, steps=steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain Python objects, with people numbered from 1."""
        return {
            "about": plain(dict(self.about)),
            "summary": self.summary(),
            "notes": list(self.notes),
            "flips": as_records(self.flips),
            "columns": as_records(self.columns),
            "people": as_records(_from_one(self.people)),
            "steps": as_records(_from_one(self.steps)),
        }

    def __repr__(self) -> str:
        return f"<Twins of {people(self.about['people'])}>\n{self.summary()}"


def _from_one(frame: pd.DataFrame) -> pd.DataFrame:
    """Return people numbered from 1; made-up people have no number."""
    if frame.empty:
        return frame
    numbers = {name: frame[name].where(frame[name] >= 0) + 1 for name in _NUMBERED}
    return frame.assign(**numbers)


def how(about: AboutTwins) -> str:
    """Return how counterparts were found, and what they can and can't show."""
    if about["edges"]:
        return (
            f"Counterparts in other groups were made by the graph {', '.join(about['edges'])}: what the "
            "group affects changes with it, the rest stays. They are as good as the graph."
        )
    n = len(about["columns"])
    batches = f", in random batches of at most {about['batch']:,} people of each group" * about["batches"]
    return (
        f"Counterparts in other groups were found by optimal transport on {n} column{'s' * (n != 1)}"
        f"{batches}. They show what is associated with the group in this data, not what the group causes."
    )


def _unclear(n: int, of: int) -> str:
    """Return how many shares are not beyond chance.

    >>> _unclear(6, 6)
    'None of the 6 comparisons between groups is clearly above chance.'
    >>> _unclear(4, 6)
    'The other 4 of 6 comparisons between groups are not clearly above chance.'
    """
    if n == of:
        return f"None of the {of} comparisons between groups is clearly above chance."
    others, are = ("one", "is") if n == 1 else (n, "are")
    return f"The other {others} of {of} comparisons between groups {are} not clearly above chance."


def _flips(row: dict[Any, Any], about: AboutTwins) -> str:
    positive, column = about["positive"], about["column"]
    what = "got a different decision" if positive is None else f"{got(positive)} where the person did not"
    clear = "clearly" if row["clear"] else "not clearly"
    return (
        f"Of the counterparts of {members_of(row['group'], column)} in "
        f"{group_called(row['counterpart_group'], column)}, {_points(row, 1)} {what}; with groups assigned "
        f"at random it is {100 * row['by_chance']:.1f} %, and seldom above "
        f"{100 * row['by_chance_high']:.1f} %. Allowing for all comparisons, this is {clear} above chance."
    )


def _carried(columns: pd.DataFrame, row: dict[Any, Any]) -> str:
    of_row = columns[
        (columns["group"] == row["group"]) & (columns["counterpart_group"] == row["counterpart_group"])
    ]
    if of_row.empty and row["clear"]:
        return " No column is named: the trees that stand in for the model get none of these pairs right."
    if of_row.empty:
        return ""
    clear = of_row[of_row["clear"]].to_dict("records")
    if not clear:
        return " No single column's share of it is clearly above chance."
    told = [f"{one['column']!r} {_points(one, 0)}" for one in clear[:_NAMED]]
    return f" The columns that carry it, with their shares: {', '.join(told)}."


def _points(row: dict[Any, Any], digits: int) -> str:
    """Return a share with its interval, as percentages."""
    low, high = (f"{100 * row[end]:.{digits}f}" for end in ("low", "high"))
    return f"{100 * row['share']:.{digits}f} % ({low} to {high})"
