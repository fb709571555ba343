"""The exact interval of the ratio of two shares.

`shares.ratio_limits` assumes that the score statistic is normal. Here the probabilities of all samples at
least as extreme are summed at the least favourable rates (Chan and Zhang 1999), so the interval misses no
more often than allowed, in groups of any size. Rates that the second group's own hits make very unlikely are
not tried; the risk that they are the true rates is included (Berger and Boos 1994).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from evenhand.arrays import Array, Floats
from evenhand.metrics.shares import ratio_limits, score, share_limits

MOST_PEOPLE = 5_000  # in a group; for larger groups, the score limits are the same to three digits
_GRID = (50, 500)  # the fewest and most rates to try for the least favourable: more in small groups
_UNTRIED = 1e-3  # the share of the risk for the rates that are not tried
_FAR = 30.0  # the log of the largest ratio to try


def exact_ratio_limits(
    hits: int, people: int, of_hits: int, of_people: int, confidence: float
) -> tuple[float, float]:
    """Return the limits of hits / people divided by of_hits / of_people; half the risk is on each side.

    >>> low, high = exact_ratio_limits(12, 40, 30, 50, 0.95)
    >>> round(low, 2), round(high, 2)
    (0.27, 0.84)
    """
    low, high = map(float, ratio_limits(hits, people, of_hits, of_people, confidence))
    if max(people, of_people) > MOST_PEOPLE:
        return low, high
    pair, tail = (hits, people, of_hits, of_people), (1 - confidence) / 2
    return (
        0.0 if hits == 0 else _end(pair, tail, low, 1),
        np.inf if of_hits == 0 else _end(pair, tail, high, -1),
    )


def _end(pair: tuple[int, int, int, int], tail: float, near: float, sign: int) -> float:
    """Return the ratio, near the score limit, beyond which samples as extreme are rarer than the tail."""
    inside = outside = float(np.log(near))
    step = 0.02
    while chance(*pair, np.exp(outside), sign, tail) > tail and abs(outside) < _FAR:
        outside, step = outside - sign * step, 2 * step
    step = 0.02
    while chance(*pair, np.exp(inside), sign, tail) <= tail and abs(inside) < _FAR:
        inside, step = inside + sign * step, 2 * step
    while abs(inside - outside) > 1e-5:
        middle = (inside + outside) / 2
        rare = chance(*pair, np.exp(middle), sign, tail) <= tail
        inside, outside = (inside, middle) if rare else (middle, outside)
    return float(np.exp(outside))


def chance(
    hits: int, people: int, of_hits: int, of_people: int, ratio: float, sign: int, tail: float
) -> float:
    """Return the largest chance, over rates of this ratio, of a sample as far above it (sign 1) or below it.

    Includes the risk of the rates that are not tried.
    """
    low, high = np.clip(share_limits(of_hits, of_people, 1 - _UNTRIED * tail), 0, min(1.0, 1 / ratio))
    rates = np.linspace(low, high, int(np.clip(20_000 // of_people, *_GRID)))
    others = np.arange(_few(of_people, rates[0])[0], _few(of_people, rates[-1])[1] + 1)
    seen = sign * float(score(hits, people, of_hits, of_people, ratio)) - 1e-9
    # For each number of hits in the other group: the first that is as far above, or no longer as far below.
    first, end = np.zeros(len(others), dtype=np.int64), np.full(len(others), people + 1)
    while (first < end).any():
        middle = np.minimum((first + end) // 2, people)
        off = sign * score(middle, people, others, of_people, ratio) >= seen
        reached = (off if sign == 1 else ~off) | (first == end)
        first, end = np.where(reached, first, middle + 1), np.where(reached & (first < end), middle, end)
    far = _at_least(first[:, None], people, np.minimum(rates * ratio, 1.0))
    found = _probability(others[:, None], of_people, rates) * (far if sign == 1 else 1 - far)
    return float(found.sum(axis=0).max()) + _UNTRIED * tail


def _few(people: int, rate: float) -> tuple[int, int]:
    """Return the range of the number of hits in nearly all samples."""
    spread = 5 * np.sqrt(people * rate * (1 - rate)) + 10
    return max(0, int(people * rate - spread)), min(people, int(people * rate + spread) + 1)


def _probability(hits: Array, people: int, rate: Array) -> Floats:
    ways = gammaln(people + 1) - gammaln(hits + 1) - gammaln(people - hits + 1)
    return np.asarray(np.exp(ways + xlogy(hits, rate) + xlog1py(people - hits, -rate)))


def _at_least(hits: Array, people: int, rate: Array) -> Floats:
    inside = betainc(np.maximum(hits, 1), np.maximum(people - hits + 1, 1), rate)
    return np.where(hits <= 0, 1.0, np.where(hits > people, 0.0, inside))
