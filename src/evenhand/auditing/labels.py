"""Whether decisions and labels speak of the same things: 'Approved' is never 'yes', however often it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from evenhand.checks import did_you_mean


def check_known(values: Iterable[Any], known: Iterable[Any], what: str, wanted: str) -> str:
    """Raise if values are no known labels; return a note on those that may be labels nobody has here.

    Where one label is known, a second may well be lacking, and where there are more than two, any may. So
    an unknown value is let pass there, if another value is known and it is no known one spelled otherwise.
    Where two labels are known, there is no third.

    >>> check_known(["no", "yes"], ["no"], "decisions", "the labels")
    "'yes' is among the decisions, but not among the labels ('no')."
    >>> check_known(["y"], ["yes"], "decisions", "labels")
    Traceback (most recent call last):
    ...
    ValueError: Got 'y' among the decisions, but labels are 'yes'; expected the same names.
    """
    values, known = [_plain(value) for value in values], [_plain(label) for label in known]
    unknown = [value for value in values if value not in known]
    if not unknown:
        return ""
    spelled = {_spelling(label) for label in known}
    rooms = 1 if len(known) == 1 else 0 if len(known) == 2 else len(unknown)
    passes = len(unknown) < len(values) and len(unknown) <= rooms
    if passes and not any(_spelling(value) in spelled for value in unknown):
        verb = "is" if len(unknown) == 1 else "are"
        return f"{_listed(unknown)} {verb} among the {what}, but not among {wanted} ({_listed(known)})."
    hint = next((hint for value in unknown if (hint := did_you_mean(value, known))), "")
    raise ValueError(
        f"Got {_listed(unknown)} among the {what}, but {wanted} are {_listed(known)}; expected the same "
        f"names.{hint}"
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _spelling(value: Any) -> str:
    return str(value).strip().casefold()


def _listed(values: list[Any]) -> str:
    more = f" and {len(values) - 5} more" if len(values) > 6 else ""
    return ", ".join(map(repr, values[: 5 if more else 6])) + more
