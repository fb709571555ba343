from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.metrics.exact_ratio import MOST_PEOPLE, exact_ratio_limits
from evenhand.metrics.shares import ratio_limits


def test_exact_limits_miss_no_more_than_they_may() -> None:
    """Exactly, over all samples of two small groups; the score limits do miss more often."""
    people, of_people = 5, 8
    samples = [(hits, other) for hits in range(people + 1) for other in range(of_people + 1)]
    found = {pair: exact_ratio_limits(pair[0], people, pair[1], of_people, 0.9) for pair in samples}
    scores = {pair: ratio_limits(pair[0], people, pair[1], of_people, 0.9) for pair in samples}
    worst = {"exact": 0.0, "score": 0.0}
    for ratio in (0.2, 0.5, 0.8, 1.0, 1.5):
        for rate in np.linspace(0.02, min(1, 1 / ratio) - 0.01, 12):
            chance = {
                (hits, other): binom.pmf(hits, people, rate * ratio) * binom.pmf(other, of_people, rate)
                for hits, other in samples
            }
            for kind, limits in (("exact", found), ("score", scores)):
                missed = [sum(chance[pair] for pair in samples if limits[pair][0] > ratio)]
                missed.append(sum(chance[pair] for pair in samples if limits[pair][1] < ratio))
                worst[kind] = max(worst[kind], *missed)
    assert 0.02 < worst["exact"] <= 0.05 < worst["score"]


@pytest.mark.parametrize("pair", [(0, 10, 5, 10), (3, 3, 3, 3), (0, 5, 0, 5), (10, 10, 1, 10), (4, 9, 0, 9)])
def test_limits_hold_the_ratio_also_where_nobody_or_everybody_was_chosen(
    pair: tuple[int, int, int, int],
) -> None:
    low, high = exact_ratio_limits(*pair, 0.95)
    assert (low == 0) == (pair[0] == 0)
    assert (high == np.inf) == (pair[2] == 0)
    if pair[2]:
        assert low <= pair[0] / pair[1] / (pair[2] / pair[3]) <= high
        scores = ratio_limits(*pair, 0.95)
        assert low <= scores[0] + 1e-6
        assert high >= scores[1] - 1e-6


def test_of_many_people_the_score_limits_are_taken() -> None:
    pair = (400, MOST_PEOPLE + 1, 500, 1000)
    assert exact_ratio_limits(*pair, 0.95) == tuple(ratio_limits(*pair, 0.95))
