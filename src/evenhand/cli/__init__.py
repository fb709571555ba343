"""The command line: `evenhand fit`, `predict`, `audit`, `reproduce`, `datasets`, `report`."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import audit, datasets, fit, predict, report, reproduce
from evenhand.cli.console import Guarded
from evenhand.version import __version__

app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Decisions that do not hang on the group a person belongs to: train them, check anybody's, "
    "reproduce the paper. Exit codes: 0 done, 1 the job failed, 2 wrong usage or input.",
    epilog="Begin with: [bold]evenhand fit people.csv --label income --sensitive sex -o model.skops[/]",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="EVENHAND_DEBUG", help="Show where in the program an error arose."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Take the options that stand before the command."""


for command in (fit, predict, audit, reproduce, datasets, report):
    app.command(command.__name__.rpartition(".")[2], epilog=command.EXAMPLES)(command.run)


def main() -> None:
    """Run the command line."""
    app()
