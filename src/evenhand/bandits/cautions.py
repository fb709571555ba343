"""Warnings of fits: they point to the user's own line, even if the fit runs in a thread."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Caution(NamedTuple):
    """A warning that is not emitted yet."""

    text: str
    category: type[Warning]


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Emit a warning that points to the user's line, unless the caller keeps it for later."""
    _heard.get()(Caution(text, category))


def _emit(caution: Caution) -> None:
    warnings.warn(*caution, stacklevel=_users_level())


# Every thread has its own. `warnings.catch_warnings` would change what all threads do with warnings.
_heard: ContextVar[Callable[[Caution], None]] = ContextVar("_heard", default=_emit)


@contextmanager
def heard_by(hear: Callable[[Caution], None]) -> Iterator[None]:
    """Hand the warnings of this thread to `hear`."""
    before = _heard.set(hear)
    try:
        yield
    finally:
        _heard.reset(before)


@contextmanager
def kept() -> Iterator[list[Caution]]:
    """Keep the warnings of this thread in a list, for the thread that the user called to emit."""
    found: list[Caution] = []
    with heard_by(found.append):
        yield found


@contextmanager
def each_once() -> Iterator[None]:
    """Emit each warning only once, however many fits give it."""
    said: set[Caution] = set()
    emit = _heard.get()

    def hear(caution: Caution) -> None:
        if caution not in said:
            said.add(caution)
            emit(caution)

    with heard_by(hear):
        yield


def _users_level() -> int:
    """Return the `stacklevel` at which a warning points to the user's line that called evenhand."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("evenhand."):
        level, frame = level + 1, frame.f_back
    return level
