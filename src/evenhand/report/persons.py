"""The people that a page lists: who they are, and what each group's policy decides about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array
from evenhand.metrics import person_flips, person_gaps
from evenhand.report.summary import Person, Persons
from evenhand.report.values import shown

MOST_PERSONS = 500


def persons(
    contexts: pd.DataFrame,
    said: Array,
    own: Array,
    *,
    groups: Sequence[Any],
    labels: Sequence[Any],
    y: Any = None,
    pos_label: Any,
    limit: int = MOST_PERSONS,
    numbers: Sequence[int] | None = None,
) -> Persons:
    """Return people, those whose decision flips first, then by gap: what each group decides, and features.

    Parameters
    ----------
    contexts : DataFrame
        Their features.
    said : array, (people, groups, actions)
        What each group's policy says about them.
    own : array of int
        The position of each person's group.
    groups, labels : sequence
        The names of the groups and the actions.
    y : array, optional
        The true labels.
    pos_label : label or None
        The one whose probability is shown; without it there is none to show.
    limit : int
        How many people at most.
    numbers : sequence of int, optional
        The people's rows in the data set or its file, from 0, where these are not all of it.

    Returns
    -------
    Persons
    """
    gaps = person_gaps(said, own)
    decided = said.argmax(2)
    flips = person_flips(decided, own)
    shares = said[:, :, list(labels).index(pos_label)].round(4) if pos_label is not None else None
    first = np.lexsort((-gaps, ~flips))[:limit]
    rows: list[Person] = [
        {
            "person": 1 + int(at if numbers is None else numbers[at]),
            "group": str(groups[own[at]]),
            "label": None if y is None else str(y[at]),
            "decisions": [str(labels[action]) for action in decided[at]],
            "probabilities": [None] * len(groups) if shares is None else shares[at].tolist(),
            "gap": round(float(gaps[at]), 6),
            "flips": bool(flips[at]),
            "features": [shown(value) for value in contexts.iloc[at]],
        }
        for at in first.tolist()
    ]
    return {
        "groups": [str(name) for name in groups],
        "columns": [str(name) for name in contexts.columns],
        "rows": rows,
        "people": len(said),
        "flips": int(flips.sum()),
    }
