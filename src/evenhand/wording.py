"""Small pieces of text and plain data that errors, notes and reports share."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any


def listed(values: Collection[Any], most: int | None = None) -> str:
    """Return the values in quotes, with commas between; of more than `most`, the rest is counted.

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


def as_plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's scalars and arrays as Python's, what is not finite as None.

    >>> import numpy as np
    >>> as_plain({"a": (np.float64(1.5), float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): as_plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's, without importing it: `evenhand --help` needs this file
        return as_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(text: str) -> str:
    r"""Return a text that can't move the cursor, colour the terminal or turn the direction of writing.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode()
        for sign in text
    )
