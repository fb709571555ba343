"""Dates in text: find out how a column writes them, and read them as days since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

ISO = "ISO8601"
_DATE_SHAPE = r"\s*\d{1,4}[-/.](?:\d{1,2}|[A-Za-z]{3})[-/.]\d{1,4}(?:[T ].*)?"
_MONTH_FIRST, _DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d-%b-%Y", _MONTH_FIRST, _DAY_FIRST)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DATE_FORMATS = (ISO, *(day + time for day in _DAYS for time in _TIMES))
_TRIED = 100  # dates that rule out most formats, before all are read


def format_of(values: pd.Series[str]) -> str | None:
    """Return the usual format in which all values are dates; None if there is none, or no value.

    >>> format_of(pd.Series(["31.12.2020 04:28", "1.2.2021 14:08"]))
    '%d.%m.%Y %H:%M'
    """
    if len(values) == 0 or not values.str.fullmatch(_DATE_SHAPE).all():
        return None
    first = values.iloc[:_TRIED]
    return next((how for how in _DATE_FORMATS if _fits(first, how) and _fits(values, how)), None)


def day_first(values: pd.Series[str], how: str) -> str:
    """Return the format with the day first that fits dates with the month first, too; '' if none does."""
    other = how.replace(_MONTH_FIRST, _DAY_FIRST)
    return other if other != how and _fits(values, other) else ""


def _fits(values: pd.Series[str], how: str) -> bool:
    return bool(read_dates(values, how).notna().all())


def read_dates(values: pd.Series[Any], how: str) -> pd.Series[float]:
    """Return dates in the format `how` as days since 1970; NaN for anything else.

    >>> read_dates(pd.Series(["31.12.9999", "soon"]), "%d.%m.%Y").tolist()
    [2932896.0, nan]
    """
    days = days_of(pd.to_datetime(values, format=how, errors="coerce", utc=True))
    for at in np.flatnonzero((days.isna() & values.notna()).to_numpy()):
        days.iloc[int(at)] = _far_day(str(values.iloc[at]), how)
    return days


def _far_day(text: str, how: str) -> float:
    """Return the day of a date before 1678 or after 2261, which pandas 2 does not read."""
    try:
        when = datetime.fromisoformat(text) if how == ISO else datetime.strptime(text, how)
    except ValueError:
        return np.nan
    when = when.replace(tzinfo=when.tzinfo or UTC)
    return np.nan if 1678 <= when.year <= 2261 else (when - _EPOCH) / timedelta(days=1)


def days_of(dates: pd.Series[Any]) -> pd.Series[float]:
    """Return dates as days since 1970, with the time of day as a fraction.

    >>> days_of(pd.Series([pd.Timestamp("1970-01-02 12:00")])).tolist()
    [1.5]
    """
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert(None)
    # Nanoseconds would cover only 1678 to 2261.
    since = dates.to_numpy().astype("datetime64[us]").astype(np.int64) / 86_400e6
    return pd.Series(since, index=dates.index, name=dates.name).mask(dates.isna())
