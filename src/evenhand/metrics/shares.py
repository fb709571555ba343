"""Intervals of shares, their differences and their ratios, from counts alone and without resampling.

A share has Clopper–Pearson limits. A difference combines the limits of its two shares as Newcombe does, by
the root of the sum of squares. With the limits that he used (Wilson's), or with Agresti and Caffo's rule, a
single interval is fine at 95 %. But if thousands must hold at once, those of small groups miss a hundred
times too often. With the limits used here, the low end, on which any claim of a difference rests, misses less
often than allowed, however many intervals there are. The exception is rare hits in groups of 30 compared with
thousands, where it misses a few times too often. The high end is meant for about 95 %.

A ratio has the limits of the score statistic (Koopman 1984): the distance between the observed ratio and a
supposed ratio, in standard errors estimated under the supposed ratio. `exact_ratio` has exact limits.

Resampling does not work for the largest of several differences. It is never negative, so its resamples lie
above it; and a small group in which nobody was chosen stays that way in every resample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtri

from evenhand.arrays import Array, Floats
from evenhand.metrics import rates
from evenhand.metrics.counts import Counts

Limits = tuple[Array, Array]


def share_limits(hits: Any, people: Any, confidence: float) -> Limits:
    """Return the Clopper–Pearson limits of hits / people; `people` must not be 0.

    >>> low, high = share_limits([0, 20], [100, 100], 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.127], [0.036, 0.292])
    """
    hits, misses = np.asarray(hits), np.asarray(people) - np.asarray(hits)
    tail = (1 - confidence) / 2
    low = np.where(hits > 0, betaincinv(np.where(hits > 0, hits, 1), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1, np.where(misses > 0, misses, 1), tail), 1.0)
    return low, high


def mean_limits(mean: float, variance: float, least: float, most: float, confidence: float) -> Limits:
    """Return the limits of a mean between 0 and 1 whose estimate has this variance.

    They are Clopper and Pearson's for as many people as would give that variance (Korn and Graubard 1998),
    but for `least` to `most`: a variance that comes from few people is unsteady, and can be 0.

    >>> low, high = mean_limits(0.9, 0.0009, 10, 1000, 0.95)
    >>> round(float(low), 3), round(float(high), 3), round(float(mean_limits(1.0, 0.0, 10, 1000, 0.95)[0]), 3)
    (0.824, 0.951, 0.692)
    """
    people = min(max(mean * (1 - mean) / variance, least), most) if variance > 0 else least
    return share_limits(mean * people, people, confidence)


def difference_limits(hits: Any, people: Any, of_hits: Any, of_people: Any, confidence: float) -> Limits:
    """Return the limits of hits / people minus of_hits / of_people; the first share is the larger one.

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
    """Return the limits of the largest difference of a share between groups, over all pairs and columns.

    `hits` and `people` are (groups, columns); empty groups are left out. The low end is the largest low end
    of all pairs, and holds for all of them at once (Bonferroni). The high end is the largest high end; it
    only has to hold for one pair, the one that is truly farthest apart.

    >>> low, high = largest_difference_limits(np.array([[0], [0]]), np.array([[55], [5]]), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.0, 0.52)
    """
    hits, people = np.broadcast_arrays(hits, people)
    size, pairs = np.maximum(people, 1), _pairs(people)
    if not pairs.any():
        nothing = 0.0 if len(hits) == 1 else float("nan")
        return nothing, nothing

    def ends(confidence: float) -> Array:
        low, high = difference_limits(hits[:, None], size[:, None], hits, size, confidence)
        return np.stack([low[pairs], high[pairs]])

    least, most = ends(1 - (1 - confidence) / pairs.sum()), ends(confidence)
    return max(0.0, float(least[0].max()), float(-least[1].min())), float(max(most[1].max(), -most[0].min()))


def ratio_limits(hits: Any, people: Any, of_hits: Any, of_people: Any, confidence: float) -> Limits:
    """Return the score limits of hits / people divided by of_hits / of_people; no denominator may be 0.

    >>> low, high = ratio_limits(12, 40, 30, 50, 0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (0.29, 0.82)
    """
    hits, people, of_hits, of_people = np.broadcast_arrays(
        *(np.asarray(part, dtype=float) for part in (hits, people, of_hits, of_people))
    )
    bound = np.multiply.outer(np.array([1, -1]), np.full(hits.shape, ndtri((1 + confidence) / 2)))
    low, high = np.full(bound.shape, -30.0), np.full(bound.shape, 30.0)
    for _ in range(45):  # bisect on the logarithm of the ratio
        middle = (low + high) / 2
        below = score(hits, people, of_hits, of_people, np.exp(middle)) > bound
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    ends = np.exp((low + high) / 2)
    return np.where(hits > 0, ends[0], 0.0), np.where(of_hits > 0, ends[1], np.inf)


