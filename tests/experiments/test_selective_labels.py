import numpy as np
import pandas as pd
import pytest
import selective_labels
from selective_labels import kept, measured


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    for name, value in {"PEOPLE": 1500, "BATCHES": 4, "TEST": 1000}.items():
        monkeypatch.setattr(selective_labels, name, value)


def last(method, seeds=2):
    return np.mean([list(measured("made up", method, seed))[-1]["utility"] for seed in range(seeds)])


def test_who_never_looks_stays_locked_in():
    assert last("deterministic") < last("semi-logistic policy") - 0.02 < last("oracle")


def test_ours_explores_and_finds_the_way_out():
    rows = list(measured("made up", "ours, rewards", 0))
    assert rows[-1]["utility"] > last("deterministic", 1) + 0.02
    assert 0 < rows[-1]["explored"] < 0.2
    assert [row["people"] for row in rows] == sorted(row["people"] for row in rows)


def test_a_killed_run_goes_on(tmp_path, monkeypatch):
    first = kept(tmp_path, "made up", "oracle", 0)
    monkeypatch.setattr(selective_labels, "measured", lambda *_: pytest.fail("done already"))
    pd.testing.assert_frame_equal(first, kept(tmp_path, "made up", "oracle", 0))
