"""Intervals of shares and of their differences, from counts alone and without resampling.

A share's limits are Clopper and Pearson's. A difference's limits combine those of its two shares as Newcombe
does, by the root of their squares' sum. With the limits he used (Wilson's), or by Agresti and Caffo's rule, a
single interval is fine at 95 %, but if thousands have to hold at once, those of small groups miss a hundred
times too often. With the limits used here, the low end, on which any claim of a difference rests, misses less
often than allowed, however many there are; only for rare hits in groups of 30 against thousands does it miss
a few times too often. The high end is meant for about 95 %.

Resampling does not work for the largest of several differences: it is never negative, so its resamples lie
above it, and a small group in which nobody was chosen stays like that in every resample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv

from evenhand.arrays import Array
from evenhand.metrics import rates
from evenhand.metrics.counts import Counts

Limits = tuple[Array, Array]


def share_limits(hits: Any, people: Any, confidence: float) -> Limits:
    """Return Clopper and Pearson's limits of hits / people; `people` is nowhere 0.

    >>> low, high = share_limits([0, 20], [100, 100], 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.127], [0.036, 0.292])
    """
    hits, misses = np.asarray(hits), np.asarray(people) - np.asarray(hits)
    tail = (1 - confidence) / 2
    low = np.where(hits > 0, betaincinv(np.where(hits > 0, hits, 1), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1, np.where(misses > 0, misses, 1), tail), 1.0)
    return low, high


def difference_limits(hits: Any, people: Any, of_hits: Any, of_people: Any, confidence: float) -> Limits:
    """Return the limits of hits / people less of_hits / of_people; the former share is the larger one.

    >>> low, high = difference_limits(40, 50, 20, 50, 0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (0.2, 0.57)
    """
    one, other = np.asarray(hits) / people, np.asarray(of_hits) / of_people
    one_low, one_high = share_limits(hits, people, confidence)
    other_low, other_high = share_limits(of_hits, of_people, confidence)
    low = one - other - np.hypot(one - one_low, other_high - other)
    high = one - other + np.hypot(one_high - one, other - other_low)
    return low, high


def largest_difference_limits(hits: Array, people: Array, confidence: float) -> tuple[float, float]:
    """Return the limits of the largest difference between groups of a share, over groups and columns.

    `hits` and `people` are (groups, columns); an empty group is left out. The low end is the largest low
    end of all pairs, and holds for all of them at once (Bonferroni). The high end is the largest high end: it
    has to hold for one pair only, whichever is the farthest apart in truth.

    >>> low, high = largest_difference_limits(np.array([[0], [0]]), np.array([[55], [5]]), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.0, 0.52)
    """
    hits, people = np.broadcast_arrays(hits, people)
    known, size = people > 0, np.maximum(people, 1)
    pairs = np.triu(np.ones((len(hits), len(hits)), dtype=bool), 1)[..., None] & known[:, None] & known
    if not pairs.any():
        nothing = 0.0 if len(hits) == 1 else float("nan")
        return nothing, nothing

    def ends(confidence: float) -> Array:
        low, high = difference_limits(hits[:, None], size[:, None], hits, size, confidence)
        return np.stack([low[pairs], high[pairs]])

    least, most = ends(1 - (1 - confidence) / pairs.sum()), ends(confidence)
    return max(0.0, float(least[0].max()), float(-least[1].min())), float(max(most[1].max(), -most[0].min()))


def _accuracy(counts: Counts, confidence: float) -> tuple[float, float]:
    joint = counts.table.sum(axis=0)
    low, high = share_limits(np.trace(joint), joint.sum(), confidence)
    return float(low), float(high)


def _difference(shares: Callable[[Counts], rates.Shares]) -> Callable[[Counts, float], tuple[float, float]]:
    def limits(counts: Counts, confidence: float) -> tuple[float, float]:
        return largest_difference_limits(*shares(counts), confidence)

    return limits


def _delta(counts: Counts, confidence: float) -> tuple[float, float]:
    """Accuracy and discrimination each get half of the risk, since the two are not independent."""
    half = (1 + confidence) / 2
    right, apart = _accuracy(counts, half), largest_difference_limits(*rates.decided(counts), half)
    return right[0] - apart[1], right[1] - apart[0]


LIMITS: dict[rates.Rate, Callable[[Counts, float], tuple[float, float]]] = {
    rates.accuracy: _accuracy,
    rates.discrimination: _difference(rates.decided),
    rates.delta: _delta,
    rates.equal_opportunity_difference: _difference(rates.decided_right),
    rates.equalized_odds_difference: _difference(rates.decided_by_label),
}
