"""Measures per group: the group table, and the decision in which groups differ most."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Array
from evenhand.metrics.answers import Answers
from evenhand.metrics.bootstrap import mean_interval
from evenhand.metrics.measures import GroupRow, Measure, as_measure
from evenhand.metrics.rates import decided, divide


def share(values: Array, weights: Array | None = None) -> Measure:
    """Return the share of True with its 95 % interval.

    >>> {name: round(value, 3) for name, value in share(np.zeros(100, dtype=bool)).items()}
    {'value': 0.0, 'low': 0.0, 'high': 0.036}
    """
    if len(values) == 0 or (weights is not None and not weights.any()):
        return {"value": None, "low": None, "high": None}
    return as_measure(mean_interval(values.astype(bool), sample_weight=weights))


class Widest(NamedTuple):
    """The decision whose share differs most between groups, and the groups with the least and most of it."""

    label: Any
    least: Any
    most: Any


def widest(answers: Answers) -> Widest | None:
    """Return the decision and groups that discrimination compares; None if there is only one group.

    >>> decided, own = np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])
    >>> widest(Answers(["A", "B", "C"], ["f", "m"], own, y=np.array(list("ABCC")), decided=decided))
    Widest(label='C', least='f', most='m')
    """
    counts = answers.counts
    table = divide(*decided(counts))
    if len(table) < 2:
        return None
    at = int(np.ptp(table, axis=0).argmax())
    least, most = table[:, at].argmin(), table[:, at].argmax()
    label = counts.labels[at] if counts.positive is None else answers.pos_label
    return Widest(label, counts.groups[least], counts.groups[most])


def group_rows(answers: Answers) -> list[GroupRow]:
    """Return the group table: numbers of people and positives, and rates of decisions with intervals.

    Without a positive label, it has the share of each label instead.

    >>> y, decided, own = np.array(["n", "y"] * 4), np.array([0, 1] * 4), np.array([0, 0, 1, 1] * 2)
    >>> answers = Answers(["n", "y"], ["f", "m"], own, y=y, pos_label="y", decided=decided)
    >>> rows = group_rows(answers)
    >>> rows[0]["group"], rows[0]["people"], rows[0]["positive_rate"]["value"]
    ('f', 4, 0.5)
    """
    decided, flips = answers.positives, answers.flips
    truth, right = answers.truth == answers.positive, answers.decided_own == answers.truth

    def among(values: Array, here: Array) -> Measure:
        return share(values[here], None if answers.weights is None else answers.weights[here])

    rows: list[GroupRow] = []
    for code in np.unique(answers.own):
        here = answers.own == code
        row: GroupRow = {"group": str(answers.groups[code]), "people": int(here.sum())}
        if answers.pos_label is not None:
            row |= {
                "positives": int(truth[here].sum()),
                "base_rate": among(truth, here),
                "positive_rate": among(decided, here),
                "true_positive_rate": among(decided, here & truth),
            }
        else:
            row["decided"] = {
                str(label): among(answers.decided_own == at, here) for at, label in enumerate(answers.labels)
            }
        row["accuracy"] = among(right, here)
        if flips is not None:
            row["flip_rate"] = among(flips, here)
        rows.append(row)
    return rows
