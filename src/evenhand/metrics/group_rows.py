"""One row per group: how many people, and what was decided about them."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from evenhand.metrics.answers import Answers
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


def group_rows(answers: Answers) -> list[GroupRow]:
    """Return the group table: how many people, how many positive, and what was decided, with intervals.

    Without a positive label there are no shares of it.

    >>> import numpy as np
    >>> y, decided, own = np.array(["n", "y"] * 4), np.array([0, 1] * 4), np.array([0, 0, 1, 1] * 2)
    >>> answers = Answers(["n", "y"], ["f", "m"], own, y=y, pos_label="y", decided=decided)
    >>> rows = group_rows(answers)
    >>> rows[0]["group"], rows[0]["people"], rows[0]["positive_rate"]["value"]
    ('f', 4, 0.5)
    """
    decided, flips = answers.positives, answers.flips
    truth, right = answers.truth == answers.positive, answers.decided_own == answers.truth
    rows: list[GroupRow] = []
    for code, name in enumerate(answers.groups):
        here = answers.own == code
        if not here.any():
            continue
        row: GroupRow = {"group": str(name), "people": int(here.sum())}
        if answers.pos_label is not None:
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
