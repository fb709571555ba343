"""Names in sentences: a group or decision that is a number, or yes and no, is introduced by what it is."""

from __future__ import annotations

from typing import Any

_ANSWERS = ("yes", "no", "true", "false")


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


def _says_nothing(name: Any) -> bool:
    try:
        float(name)
    except (TypeError, ValueError):
        return str(name).lower() in _ANSWERS
    return True
