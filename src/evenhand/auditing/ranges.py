"""The ranges that users give for columns: the lowest and the highest value, or some of the categories."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from evenhand.checks import did_you_mean
from evenhand.wording import listed


def ends_of(name: Any, given: Any, read: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the lower and the higher end of a column's range, each as `read` returns it, or raise.

    >>> ends_of("age", [18, 70], float)
    (18.0, 70.0)
    >>> ends_of("age", (70, 18), float)
    Traceback (most recent call last):
    ...
    ValueError: Got (70, 18) as the range of 'age', but expected two values, the lower first.
    """
    low = high = None
    with suppress(TypeError, ValueError):
        low, high = map(read, given)
    if low is None or not low <= high:
        raise ValueError(f"Got {given!r} as the range of {name!r}, but expected two values, the lower first.")
    return low, high


def finite(end: Any) -> float:
    """Return a finite number, or raise."""
    if not math.isfinite(end):
        raise ValueError(f"Got {end!r}, but expected a finite number.")
    return float(end)


def some_of(name: Any, given: Any, known: list[Any]) -> list[Any]:
    """Return the categories given for a column, one or a list; raise unless all are known."""
    wanted = [given] if isinstance(given, str) else list(given)
    for value in wanted:
        if value not in known:
            raise ValueError(
                f"Got {value!r} among the categories of {name!r}, but expected some of "
                f"{listed(known, most=10)}.{did_you_mean(value, known)}"
            )
    if not wanted:
        raise ValueError(f"Got no category for {name!r}, but expected at least one.")
    return wanted
