"""Bounds of a mean that hold at any time, from values that came one after another."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Floats


def mean_bounds(values: Floats, low: float, high: float, risk: float) -> tuple[float, float]:
    """Return the lower and upper bound of a mean of values in [low, high] (Waudby-Smith and Ramdas, 2024).

    Over all the times at which one may look, they fail with probability `risk` at most.

    >>> [round(bound, 2) for bound in mean_bounds(np.full(1000, 0.5), 0.0, 1.0, 0.05)]
    [0.49, 0.51]
    """
    n = len(values)
    if n == 0:
        return low, high
    x, t, cost = (values - low) / (high - low), np.arange(1, n + 1), np.log(2.0 / risk)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    before = np.concatenate([[0.5], means[:-1]])
    spread = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    spread = np.concatenate([[0.25], spread[:-1]])
    bets = np.minimum(np.sqrt(2.0 * cost / (spread * t * np.log(1.0 + t))), 0.5)
    width = (cost + np.sum((x - before) ** 2 * (-np.log1p(-bets) - bets))) / bets.sum()
    middle = np.sum(bets * x) / bets.sum()
    lower, upper = max(0.0, middle - width), min(1.0, middle + width)
    return float(low + (high - low) * lower), float(low + (high - low) * upper)
