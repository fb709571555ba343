from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from evenhand.metrics import (
    accuracy,
    bootstrap_interval,
    delta,
    discrimination,
    equal_opportunity_difference,
    equalized_odds_difference,
    impact_ratio,
)
from evenhand.metrics.counts import count
from evenhand.metrics.group import FROM_COUNTS
from evenhand.metrics.rates import decided_by_label
from evenhand.metrics.shares import (
    LIMITS,
    difference_limits,
    largest_difference_limits,
    ratio_limits,
    share_limits,
    smallest_ratio_limits,
)

RATES = [0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98, 0.995, 0.999]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-6])
def test_limits_of_a_share_are_clopper_and_pearson_s(confidence: float) -> None:
    for hits, people in ((0, 5), (5, 5), (3, 40), (39, 40), (700, 1000)):
        low, high = share_limits(hits, people, confidence)
        want = binomtest(hits, people).proportion_ci(confidence, method="exact")
        assert (low, high) == pytest.approx((want.low, want.high), abs=1e-9)


@pytest.mark.parametrize("people", [(5, 55), (30, 30), (30, 1000), (100, 8)])
@pytest.mark.parametrize("confidence", [0.95, 0.9995, 0.999995])
def test_a_difference_s_limits_miss_no_more_than_they_may(people: tuple[int, int], confidence: float) -> None:
    """Exactly, over all samples: the low end also far out, where many comparisons at once put it."""
    one, other = np.arange(people[0] + 1)[:, None], np.arange(people[1] + 1)
    low, high = difference_limits(one, people[0], other, people[1], confidence)
    for rate, difference in itertools.product(RATES, (0.0, 0.1, 0.3)):
        if rate > difference:
            chance = binom.pmf(one, people[0], rate) * binom.pmf(other, people[1], rate - difference)
            rare = people == (30, 1000) and rate == 0.005
            assert chance[low > difference].sum() <= (1 - confidence) / 2 * (2.5 if rare else 1)
            if confidence == 0.95:
                assert chance[high < difference].sum() <= 1.3 * (1 - confidence) / 2


