"""The command line: `evenhand fit`, `predict`, `compress`, `audit`, `serve`, `reproduce` and more."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from evenhand.cli.console import Guarded
from evenhand.version import __version__

COMMANDS = {
    "fit": "Train fair models on your table and save the best one.",
    "predict": "Decide about people with a saved model.",
    "compress": "Keep one group's policy of a saved model, for everyone.",
    "audit": "Measure whose decision would change with their group.",
    "reproduce": "Run the paper's experiments and compare with its numbers.",
    "datasets": "List the paper's data sets.",
    "report": "Make a report page from a saved summary.",
    "serve": "Decide about people one by one over HTTP, with a log to learn from.",
    "export": "Write a decision log as files, for auditors.",
}


class Commands(Guarded):
    """The commands, each loaded when it is run: `evenhand --help` needs no numerical library."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, short_help=text) for name, text in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _loaded(name), rest


def _loaded(name: str) -> Any:
    module = import_module(f"evenhand.cli.{name}")
    alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
    alone.command(name, epilog=module.EXAMPLES)(module.run)
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Decisions that don't depend on a person's group: train models that make them, audit any model, "
    "reproduce the paper. Exit codes: 0 done, 1 the job failed, 2 wrong usage or input.",
    epilog="Begin with: [bold]evenhand fit people.csv --label income --sensitive sex -o model.skops[/]",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit()


@app.callback()
def before_command(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="EVENHAND_DEBUG", help="Show where in the program an error arose."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def main() -> None:
    """Run the command line; on a console without λ, a question mark stands for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
