"""People counted by sensitive values and decision: everything that a regulator's table needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags, Floats
from evenhand.groups import as_columns
from evenhand.metrics.answers import Answers
from evenhand.tables.grouping import UNKNOWN, has_no_group
from evenhand.tables.matching import plain_number, text_of


class Assessed(NamedTuple):
    """Which rows of a file were assessed, even if they are not audited."""

    rows: Flags
    people: Floats  # how many people each row of the file stands for
    scores: Floats | None = None  # of each row of the file


@dataclass(frozen=True)
class Tally:
    """The number of people with each combination of sensitive values and each decision.

    Attributes
    ----------
    decided : DataFrame
        One row per combination, with the sensitive columns as index levels; one column per decision. Counts
        are weighted if people have weights.
    persons : DataFrame
        One row per person, or per row of counted people: the position of the decision, whether the score is
        above the median, the number of people in the row and, with weights, the sum of squared weights.
    above : Series, optional
        The number of people in each combination with a score above the median of all people.
    median : float, optional
        This median.
    squares : Series, optional
        With weights, the sum of squared weights in each combination.
    unknown : int
        The number of people who are not counted because a sensitive value is unknown, weighted like all.
    scored : float
        The number of people whose scores have this median: also those who are not counted.
    """

    decided: pd.DataFrame
    persons: pd.DataFrame
    above: pd.Series[Any] | None = None
    median: float | None = None
    squares: pd.Series[Any] | None = None
    unknown: int = 0
    scored: float = 0

    @property
    def columns(self) -> list[str]:
        """The sensitive columns."""
        return [str(name) for name in self.decided.index.names]

    def known(self, columns: Sequence[str]) -> Tally:
        """Return the people whose values in these columns are known; the others count as `unknown`."""
        lacking = np.zeros(len(self.decided), dtype=bool)
        for name in columns:
            lacking |= has_no_group(self.decided.index.get_level_values(name).to_series())
        if lacking.all():
            raise ValueError(
                f"Got nobody with a known {' and '.join(columns)}, but expected some to compare."
            )
        more = round(float(self.decided.to_numpy()[lacking].sum()))
        above, squares = (None if part is None else part[~lacking] for part in (self.above, self.squares))
        unknown = self.unknown + more
        return replace(self, decided=self.decided[~lacking], above=above, squares=squares, unknown=unknown)

    def of_file(
        self, groups: Any, columns: pd.DataFrame, rows: Codes, assessed: Assessed,
        merged: Mapping[str, str] | None,
    ) -> Tally:  # fmt: skip
        """Return the same people, counted by the file's columns that the groups were made from.

        `columns` are those of the whole file, and `groups` the groups of its audited `rows`. Other rows with
        an unknown group count as `unknown` if they were `assessed`, and the scores of all assessed rows have
        the median. Members of the groups that others were `merged` into count by their own values; others by
        those of the first person in their group.
        """
        lacking = np.any([has_no_group(columns[name]) for name in columns], axis=0) & assessed.rows
        lacking[rows] = False
        named = _categories(as_columns(groups)).get_level_values(0)
        first = pd.Series(rows).groupby(np.asarray(named)).transform("first").to_numpy()
        own = named.isin(list((merged or {}).values()))
        index = _categories(columns.iloc[np.where(own, rows, first)])
        persons, median, scored = self.persons, self.median, self.scored
        if median is not None and assessed.scores is not None:
            at = assessed.rows
            weighted = self.squares is not None
            median = _median(assessed.scores[at], assessed.people[at] if weighted else None)
            scored = float(assessed.people[at].sum())
            persons = persons.assign(above=assessed.scores[rows] > median)
        counted = _counted(persons, index, list(self.decided.columns), median)
        unknown = round(float(assessed.people[lacking].sum()))
        return replace(counted, unknown=unknown, scored=scored)


def tally(answers: Answers, groups: Any) -> Tally:
    """Count the people of an audit by one or more columns of sensitive values.

    >>> answers = Answers(["no", "yes"], ["f", "m"], np.array([0, 1, 1]), decided=np.array([1, 0, 1]))
    >>> tally(answers, pd.Series(["f", "m", "m"], name="sex")).decided["yes"].to_dict()
    {('f',): 1, ('m',): 1}
    """
    scores = answers.scores
    if scores is not None and scores.ndim == 2:
        scores = None if answers.positive is None else scores[:, answers.positive]
    median = None if scores is None else _median(scores, answers.weights)
    high = False if scores is None else scores > median
    persons = pd.DataFrame({"decided": answers.decided_own, "above": high})
    repeats, weights = answers.repeats, answers.weights
    if weights is not None:
        persons["squares"] = weights**2 if repeats is None else repeats.squares
        persons["count"] = weights
    else:
        persons["count"] = 1 if repeats is None else repeats.people
    counts = _counted(persons, _categories(as_columns(groups)), answers.labels, median)
    return replace(counts, scored=float(persons["count"].sum()))


def _counted(persons: pd.DataFrame, index: pd.MultiIndex, labels: list[Any], median: float | None) -> Tally:
    """Count people by their categories."""
    here = index.unique().sort_values()
    own = here.get_indexer(index)

    def count(codes: Any, size: int, of: Any = slice(None), what: str = "count") -> Any:
        values = persons[what].to_numpy()
        return np.bincount(codes[of], values[of], size).astype(values.dtype)

    shape = (len(here), len(labels))
    cells = count(own * shape[1] + persons["decided"].to_numpy(), shape[0] * shape[1]).reshape(shape)
    decided = pd.DataFrame(cells, index=here, columns=pd.Index(labels, dtype=object))
    above = squares = None
    if median is not None:
        above = pd.Series(count(own, shape[0], persons["above"].to_numpy()), index=here)
    if "squares" in persons:
        squares = pd.Series(count(own, shape[0], what="squares"), index=here)
    return Tally(decided, persons, above, median, squares)


def _median(scores: Floats, weights: Floats | None) -> float:
    """Return the median of the scores, weighted if there are weights."""
    if weights is None:
        return float(np.median(scores))
    order = np.argsort(scores)
    so_far = np.cumsum(weights[order])
    return float(scores[order][np.searchsorted(so_far, so_far[-1] / 2)])


def _categories(columns: pd.DataFrame) -> pd.MultiIndex:
    """Return the names of categories; unknown values get one name, however they are written."""
    texts = [
        text_of(columns[name]).map(plain_number).where(~has_no_group(columns[name]), UNKNOWN)
        for name in columns
    ]
    names = [name if isinstance(name, str) else f"group {number}" for number, name in enumerate(columns, 1)]
    return pd.MultiIndex.from_arrays(texts, names=names if len(names) > 1 else [names[0].removesuffix(" 1")])
