from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from evenhand.metrics import Answers
from evenhand.report.persons import persons, shown


def test_persons_come_with_those_who_flip_first_then_the_largest_gap():
    said = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.45, 0.55], [0.55, 0.45]], [[0.5, 0.5], [0.5, 0.5]]])
    answers = Answers(["no", "yes"], ["f", "m"], np.array([0, 1, 0]), said, pos_label="yes")
    found = persons(pd.DataFrame({"age": [1.5, np.nan, 3.0]}), answers, limit=2, numbers=[10, 20, 30])
    assert [row["person"] for row in found["rows"]] == [21, 11]
    assert found["rows"][0]["decisions"] == ["yes", "no"]
    assert found["rows"][0]["flips"]
    assert found["rows"][0]["features"] == [None]
    assert (found["people"], found["flips"]) == (3, 1)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_none(missing):
    assert shown(missing) is None


@pytest.mark.parametrize(
    "day",
    [
        date(2024, 3, 2),
        datetime(2024, 3, 2),
        np.datetime64("2024-03-02"),
        pd.Timestamp("2024-03-02", tz="UTC"),
    ],
)
def test_a_date_is_a_date(day):
    assert shown(day) == "2024-03-02"


def test_a_time_keeps_its_minutes():
    assert shown(pd.Timestamp("2024-03-02 17:05:09")) == "2024-03-02 17:05"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (11.0, 11),
        (3695.3350830078125, 3695.3),
        (123456.7, 123457),
        (0.0000213, 0.0000213),
        (np.int8(3), 3),
        (0.30000000000000004, 0.3),
        (True, "True"),
        ("1.0", "1.0"),
    ],
)
def test_numbers_are_short_and_text_stays(value, text):
    assert shown(value) == text
    assert type(shown(value)) is type(text)


def test_a_small_gap_is_not_nothing():
    said = np.array([[[0.5, 0.5], [0.5001, 0.4999]]])
    answers = Answers(["no", "yes"], ["f", "m"], np.array([0]), said, pos_label="yes")
    (row,) = persons(pd.DataFrame({"age": [1]}), answers)["rows"]
    assert row["gap"] == pytest.approx(answers.gaps()[0], abs=1e-9)
    assert row["gap"] < 1e-7
    assert row["gap"] > 0
