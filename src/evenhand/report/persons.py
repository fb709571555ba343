"""The people that a page lists: who they are, and what each group's policy decides about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.metrics import Answers
from evenhand.report.summary import Person, Persons
from evenhand.report.values import shown

MOST_PERSONS = 500


def persons(
    contexts: pd.DataFrame,
    answers: Answers,
    *,
    limit: int = MOST_PERSONS,
    numbers: Sequence[int] | None = None,
) -> Persons:
    """Return people, those whose decision flips first, then by gap: what each group decides, and features.

    `numbers` are their rows in the data set or its file, from 0, where these are not all of it.
    """
    said, gaps, flips, decisions = (
        answers.probabilities_by_group, answers.gaps(), answers.flips, answers.decisions_by_group
    )  # fmt: skip
    assert said is not None
    assert gaps is not None
    assert flips is not None
    assert decisions is not None
    shares = None if answers.pos_label is None else said[:, :, answers.positive].round(4)
    rows: list[Person] = [
        {
            "person": 1 + int(at if numbers is None else numbers[at]),
            "group": str(answers.groups[answers.own[at]]),
            "label": None if answers.y is None else str(answers.y[at]),
            "decisions": [str(label) for label in decisions[at]],
            "probabilities": [None] * len(answers.groups) if shares is None else shares[at].tolist(),
            "gap": round(float(gaps[at]), 6),
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
