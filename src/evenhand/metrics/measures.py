"""Measures of one model on one part, each with its interval over people: what every report shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics import (
    accuracy,
    auc,
    balanced_accuracy,
    bootstrap_interval,
    delta,
    discrimination,
    mean_interval,
    person_flips,
    person_gaps,
)
from evenhand.metrics.divergence import divergence

Array = npt.NDArray[Any]
Measure = dict[str, float | None]

# What a report shows, in this order: the name in a summary, the name on the page, and how it is read.
SHOWN: dict[str, tuple[str, str]] = {
    "accuracy": ("accuracy", "share of decisions that equal the label"),
    "discrimination": (
        "discrimination",
        "largest difference between groups in the share of positive decisions",
    ),
    "delta": ("delta", "accuracy less discrimination"),
    "flip_rate": ("flip rate", "share of people whose decision changes under another group's policy"),
    "positive_rate": ("positive rate", "share of positive decisions; 0 or 1 is a constant classifier"),
    "consistency": ("consistency", "agreement with the five most similar people"),
    "balanced_accuracy": (
        "balanced accuracy",
        "mean over the labels of the share of decisions that equal the label",
    ),
    "auc": ("AUC", "chance that someone labelled positive is scored above someone labelled otherwise"),
    "gap": ("gap", "mean divergence between the person's own policy and the farthest other"),
}
SHARES = ("flip_rate", "positive_rate")  # shown in percent


def measure(
    y: Any,
    said: Array,
    own: Array,
    *,
    labels: Array,
    pos_label: Any,
    intervals: bool = True,
    random_state: int = 0,
) -> dict[str, Measure]:
    """Return every measure that probabilities by group tell, with 95 % intervals if wanted.

    Parameters
    ----------
    y : the true labels.
    said : what each group's policy says of each person, (people, groups, actions).
    own : the number of each person's group.
    labels : the actions' names.
    pos_label : the positive one; None where of more than two labels none is. Differences between groups are
        then the largest over the labels, and there is no positive rate.

    Examples
    --------
    >>> said = np.array([[[0.9, 0.1], [0.9, 0.1]], [[0.4, 0.6], [0.6, 0.4]]] * 10)
    >>> found = measure(["no", "yes"] * 10, said, np.array([0, 1] * 10), labels=np.array(["no", "yes"]),
    ...     pos_label="yes", intervals=False)
    >>> found["accuracy"]["value"], found["flip_rate"]["value"]
    (0.5, 0.5)
    """
    people = np.arange(len(said))
    decided = said.argmax(2)
    decisions, scores = labels[decided[people, own]], said[people, own]
    common: dict[str, Any] = {"sensitive_features": own, "pos_label": pos_label}
    found: dict[str, Measure] = {}
    for metric in (accuracy, discrimination, delta, balanced_accuracy):
        if intervals:
            found[metric.__name__] = _measure(
                *bootstrap_interval(metric, y, decisions, random_state=random_state, **common)
            )
        else:
            found[metric.__name__] = _measure(metric(y, decisions, **common))
    if len(np.unique(np.asarray(y))) == len(labels):
        ranked = {"pos_label": pos_label, "labels": labels.tolist()}
        binary = intervals and len(labels) == 2
        if binary:
            of_positive = scores[:, labels.tolist().index(pos_label)]
            found["auc"] = _measure(
                *bootstrap_interval(auc, y, of_positive, random_state=random_state, **ranked)
            )
        else:
            found["auc"] = _measure(auc(y, scores, **ranked))
    flips, gaps = person_flips(decided, own), person_gaps(said, own)
    if intervals:
        # Policies that are one and the same can't disagree, whoever comes.
        same = bool((said == said[:, :1]).all())
        found["flip_rate"] = _measure(0.0, 0.0, 0.0) if same else share(flips, random_state)
        found["gap"] = _measure(*mean_interval(gaps, random_state=random_state))
    else:
        found |= {"flip_rate": _measure(float(flips.mean())), "gap": _measure(float(gaps.mean()))}
    if pos_label is not None:
        positives = decisions == pos_label
        found["positive_rate"] = (
            share(positives, random_state) if intervals else _measure(float(positives.mean()))
        )
    return {name: found[name] for name in SHOWN if name in found}


def share(values: Array, random_state: int = 0) -> Measure:
    """Return the share of True with its 95 % interval.

    >>> {name: round(value, 3) for name, value in share(np.zeros(100, dtype=bool)).items()}
    {'value': 0.0, 'low': 0.0, 'high': 0.036}
    """
    if len(values) == 0:
        return _measure(float("nan"))
    return _measure(*mean_interval(values.astype(bool), random_state=random_state))


def value_of(found: dict[str, Measure], name: str) -> float:
    """Return a measure's value."""
    value = found[name]["value"]
    return float("nan") if value is None else float(value)


def published_reward(said: Array, own: Array) -> dict[str, float]:
    """Measure, on this model's own policies, what the divergence term pushes the logits by, per unit of λ.

    The expected push of the published term, Σ_a π(a)·KL·∇log π(a), is zero for everybody; what is left of it
    is the noise of a sampled action. The log-ratio's expected push is the divergence's own gradient.

    >>> said = np.array([[[0.5, 0.5], [0.9, 0.1]]])
    >>> {name: round(value, 3) for name, value in published_reward(said, np.array([0])).items()}
    {'divergence': 0.511, 'published_push': 0.0, 'published_noise': 0.361, 'log_ratio_push': 0.777}
    """
    people = np.arange(len(said))
    mine = np.clip(said[people, own], 1e-12, 1)
    kl = divergence("kl")
    others = range(said.shape[1])
    n_others = max(1, said.shape[1] - 1)
    gap = sum(np.where(own == g, 0.0, kl(mine, said[:, g])) for g in others) / n_others
    ratio = (
        sum(np.where((own == g)[:, None], 0.0, np.log(mine / np.clip(said[:, g], 1e-12, 1))) for g in others)
        / n_others
    )
    published = mine * (gap[:, None] - (mine * gap[:, None]).sum(1, keepdims=True))
    cured = mine * (ratio - (mine * ratio).sum(1, keepdims=True))
    # E_a ‖KL·(e_a − π)‖² = KL²·(1 − ‖π‖²): the size of a sampled step whose mean is zero.
    noise = gap * np.sqrt(np.clip(1 - (mine**2).sum(1), 0, None))
    return {
        "divergence": float(np.mean(gap)),
        "published_push": float(np.linalg.norm(published, axis=1).mean()),
        "published_noise": float(noise.mean()),
        "log_ratio_push": float(np.linalg.norm(cured, axis=1).mean()),
    }


def _measure(value: float, low: float | None = None, high: float | None = None) -> Measure:
    return {"value": _finite(value), "low": _finite(low), "high": _finite(high)}


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
