"""One row per group: how many people, and what was decided about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from evenhand.arrays import Array
from evenhand.metrics.measures import Measure, share


class GroupRow(TypedDict):
    """A group: how many people, how many of them labelled positive, and rates with their intervals."""

    group: str
    people: int
    positives: NotRequired[int]
    base_rate: NotRequired[Measure]
    positive_rate: NotRequired[Measure]
    true_positive_rate: NotRequired[Measure]
    false_positive_rate: NotRequired[Measure]
    accuracy: NotRequired[Measure]
    flip_rate: NotRequired[Measure]


def group_rows(
    y: Any, decisions: Any, own: Array, names: Sequence[Any], pos_label: Any, flips: Array | None = None
) -> list[GroupRow]:
    """Return the group table: how many people, how many positive, and what was decided, with intervals.

    Without a positive label there are no shares of it.

    Examples
    --------
    >>> rows = group_rows(["n", "y"] * 4, ["n", "y"] * 4, np.array([0, 0, 1, 1] * 2), ["f", "m"], "y")
    >>> rows[0]["group"], rows[0]["people"], rows[0]["positive_rate"]["value"]
    ('f', 4, 0.5)
    """
    truth, decided = np.asarray(y) == pos_label, np.asarray(decisions) == pos_label
    right = np.asarray(decisions) == np.asarray(y)
    rows: list[GroupRow] = []
    for code, name in enumerate(names):
        here = own == code
        if not here.any():
            continue
        row: GroupRow = {"group": str(name), "people": int(here.sum())}
        if pos_label is not None:
            row |= {
                "positives": int(truth[here].sum()),
                "base_rate": share(truth[here]),
                "positive_rate": share(decided[here]),
                "true_positive_rate": share(decided[here & truth]),
            }
        row["accuracy"] = share(right[here])
        if flips is not None:
            row["flip_rate"] = share(flips[here])
        rows.append(row)
    return rows
