"""The command line: `evenhand fit`, `predict`, `compress`, `audit`, `serve`, `reproduce` and more."""

from __future__ import annotations

import inspect
import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from evenhand.cli.console import Guarded
from evenhand.cli.options import PANELS
from evenhand.version import __version__

COMMANDS = {
    "fit": "Train fair models on your table and save the best one.",
    "predict": "Decide about the people in a file with a saved model.",
    "compress": "Reduce a saved model to one group's policy, used for everybody.",
    "audit": "Measure how a model, or decisions from any source, treat people.",
    "reproduce": "Run the paper's experiments and compare with its numbers.",
    "datasets": "List the paper's data sets.",
    "report": "Create a report page from a saved summary.",
    "serve": "Decide about people one at a time over HTTP, and learn from outcomes.",
    "export": "Write a decision log to files, for auditors.",
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
    # A paragraph of a docstring is one line here: the terminal wraps it at its own width.
    paragraphs = inspect.cleandoc(module.run.__doc__).split("\n\n")
    told = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    alone.command(name, help=told, epilog=module.EXAMPLES)(module.run)
    command: Any = typer.main.get_command(alone)
    if name in ("fit", "audit"):  # the others have few options
        panels = {option: panel for panel, names in PANELS.items() for option in names.split()}
        for option in command.params:
            option.rich_help_panel = panels.get(option.name)
    return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train classifiers whose decisions hardly depend on a person's group, audit any classifier, and "
    "reproduce the paper.\n\nExit codes: 0 done, 1 the job failed, 2 wrong usage or input.",
    epilog="Start with: [bold]evenhand fit people.csv --label income --sensitive sex -o model.skops[/]",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit()


@app.callback()
def before_command(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="EVENHAND_DEBUG", help="Show the traceback of an error."),
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
