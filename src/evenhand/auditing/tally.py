"""People counted by what they are and what was decided: all that a regulator's table needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.groups import as_columns
from evenhand.metrics.answers import Answers
from evenhand.tables.grouping import UNKNOWN, has_no_group
from evenhand.tables.matching import plain_number, text_of


@dataclass(frozen=True)
class Tally:
    """How many people of each combination of sensitive values got each decision.

    Attributes
    ----------
    decided : DataFrame
        One row per combination, its index levels the sensitive columns; one column per decision.
    above : Series, optional
        How many people of each combination have a score above the median of all.
    median : float, optional
        That median.
    unknown : int
        How many more people there were, left out of the audit since a sensitive value was unknown.
    weighted : bool
        Whether people stood for several; here each counts for one.
    """

    decided: pd.DataFrame
    above: pd.Series[int] | None = None
    median: float | None = None
    unknown: int = 0
    weighted: bool = False

    @property
    def columns(self) -> list[str]:
        """The sensitive columns."""
        return [str(name) for name in self.decided.index.names]

    def known(self, columns: Sequence[str]) -> Tally:
        """Return the people whose values in these columns are known; the others are counted as unknown."""
        lacking = np.zeros(len(self.decided), dtype=bool)
        for name in columns:
            lacking |= has_no_group(self.decided.index.get_level_values(name).to_series())
        if lacking.all():
            raise ValueError(
                f"Got nobody with a known {' and '.join(columns)}, but expected some to compare."
            )
        more = int(self.decided.to_numpy()[lacking].sum())
        above = None if self.above is None else self.above[~lacking]
        return replace(self, decided=self.decided[~lacking], above=above, unknown=self.unknown + more)

    def of_file(self, groups: Any, columns: pd.DataFrame, rows: Codes, assessed: Any = True) -> Tally:
        """Return the same counts by the columns that the groups were made of, and how many were left out.

        `columns` are those of the whole file; the `groups` are those of its `rows` that were audited. Others
        of unknown group are counted if they were `assessed`.
        """
        lacking = np.any([has_no_group(columns[name]) for name in columns], axis=0) & assessed
        lacking[rows] = False
        named = _categories(as_columns(groups)).get_level_values(0)
        first = pd.Series(rows).groupby(np.asarray(named)).first()
        index = _categories(columns.iloc[first[self.decided.index.get_level_values(0)]])
        above = None if self.above is None else self.above.set_axis(index)
        decided = self.decided.set_axis(index)
        return replace(self, decided=decided, above=above, unknown=int(lacking.sum()))


def tally(answers: Answers, groups: Any) -> Tally:
    """Count the people of an audit by their sensitive values, one or several columns of them.

    >>> answers = Answers(["no", "yes"], ["f", "m"], np.array([0, 1, 1]), decided=np.array([1, 0, 1]))
    >>> tally(answers, pd.Series(["f", "m", "m"], name="sex")).decided["yes"].to_dict()
    {('f',): 1, ('m',): 1}
    """
    here, first, own = np.unique(answers.own, return_index=True, return_inverse=True)
    index = _categories(as_columns(groups).iloc[first])
    shape = (len(here), len(answers.labels))
    cells = answers.people_by(own * shape[1] + answers.decided_own, shape[0] * shape[1])
    decided = pd.DataFrame(cells.reshape(shape), index=index, columns=pd.Index(answers.labels, dtype=object))
    found = Tally(decided, weighted=answers.weights is not None)
    scores = answers.scores
    if scores is not None and scores.ndim == 2:
        scores = None if answers.positive is None else scores[:, answers.positive]
    if scores is None:
        return found
    median = float(np.median(scores))
    above = pd.Series(np.bincount(own, scores > median, len(here)).astype(int), index=index)
    return replace(found, above=above, median=median)


def _categories(columns: pd.DataFrame) -> pd.MultiIndex:
    """Return the names of categories; one that is unknown is called so, however it is written."""
    texts = [
        text_of(columns[name]).map(plain_number).where(~has_no_group(columns[name]), UNKNOWN)
        for name in columns
    ]
    names = [name if isinstance(name, str) else f"group {number}" for number, name in enumerate(columns, 1)]
    return pd.MultiIndex.from_arrays(texts, names=names if len(names) > 1 else [names[0].removesuffix(" 1")])
