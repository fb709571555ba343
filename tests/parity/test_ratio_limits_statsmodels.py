"""Limits of ratios against statsmodels's score interval and SciPy's exact unconditional test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import barnard_exact
from statsmodels.stats.proportion import confint_proportions_2indep

from evenhand.metrics.exact_ratio import chance, exact_ratio_limits
from evenhand.metrics.shares import ratio_limits

PAIRS = [(12, 40, 30, 50), (555, 1181, 667, 1390), (7, 17, 215, 412), (1, 9, 3, 4), (49, 50, 60, 90)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_score_limits_are_theirs(pair: tuple[int, int, int, int], confidence: float) -> None:
    theirs = confint_proportions_2indep(
        *pair, compare="ratio", method="score", correction=False, alpha=1 - confidence
    )
    assert ratio_limits(*pair, confidence) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("pair", [(12, 40, 30, 50), (7, 17, 9, 12), (2, 8, 5, 6)])
def test_at_a_ratio_of_one_the_exact_chance_is_barnard_s(pair: tuple[int, int, int, int]) -> None:
    hits, people, of_hits, of_people = pair
    table = [[hits, of_hits], [people - hits, of_people - of_hits]]
    theirs = barnard_exact(table, alternative="less", pooled=True, n=256).pvalue
    assert chance(*pair, 1.0, -1, 0.025) == pytest.approx(theirs, rel=0.01, abs=5e-5)


def test_in_large_groups_the_exact_limits_come_to_the_score_limits() -> None:
    pair = (1400, 4000, 1600, 4000)
    assert exact_ratio_limits(*pair, 0.95) == pytest.approx(np.array(ratio_limits(*pair, 0.95)), rel=2e-4)
