"""Labels that few people have: a constant decision is accurate, and 0.5 is a poor threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.checks import number
from evenhand.metrics.group import balanced_accuracy
from evenhand.tables.preprocessing import Parts

BALANCED = "balanced"
# With K labels, one is rare if less than this share of 1/K of the people have it: with two, less than 20 %.
_RARE = 0.4
# At 0.5, too few get the rare label if balanced accuracy is below the first number, or lower by more than the
# second than at the label's share.
_NEARLY_CONSTANT, _MUCH = 0.6, 0.1


def are_rare(labels: Any, weights: Any = None) -> bool:
    """Say whether some label is rare.

    >>> are_rare(["no"] * 9 + ["yes"]), are_rare(["no"] * 3 + ["yes"])
    (True, False)
    """
    counts = np.bincount(np.unique(np.asarray(labels).astype(str), return_inverse=True)[1], weights)
    return bool(counts.min() < _RARE * counts.mean())


def settle_threshold(threshold: float | str | None, parts: Parts) -> tuple[float | None, list[str]]:
    """Return the threshold that all models are trained, measured and used with, and notes on it.

    None stays None (the most probable label is decided), unless one of two labels is rare and a logistic
    regression finds too few of its people at 0.5. 'balanced' is the share of the positive label, which gives
    the highest balanced accuracy if probabilities are calibrated. A threshold chosen on the validation part,
    where few people have a rare label, does worse on new people (`experiments/thresholds.py`).
    """
    y, w, positive = parts.train.y, parts.train.w, parts.pos_label
    n_labels = len(np.unique(y.astype(str)))
    if threshold is not None and (positive is None or n_labels != 2):
        raise ValueError(
            f"Got threshold={threshold!r} for {n_labels} labels, but a threshold is for two labels: of more, "
            "the most probable one is decided."
        )
    if threshold is not None and threshold != BALANCED:
        return number("threshold", threshold, low=0, high=1, open_low=True), []
    bar = float(np.average(y == positive, weights=w))
    if threshold is None and (n_labels != 2 or not are_rare(y, w) or _found_at_half(parts, bar)):
        return None, []
    text = (
        f"The decision is {positive!r} if its probability is at least {bar:.3g}, in every group: that is the "
        "share of people with this label, which gives calibrated probabilities the highest balanced accuracy."
    )
    if threshold is None:
        text += (
            " At 0.5, hardly anybody would get the rare label. threshold=0.5 (--threshold 0.5) still "
            "decides for the more probable label."
        )
    return bar, [text]


def _found_at_half(parts: Parts, bar: float) -> bool:
    """Say whether a logistic regression finds the rare label at 0.5 nearly as well as at `bar`."""
    train, validation = parts.train, parts.validation
    model = LogisticRegression(max_iter=500).fit(train.X, train.y == parts.pos_label, train.w)
    said, truth = model.predict_proba(validation.X)[:, 1], validation.y == parts.pos_label
    half, share = (balanced_accuracy(truth, said >= at, sample_weight=validation.w) for at in (0.5, bar))
    return half >= max(_NEARLY_CONSTANT, share - _MUCH)
