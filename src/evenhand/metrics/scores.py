"""Metrics of scores: how well they rank people, and whether they are calibrated."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Array, Codes
from evenhand.checks import integer
from evenhand.jit import jit
from evenhand.metrics.counts import encode_labels, positive_label
from evenhand.metrics.of_table import columns_of
from evenhand.metrics.rates import divide
from evenhand.metrics.weights import effective


def auc(
    y_true: Any, y_score: Any, *, sensitive_features: Any = None, pos_label: Any = None, labels: Any = None,
    sample_weight: Any = None, data: Any = None,
) -> float:  # fmt: skip
    """Return the area under the ROC curve: the chance that a positive person scores above a negative one.

    Parameters
    ----------
    y_true : array
        The true labels.
    y_score : array
        One score per person for the positive label, or one column per label.
    sensitive_features : ignored
        Accepted because all metrics share one signature.
    pos_label : label
        The positive label; by default the second of two. With more than two labels, the AUC is that of
        `pos_label` against the rest. Without `pos_label`, it is the mean over the labels of each against the
        rest.
    labels : list
        The names of the columns of y_score; by default the sorted labels of y_true.
    sample_weight : array
        The number of people that each person stands for; 1 by default.
    data : frame
        A table; y_true, y_score and sample_weight are then names of its columns. If the table is not in
        memory, these columns are loaded.

    Returns
    -------
    float
        NaN if y_true has only one label.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    if data is not None:
        given = columns_of(data, y_true, y_score, None, sample_weight, count=False)
        y_true, y_score, _, sample_weight, _ = given
    truth, scores, positive = read_scores(y_true, y_score, pos_label, labels)
    weights = effective(sample_weight, len(truth))
    if scores.ndim == 1:
        return rank_auc(truth == positive, scores, weights)
    areas = [rank_auc(truth == label, scores[:, label], weights) for label in range(scores.shape[1])]
    known = [area for area in areas if not np.isnan(area)]
    return float(np.mean(known)) if known else float("nan")


def calibration_error(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    sample_weight: Any = None,
    bins: int = 10,
    data: Any = None,
) -> float:
    """Return the expected calibration error over bins of equal width.

    This is the mean over people of |mean score − share of positives| in their bin. With more than two labels
    and no `pos_label`, the score is that of the most probable label, and people who have this label are
    positives.

    Parameters
    ----------
    y_true, y_score, sensitive_features, pos_label, labels, sample_weight, data
        As in `auc`; the scores are probabilities.
    bins : int
        The number of bins.

    Examples
    --------
    >>> calibration_error([0, 1, 1, 1], [0.25, 0.25, 1.0, 1.0])
    0.125
    """
    if data is not None:
        given = columns_of(data, y_true, y_score, None, sample_weight, count=False)
        y_true, y_score, _, sample_weight, _ = given
    outcome, scores = claims(y_true, y_score, pos_label, labels)
    cell = bin_of(scores, integer("bins", bins))
    weights = effective(sample_weight, len(scores))
    counts = np.ones(len(scores)) if weights is None else weights
    off = np.bincount(cell, counts * scores, bins) - np.bincount(cell, counts * outcome, bins)
    return float(np.abs(off).sum() / counts.sum())


def claims(y_true: Any, y_score: Any, pos_label: Any, labels: Any) -> tuple[Array, Array]:
    """Return whether each person is positive, and the predicted probability of that."""
    truth, scores, positive = read_scores(y_true, y_score, pos_label, labels)
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError(
            f"Got scores from {scores.min():g} to {scores.max():g}, but expected probabilities, 0 to 1."
        )
    if scores.ndim == 1:
        return truth == positive, scores
    top = scores.argmax(axis=1)
    return truth == top, scores[np.arange(len(top)), top]


def bin_of(scores: Array, bins: int) -> Codes:
    """Return the equal-width bin of each probability; 1.0 belongs to the last bin."""
    return np.minimum((scores * bins).astype(np.int64), bins - 1)


def rank_auc(positive: Array, scores: Array, weights: Array | None = None) -> float:
    """Return the AUC from ranks; ties count half."""
    if weights is not None:
        _, cell = np.unique(scores, return_inverse=True)
        return float(
            area(np.stack([np.bincount(cell, weights * (positive == side)) for side in (False, True)]))
        )
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    if np.isnan(scores).any():
        return float("nan")
    order = np.argsort(scores)
    above = _ranks_of(positive[order], scores[order]) - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


@jit()
def _ranks_of(positive: Array, scores: Array) -> float:
    """Return the sum of the positives' ranks among sorted scores; ties share their mean rank."""
    total, start = 0.0, 0
    while start < len(scores):
        end, hits = start, 0
        while end < len(scores) and scores[end] == scores[start]:
            hits += positive[end]
            end += 1
        total += hits * (start + 1 + end) / 2
        start = end
    return total


def area(tables: Array) -> Array:
    """Return the AUC from counts (..., negative and positive, sorted scores); ties count half."""
    negative, positives = tables[..., 0, :], tables[..., 1, :]
    below = np.cumsum(negative, axis=-1) - negative / 2
    pairs = positives.sum(axis=-1) * negative.sum(axis=-1, dtype=float)
    return divide((positives * below).sum(axis=-1), pairs)


def read_scores(y_true: Any, y_score: Any, pos_label: Any, labels: Any) -> tuple[Array, Array, int]:
    """Return the positions of the labels, the scores, and the position of the positive label, or -1.

    The scores are those of the positive label, (people,), or of all labels if none is positive,
    (people, labels).
    """
    scores = np.asarray(y_score, dtype=float)
    truth, _, known = encode_labels(y_true, y_true)
    if labels is not None:
        known_before, known = known, list(labels)
        unknown = [label for label in known_before if label not in known]
        if unknown:
            raise ValueError(f"Got label {unknown[0]!r} in y_true, but labels={known}.")
        truth = np.array([known.index(label) for label in known_before])[truth]
    if scores.ndim not in (1, 2) or len(scores) != len(truth):
        raise ValueError(f"Got y_score of shape {scores.shape}, but expected scores for {len(truth)} people.")
    if not np.isfinite(scores).all():
        raise ValueError("Got NaN or infinite values in y_score, but expected finite scores.")
    positive = positive_label(known, pos_label)
    if scores.ndim == 2 and scores.shape[1] != len(known):
        raise ValueError(
            f"Got {scores.shape[1]} columns in y_score for the labels {known}; expected one column per label."
        )
    if scores.ndim == 2 and scores.shape[1] > 1 and positive is not None:
        scores = scores[:, positive]
    if scores.ndim == 1 and positive is None:
        raise ValueError(
            f"Got one score per person for {len(known)} labels, but expected one column per label."
        )
    return truth, scores, -1 if positive is None else positive
