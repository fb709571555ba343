"""Whether decisions and labels use the same names: 'Approved' never equals 'yes'."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenhand.checks import did_you_mean
from evenhand.wording import as_plain, listed


def check_known(values: Iterable[Any], known: Iterable[Any], what: str, wanted: str) -> str:
    """Raise if values are not known labels; return a note on those that may be labels nobody has here.

    If only one label is known, a second may well be missing; if more than two are known, any may be. There,
    an unknown value passes, provided that another value is known and it isn't a known one spelled
    differently. If two labels are known, there is no third.

    >>> check_known(["no", "yes"], ["no"], "decisions", "the labels")
    "'yes' is among the decisions, but not among the labels ('no')."
    >>> check_known(["y"], ["yes"], "decisions", "labels")
    Traceback (most recent call last):
    ...
    ValueError: Got 'y' among the decisions, but labels are 'yes'; expected the same names.
    """
    values, known = [as_plain(value) for value in values], [as_plain(label) for label in known]
    unknown = [value for value in values if value not in known]
    if not unknown:
        return ""
    came, wants = listed(unknown, most=6), listed(known, most=6)
    spelled = {_spelling(label) for label in known}
    rooms = 1 if len(known) == 1 else 0 if len(known) == 2 else len(unknown)
    passes = len(unknown) < len(values) and len(unknown) <= rooms
    if passes and not any(_spelling(value) in spelled for value in unknown):
        verb = "is" if len(unknown) == 1 else "are"
        return f"{came} {verb} among the {what}, but not among {wanted} ({wants})."
    hint = next((hint for value in unknown if (hint := did_you_mean(value, known))), "")
    raise ValueError(f"Got {came} among the {what}, but {wanted} are {wants}; expected the same names.{hint}")


def _spelling(value: Any) -> str:
    return str(value).strip().casefold()
