"""The people that a page lists: who they are, and what each group's policy decides about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from evenhand.metrics import Answers
from evenhand.report.summary import Person, Persons, Value
from evenhand.wording import brief

MOST_PERSONS = 500


def persons(
    contexts: pd.DataFrame,
    answers: Answers,
    *,
    limit: int = MOST_PERSONS,
    numbers: Sequence[int] | None = None,
) -> Persons:
    """Return people's features and every group's decision: people who flip first, then by gap.

    `numbers` are their rows in the data set or its file, counted from 0; by default their order here.
    """
    said, decisions = np.asarray(answers.probabilities_by_group), np.asarray(answers.decisions_by_group)
    gaps, flips = np.asarray(answers.gaps()), np.asarray(answers.flips)
    shares = None if answers.pos_label is None else said[:, :, answers.positive].round(4)
    rows: list[Person] = [
        {
            "person": 1 + int(at if numbers is None else numbers[at]),
            "group": str(answers.groups[answers.own[at]]),
            "label": None if answers.y is None else str(answers.y[at]),
            "decisions": [str(label) for label in decisions[at]],
            "probabilities": [None] * len(answers.groups) if shares is None else shares[at].tolist(),
            "gap": round(float(gaps[at]), 9),
            "flips": bool(flips[at]),
            "features": [shown(value) for value in contexts.iloc[at]],
        }
        for at in np.lexsort((-gaps, ~flips))[:limit].tolist()
    ]
    return {
        "groups": [str(name) for name in answers.groups],
        "columns": [str(name) for name in contexts.columns],
        "rows": rows,
        "people": len(answers),
        "flips": int(flips.sum()),
    }


def shown(value: Any) -> Value:
    """Return a value of a table as the page and its JSON hold it; a missing one is None.

    >>> [shown(value) for value in (11.0, 0.123456, pd.Timestamp("2024-03-02"), "cook", float("nan"))]
    [11, 0.12346, '2024-03-02', 'cook', None]
    """
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(brief(float(value)))
        return int(number) if number.is_integer() else number
    if isinstance(value, (date, np.datetime64)):
        when = pd.Timestamp(value)
        return f"{when:%Y-%m-%d}" if when == when.normalize() else f"{when:%Y-%m-%d %H:%M}"
    return str(value)
