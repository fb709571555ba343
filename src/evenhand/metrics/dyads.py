"""The interval of consistency, which allows for people being each other's neighbours.

A person's decision counts in their own comparisons and in those of everybody whose neighbour they are.
Treating the comparisons as independent would give intervals that are too narrow. The variance here sums over
all pairs of comparisons that share a person (Aronow, Samii and Assenova 2015), and is at least the variance
under independence. `experiments/consistency_intervals.py` measures how often the intervals hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.metrics.bootstrap import Interval
from evenhand.metrics.shares import mean_limits


class Strata(NamedTuple):
    """For people drawn from strata: each person's stratum, and the number of people in each stratum."""

    of: Codes
    sizes: Codes

    @property
    def weights(self) -> Floats:
        """The number of people that each drawn person stands for."""
        drawn = np.bincount(self.of, minlength=len(self.sizes))
        return np.asarray(self.sizes[self.of] / drawn[self.of])


def consistency_interval(
    apart: Flags, indices: Codes, people: Codes, *, weights: Any = None, strata: Strata | None = None,
    confidence: float = 0.95,
) -> Interval:  # fmt: skip
    """Return one minus the mean share of neighbours with a different decision, with its interval over people.

    `apart` says which neighbours have a different decision, and `indices` are the neighbours' positions, both
    (people, k). `people` are the positions of the people themselves. With `strata`, they were drawn from more
    people, for whom they stand with `weights`; the interval then includes the error of the draw.

    >>> near, everybody = np.array([[1], [0], [1]]), np.arange(3)
    >>> found = consistency_interval(np.array([[False], [False], [True]]), near, everybody)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (0.667, 0.094, 0.992)
    """
    n, k = indices.shape
    each = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    each = each / each.sum()
    shares = apart.mean(axis=1)
    mean = float(each @ shares)
    edges = each[:, None] * (apart - mean) / k
    size = max(int(indices.max()), int(people.max())) + 1
    of_person = np.bincount(people, edges.sum(axis=1), size) + np.bincount(
        indices.ravel(), edges.ravel(), size
    )
    both = np.stack([np.repeat(people, k), indices.ravel()])
    _, pair = np.unique(both.min(axis=0) * size + both.max(axis=0), return_inverse=True)
    twice = float((np.bincount(pair, edges.ravel()) ** 2).sum())  # comparisons that share both people
    least = float(((each * (shares - mean)) ** 2).sum())
    variance = max(float(of_person @ of_person) - twice, least)
    if strata is not None:
        drawn = len(people) / strata.sizes.sum()
        within = of_person[people]
        centre = np.bincount(strata.of, within) / np.maximum(np.bincount(strata.of), 1)
        beside = within - centre[strata.of]
        variance = (1 - drawn) * max(float(beside @ beside) - twice, least) + drawn * variance
    found = float(np.average(1 - shares, weights=weights))
    # Of people who all agree, half count: one who didn't would disagree with neighbours, and they in turn.
    least = 0.0 if variance > 0 else 0.5 / float(each @ each)
    low, high = mean_limits(found, variance, least, np.inf, confidence)
    return Interval(found, float(low), float(high))
