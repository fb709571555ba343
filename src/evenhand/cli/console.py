"""What commands print: results to standard output, the rest to standard error; bars only on a terminal."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from evenhand.checks import JobFailedError
from evenhand.progress import Progress, to_stderr
from evenhand.wording import printable

if TYPE_CHECKING:
    from evenhand.report.summary import Summary

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_WIDE = 1000  # characters
_CONTINUED = ("fit", "reproduce")  # where they stopped, if they are run again
_MISUSES = (ValueError, TypeError, FileNotFoundError, NotADirectoryError, IsADirectoryError, ImportError)


class Guarded(TyperGroup):
    """Commands whose errors are one clear message and an exit code: 1 the job failed, 2 wrong input."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a mistake of the user's shows no traceback, unless --debug asks for it."""
        # joblib says this to whoever wrote the loop that Ctrl-C ends.
        warnings.filterwarnings("ignore", ".*You could benefit from adjusting the input task", UserWarning)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of standard output went away, as `head` does; closing it would complain again.
            sys.stdout = None
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            again = " Run the same command again to continue where it stopped."
            on_stderr().print(f"Stopped.{again * (ctx.invoked_subcommand in _CONTINUED)}", soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        except (JobFailedError, OSError, MemoryError, *_MISUSES) as error:
            if ctx.params.get("debug"):
                raise
            message = escape(printable(str(error)))
            on_stderr().print(f"[bold red]Error:[/] {message}", highlight=False, soft_wrap=True)
            raise typer.Exit(MISUSED if isinstance(error, _MISUSES) else FAILED) from None


def on_stderr() -> Console:
    """Return the console for everything but results."""
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


def cautions_as_notes() -> AbstractContextManager[None]:
    """Show the warnings of fits as notes: a line of code says nothing to whoever types a command."""
    from evenhand.bandits.cautions import heard_by

    return heard_by(lambda caution: warn(caution.text))


def show(text: str) -> None:
    """Print a result as it is, however long its lines."""
    on_stdout().print(text, soft_wrap=True, markup=False)


def show_written(written: Mapping[str, Path]) -> None:
    """Print which files were written, by what they are."""
    for what, path in written.items():
        show(f"{what.replace('_', ' '):12} {path}")


def write_report(whole: Summary, report: Path | None, summary: Path | None) -> dict[str, Path]:
    """Write a page and its data where they are asked for; return the files by what they are."""
    from evenhand.report import write_html, write_summary

    writes = (("summary", summary, write_summary), ("report", report, write_html))
    return {what: write(whole, path) for what, path, write in writes if path is not None}


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n")


def print_table(title: str, columns: list[str], rows: list[list[str]], *, marked: int | None = None) -> None:
    """Print a table; columns of numbers go to the right, and one row may be marked, by an asterisk."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        numbers = number > 0 and all(row[number][:1] in "0123456789-–" for row in rows)
        table.add_column(escape(printable(name)), justify="right" if numbers else "left", overflow="fold")
    for number, row in enumerate(rows):
        sign = "" if marked is None else "* " if number == marked else "  "
        cells = [escape(printable(cell)) for cell in (sign + row[0], *row[1:])]
        table.add_row(*cells, style="bold cyan" if number == marked else None)
    console = on_stdout()
    if not console.is_terminal:  # a pipe or a file has no width that lines would have to keep
        console.width = max(console.width, _WIDE)
    console.print(table)


class Notes(Progress):
    """Notes on standard error unless `quiet`, and a bar if that is a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar = to_stderr(lines=False)
        self.start, self.done, self.stop = self._bar.start, self._bar.done, self._bar.stop  # type: ignore[method-assign]

    def say(self, text: str) -> None:
        """Print a note, unless `quiet`."""
        if not self._quiet:
            note(text)


def command_line() -> str:
    """Return the command as it was typed, for reports and cards."""
    return shlex.join(["evenhand", *sys.argv[1:]])
