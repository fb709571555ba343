"""A person's values as a report shows them: dates as dates, whole numbers without a point."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd


def shown(value: Any) -> str | float | int | None:
    """Return a value of a table as the page and its JSON hold it; a missing one is None.

    >>> [shown(value) for value in (11.0, 0.123456, pd.Timestamp("2024-03-02"), "cook", float("nan"))]
    [11, 0.1235, '2024-03-02', 'cook', None]
    """
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
        return int(number) if number.is_integer() else round(number, 4)
    if isinstance(value, (date, np.datetime64)):
        when = pd.Timestamp(value)
        return f"{when:%Y-%m-%d}" if when == when.normalize() else f"{when:%Y-%m-%d %H:%M}"
    return str(value)
