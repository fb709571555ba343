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
_MOSTLY = 0.5  # text with a larger share of dates is meant as dates


def format_of(values: pd.Series[str]) -> str | None:
    """Return the usual format in which all values are dates; None if there is none, or no value.

    >>> format_of(pd.Series(["31.12.2020 04:28", "1.2.2021 14:08"]))
    '%d.%m.%Y %H:%M'
    """
    distinct = values.drop_duplicates()
    if len(distinct) == 0 or not distinct.str.fullmatch(_DATE_SHAPE).all():
        return None
    return next((how for how in _DATE_FORMATS if _fits(distinct, how)), None)


def strange_among(values: pd.Series[str]) -> pd.Series[str]:
    """Return the values that are no dates, if most are dates in one format; otherwise nothing.

    >>> strange_among(pd.Series(["2020-12-31", "2022-02-30", "2021-01-01"])).to_dict()
    {1: '2022-02-30'}
    """
    shaped = values.str.fullmatch(_DATE_SHAPE)
    some = values[shaped].drop_duplicates().iloc[: 10 * _TRIED]
    if shaped.mean() > _MOSTLY:
        read = {how: float(read_dates(some, how).notna().mean()) for how in _DATE_FORMATS}
        usual = max(read, key=lambda how: read[how])
        strange = values[read_dates(values, usual).isna().to_numpy()]
        if len(strange) < (1 - _MOSTLY) * len(values):
            return strange
    return values.iloc[:0]


def day_first(values: pd.Series[str], how: str) -> str:
    """Return the format with the day first that fits dates with the month first, too; '' if none does."""
    other = how.replace(_MONTH_FIRST, _DAY_FIRST)
    return other if other != how and _fits(values.drop_duplicates(), other) else ""


def _fits(distinct: pd.Series[str], how: str) -> bool:
    """Whether all values are dates in the format `how`."""
    for values in (distinct.iloc[:_TRIED], distinct.iloc[_TRIED:]):
        unread = values[_near_days(values, how).isna()]
        if any(np.isnan(_far_day(text, how)) for text in unread):  # stops at the first: strptime is slow
            return False
    return True


def read_dates(values: pd.Series[Any], how: str) -> pd.Series[float]:
    """Return dates in the format `how` as days since 1970; NaN for anything else.

    >>> read_dates(pd.Series(["31.12.9999", "soon"]), "%d.%m.%Y").tolist()
    [2932896.0, nan]
    """
    days = _near_days(values, how)
    unread = (days.isna() & values.notna()).to_numpy()
    if unread.any():
        texts = values[unread].astype(str)
        far = {text: _far_day(text, how) for text in texts.unique()}
        days[unread] = texts.map(far).to_numpy(dtype=float)
    return days


def _near_days(values: pd.Series[Any], how: str) -> pd.Series[float]:
    """Return the days of dates that pandas reads; NaN for anything else."""
    return days_of(pd.to_datetime(values, format=how, errors="coerce", utc=True))


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
