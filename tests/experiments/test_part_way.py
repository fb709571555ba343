"""Two dials compared: what is counted, against cases worked out by hand."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def part_way():
    return importlib.import_module("part_way")


def test_thresholds_bring_the_rates_together(part_way):
    rng = np.random.default_rng(0)
    own = rng.integers(0, 2, 4000)
    chance = rng.beta(2 + own, 3, 4000)
    apart = []
    for share in (0.0, 0.5, 1.0):
        decided = chance > part_way.thresholds(chance, own, share)[own]
        apart.append(decided[own == 1].mean() - decided[own == 0].mean())
    assert apart[1] == pytest.approx(apart[0] / 2, abs=0.002)
    assert apart[2] == pytest.approx(0, abs=0.002)


def test_scores_are_of_the_own_group_and_flips_of_both(part_way):
    decided = np.array([[1, 1], [0, 1], [0, 0], [1, 0]], dtype=bool)
    found = part_way.scores(decided, np.array([True, True, False, False]), np.array([0, 0, 1, 1]))
    assert found == {"accuracy": 0.75, "discrimination": 0.5, "delta": 0.25, "flip_rate": 0.5}


def test_each_dial_is_chosen_on_validation_within_the_limit_on_flips(part_way):
    points = [(0.005, 0.6, 0.55), (0.15, 0.8, 0.7), (0.5, 0.99, 0.99)]  # flips, validation delta, test delta
    rows = [
        {"dataset": "compas", "seed": seed, "method": method, "validation_flip_rate": flips,
         "validation_delta": delta, "test_delta": test - less, "test_accuracy": 0.8, "test_flip_rate": flips}
        for seed in (0, 1)
        for method, less in ((part_way.OURS, 0.0), (part_way.BLIND, 0.1))
        for flips, delta, test in points
    ]  # fmt: skip
    found = part_way.compared(pd.DataFrame(rows)).set_index("most_flips")
    assert found.loc[[0.01, 0.2], "ours: delta"].tolist() == pytest.approx([0.55, 0.7])
    assert found["difference"].tolist() == pytest.approx([0.1] * 4)
    assert found["splits"].tolist() == [2] * 4
