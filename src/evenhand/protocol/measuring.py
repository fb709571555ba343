"""What is measured on the test part for a trained model, and what is kept of its training."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes
from evenhand.metrics import Answers, rates
from evenhand.metrics.counts import Counts
from evenhand.metrics.divergence import SMALLEST
from evenhand.metrics.individual import check_distributions
from evenhand.metrics.scores import rank_auc
from evenhand.protocol.counting import counted

# The paper's three first; the others show when a constant classifier only looks fair.
PUBLISHED_METRICS = ("accuracy", "discrimination", "consistency")
METRICS = (*PUBLISHED_METRICS, "flip_rate", "positive_rate", "balanced_accuracy", "auc", "gap")
STUDIED = (*PUBLISHED_METRICS, "positive_rate")  # of submodels
_CURVE_POINTS = 200


class Measured(NamedTuple):
    """The metrics of a model on the test part, and those of its groups' policies used alone or exchanged."""

    metrics: dict[str, float]
    submodels: dict[str, dict[str, float]]


def measured(answers: Answers, neighbours: Codes) -> Measured:
    """Return every metric of a model's answers about the test part, and the paper's submodel study.

    In the study, 'Model g' is `model.compress(group g)`, used for everyone, and 'Reversed Model' is
    `model.reversed()`. Everything is counted in one pass, because a sweep measures thousands of models.
    """
    said, own, truth, positive = answers.probabilities_by_group, answers.own, answers.truth, answers.positive
    assert said is not None
    assert positive is not None
    logs = np.log(np.clip(said, SMALLEST, 1.0))
    n_labels = max(len(answers.labels), 1 + int(truth.max()))  # a model may not know all labels
    counts, apart, gaps, flips = counted(said, logs, own, truth, neighbours, n_labels)
    if flips < 0:
        check_distributions(said, "probabilities_by_group", 3)  # it says what is wrong
    people, here = len(own), counts[0].any(axis=(1, 2))  # groups without people here are left out
    ways = Counts(counts[:, here], answers.groups, answers.labels, positive, answers.min_group)
    columns = (
        rates.accuracy(ways), rates.discrimination(ways), 1 - apart.mean(axis=1),
        counts[..., positive].sum(axis=(1, 2)) / people,
    )  # fmt: skip
    names = [*(f"Model {group}" for group in range(len(here))), "Reversed Model", "Original Model"]
    study = [dict(zip(STUDIED, row, strict=True)) for row in np.column_stack(columns).tolist()]
    accuracy, discrimination, consistency, positive_rate = study[-1].values()
    metrics = {
        "accuracy": accuracy,
        "discrimination": discrimination,
        "positive_rate": positive_rate,
        "flip_rate": flips / people,
        "delta": accuracy - discrimination,
        "consistency": consistency,
        "balanced_accuracy": float(rates.balanced_accuracy(ways)[-1]),
        "auc": rank_auc(truth == positive, said[np.arange(people), own, positive]),
        "gap": float(gaps.round(12).mean()),  # rounded as in `metric_free_gap`
    }
    return Measured(metrics, dict(zip(names, study, strict=True)))


def curve(model: Any) -> dict[str, list[float]] | None:
    """Return the model's history by step, in at most 200 points; None if it keeps none."""
    history = getattr(model, "history_", None)
    if not history or not len(history["step"]):
        return None
    last = len(history["step"]) - 1
    at = np.unique(np.linspace(0, last, min(last + 1, _CURVE_POINTS)).round().astype(int))
    kept = [name for name in ("step", "reward", "squared_gradient", "draws_differ") if name in history]
    return {name: np.asarray(history[name])[at].tolist() for name in kept}
