"""Shadows: columns that all but tell the decision, such as the score that it was made from.

They make neighbours of people who were decided alike, and subgroups of the decision itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[Any]

NEARLY = 0.99  # of the decisions are told by the column,
FEWER = 0.1  # and at most so many of the mistakes are left that one makes who always says the commonest


def shadows(frame: pd.DataFrame, decisions: Array) -> list[Any]:
    """Return the columns from which a decision can nearly be read: by a bar of a number, or by its values.

    >>> people = pd.DataFrame({"score": np.arange(100) / 100, "age": np.arange(100) % 50})
    >>> shadows(people, people["score"].to_numpy() >= 0.5)
    ['score']
    """
    codes = pd.factorize(decisions)[0]
    n_people, n_labels = len(codes), int(codes.max()) + 1
    guessed = np.bincount(codes).max()
    wanted = max(NEARLY * n_people, n_people - FEWER * (n_people - guessed))
    if n_labels < 2:
        return []
    return [name for name in frame.columns if _told(frame[name], codes, n_labels) >= wanted]


def _told(column: pd.Series[Any], codes: Array, n_labels: int) -> int:
    """Return how many decisions the column tells."""
    values, names = pd.factorize(column, use_na_sentinel=False)
    table = np.zeros((len(names), n_labels), dtype=np.int64)
    np.add.at(table, (values, codes), 1)
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        below = np.cumsum(table[np.argsort(names, kind="stable")], axis=0)
        return int((below.max(axis=1) + (below[-1] - below).max(axis=1)).max())
    # A value of one person tells only this person's decision.
    return int(table.max(axis=1)[table.sum(axis=1) > 1].sum())
