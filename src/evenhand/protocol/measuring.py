"""What is measured of a trained model on the test part, and kept of its training."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes
from evenhand.metrics import Answers
from evenhand.metrics.divergence import SMALLEST
from evenhand.metrics.individual import check_distributions
from evenhand.metrics.rates import filled
from evenhand.metrics.scores import rank_auc
from evenhand.protocol.counting import counted

# The paper's three first; the others show when a constant classifier only looks fair.
PUBLISHED_METRICS = ("accuracy", "discrimination", "consistency")
METRICS = (*PUBLISHED_METRICS, "flip_rate", "positive_rate", "balanced_accuracy", "auc", "gap")
STUDIED = (*PUBLISHED_METRICS, "positive_rate")  # of submodels
_CURVE_POINTS = 200


class Measured(NamedTuple):
    """What a model does on the test part, and what its groups' policies do each by itself or exchanged."""

    metrics: dict[str, float]
    submodels: dict[str, dict[str, float]]


def measured(answers: Answers, neighbours: Codes) -> Measured:
    """Return every metric of a model's answers about the test part, and the paper's submodel study.

    In the study, 'Model g' is what `model.compress(group g)` decides for everyone, and 'Reversed Model' what
    `model.reversed()` does. All of it is counted in one pass: a sweep asks this of thousands of models.
    """
    said, own, truth, positive = answers.probabilities_by_group, answers.own, answers.truth, answers.positive
    assert said is not None
    assert positive is not None
    logs = np.log(np.clip(said, SMALLEST, 1.0))
    n_labels = max(len(answers.labels), 1 + int(truth.max()))  # a model may not know all
    counts, apart, gaps, flips = counted(said, logs, own, truth, neighbours, n_labels)
    if flips < 0:
        check_distributions(said, "probabilities_by_group", 3)  # which says what is wrong
    people, sizes = len(own), counts[0].sum(axis=(1, 2))
    chosen, right = counts[..., positive].sum(axis=2), np.trace(counts, axis1=2, axis2=3).sum(axis=1)
    here = sizes > 0
    shares = np.divide(*filled(chosen[:, here, None], sizes[here, None], answers.min_group))[..., 0]
    columns = (
        right / people, shares.max(axis=1) - shares.min(axis=1), 1 - apart.mean(axis=1),
        chosen.sum(axis=1) / people,
    )  # fmt: skip
    names = [*(f"Model {group}" for group in range(len(sizes))), "Reversed Model", "Original Model"]
    study = [dict(zip(STUDIED, row, strict=True)) for row in np.column_stack(columns).tolist()]
    accuracy, discrimination, consistency, positive_rate = study[-1].values()
    metrics = {
        "accuracy": accuracy,
        "discrimination": discrimination,
        "positive_rate": positive_rate,
        "flip_rate": flips / people,
        "delta": accuracy - discrimination,
        "consistency": consistency,
        "balanced_accuracy": _balanced_accuracy(counts[-1].sum(axis=0)),
        "auc": rank_auc(truth == positive, said[np.arange(people), own, positive]),
        "gap": float(gaps.round(12).mean()),  # rounded as in `metric_free_gap`
    }
    return Measured(metrics, dict(zip(names, study, strict=True)))


def _balanced_accuracy(joint: Codes) -> float:
    """Return the mean, over the labels that occur, of the share of decisions that equal them."""
    sizes = joint.sum(axis=1)
    right = np.zeros(len(sizes))
    right[: joint.shape[1]] = np.diagonal(joint)
    return float(np.mean(right[sizes > 0] / sizes[sizes > 0]))


def curve(model: Any) -> dict[str, list[float]] | None:
    """Return the accumulated reward by step, in at most 200 points, if the model keeps it."""
    history = getattr(model, "history_", None)
    if not history or not len(history["step"]):
        return None
    last = len(history["step"]) - 1
    at = np.unique(np.linspace(0, last, min(last + 1, _CURVE_POINTS)).round().astype(int))
    kept = [name for name in ("step", "reward", "squared_gradient", "draws_differ") if name in history]
    return {name: np.asarray(history[name])[at].tolist() for name in kept}
