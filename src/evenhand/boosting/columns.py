"""Turns the categories of a frame into numbers, for trees; numbers and their gaps stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array
from evenhand.tables.columns import is_number


def learn_categories(X: Any) -> dict[str, Array]:
    """Return the sorted categories of every non-numeric column of a frame; an array has none.

    >>> learn_categories(pd.DataFrame({"age": [20, 30], "job": ["cook", "clerk"]}))
    {'job': array(['clerk', 'cook'], dtype=object)}
    """
    if not isinstance(X, pd.DataFrame):
        return {}
    X = _with_text_names(X)
    words = [name for name in X.columns if not is_number(X[name])]
    return {name: np.unique(_as_text(X[name]).dropna().to_numpy(dtype=object)) for name in words}


def as_numbers(X: Any, categories: dict[str, Array]) -> Any:
    """Return a frame with categories as codes, -1 if missing or unknown; return anything else unchanged."""
    if not isinstance(X, pd.DataFrame) or not categories:
        return X
    coded = _with_text_names(X).assign()  # a copy, in which the columns below are replaced
    for name, known in categories.items():
        if name in coded.columns:
            found = pd.Index(known, dtype=object).get_indexer(pd.Index(_as_text(coded[name])))
            coded[name] = found.astype(np.float32)
    return coded


def _with_text_names(X: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its names as text if none of them is: scikit-learn keeps and checks no others."""
    if any(isinstance(name, str) for name in X.columns):
        return X
    return X.set_axis([str(name) for name in X.columns], axis=1)


def _as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column's values as text, so that 1 and '1', or True and 'True', are one category."""
    return column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
