from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand.workflow.leaks import LeakWarning
from factories import FIT, make_people
from factories import evenhand as command


def leaky() -> pd.DataFrame:
    people = make_people(600)
    return people.assign(contract=np.where(people["hired"] == "yes", "signed", "none"))


def test_a_column_that_is_the_label_is_named_before_training(tmp_path) -> None:
    leaky().to_csv(tmp_path / "p.csv", index=False)
    out = command(
        "fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops", *FIT
    )
    assert "The label 'hired' can be predicted almost perfectly from 'contract'." in out.stderr
    assert "--drop contract" in out.stderr
    assert "of the validation part without it, and for 100.0 % with it" in out.stderr


def test_python_is_warned_and_a_plain_table_is_not() -> None:
    short = {"weights": [0], "epochs": 1, "n_jobs": 1, "label": "hired", "sensitive": "sex"}
    with pytest.warns(LeakWarning, match="can be predicted almost perfectly from 'contract'"):
        frontier = evenhand.explore(leaky(), **short)
    assert "'contract'" in frontier.notes[0]
    assert not any("almost perfectly" in note for note in evenhand.explore(make_people(600), **short).notes)
