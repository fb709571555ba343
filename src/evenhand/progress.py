"""What runs, how many of how many, and the time left: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichBar

_SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """What a long job tells."""

    def say(self, text: str) -> None:
        """Say what happens now."""

    def start(self, what: str, total: int, work: float) -> None:
        """Begin a stage of so many pieces, which together are so much work."""

    def done(self, label: str, work: float) -> None:
        """Tell that one piece is finished, and how much of the work it was."""

    def stop(self) -> None:
        """End the stage."""


class Silent:
    """Says nothing."""

    def say(self, text: str) -> None:
        """Say nothing."""

    def start(self, what: str, total: int, work: float) -> None:
        """Say nothing."""

    def done(self, label: str, work: float) -> None:
        """Say nothing."""

    def stop(self) -> None:
        """Say nothing."""


class _Stage:
    """How far a stage is; the time left goes by work, since pieces differ in size."""

    def __init__(self, what: str, total: int, work: float) -> None:
        self.what, self.total, self.work = what, total, work
        self.pieces, self.finished, self.begun = 0, 0.0, time.monotonic()

    def add(self, work: float) -> None:
        self.pieces += 1
        self.finished += work

    def left(self) -> str:
        if not self.finished or self.pieces >= self.total:
            return ""
        seconds = (time.monotonic() - self.begun) * (self.work / self.finished - 1)
        return f"about {clock(max(0.0, seconds))} left"


class Lines:
    """Plain lines, for logs and pipes: one every ten seconds."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file if file is not None else sys.stderr
        self._stage = _Stage("", 0, 0.0)
        self._told = time.monotonic()

    def say(self, text: str) -> None:
        """Write a line."""
        print(text, file=self._file, flush=True)

    def start(self, what: str, total: int, work: float) -> None:
        """Write how much there is to do."""
        self._stage, self._told = _Stage(what, total, work), time.monotonic()
        self.say(f"{what}: {total} to do")

    def done(self, label: str, work: float) -> None:
        """Write a line if the last one is ten seconds old."""
        stage = self._stage
        stage.add(work)
        if time.monotonic() - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            left = stage.left()
            self.say(f"{stage.what}: {stage.pieces} of {stage.total}{left and ', ' + left} · {label}")

    def stop(self) -> None:
        """Write how long the stage took."""
        stage = self._stage
        took = clock(time.monotonic() - stage.begun)
        self.say(f"{stage.what}: {stage.pieces} of {stage.total} in {took}")


class Bar:
    """A bar with what runs, how many of how many, and the time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: RichBar | None = None
        self._stage = _Stage("", 0, 0.0)

    def say(self, text: str) -> None:
        """Write a line, above the bar if there is one."""
        self._console.print(text, highlight=False)

    def start(self, what: str, total: int, work: float) -> None:
        """Show an empty bar."""
        self._stage = _Stage(what, total, work)
        self._bar = RichBar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[label]}"),
            console=self._console,
        )
        self._task = self._bar.add_task(what, total=total, left="", label="")
        self._bar.start()

    def done(self, label: str, work: float) -> None:
        """Move the bar."""
        self._stage.add(work)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, left=self._stage.left(), label=label)

    def stop(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def to_stderr() -> Progress:
    """Return a bar if standard error is a terminal, else plain lines."""
    console = Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines()


def clock(seconds: float) -> str:
    """Return a time for people.

    >>> clock(7), clock(95), clock(7300)
    ('7 s', '1:35 min', '2:01 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
