"""The parts of an audit that are the same for people in memory and for people who are only counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array
from evenhand.auditing.result import Counted, Settings
from evenhand.auditing.subgroups import Search
from evenhand.auditing.twins import Settings as TwinSettings
from evenhand.metrics.answers import Answers
from evenhand.metrics.group_table import widest
from evenhand.metrics.measures import measure, value_of
from evenhand.wording import listed

_MEASURED = ["threshold", "positive_rate", "accuracy", "balanced_accuracy", "discrimination"]
_SHARES = np.linspace(0.05, 0.95, 19)  # quantiles of the scores to use as thresholds


class Plan(NamedTuple):
    """The options of an audit, for people in memory or only counted."""

    pos_label: Any
    threshold: float | None
    n_listed: int
    n_drawn: int  # the number of people to find neighbours for, or to draw from a table that is counted
    near: Mapping[str, Any]  # options of `gower_neighbours`
    twins: TwinSettings | None
    rng: np.random.Generator
    settings: Settings  # the settings that `About` keeps

    @property
    def resampling(self) -> dict[str, Any]:
        """The options of intervals."""
        n, confidence = self.settings["n_bootstrap"], self.settings["confidence"]
        return {"n": n, "confidence": confidence, "random_state": self.rng}

    def search(self, rate: str) -> Search:
        """Return the options of the subgroup search by this rate."""
        return Search(rate, self.settings["min_count"], self.settings["confidence"], self.n_listed)


def on_weights(answers: Answers) -> list[str]:
    """Return the note on sample weights, if there are any."""
    if answers.weights is None:
        return []
    return [
        "Shares are weighted by sample_weight; they are as certain as those of "
        f"{answers.counts.table.sum():,.0f} people with equal weights. Subgroups and lists of people are not "
        "weighted."
    ]


def counted(answers: Answers) -> Counted:
    """Return the numbers of people in each group and with each decision, and how they were predicted."""
    pos_label, apart = answers.pos_label, widest(answers)
    decided = answers.people_by(answers.decided_own, len(answers.labels)).tolist()
    return {
        "people": answers.people,
        "labelled": answers.y is not None,
        "groups": dict(zip(answers.groups, answers.sizes.tolist(), strict=True)),
        "evidence": dict(zip(answers.groups, answers.evidence.tolist(), strict=True)),
        "compared": [name for name, enough in zip(answers.groups, answers.compared, strict=True) if enough],
        "decisions": {label: n for label, n in zip(answers.labels, decided, strict=True) if n},
        "labels": answers.counts.labels,
        "positive": pos_label,
        "threshold": answers.threshold,
        "widest": None if apart is None else apart._asdict(),
        "label_rate": None if pos_label is None or answers.y is None else _label_rate(answers),
        "how": answers.how,
        "sensitive_columns": answers.columns,
    }


def _label_rate(answers: Answers) -> float:
    """Return the share of people with the positive label."""
    counts = answers.counts
    by_label = counts.table.sum(axis=(0, 2))
    return 0.0 if counts.positive is None else float(by_label[counts.positive] / by_label.sum())


def rate_searched(answers: Answers) -> tuple[str, Array | None, list[str]]:
    """Return the rate to compare in subgroups, who counts for it, and a note if there is no such rate."""
    y, pos_label = answers.y, answers.pos_label
    if pos_label is None and y is None:
        note = "There are no labels, and no decision is the positive one, so subgroups were left out."
        return "", None, [note]
    rate = "correct" if pos_label is None else f"decided {pos_label!r}"
    return rate, answers.decisions == (y if pos_label is None else pos_label), []


def copies_note(copies: list[Any]) -> list[str]:
    """Return the note on columns that are near copies of the decision."""
    if not copies:
        return []
    return [
        f"The decision can be predicted almost perfectly from {listed(copies)}. If that was made from the "
        "decision, or the decision from it, leave it out: with it, neighbours and subgroups mean little."
    ]


def along_threshold(answers: Answers) -> pd.DataFrame:
    """Return measures at the audit's threshold, and at those with 95 % to 5 % positive decisions.

    Without scores, there are no rows. Without labels, there is no accuracy.
    """
    scores, positive = answers.scores, answers.positive
    if answers.threshold is None or scores is None or positive is None:
        return pd.DataFrame(columns=_MEASURED)
    values = scores if scores.ndim == 1 else scores[:, positive]
    bars = {float(bar) for bar in np.quantile(values, _SHARES, method="higher")} | {answers.threshold}
    names = [name for name in _MEASURED[1:] if answers.y is not None or "accuracy" not in name]
    rows = []
    for bar in sorted(bars):
        decided = np.where(values >= bar, positive, 1 - positive)
        found = measure(replace(answers, decided=decided), names, intervals=False)
        rows.append({"threshold": bar} | {name: value_of(found, name) for name in names})
    return pd.DataFrame(rows)
