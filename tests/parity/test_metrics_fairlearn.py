"""Our group metrics against fairlearn's, wherever every group has every label."""

from __future__ import annotations

import numpy as np
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equalized_odds_difference,
    selection_rate,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.metrics import group as ours


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_differences_equal_fairlearns(seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    truth, decided, group = rng.integers(0, 2, 60), rng.integers(0, 2, 60), rng.integers(0, n_groups, 60)
    cells = ours.count(truth, decided, group).table.sum(axis=2)
    # Where a group lacks a label fairlearn calls its rate 0; we leave the group out.
    assume(cells.shape == (n_groups, 2) and (cells > 0).all())
    for mine, theirs in [
        (ours.discrimination, demographic_parity_difference),
        (ours.impact_ratio, demographic_parity_ratio),
        (ours.equal_opportunity_difference, equal_opportunity_difference),
        (ours.equalized_odds_difference, equalized_odds_difference),
    ]:
        assert mine(truth, decided, sensitive_features=group) == pytest.approx(
            theirs(truth, decided, sensitive_features=group)
        )


def test_ratios_and_differences_to_the_highest_rate_are_those_of_their_frame() -> None:
    rng = np.random.default_rng(0)
    truth, decided, group = rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.choice(list("abc"), 200)
    frame = MetricFrame(metrics=selection_rate, y_true=truth, y_pred=decided, sensitive_features=group)
    mine = ours.impact_ratios(truth, decided, sensitive_features=group)
    assert mine == pytest.approx((frame.by_group / frame.by_group.max()).to_dict())
    assert min(mine.values()) == pytest.approx(frame.ratio(method="between_groups"))
    apart = ours.parity_differences(truth, decided, sensitive_features=group)
    assert -min(apart.values()) == pytest.approx(frame.difference(method="between_groups"))
