"""What is measured of a trained model on the test part, and kept of its training."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Codes
from evenhand.metrics import Answers, measure, metric_free_gap
from evenhand.metrics.measures import value_of

# The paper's three first; the others show when a constant classifier only looks fair.
PUBLISHED_METRICS = ("accuracy", "discrimination", "consistency")
METRICS = (*PUBLISHED_METRICS, "flip_rate", "positive_rate", "balanced_accuracy", "auc", "gap")
_MEASURED = (
    "accuracy", "discrimination", "positive_rate", "flip_rate", "delta", "consistency", "balanced_accuracy",
    "auc",
)  # fmt: skip
_CURVE_POINTS = 200


def measured(answers: Answers, neighbours: Codes) -> dict[str, float]:
    """Return every metric of a model's answers about the test part."""
    gap = metric_free_gap(answers.probabilities_by_group, answers.own)
    found = measure(answers, _MEASURED, intervals=False, neighbours=neighbours)
    return {name: value_of(found, name) for name in found} | {"gap": gap.mean}


def submodels(answers: Answers, neighbours: Codes) -> dict[str, dict[str, float]]:
    """Return the paper's submodel study: each group's policy for everyone, and the policies exchanged.

    'Model g' is what `model.compress(group g)` decides, 'Reversed Model' what `model.reversed()` does.
    """
    decided = answers.decided_by_group
    assert decided is not None
    n_groups = len(answers.groups)
    ways = {f"Model {group}": decided[:, group] for group in range(n_groups)}
    ways["Reversed Model"] = decided[np.arange(len(decided)), (answers.own + 1) % n_groups]
    ways["Original Model"] = answers.decided_own
    names = (*PUBLISHED_METRICS, "positive_rate")
    studied = {}
    for name, codes in ways.items():
        found = measure(answers.with_answers(decided=codes), names, intervals=False, neighbours=neighbours)
        studied[name] = {metric: value_of(found, metric) for metric in names}
    return studied


def curve(model: Any) -> dict[str, list[float]] | None:
    """Return the accumulated reward by step, in at most 200 points, if the model keeps it."""
    history = getattr(model, "history_", None)
    if not history or not len(history["step"]):
        return None
    last = len(history["step"]) - 1
    at = np.unique(np.linspace(0, last, min(last + 1, _CURVE_POINTS)).round().astype(int))
    kept = [name for name in ("step", "reward", "squared_gradient", "draws_differ") if name in history]
    return {name: np.asarray(history[name])[at].tolist() for name in kept}
