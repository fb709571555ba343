"""Dates before 1678 and after 2261, which nanoseconds don't reach: 9999-12-31 often stands for 'never'."""

from __future__ import annotations

import pandas as pd
import pytest

from evenhand.tables.dates import read_dates
from factories import FIT, evenhand, make_people

ROLES = ("--label", "hired", "--sensitive", "sex")
FAR = {"%d.%m.%Y": ["31.12.9999", "01.01.0001"], "%Y-%m-%d": ["9999-12-31", "0001-01-01"]}


@pytest.mark.parametrize("how", FAR)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_command_stops_at_a_far_date(tmp_path, how, ending):
    people = make_people(150)
    born = pd.to_datetime(people["born"], format="%d.%m.%Y").dt.strftime(how)
    data, model, decided = tmp_path / f"p.{ending}", tmp_path / "m.skops", tmp_path / "d.csv"
    people["born"] = [*FAR[how], *born[2:]]
    people.to_csv(data, index=False) if ending == "csv" else people.to_parquet(data)
    for arguments in (
        ("fit", data, *ROLES, "-o", model, *FIT),
        ("predict", model, data, "-o", decided),
        ("audit", data, "--model", model, "--report", tmp_path / "a.html"),
        ("audit", data, *ROLES, "--predictions", "hired"),
    ):
        evenhand(*arguments)
    assert len(pd.read_csv(decided)) == 150  # nobody is rejected


def test_a_model_that_met_no_far_date_decides_all_the_same(fitted, tmp_path):
    people = pd.read_csv(fitted.people).assign(born="31.12.9999")
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("predict", fitted.model, tmp_path / "p.csv", "-o", tmp_path / "d.csv")
    assert len(pd.read_csv(tmp_path / "d.csv")) == len(people)


def test_far_dates_are_days_too_and_what_is_no_date_is_none():
    written = pd.Series(["1970-01-02", "9999-12-31T12:00", "0001-01-01", "2020-13-01", None, "soon"])
    days = read_dates(written, "ISO8601")
    assert days.tolist()[:3] == [1.0, 2932896.5, -719162.0]
    assert days[3:].isna().all()
