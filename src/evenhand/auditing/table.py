"""The table of metrics, filled row by row: value, interval and number of people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import BLIND
from evenhand.metrics.bootstrap import (
    Interval,
    bootstrap_interval,
    cells_of,
    interval_from_counts,
    mean_interval,
    rate_interval,
    share_interval,
)
from evenhand.metrics.divergence import DIVERGENCES
from evenhand.metrics.dyads import Strata, consistency_interval
from evenhand.metrics.group import FROM_COUNTS
from evenhand.metrics.scores import auc, calibration_error
from evenhand.metrics.weights import effective

_UNLABELLED = ("discrimination", "impact_ratio")  # metrics that need no true labels
UNKNOWN = Interval(np.nan, np.nan, np.nan)


def rate_of(label: Any) -> str:
    """Return the metric name for the share of people with this decision, if no label is positive."""
    return f"rate_of_{label}"


class MetricTable:
    """Collects metrics of a model's predictions, with intervals from `n` resamples.

    All metrics use the same generator, so their order matters.
    """

    def __init__(
        self, answers: Answers, *, n: int, confidence: float, random_state: np.random.Generator
    ) -> None:
        self._answers = answers
        self._resampling: dict[str, Any] = {"n": n, "confidence": confidence, "random_state": random_state}
        self._rows: list[dict[str, Any]] = []

    def frame(self) -> pd.DataFrame:
        """Return the table."""
        frame = pd.DataFrame(self._rows, columns=["metric", "group", "value", "low", "high", "people"])
        # Keep the groups as they are: beside None, pandas would turn whole numbers into floats.
        frame["group"] = pd.Series([row["group"] for row in self._rows], dtype=object)
        return frame

    def decisions(self) -> list[str]:
        """Add the metrics of decisions; return notes on groups that could not be compared.

        Without labels, metrics that need them are NaN, measured on 0 people. With only one group, so are
        metrics that compare groups.
        """
        answers, y = self._answers, self._answers.y
        one_group = len(answers.counts.groups) == 1
        for metric, rate in FROM_COUNTS.items():
            name = metric.__name__
            of_groups = name not in ("accuracy", "balanced_accuracy")
            if (one_group and of_groups) or (y is None and name not in _UNLABELLED):
                self._add(name, UNKNOWN, 0)
            else:
                self._add(name, rate_interval(rate, answers.counts, **self._resampling), answers.people)
        # Any rate is the share of some pairs of label and decision among a larger set of pairs.
        pairs: Any = np.indices(answers.counts.table.shape[1:])
        truth, decided = pairs
        self._shares("accuracy", truth == decided, y is not None, everybody=False)
        if answers.pos_label is not None:
            return self._positive_rates(truth, decided)
        for at, label in enumerate(answers.counts.labels):
            self._shares(rate_of(label), decided == at)
        return []

    def _positive_rates(self, truth: Codes, decided: Codes) -> list[str]:
        answers, y, positive = self._answers, self._answers.y, self._answers.counts.positive
        self._shares("positive_rate", decided == positive)
        notes = []
        for name, among in (
            ("true_positive_rate", truth == positive),
            ("false_positive_rate", truth != positive),
        ):
            unknown = self._shares(name, decided == positive, among & (y is not None))
            lacking = [group for group in unknown if group in answers.counts.groups]
            if lacking and y is not None:
                notes.append(
                    f"Nobody in {', '.join(map(str, lacking))} counts for the {name.replace('_', ' ')}; "
                    "the differences that need it leave these groups out."
                )
        return notes

    def scores(self) -> list[str]:
        """Add AUC and calibration error if there are scores and labels; return notes on what is missing."""
        answers, y, scores = self._answers, self._answers.y, self._answers.scores
        if scores is None:
            return ["No probabilities were given, so AUC, calibration and gaps were left out."]
        if y is None:
            return []
        if int(answers.truth.max()) >= len(answers.labels):
            return ["The model never gives some of the labels, so AUC and calibration were left out."]
        arguments: dict[str, Any] = {
            "labels": answers.labels, "pos_label": answers.pos_label, "sample_weight": answers.weights
        }  # fmt: skip
        likely = scores.ndim == 2
        for metric in (auc, calibration_error) if likely else (auc,):
            found = bootstrap_interval(metric, y, scores, **arguments, **self._resampling)
            self._add(metric.__name__, found, len(y))
        return [] if likely else ["The scores are not probabilities, so calibration was left out."]

    def persons(self, epsilon: float) -> None:
        """Add the flip rate and the metric-free gap."""
        answers = self._answers
        if answers.how == "unmeasured":
            for group in (None, *answers.groups):
                self._add("flip_rate", UNKNOWN, 0, group)
        if answers.flips is not None:
            # If the group is not an input, nobody flips, without sampling error.
            blind = answers.how in BLIND
            self._by_group("flip_rate", answers.flips.astype(float) if blind else answers.flips)
        for name in DIVERGENCES:
            gaps = answers.gaps(name)
            if gaps is None:
                return
            gaps = gaps.round(12)
            self.mean(f"gap_mean_{name}", gaps)
            self._add(f"gap_p95_{name}", self._percentile(gaps, 0.95), len(gaps))
            # The bootstrap gives no interval for the largest value of a sample.
            self._add(f"gap_maximum_{name}", Interval(float(gaps.max()), np.nan, np.nan), len(gaps))
            self._by_group(f"gap_share_{name}", gaps >= epsilon)

    def mean(self, metric: str, values: Array, group: Any = None, people: Any = slice(None)) -> None:
        """Add the mean of one value per person, for some `people` or all."""
        weights = None if self._answers.weights is None else self._answers.weights[people]
        found = mean_interval(values, sample_weight=weights, **self._resampling)
        self._add(metric, found, len(values), group)

    def consistency(self, neighbours: Codes, people: Codes, strata: Strata | None = None) -> None:
        """Add the consistency of some people's decisions with those of their neighbours, (people, k)."""
        decided, weights = self._answers.decided_own, self._answers.weights
        found = consistency_interval(
            decided[neighbours] != decided[people][:, None], neighbours, people, strata=strata,
            weights=None if weights is None else weights[people], confidence=self._resampling["confidence"],
        )  # fmt: skip
        self._add("consistency", found, len(people))

    def _shares(self, metric: str, hit: Flags, among: Any = True, everybody: bool = True) -> list[Any]:
        """Add the share of `hit` among `among`, pairs of label and decision; return groups without people."""
        counts, lacking = self._answers.counts, []
        among = np.broadcast_to(among, hit.shape)
        for name in [None, *self._answers.groups] if everybody else self._answers.groups:
            at = slice(None) if name is None else [group == name for group in counts.groups]
            found, people = share_interval(counts, at, hit & among, among, self._resampling["confidence"])
            if name is not None or people:
                self._add(metric, found, people, name)
            if name is not None and not people:
                lacking.append(name)
        return lacking

    def _by_group(self, metric: str, values: Array) -> None:
        """Add the mean of one value per person, over everybody and for each group."""
        weights = self._answers.weights
        among = np.ones(len(values), dtype=bool) if weights is None else weights > 0
        self.mean(metric, values[among], people=among)
        for code, name in enumerate(self._answers.groups):
            chosen = among & (self._answers.own == code)
            if chosen.any():
                self.mean(metric, values[chosen], name, chosen)
            else:
                self._add(metric, UNKNOWN, 0, name)

    def _percentile(self, values: Array, q: float) -> Interval:
        cell, n_cells = cells_of(values)
        table = np.bincount(cell, effective(self._answers.weights, len(values)), n_cells)
        means = np.bincount(cell, values, n_cells) / np.bincount(cell, minlength=n_cells)

        def at(tables: Array) -> Array:
            below = np.cumsum(tables, axis=-1) >= q * tables.sum(axis=-1, keepdims=True)
            return np.asarray(means[below.argmax(axis=-1)])

        found = np.quantile(values, q) if self._answers.weights is None else at(table)
        return interval_from_counts(table, at, float(found), **self._resampling)

    def _add(self, metric: str, interval: Interval, people: int, group: Any = None) -> None:
        row = {"metric": metric, "group": group, "value": interval.estimate}
        self._rows.append({**row, "low": interval.low, "high": interval.high, "people": people})
