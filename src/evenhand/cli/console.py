"""What commands print: results to standard output, the rest to standard error; bars only on a terminal."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from typer.core import TyperGroup

from evenhand.bandits.training import TrainingDivergedError
from evenhand.datasets import DataUnavailableError, TamperedFileError
from evenhand.wording import printable

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


class JobFailedError(RuntimeError):
    """The command was right, but the job could not be done."""


class Guarded(TyperGroup):
    """Commands whose errors are one clear message and an exit code: 1 the job failed, 2 wrong input."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a mistake of the user's shows no traceback, unless --debug asks for it."""
        try:
            return super().invoke(ctx)
        except (JobFailedError, DataUnavailableError, TamperedFileError, TrainingDivergedError) as error:
            self._end(ctx, error, FAILED)
        except BrokenPipeError:
            # The reader of standard output went away, as `head` does; closing it would complain again.
            sys.stdout = None
            raise typer.Exit(FAILED) from None
        except (ValueError, TypeError, FileNotFoundError, IsADirectoryError, ImportError) as error:
            self._end(ctx, error, MISUSED)
        except (OSError, MemoryError) as error:
            self._end(ctx, error, FAILED)
        except KeyboardInterrupt:
            on_stderr().print("Stopped.")
            raise typer.Exit(INTERRUPTED) from None

    @staticmethod
    def _end(ctx: Any, error: BaseException, code: int) -> None:
        if ctx.params.get("debug"):
            raise error
        on_stderr().print(
            f"[bold red]Error:[/] {escape(printable(str(error)))}", highlight=False, soft_wrap=True
        )
        raise typer.Exit(code) from None


def on_stderr() -> Console:
    """Return the console for what is no result."""
    return Console(stderr=True)


def on_stdout() -> Console:
    """Return the console for results."""
    return Console(highlight=False)


def say(text: str) -> None:
    """Tell the user what is going on now; nobody when standard error is not a terminal."""
    console = on_stderr()
    if console.is_terminal:
        console.print(escape(printable(text)), style="dim", highlight=False)


def note(text: str) -> None:
    """Tell the user what was guessed, left out or changed, terminal or not."""
    on_stderr().print(escape(printable(text)), style="dim", highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Tell the user what they must know, terminal or not."""
    on_stderr().print(f"[yellow]Note:[/] {escape(printable(text))}", highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n")


def print_table(title: str, columns: list[str], rows: list[list[str]], *, marked: int | None = None) -> None:
    """Print a table; numbers go to the right, and one row may be marked."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(escape(printable(name)), justify="left" if number == 0 else "right")
    for number, row in enumerate(rows):
        cells = [escape(printable(cell)) for cell in row]
        table.add_row(*cells, style="bold cyan" if number == marked else None)
    on_stdout().print(table)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[str, int], None]]:
    """Show a bar on standard error, if that is a terminal; call the result with what is done."""
    console = on_stderr()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", style="dim"),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total, now="")

        def advance(now: str, by: int = 1) -> None:
            bar.update(task, advance=by, now=printable(now))

        yield advance


def command_line() -> str:
    """Return the command as it was typed, for reports and cards."""
    return shlex.join(["evenhand", *sys.argv[1:]])
