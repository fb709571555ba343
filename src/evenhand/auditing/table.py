"""The table of metrics, filled row by row: value, interval, and how many people it was measured on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.metrics.answers import Answers
from evenhand.metrics.bootstrap import (
    Interval,
    bootstrap_interval,
    cells_of,
    interval_from_counts,
    mean_interval,
    rate_interval,
)
from evenhand.metrics.counts import Counts
from evenhand.metrics.divergence import DIVERGENCES
from evenhand.metrics.group import FROM_COUNTS, accuracy, balanced_accuracy, discrimination
from evenhand.metrics.individual import person_gaps
from evenhand.metrics.scores import auc, calibration_error

Array = npt.NDArray[Any]

UNKNOWN = Interval(np.nan, np.nan, np.nan)


def rate_of(label: Any) -> str:
    """Return the name of the share of people for whom a label was decided, where none of them is positive."""
    return f"rate_of_{label}"


class MetricTable:
    """Collects metrics with their intervals."""

    def __init__(self, n: int, confidence: float, random_state: np.random.Generator) -> None:
        self._bootstrap: dict[str, Any] = {"n": n, "confidence": confidence, "random_state": random_state}
        self._rows: list[dict[str, Any]] = []

    def frame(self) -> pd.DataFrame:
        """Return the table."""
        frame = pd.DataFrame(self._rows)
        # As they are: beside rows of no group, pandas would make floats of groups that are whole numbers.
        frame["group"] = pd.Series([row["group"] for row in self._rows], dtype=object)
        return frame

    def decisions(self, y: Array | None, said: Answers, counts: Counts, positive: Any) -> list[str]:
        """Add the metrics of decisions; return notes on groups that could not be compared.

        Without labels, what compares decisions with them is unknown: NaN, of nobody. So is, of one group,
        what compares groups.
        """
        total = int(counts.table.sum())
        for metric, rate in FROM_COUNTS.items():
            one_group = len(counts.groups) == 1 and metric not in (accuracy, balanced_accuracy)
            if one_group or (y is None and metric is not discrimination):
                self._add(metric.__name__, UNKNOWN, 0)
            else:
                self._add(metric.__name__, rate_interval(rate, counts, **self._bootstrap), total)
        notes = []
        labelled = np.full(total, y is not None)
        self._by_group("accuracy", said.decisions == y, said, labelled, everybody=False)
        if positive is None:
            for label in counts.labels:
                self._by_group(rate_of(label), said.decisions == label, said)
        else:
            decided = said.decisions == positive
            self._by_group("positive_rate", decided, said)
            for name, among in (
                ("true_positive_rate", labelled & (y == positive)),
                ("false_positive_rate", labelled & (y != positive)),
            ):
                unknown = self._by_group(name, decided, said, among)
                lacking = [group for group in unknown if group in counts.groups]
                if lacking and y is not None:
                    notes.append(
                        f"Nobody in {', '.join(map(str, lacking))} counts for the {name.replace('_', ' ')}; "
                        "the differences that need it leave these groups out."
                    )
        return notes

    def scores(self, y: Array | None, said: Answers, positive: Any) -> list[str]:
        """Add AUC and calibration error where there are scores and labels."""
        scores = said.scores
        if scores is None:
            return ["No probabilities were given, so that AUC, calibration and gaps were left out."]
        if y is None:
            return []
        if not set(pd.unique(y).tolist()) <= set(said.labels):
            return ["Some labels are none that the model gives, so that AUC and calibration were left out."]
        arguments: dict[str, Any] = {"labels": said.labels, "pos_label": positive}
        likely = scores.ndim == 2
        notes = [] if likely else ["The scores are no probabilities, so that calibration was left out."]
        for metric in (auc, calibration_error) if likely else (auc,):
            self._add(
                metric.__name__, bootstrap_interval(metric, y, scores, **arguments, **self._bootstrap), len(y)
            )
        return notes

    def persons(self, said: Answers, flips: Array | None, epsilon: float) -> None:
        """Add the flip rate and the metric-free gap."""
        if said.how == "unmeasured":
            for group in (None, *said.groups):
                self._add("flip_rate", UNKNOWN, 0, group)
        if flips is not None:
            # A model that nobody could be put to another group of flips nobody: no sampling error in that.
            self._by_group("flip_rate", flips.astype(float) if said.how == "blind" else flips, said)
        if said.probabilities_by_group is None:
            return
        for name in DIVERGENCES:
            gaps = person_gaps(said.probabilities_by_group, said.own, divergence=name).round(12)
            self._add(f"gap_mean_{name}", mean_interval(gaps, **self._bootstrap), len(gaps))
            self._add(f"gap_p95_{name}", self._percentile(gaps, 0.95), len(gaps))
            # The largest of a sample has no bootstrap interval.
            self._add(f"gap_maximum_{name}", Interval(float(gaps.max()), np.nan, np.nan), len(gaps))
            self._by_group(f"gap_share_{name}", gaps >= epsilon, said)

    def mean(self, metric: str, values: Array, group: Any = None) -> None:
        """Add the mean of one value a person."""
        self._add(metric, mean_interval(values, **self._bootstrap), len(values), group)

    def _by_group(
        self, metric: str, values: Array, said: Answers, among: Array | None = None, everybody: bool = True
    ) -> list[Any]:
        """Add a mean over everybody and for each group; return the groups in which it is of nobody."""
        among = np.ones(len(values), dtype=bool) if among is None else among
        if everybody and among.any():
            self.mean(metric, values[among])
        lacking = []
        for code, name in enumerate(said.groups):
            chosen = among & (said.own == code)
            if chosen.any():
                self.mean(metric, values[chosen], name)
            else:
                lacking.append(name)
                self._add(metric, UNKNOWN, 0, name)
        return lacking

    def _percentile(self, values: Array, q: float) -> Interval:
        cell, n_cells = cells_of(values)
        table = np.bincount(cell, minlength=n_cells)
        means = np.bincount(cell, weights=values, minlength=n_cells) / table

        def at(tables: Array) -> Array:
            below = np.cumsum(tables, axis=-1) >= q * len(values)
            return np.asarray(means[below.argmax(axis=-1)])

        return interval_from_counts(table, at, float(np.quantile(values, q)), **self._bootstrap)

    def _add(self, metric: str, interval: Interval, people: int, group: Any = None) -> None:
        row = {"metric": metric, "group": group, "value": interval.estimate}
        self._rows.append({**row, "low": interval.low, "high": interval.high, "people": people})
