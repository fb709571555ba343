"""Measures for `fit`, also where of more than two labels none is the positive one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics import bootstrap_interval, delta, discrimination
from evenhand.report.measures import Measure, measure
from evenhand.report.summarise import group_rows, persons

Array = npt.NDArray[Any]
_OF_THE_POSITIVE = ("positives", "base_rate", "positive_rate", "true_positive_rate")


def measured(
    y: Any, said: Array, own: Array, *, labels: Array, pos_label: Any, intervals: bool = True
) -> dict[str, Measure]:
    """Return every measure; with no positive label, differences between groups are the largest over labels.

    >>> said = np.array([[[0.8, 0.1, 0.1]] * 2, [[0.1, 0.8, 0.1]] * 2, [[0.1, 0.1, 0.8]] * 2])
    >>> found = measured(["A", "B", "C"], said, np.array([0, 0, 1]), labels=np.array(["A", "B", "C"]),
    ...     pos_label=None, intervals=False)
    >>> found["discrimination"]["value"], "positive_rate" in found
    (1.0, False)
    """
    some = labels.tolist()[0] if pos_label is None else pos_label
    found = measure(y, said, own, labels=labels, pos_label=some, intervals=intervals)
    if pos_label is not None:
        return found
    del found["positive_rate"]
    decisions = labels[said[np.arange(len(own)), own].argmax(1)]
    for metric in (discrimination, delta):
        numbers = (
            bootstrap_interval(metric, y, decisions, sensitive_features=own, random_state=0)
            if intervals
            else (metric(y, decisions, sensitive_features=own), np.nan, np.nan)
        )
        known = (float(one) if np.isfinite(one) else None for one in numbers)
        found[metric.__name__] = dict(zip(("value", "low", "high"), known, strict=True))
    return found


def by_group(
    y: Any, decisions: Array, own: Array, groups: list[Any], pos_label: Any, flips: Array
) -> list[dict[str, Any]]:
    """Return the group table; without a positive label, without the shares of it."""
    rows = group_rows(y, decisions, own, groups, pos_label, flips)
    if pos_label is not None:
        return rows
    return [{name: value for name, value in row.items() if name not in _OF_THE_POSITIVE} for row in rows]


def people(contexts: Any, said: Array, own: Array, *, pos_label: Any, **given: Any) -> dict[str, Any]:
    """Return people as a report lists them; without a positive label there is no one probability to show."""
    some = given["labels"][0] if pos_label is None else pos_label
    listed = persons(contexts, said, own, pos_label=some, **given)
    if pos_label is None:
        for row in listed["rows"]:
            row["probabilities"] = [None] * len(row["probabilities"])
    return listed
