"""What is counted over checkpoints, against cases worked out by hand."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def explained(monkeypatch):
    found = importlib.import_module("table2_explained")
    monkeypatch.setattr(found, "BEST", 2)
    return found


def _checkpoints(explained, splits=(0,), weights=(10.0,)):
    """Three checkpoints of each run; the later a split, the higher its deltas."""
    rows = []
    for split in splits:
        for weight in weights:
            for step in range(3):
                scores = {
                    "delta": 0.5 + 0.1 * split + 0.01 * step,
                    "discrimination": step / 10 + weight / 1000,
                }
                run = dict(zip(explained.RUN, ("adult", split, explained.PUBLISHED, weight, 20), strict=True))
                named = {
                    f"{part}_{name}": value
                    for part in ("validation", "test")
                    for name, value in scores.items()
                }
                rates = {"validation_flip_rate": weight / 100, "test_flip_rate": 0.3, "test_accuracy": 0.8}
                rows.append({**run, "step": step, **named, **rates})
    return pd.DataFrame(rows)


def test_neighbours_are_those_of_the_same_run(explained):
    beside = explained.beside(_checkpoints(explained, splits=(0, 1), weights=(10.0, 20.0)))
    one = np.array([0.1, 0.1, 0.1])  # of 0, 0.1 and 0.2
    np.testing.assert_allclose(beside, np.tile(np.r_[one + 0.01, one + 0.02], 2))


def test_each_split_gives_as_many_of_the_best(explained):
    best = explained.best_of(_checkpoints(explained, splits=(0, 1)))
    assert list(zip(best["split"], best["step"], strict=True)) == [(1, 2), (0, 2)]
    assert explained.best_of(_checkpoints(explained))["step"].tolist() == [2, 1]


def test_what_the_checkpoints_say(explained, monkeypatch):
    monkeypatch.setattr(explained, "HIGH", {"adult": 0.605})
    table = _checkpoints(explained, splits=(0, 1), weights=(10.0, 100.0))
    says = explained.found(table.assign(beside=explained.beside(table)))
    assert (says["checkpoints"], says["share above"]) == (12, pytest.approx(4 / 12))
    assert says["chosen"]["step"] == [2, 2]
    assert says["best"]["on test"] == pytest.approx(0.21)
    assert says["best"]["one checkpoint before and after"] == pytest.approx(0.11)
    assert says["flips by weight"] == {"10": pytest.approx(0.1), "100": pytest.approx(1.0)}
