"""Columns with decisions or scores from any source, and columns that `evenhand predict` added."""

from __future__ import annotations

import sys
from bisect import bisect_left
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.predictions import MOST_DECISIONS, decisions_at
from evenhand.checks import did_you_mean
from evenhand.tables.dataset import Dataset
from evenhand.wording import listed

_LAST = chr(sys.maxunicode)  # the last character: sorts after all names with the same beginning


def added_by_predict(frame: pd.DataFrame) -> list[str]:
    """Return the columns that `evenhand predict` added, under any prefix: they are not features."""
    names, ordered = set(frame.columns), sorted(frame.columns)  # sorted: those of one prefix are neighbours
    found: list[str] = []
    for name in frame.columns:
        if not name.endswith("would_flip"):
            continue
        prefix = name.removesuffix("would_flip")
        probabilities = [
            other
            for begin in (f"{prefix}probability_as_", f"{prefix}probability_of_")
            for other in ordered[bisect_left(ordered, begin) : bisect_left(ordered, begin + _LAST)]
        ]
        made = [f"{prefix}decision", f"{prefix}probability", *probabilities, name]
        if probabilities and names.issuperset(made):
            found += made
    return found


def would_flip(frame: pd.DataFrame, decision: str) -> str | None:
    """Return the column with the flips that `evenhand predict` wrote beside a column of decisions, if it did.

    >>> names = ["decision", "probability", "probability_as_f", "probability_as_m", "would_flip"]
    >>> people = pd.DataFrame(columns=names)
    >>> would_flip(people, "decision"), would_flip(people, "probability")
    ('would_flip', None)
    """
    name = f"{decision.removesuffix('decision')}would_flip"
    return name if decision.endswith("decision") and name in added_by_predict(frame) else None


def check_predictions(frame: pd.DataFrame, column: str, origin: str, sensitive: list[str]) -> None:
    """Raise if a file has no such column, or if it is the sensitive one."""
    if column not in frame.columns:
        near = did_you_mean(column, frame.columns) or f" Its columns: {listed(frame.columns, most=40)}."
        raise ValueError(f"Got predictions={column!r}, but {origin} has no such column.{near}")
    if column in sensitive:
        raise ValueError(f"Got {column!r} both as predictions and as sensitive; expected two columns.")


def check_decisions(said: pd.Series[Any]) -> None:
    """Raise unless a column, in a file without labels, holds a decision for everybody."""
    _check_gaps(said)
    if said.nunique() > MOST_DECISIONS:
        raise ValueError(
            f"Column {said.name!r} holds {said.nunique():,} different values, which are scores rather than "
            f"decisions (at most {MOST_DECISIONS}). Give a threshold (a score of at least that is a positive "
            "decision), or name the label."
        )


def decide_at(frame: pd.DataFrame, column: str, threshold: float) -> pd.Series[float]:
    """Replace a column of scores by decisions at the threshold; return the scores."""
    _check_gaps(frame[column])
    scores = pd.to_numeric(frame[column], errors="coerce")
    if scores.isna().any():
        raise ValueError(f"Column {column!r} has {frame[column][scores.isna()].iloc[0]!r}; expected scores.")
    frame[column] = np.array(decisions_at(threshold), dtype=object)[(scores >= threshold).astype(int)]
    return scores


def _check_gaps(said: pd.Series[Any]) -> None:
    if said.isna().any():
        raise ValueError(
            f"Column {said.name!r} has {int(said.isna().sum())} gaps; expected a decision for everybody."
        )


def decided_by(said: pd.Series[Any], dataset: Dataset) -> Any:
    """Return the decisions in the labels' own type; scores are returned as they are."""
    _check_gaps(said)
    labels = {str(label): label for label in dataset.label.unique().tolist()}
    if said.astype(str).isin(labels).all():
        return np.array([labels[value] for value in said.astype(str)])
    return said.to_numpy()
