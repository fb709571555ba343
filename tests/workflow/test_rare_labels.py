"""Labels that few people have: mistyped, mostly, and an error before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand
from evenhand.tables import load_table
from evenhand.tables.splits import split
from evenhand.workflow import exploring
from evenhand.workflow.table import FEWEST, check_labels
from factories import evenhand as command
from factories import make_people

ROLES = {"label": "hired", "sensitive": "sex"}
SMALL = {"weights": [0], "epochs": 2, "n_jobs": 1}


def mistyped(count: int):
    people = make_people(60)
    people.loc[range(10, 10 + count), "hired"] = "yse"
    return people


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr(exploring, "train_all", lambda *_, **__: pytest.fail("training has begun"))


@pytest.mark.parametrize("seed", range(4))  # so that the label falls into each of the parts
def test_a_mistyped_label_is_an_error_before_training_that_names_the_row(untrained, seed):
    expected = r"The label 'yse' in 'hired' has 1 person \(the DataFrame, row 10\), but at least 7 are needed"
    with pytest.raises(ValueError, match=expected):
        evenhand.explore(mistyped(1), **ROLES, **SMALL, random_state=seed)


def test_the_command_names_the_lines_of_the_file(untrained, tmp_path):
    people = mistyped(4)
    people.loc[2, "hired"] = None  # left out: what is named is the line of the file all the same
    data = tmp_path / "people.csv"
    people.to_csv(data, index=False)
    result = command(
        "fit", data, "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops", code=2
    )
    lines = "; ".join(f"{data}, line {line}" for line in (12, 13, 14))
    assert f"has 4 people ({lines} …)" in result.stderr
    assert "Correct the label" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "m.skops").exists()


def test_a_label_that_an_own_split_never_trains_with_is_named(untrained):
    dataset = load_table(mistyped(10), **ROLES, pos_label="yes")
    rows = np.arange(60)
    parts = rows[20:], rows[:10], rows[10:20]
    expected = r"'yse' in 'hired' has 10 people \(the data set 'table', row 10; .*but some are needed in the training"
    with pytest.raises(ValueError, match=expected):
        evenhand.explore(dataset, split=parts, **SMALL)


@pytest.mark.parametrize("seed", range(20))
def test_a_label_that_is_just_not_rare_is_in_every_part(seed):
    dataset = load_table(mistyped(FEWEST), **ROLES, pos_label="yes")
    parts = split(dataset, seed=seed, stratify="both")
    check_labels(dataset, parts.train, str)
    assert all((dataset.label.iloc[rows] == "yse").any() for rows in parts)
