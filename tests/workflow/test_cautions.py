"""Warnings of the fits in an exploration: each comes once, at the user's line or as a note."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand
from factories import evenhand as command


@pytest.fixture
def alike():
    """People of whom nothing tells who is hired, so that every model decides the same for all."""
    rng = np.random.default_rng(0)
    hired, sex = rng.choice(["no", "yes"], 200, p=[0.4, 0.6]), rng.choice(["f", "m"], 200)
    return pd.DataFrame({"code": np.arange(200) % 2, "sex": sex, "hired": hired})


def test_models_that_collapse_are_named_once_at_the_users_line(alike):
    given = {"label": "hired", "sensitive": "sex", "weights": (50,), "policies": "networks", "n_jobs": 2}
    with pytest.warns(evenhand.CollapseWarning) as told:
        evenhand.explore(alike, **given)
    assert [each.filename for each in told] == [__file__]  # of two models, without parity and with it


def test_the_command_shows_them_as_notes_without_a_file_of_ours(alike, tmp_path):
    data = tmp_path / "people.csv"
    alike.to_csv(data, index=False)
    told = command(
        "fit", data, "--label", "hired", "--sensitive", "sex", "--weights", 50, "--policies", "networks",
        "-o", tmp_path / "m.skops",
    ).stderr  # fmt: skip
    assert told.count("Note: CooperativeBandits decides 'yes' for ") == 1
    assert "CollapseWarning" not in told
    assert ".py:" not in told