def coverage(metric: Any, sizes: list[int], rates: list[float], truth: float, times: int = 300) -> float:
    """Return how often the interval holds the truth; rates are of positive decisions, whatever the label."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    label = np.arange(len(group)) % 2
    held = 0
    for _ in range(times):
        decided = (rng.random(len(group)) < np.array(rates)[group]).astype(int)
        interval = bootstrap_interval(metric, label, decided, sensitive_features=group, pos_label=1)
        assert interval.low <= interval.estimate <= interval.high
        held += interval.low <= truth <= interval.high
    return held / times


# Of 300 intervals that hold the truth 95 times in 100, 276 (0.92) or fewer do so once in a hundred runs.
@pytest.mark.parametrize(
    "sizes, rates",
    [
        ([500, 500], [0.3, 0.3]),
        ([200] * 10, [0.3] * 10),
        ([200] * 6, [0.3] * 5 + [0.35]),
        ([100, 8], [0.5, 0.1]),
        ([100, 5], [0.02, 0.02]),
        ([1000, 1000], [0.3, 0.4]),
    ],
)
@pytest.mark.parametrize(
    "metric", [discrimination, equal_opportunity_difference, equalized_odds_difference, delta]
)
def test_intervals_of_differences_hold_the_truth(metric: Any, sizes: list[int], rates: list[float]) -> None:
    apart = max(rates) - min(rates)
    assert coverage(metric, sizes, rates, 0.5 - apart if metric is delta else apart) > 0.92


@pytest.mark.parametrize("sizes, rates", [([200] * 6, [0.3] * 6), ([100, 8], [0.5, 0.1])])
def test_intervals_of_the_impact_ratio_hold_the_truth(sizes: list[int], rates: list[float]) -> None:
    assert coverage(impact_ratio, sizes, rates, min(rates) / max(rates)) > 0.92


def test_intervals_of_two_large_groups_are_not_needlessly_wide() -> None:
    assert coverage(discrimination, [1000, 1000], [0.3, 0.4], 0.1) < 0.98
    low, high = largest_difference_limits(np.array([[3000], [4000]]), np.array([[10_000], [10_000]]), 0.95)
    half = 1.96 * np.sqrt((0.3 * 0.7 + 0.4 * 0.6) / 10_000)
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half), abs=0.03 * half)


def test_a_small_group_is_not_certain_because_all_were_decided_alike() -> None:
    group, nobody = ["a"] * 55 + ["b"] * 5, [0] * 60
    interval = bootstrap_interval(discrimination, [0, 1] * 30, nobody, sensitive_features=group)
    assert interval.estimate == interval.low == 0
    assert interval.high == pytest.approx(share_limits(0, 5, 0.95)[1], abs=0.01)
    assert interval.high > 0.5


def test_the_low_end_is_of_all_pairs_at_once_and_the_high_end_of_one() -> None:
    hits, people = np.array([[30, 5], [45, 9], [20, 1]]), np.array([[100, 10], [90, 20], [80, 0]])
    low, high = largest_difference_limits(hits, people, 0.9)
    pairs = [(a, b, c) for c in range(2) for a, b in itertools.permutations(range(3), 2)]
    pairs = [(a, b, c) for a, b, c in pairs if people[a, c] and people[b, c]]
    assert len(pairs) == 2 * 4

    def end(side: int, confidence: float) -> float:
        return max(
            float(difference_limits(hits[a, c], people[a, c], hits[b, c], people[b, c], confidence)[side])
            for a, b, c in pairs
        )

    assert low == pytest.approx(max(0.0, end(0, 1 - 0.1 / 4)))
    assert high == pytest.approx(end(1, 0.9))


def test_the_smallest_ratio_s_high_end_is_of_all_pairs_at_once_and_the_low_end_of_one() -> None:
    hits, people = np.array([[30], [45], [20]]), np.array([[100], [90], [80]])
    low, high = smallest_ratio_limits(hits, people, 0.9)
    given = [(*hits[a], *people[a], *hits[b], *people[b]) for a, b in itertools.permutations(range(3), 2)]
    assert low == pytest.approx(min(float(ratio_limits(*pair, 0.9)[0]) for pair in given))
    assert high == pytest.approx(min(float(ratio_limits(*pair, 1 - 0.1 / 3)[1]) for pair in given))
    assert smallest_ratio_limits(np.array([[3], [3]]), np.array([[9], [9]]), 0.9)[1] == 1.0


def test_odds_and_several_labels_count_every_column_they_compare() -> None:
    rng = np.random.default_rng(0)
    y, decided, group = rng.integers(0, 3, (3, 600))
    counts = count(y, decided, group)
    hits, people = decided_by_label(counts)
    assert hits.shape == people.shape == (3, 9)
    got = bootstrap_interval(equalized_odds_difference, y, decided, sensitive_features=group)
    assert got[1:] == largest_difference_limits(hits, people, 0.95)
    assert got.low <= got.estimate <= got.high


def test_one_group_has_no_difference_and_what_is_unknown_stays_so() -> None:
    assert bootstrap_interval(discrimination, [0, 1], [0, 1]) == (0, 0, 0)
    assert bootstrap_interval(impact_ratio, [0, 1], [0, 1]) == (1, 1, 1)
    nobody = bootstrap_interval(equal_opportunity_difference, [1, 0], [1, 0], sensitive_features=["f", "m"])
    assert np.isnan(nobody).all()
    assert np.isnan(largest_difference_limits(np.zeros((2, 1)), np.array([[3], [0]]), 0.95)).all()


def test_accuracy_of_a_few_is_never_certain() -> None:
    interval = bootstrap_interval(accuracy, [0, 1, 1], [0, 1, 1])
    assert interval == pytest.approx((1.0, 0.025 ** (1 / 3), 1.0))


def test_limits_take_a_million_people_as_they_take_a_hundred() -> None:
    table = np.array([[[300_000, 200_000], [10_000, 1]], [[2, 90_000], [250_000, 150_000]]])
    for rate in LIMITS:
        assert rate in FROM_COUNTS.values()
        low, high = LIMITS[rate](count([0, 1], [0, 1], ["f", "m"])._replace(table=table), 1 - 1e-7)
        assert np.isfinite([low, high]).all()
        assert low < float(rate(count([0, 1], [0, 1], ["f", "m"])._replace(table=table))) < high
