"""Near copies of the decision: columns that nearly determine it, such as the score that it was made from.

With such columns, neighbours are people with the same decision, and subgroups are the decision itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes

NEARLY = 0.99  # at least this share of decisions follows from the column,
FEWER = 0.1  # with at most this share of the errors of always guessing the most frequent decision


def near_copies(frame: pd.DataFrame, decisions: Array) -> list[Any]:
    """Return the columns that nearly determine the decision, by a threshold or by their values.

    >>> people = pd.DataFrame({"score": np.arange(100) / 100, "age": np.arange(100) % 50})
    >>> near_copies(people, people["score"].to_numpy() >= 0.5)
    ['score']
    """
    codes = pd.factorize(decisions)[0]
    return [name for name in frame.columns if is_near_copy(frame[name], codes)]


def is_near_copy(column: pd.Series[Any], decided: Codes, people: Any = 1) -> bool:
    """Return whether a column nearly determines the decision; rows may stand for several people."""
    by_decision = np.bincount(decided, np.broadcast_to(people, decided.shape))
    n_people, n_labels = by_decision.sum(), len(by_decision)
    wanted = max(NEARLY * n_people, n_people - FEWER * (n_people - by_decision.max()))
    return n_labels > 1 and _determined(column, decided, n_labels, people) >= wanted


def _determined(column: pd.Series[Any], codes: Array, n_labels: int, people: Any) -> int:
    """Return the number of decisions that follow from the column."""
    values, names = pd.factorize(column, use_na_sentinel=False)
    table = np.zeros((len(names), n_labels), dtype=np.int64)
    np.add.at(table, (values, codes), people)
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        below = np.cumsum(table[np.argsort(names, kind="stable")], axis=0)
        return int((below.max(axis=1) + (below[-1] - below).max(axis=1)).max())
    # A value that only one person has determines nothing.
    return int(table.max(axis=1)[table.sum(axis=1) > 1].sum())
