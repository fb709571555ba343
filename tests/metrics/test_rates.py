from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand import audit
from evenhand.metrics import equal_opportunity_difference, equalized_odds_difference, rates
from evenhand.metrics.counts import Counts

EVERY = [
    rates.accuracy,
    rates.balanced_accuracy,
    rates.discrimination,
    rates.delta,
    rates.equal_opportunity_difference,
    rates.equalized_odds_difference,
]


def tables(n_labels: int, positive: int | None) -> Counts:
    drawn = np.random.default_rng(n_labels).integers(0, 3, (50, 3, n_labels, n_labels))
    drawn[0] = 0
    return Counts(drawn, list("fmx"), list(range(n_labels)), positive)


@pytest.mark.parametrize("rate", EVERY, ids=lambda rate: rate.__name__)
@pytest.mark.parametrize("n_labels, positive", [(2, 1), (2, 0), (3, None), (3, 2)])
def test_resampled_tables_are_rated_one_by_one(rate: rates.Rate, n_labels: int, positive: int | None) -> None:
    counts = tables(n_labels, positive)
    together = rate(counts)
    assert together.shape == (50,)
    assert np.isnan(together[0])
    for at, table in enumerate(counts.table):
        np.testing.assert_array_equal(rate(counts._replace(table=table)), together[at])


def test_differences_equal_the_largest_over_pairs_of_groups() -> None:
    counts = tables(3, None)
    for at, table in enumerate(counts.table):
        parity, opportunity, odds = [], [], []
        for one, other in itertools.combinations(table, 2):
            for a in range(3):
                if one.sum() and other.sum():
                    parity.append(abs(one[:, a].sum() / one.sum() - other[:, a].sum() / other.sum()))
                for y in range(3):
                    if one[y].sum() and other[y].sum():
                        gap = abs(one[y, a] / one[y].sum() - other[y, a] / other[y].sum())
                        odds.append(gap)
                        if y == a:
                            opportunity.append(gap)
        for rate, gaps in [
            (rates.discrimination, parity),
            (rates.equal_opportunity_difference, opportunity),
            (rates.equalized_odds_difference, odds),
        ]:
            want = max(gaps) if gaps else np.nan
            np.testing.assert_allclose(rate(counts)[at], want, atol=1e-15)


def test_small_groups_are_filled_up_by_their_own_size_and_not_by_a_label() -> None:
    groups = np.repeat(["a", "b", "c"], 100)
    truth = np.r_[np.repeat([1, 0], 50), np.repeat([1, 0], 50), np.repeat([1, 0], [10, 90])]
    decided = np.zeros(300, int)
    decided[:40] = decided[100:140] = 1
    found = audit(
        decided, None, truth, sensitive_features=groups
    )  # c has ten positives, and nobody was found
    for metric in (equal_opportunity_difference, equalized_odds_difference):
        assert found.value(metric.__name__) == metric(truth, decided, sensitive_features=groups) == 0.8


def test_a_tiny_group_does_not_decide_equal_opportunity() -> None:
    groups, truth = np.repeat(["a", "b", "c"], [60, 60, 2]), np.r_[np.tile([1, 0, 0, 0], 30), 1, 0]
    decided = truth.copy()
    decided[-2] = 0
    found = audit(decided, None, truth, sensitive_features=groups)
    # 18 average people are missing, of whom 31 of 122 are positive, and 30 of 31 of these were found.
    missing = 18 * 31 / 122
    assert found.value("equal_opportunity_difference") == pytest.approx(1 - missing * 30 / 31 / (missing + 1))
