"""The limits of an AUC, from its variance over the people of both labels (DeLong et al. 1988)."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.metrics.scores import rank_auc
from evenhand.metrics.shares import mean_limits


def auc_with_limits(
    positive: Flags, scores: Floats, weights: Floats | None, confidence: float
) -> tuple[float, float, float]:
    """Return the AUC, and its low and high limit.

    If there are few people, they may all be placed alike. So it counts as a share of at least as many people
    as the rarer label has, and of at most twice the harmonic mean of the labels' numbers.

    >>> found = auc_with_limits(np.arange(20) >= 10, np.arange(20.0), None, 0.95)
    >>> [round(float(value), 2) for value in found]
    [1.0, 0.69, 1.0]
    """
    found = rank_auc(positive, scores, weights)
    if np.isnan(found):
        return found, found, found
    each = np.ones(len(scores)) if weights is None else weights
    _, cell = np.unique(scores, return_inverse=True)
    sizes, variance = [], 0.0
    for side in (True, False):
        here = positive == side
        others = np.bincount(cell, each * ~here)
        below = (np.cumsum(others) - others / 2) / others.sum()  # the share of the others with lower scores
        apart = (below if side else 1 - below)[cell[here]] - found
        own = each[here]
        sizes.append(own.sum() ** 2 / (own**2).sum())
        variance += float(np.average(apart**2, weights=own)) / max(sizes[-1] - 1, 1)
    most = 4 / (1 / sizes[0] + 1 / sizes[1])
    low, high = mean_limits(found, variance, min(sizes), most, confidence)
    return found, float(low), float(high)
