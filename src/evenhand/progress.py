"""What is running, how much of it is done, and the time left: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from evenhand.wording import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichBar

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Receives the progress of a long job. This class shows nothing; `Bar` and `Lines` do.

    Examples
    --------
    >>> with Lines(sys.stdout).stage("Trials", 2) as done:
    ...     done("LR on adult")
    ...     done("CCB on adult")
    Trials: 2 to do
    Trials: 2 of 2 in 0 s
    """

    def say(self, text: str) -> None:
        """Say what is happening now."""

    def start(self, what: str, total: int | None = None, work: float | None = None) -> None:
        """Begin a stage.

        Parameters
        ----------
        what : str
            Its name.
        total : int, optional
            The number of pieces, if it is known.
        work : float, optional
            The work of all pieces together, in any unit. By default, all pieces take equally long.
        """

    def done(self, label: str, work: float | None = None, pieces: int = 1) -> None:
        """Report finished pieces.

        Parameters
        ----------
        label : str
            What was finished.
        work : float, optional
            How much of the stage's work this was; by default the number of pieces.
        pieces : int
            The number of finished pieces.
        """

    def stop(self) -> None:
        """End the stage."""

    @contextmanager
    def stage(
        self, what: str, total: int | None = None, work: float | None = None
    ) -> Iterator[Callable[..., None]]:
        """Begin a stage that ends with the block; yields `done`."""
        self.start(what, total, work)
        try:
            yield self.done
        finally:
            self.stop()


def or_nothing(progress: Progress | None) -> Progress:
    """Return where to report progress, or for None what shows nothing; raise for anything else."""
    if progress is not None and not isinstance(progress, Progress):
        raise TypeError(
            f"Got progress={progress!r}, but expected a Progress, such as evenhand.progress.to_stderr()."
        )
    return Progress() if progress is None else progress


class _Shown(Progress):
    """Counts the pieces of a stage; the time left is estimated by work, since pieces differ in size."""

    def start(self, what: str, total: int | None = None, work: float | None = None) -> None:
        self._what, self._total, self._work = what, total, total if work is None else work
        self._pieces, self._finished, self._begun = 0, 0.0, time.monotonic()

    def done(self, label: str, work: float | None = None, pieces: int = 1) -> None:
        self._pieces += pieces
        self._finished += pieces if work is None else work

    def _left(self) -> str:
        if self._total is None or not self._work or not self._finished or self._pieces >= self._total:
            return ""
        seconds = (time.monotonic() - self._begun) * (self._work / self._finished - 1)
        return f"about {clock(max(0.0, seconds))} left"


class Lines(_Shown):
    """Plain lines, for logs and pipes: one every ten seconds.

    Parameters
    ----------
    file : text file, optional
        Where to write them; by default standard error.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file if file is not None else sys.stderr

    def say(self, text: str) -> None:
        """Write a line."""
        print(printable(text), file=self._file, flush=True)

    def start(self, what: str, total: int | None = None, work: float | None = None) -> None:
        """Write how much there is to do."""
        super().start(what, total, work)
        self._told = self._begun
        if total is not None:
            self.say(f"{what}: {total} to do")

    def done(self, label: str, work: float | None = None, pieces: int = 1) -> None:
        """Write a line if the last one is ten seconds old."""
        super().done(label, work, pieces)
        if time.monotonic() - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            left = self._left()
            self.say(f"{self._so_far()}{left and ', ' + left} · {label}")

    def stop(self) -> None:
        """Write how long the stage took."""
        self.say(f"{self._so_far()} in {clock(time.monotonic() - self._begun)}")

    def _so_far(self) -> str:
        of = "" if self._total is None else f" of {self._total}"
        return f"{self._what}: {self._pieces}{of}"


class Bar(_Shown):
    """A bar with what is running, how much of it is done, and the time left.

    Parameters
    ----------
    console : rich.console.Console
        Where it is drawn.
    transient : bool
        Whether the bar disappears when its stage ends.
    """

    def __init__(self, console: Console, *, transient: bool = False) -> None:
        self._console, self._transient = console, transient
        self._bar: RichBar | None = None

    def say(self, text: str) -> None:
        """Write a line, above the bar if there is one."""
        self._console.print(printable(text), highlight=False, markup=False)

    def start(self, what: str, total: int | None = None, work: float | None = None) -> None:
        """Show an empty bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichBar

        super().start(what, total, work)
        self._bar = RichBar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[label]}", style="dim", markup=False),
            console=self._console,
            transient=self._transient,
        )
        self._task = self._bar.add_task(printable(what), total=total, left="", label="")
        self._bar.start()

    def done(self, label: str, work: float | None = None, pieces: int = 1) -> None:
        """Move the bar."""
        super().done(label, work, pieces)
        if self._bar is not None:
            self._bar.update(self._task, advance=pieces, left=self._left(), label=printable(label))

    def stop(self) -> None:
        """Leave the bar as it is, or remove a transient one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def to_stderr(*, lines: bool = True) -> Progress:
    """Return a bar if standard error is a terminal, else plain lines.

    Parameters
    ----------
    lines : bool
        Whether to write lines if there is no terminal. If False, nothing is written without a terminal, and
        a bar disappears when its stage ends.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        return Bar(console, transient=not lines)
    return Lines() if lines else Progress()


def clock(seconds: float) -> str:
    """Return a duration as people write it.

    >>> clock(7), clock(95), clock(7300)
    ('7 s', '1:35 min', '2:01 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
