"""Small pieces of text and plain data that errors, notes and reports share."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

_ANSWERS = ("yes", "no", "true", "false")


def listed(values: Collection[Any], most: int | None = None) -> str:
    """Return the values in quotes, separated by commas; those beyond the first `most` are only counted.

    >>> listed(["a", 1]), listed("abcd", most=2)
    ("'a', 1", "'a', 'b' and 2 more")
    """
    shown = list(values)[:most]
    more = len(values) - len(shown)
    return ", ".join(repr(as_plain(value)) for value in shown) + (f" and {more} more" if more else "")


def people(count: int) -> str:
    """Return a number of people in words.

    >>> people(1), people(2_000)
    ('1 person', '2,000 people')
    """
    return f"{count:,} {'person' if count == 1 else 'people'}"


def group_called(name: Any, column: str = "group") -> str:
    """Return a group's name, with its column if it would say nothing by itself.

    >>> group_called("female", "sex"), group_called(0, "race"), group_called("sex=f, senior=0")
    ('female', 'race = 0', 'sex=f, senior=0')
    """
    return f"{column} = {name}" if _says_nothing(name) else str(name)


def members_of(name: Any, column: str = "group") -> str:
    """Return a group's members, to follow 'of'.

    >>> members_of("female", "sex"), members_of(0, "race")
    ('female', 'people with race = 0')
    """
    return f"people with {column} = {name}" if _says_nothing(name) else str(name)


def got(decision: Any) -> str:
    """Return that people got a decision.

    >>> got("good"), got(1)
    ("got 'good'", 'got the decision 1')
    """
    return f"got {decision!r}" if isinstance(decision, str) else f"got the decision {decision!r}"


def measured(value: float, name: str, digits: int) -> str:
    """Return a measure as pages and cards write it: with so many decimals, but a small gap with three digits.

    >>> [measured(value, "gap", 3) for value in (0.25, 0.000213, 0.0000213, 0.0)]
    ['0.250', '0.000213', '2.1e-05', '0']
    """
    if name != "gap" or value >= 0.1:
        return f"{value:.{digits}f}"
    # Gaps are small: a fixed number of decimals would show most of them as nothing.
    return f"{value:.1e}" if 0 < abs(value) < 1e-4 else f"{value:.3g}"


def brief(number: float) -> str:
    """Return a number with five digits, or as a whole number from 10,000 on.

    >>> brief(3695.335083), brief(0.000123456), brief(12345.6)
    ('3695.3', '0.00012346', '12346')
    """
    return f"{number:.0f}" if 1e4 <= abs(number) < math.inf else f"{number:.5g}"


def as_plain(value: Any) -> Any:
    """Return a value that JSON can hold: NumPy values become Python's; NaN and infinity become None.

    >>> import numpy as np
    >>> as_plain({"a": (np.float64(1.5), float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): as_plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # a NumPy value; `evenhand --help` loads this file without NumPy
        return as_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(text: str) -> str:
    r"""Escape characters that could move the cursor, colour the terminal or change the writing direction.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode()
        for sign in text
    )


def _says_nothing(name: Any) -> bool:
    try:
        float(name)
    except (TypeError, ValueError):
        return str(name).lower() in _ANSWERS
    return True
