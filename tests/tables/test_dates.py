from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.tables import dates as module
from evenhand.tables.columns import tidy_columns
from evenhand.tables.dates import format_of, read_dates
from evenhand.tables.matching import as_learned


def tidy(column: Any) -> tuple[pd.DataFrame, list[str]]:
    notes: list[str] = []
    frame, _ = tidy_columns(pd.DataFrame({"c": column}), notes)
    return frame, notes


@pytest.mark.parametrize(
    "dates",
    [
        ["1970-01-02", "1970-02-01"],
        ["1970/01/02", "1970/02/01"],
        ["02.01.1970", "01.02.1970"],
        ["01/02/1970", "02/01/1970"],  # month first, unless that is impossible
        ["1970-01-02T00:00:00", "1970-02-01T00:00:00"],
        ["1970-01-02 00:00:00+00:00", "1970-02-01 00:00:00+00:00"],
        pd.to_datetime(["1970-01-02", "1970-02-01"]),
    ],
)
def test_dates_become_days(dates: Any) -> None:
    frame, notes = tidy(dates)
    assert frame["c"].tolist() == [1.0, 31.0]
    assert notes[0].startswith("'c' holds dates, which are used as days since 1970-01-01.")


@pytest.mark.parametrize(
    ("dates", "how", "said"),
    [
        (["2/1/1970", " 1/2/1970 "], "%m/%d/%Y", " They are read as %m/%d/%Y; %d/%m/%Y would fit too."),
        (["12/31/1970", "01/02/1970"], "%m/%d/%Y", ""),
        (["31/12/1970", "01/02/1970"], "%d/%m/%Y", ""),
        (["02.01.1970", "01.02.1970"], "%d.%m.%Y", ""),
        ([date(1970, 1, 2), date(1970, 2, 1)], "ISO8601", ""),
        (pd.to_datetime(["1970-01-02", "1970-02-01"]), "ISO8601", ""),
    ],
)
def test_how_dates_were_read_is_kept_and_said_where_another_order_would_fit(
    dates: Any, how: str, said: str
) -> None:
    notes: list[str] = []
    frame = pd.DataFrame({"c": dates, "age": [20, 30]})
    assert tidy_columns(frame, notes)[1] == {"c": how}
    assert notes == [f"'c' holds dates, which are used as days since 1970-01-01.{said}"]


def test_day_first_where_the_month_can_not_be() -> None:
    frame, _ = tidy(["31/01/1970", "01/02/1970"])
    assert frame["c"].tolist() == [30.0, 31.0]


@pytest.mark.parametrize(
    ("dates", "how", "read"),
    [
        (["01/13/2021 04:28", "02/13/2021 14:08"], "%m/%d/%Y %H:%M", "2021-01-13 04:28"),
        (["13/1/2021 4:28", "2/2/2021 14:08"], "%d/%m/%Y %H:%M", "2021-01-13 04:28"),
        (["01/13/2021 04:28:59", "02/13/2021 14:08:00"], "%m/%d/%Y %H:%M:%S", "2021-01-13 04:28:59"),
        (["13.01.2021 04:28", "13.02.2021 14:08"], "%d.%m.%Y %H:%M", "2021-01-13 04:28"),
        (["01/13/2021 04:28 PM", "02/13/2021 04:28 am"], "%m/%d/%Y %I:%M %p", "2021-01-13 16:28"),
        (["1/13/2021 4:28:01 PM", "2/13/2021 4:28:00 AM"], "%m/%d/%Y %I:%M:%S %p", "2021-01-13 16:28:01"),
        (["13-Jan-2021", "14-FEB-2021"], "%d-%b-%Y", "2021-01-13"),
        (["13-Jan-2021 04:28:59", "14-Feb-2021 14:08:00"], "%d-%b-%Y %H:%M:%S", "2021-01-13 04:28:59"),
        (["13-Jan-2521 04:28", "14-Feb-2021 14:08"], "%d-%b-%Y %H:%M", "2521-01-13 04:28"),
    ],
)
def test_dates_with_times_and_names_of_months(dates: list[str], how: str, read: str) -> None:
    notes: list[str] = []
    frame, formats = tidy_columns(pd.DataFrame({"c": dates}), notes)
    assert formats == {"c": how}
    days = (datetime.fromisoformat(read) - datetime(1970, 1, 1)) / timedelta(days=1)
    assert frame["c"].iloc[0] == pytest.approx(days, abs=1e-9)
    reasons = np.full(3, "", dtype=object)
    later = as_learned(pd.Series([*dates, "soon"], name="c"), how, {}, reasons)  # as `predict` reads them
    assert later.tolist()[:2] == frame["c"].tolist()
    assert reasons.tolist() == ["", "", f"column 'c': got 'soon', expected a date like {how}"]


def test_both_orders_of_day_and_month_are_said_also_with_times() -> None:
    notes = tidy(["01/02/2021 04:28", "02/01/2021 14:08"])[1]
    assert notes[0].endswith("They are read as %m/%d/%Y %H:%M; %d/%m/%Y %H:%M would fit too.")


def test_all_dates_must_be_written_alike_not_only_the_first() -> None:
    dates = ["13.01.2021 04:28"] * 200
    assert format_of(pd.Series(dates)) == "%d.%m.%Y %H:%M"
    for other in ("13.01.2021", "13.01.2021 04:28:59", "32.01.2021 04:28", "13-Xyz-2021"):
        assert format_of(pd.Series([*dates, other])) is None


@pytest.mark.parametrize("how", ["%m/%d/%Y", "%d/%m/%Y"])
@pytest.mark.parametrize("ordered", [True, False])
def test_few_values_are_read_by_the_slow_parser(
    monkeypatch: pytest.MonkeyPatch, how: str, ordered: bool
) -> None:
    days = pd.Series(pd.date_range("2015-01-01", periods=3000).repeat(3))
    days = days if ordered else days.sample(frac=1, random_state=0)
    asked: list[str] = []

    def far_day(text: str, how: str) -> float:
        asked.append(text)
        return np.nan

    monkeypatch.setattr(module, "_far_day", far_day)
    frame, formats = tidy_columns(pd.DataFrame({"c": days.dt.strftime(how).to_numpy()}), [])
    assert formats == {"c": how}
    assert frame["c"].tolist() == ((days - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")).tolist()
    assert len(asked) <= 30  # at most one per format


def test_each_text_that_pandas_does_not_read_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def far_day(text: str, how: str) -> float:
        asked.append(text)
        return 9.0 if text == "far" else np.nan

    monkeypatch.setattr(module, "_far_day", far_day)
    written = pd.Series(["far", "soon", "02.01.1970", None] * 3, index=[7] * 12)
    days = read_dates(written, "%d.%m.%Y")
    pd.testing.assert_series_equal(days, pd.Series([9.0, np.nan, 1.0, np.nan] * 3, index=[7] * 12))
    assert asked == ["far", "soon"]