def score(hits: Any, people: Any, of_hits: Any, of_people: Any, ratio: Any) -> Floats:
    """Return by how many standard errors the ratio of two shares exceeds a supposed ratio."""
    a = (people + of_people) * ratio
    b = (people + of_hits) * ratio + hits + of_people
    # The most likely rates among those with this ratio.
    root = np.sqrt(np.maximum(b * b - 4 * a * (hits + of_hits), 0))
    other = np.clip(2 * (hits + of_hits) / (b + root), 0, np.minimum(1, 1 / ratio))
    one = other * ratio
    variance = one * (1 - one) / people + ratio**2 * other * (1 - other) / of_people
    apart = hits / people - ratio * of_hits / of_people
    certain = variance < 1e-300
    return np.asarray(np.where(certain, 0.0, apart / np.sqrt(np.where(certain, 1.0, variance))))


def smallest_ratio_limits(hits: Array, people: Array, confidence: float) -> tuple[float, float]:
    """Return the limits of the smallest ratio of a share between groups, over all pairs and columns.

    As in `largest_difference_limits`, the end on which a claim rests (here the high end) holds for all pairs
    at once, and the other end for one pair.

    >>> low, high = smallest_ratio_limits(np.array([[12], [30]]), np.array([[40], [50]]), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.29, 0.82)
    """
    hits, people = np.broadcast_arrays(hits, people)
    size, pairs = np.maximum(people, 1), _pairs(people)
    if not pairs.any():
        nothing = 1.0 if len(hits) == 1 else float("nan")
        return nothing, nothing
    both = pairs | pairs.swapaxes(0, 1)  # a ratio has an order

    def ends(confidence: float) -> Array:
        found = ratio_limits(hits[:, None], size[:, None], hits, size, confidence)
        return np.stack([end[both] for end in found])

    least, most = ends(confidence), ends(1 - (1 - confidence) / pairs.sum())
    return float(least[0].min()), min(1.0, float(most[1].min()))


def _pairs(people: Array) -> Array:
    """Return the pairs of groups to compare in each column: (groups, groups, columns), each pair once."""
    known = people > 0
    return np.triu(np.ones((len(people), len(people)), dtype=bool), 1)[..., None] & known[:, None] & known


def _accuracy(counts: Counts, confidence: float) -> tuple[float, float]:
    joint = counts.table.sum(axis=0)
    low, high = share_limits(np.trace(joint), joint.sum(), confidence)
    return float(low), float(high)


def _balanced_accuracy(counts: Counts, confidence: float) -> tuple[float, float]:
    """Combine the limits of each label's share of right decisions, as those of a difference are."""
    joint = counts.of_people()
    table = joint.sums.sum(axis=0)
    people, right = table.sum(axis=1), np.diagonal(table)
    known = people > 0
    scale = people[known] / joint.over.sum(axis=(0, 2))[known]
    shares = right[known] / people[known]
    low, high = share_limits(right[known] * scale, people[known] * scale, confidence)
    mean, below, above = shares.mean(), np.linalg.norm(shares - low), np.linalg.norm(high - shares)
    return float(mean - below / known.sum()), float(mean + above / known.sum())


def _difference(shares: Callable[[Counts], rates.Shares]) -> Callable[[Counts, float], tuple[float, float]]:
    def limits(counts: Counts, confidence: float) -> tuple[float, float]:
        return largest_difference_limits(*shares(counts), confidence)

    return limits


def _delta(counts: Counts, confidence: float) -> tuple[float, float]:
    """Combine the limits of accuracy and discrimination; each gets half the risk, as they are dependent."""
    half = (1 + confidence) / 2
    right, apart = _accuracy(counts, half), largest_difference_limits(*rates.decided(counts), half)
    return right[0] - apart[1], right[1] - apart[0]


LIMITS: dict[rates.Rate, Callable[[Counts, float], tuple[float, float]]] = {
    rates.accuracy: _accuracy,
    rates.balanced_accuracy: _balanced_accuracy,
    rates.discrimination: _difference(rates.decided),
    rates.impact_ratio: lambda counts, confidence: smallest_ratio_limits(*rates.decided(counts), confidence),
    rates.delta: _delta,
    rates.equal_opportunity_difference: _difference(rates.decided_right),
    rates.equalized_odds_difference: _difference(rates.decided_by_label),
}
