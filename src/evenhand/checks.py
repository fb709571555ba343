"""Checks of arguments: every error says what it got and what it expected."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

MOST = 2**62  # compiled loops count in 64 bits, and add to these numbers
MIN_GROUP = 20  # people; smaller groups are filled up to this number when groups are compared


class JobFailedError(RuntimeError):
    """The request was valid, but the job could not be done; the message says why. Exit code 1."""


def number(
    name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False
) -> float:
    """Return a finite float within [low, high], or (low, high] with `open_low`; an error names the argument.

    >>> number("learning_rate", 0.1, low=0, open_low=True)
    0.1
    >>> number("learning_rate", -1, low=0, open_low=True)
    Traceback (most recent call last):
    ...
    ValueError: Got learning_rate=-1, but expected a finite number above 0.
    """
    is_number = isinstance(value, numbers.Real) and value is not True and value is not False
    if is_number and math.isfinite(value) and low <= value <= high and not (open_low and value == low):
        return float(value)
    lower = "" if low == -math.inf else (f" above {low:g}" if open_low else f" of at least {low:g}")
    upper = "" if high == math.inf else f"{' and' if lower else ''} at most {high:g}"
    raise ValueError(f"Got {name}={value!r}, but expected a finite number{lower}{upper}.")


def integer(name: str, value: Any, *, low: int = 1, high: int = MOST) -> int:
    """Return an int within [low, high]; an error names the argument. By default it fits in 64 bits."""
    is_whole = isinstance(value, numbers.Integral) and value is not True and value is not False
    if is_whole and low <= int(value) <= high:
        return int(value)
    most = "2**62" if high == MOST else f"{high:,}"
    upper = f" and at most {most}" if is_whole and int(value) > high else ""
    raise ValueError(f"Got {name}={value!r}, but expected a whole number of at least {low}{upper}.")


def jobs(value: Any) -> int:
    """Return the number of threads that `n_jobs` asks for: as in scikit-learn, -1 is one per core."""
    import joblib  # brings NumPy, which `evenhand --help` does without

    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is None or (whole and value != 0):
        return int(joblib.effective_n_jobs(value))
    raise ValueError(f"Got n_jobs={value!r}, but expected 1 or more, or -1 for one per core.")


def one_of(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of the options; an error lists them and names the nearest.

    >>> one_of("cooperation", "mutal", ("acting", "mutual"))
    Traceback (most recent call last):
    ...
    ValueError: Got cooperation='mutal', but expected one of 'acting', 'mutual'. Did you mean 'mutual'?
    """
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    listed = ", ".join(repr(option) for option in options)
    raise ValueError(f"Got {name}={value!r}, but expected one of {listed}.{did_you_mean(value, options)}")


def did_you_mean(wanted: Any, known: Iterable[Any]) -> str:
    """Return ' Did you mean 'x'?' for the known names nearest to the wanted one, or ''."""
    by_text = {str(name).lower(): str(name) for name in known}
    near = [by_text[text] for text in difflib.get_close_matches(str(wanted).lower(), by_text, n=3)]
    return f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def check_columns(
    argument: str, names: Iterable[Any], columns: Iterable[Any], has: str = "the model takes"
) -> None:
    """Raise unless all names given in an argument are known columns; `has` names their owner in the error."""
    known = list(columns)
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise ValueError(f"Got {name!r} in {argument}, but {has} no such column.{near}")
