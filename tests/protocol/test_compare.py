from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.protocol.compare import TITLES, beside, by_major, interval, markdown, published
from evenhand.protocol.grids import CLOSE, CONTROL
from evenhand.protocol.measuring import METRICS


def found(**change: object) -> pd.DataFrame:
    row = {"dataset": "adult", "method": "CCB", "seed": 0} | dict.fromkeys(METRICS, 0.5) | change
    return pd.DataFrame([row])


def test_every_published_table_has_a_title_and_every_number_is_a_share() -> None:
    paper = published()
    assert set(paper["table"]) < set(TITLES)
    assert paper[["accuracy", "discrimination", "consistency"]].stack().between(0, 1).all()
    assert not paper.duplicated(["table", "method", "dataset"]).any()


def test_ours_stands_beside_the_published_number() -> None:
    cells = beside(found(accuracy=0.76), "table1_discrimination").set_index("metric")
    assert cells.loc["accuracy", ["ours", "published"]].tolist() == [0.76, 0.7544]
    assert cells.loc["accuracy", "difference"] == pytest.approx(0.76 - 0.7544)
    assert cells.loc["flip_rate", ["published", "difference"]].isna().all()


@pytest.mark.parametrize(
    ("method", "row"), [("LFR (authors)", "LFR"), (CLOSE, "CCB"), (CONTROL, "CCB"), ("LFR", "LFR")]
)
def test_a_method_under_another_name_stands_beside_its_published_row(method: str, row: str) -> None:
    cells = beside(found(method=method), "table2_delta").set_index("metric")
    paper = published().set_index(["table", "method", "dataset"])
    assert cells.loc["accuracy", "published"] == paper.loc[("table2_delta", row, "adult"), "accuracy"]


def test_another_task_is_compared_with_nothing() -> None:
    assert beside(found(), "table1_discrimination", comparable=["german"])["published"].isna().all()
    assert beside(found(dataset="health-charlson"), "table1_discrimination")["published"].isna().all()
    assert beside(found(), "table_bounded")["published"].isna().all()


def test_the_interval_allows_for_splits_that_overlap() -> None:
    values = [0.81, 0.83, 0.82, 0.86]
    mean, low, high = interval(values)
    assert mean == pytest.approx(0.83)
    half = 3.182446 * np.std(values, ddof=1) * np.sqrt(1 / 4 + 0.15 / 0.7)
    assert (low, high) == pytest.approx((0.83 - half, 0.83 + half), abs=1e-6)
    assert np.isnan(interval([0.5])[1:]).all()
    assert interval([0.5, float("nan")])[0] == 0.5
    assert np.isnan(interval([float("nan")])).all()


def test_the_mean_over_seeds_has_its_number_of_seeds() -> None:
    both = pd.concat([found(accuracy=0.7), found(accuracy=0.8, seed=1)])
    cell = beside(both, "table1_discrimination").iloc[0]
    assert (cell["ours"], cell["seeds"]) == (pytest.approx(0.75), 2)
    assert cell["low"] < 0.7 < 0.8 < cell["high"]


def test_a_major_is_the_mean_over_its_courses() -> None:
    courses = pd.concat(
        [
            found(dataset="simulated-CS-CS201", accuracy=0.6),
            found(dataset="simulated-CS-CS202", accuracy=0.8),
            found(dataset="simulated-ECE-ECE201", accuracy=0.9),
        ]
    )
    table = by_major(courses)
    assert dict(zip(table["dataset"], table["accuracy"], strict=True)) == pytest.approx(
        {"CS": 0.7, "ECE": 0.9}
    )
    cells = beside(table, "table5_education_gender").set_index(["dataset", "metric"])
    assert cells.loc[("CS", "accuracy"), "published"] == 0.6051


def test_markdown_has_every_cell() -> None:
    text = markdown(beside(found(accuracy=0.76, gap=float("nan")), "table1_discrimination"))
    header, _, line = text.splitlines()
    assert header.count("|") == line.count("|") == 3 + len(METRICS)
    assert "| 0.7600 (0.7544, +0.0056) |" in line
    assert line.endswith("| – |")


def test_one_test_part_for_all_seeds_has_no_interval() -> None:
    both = pd.concat([found(accuracy=0.7, seed=0), found(accuracy=0.8, seed=1)])
    cell = beside(both, "table1_discrimination", one_test_part=["adult"]).iloc[0]
    assert cell["ours"] == pytest.approx(0.75)
    assert np.isnan([cell["low"], cell["high"]]).all()
    assert np.isfinite(beside(both, "table1_discrimination", one_test_part=["german"]).iloc[0]["low"])
