"""`evenhand export`: a decision log as files, for auditors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from evenhand.checks import JobFailedError, one_of
from evenhand.cli import options
from evenhand.cli.console import print_json, show

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand export decisions.db -o audit\n\n"
    "evenhand export postgresql://me@db/decisions -o record --preset eu-ai-act-12"
)


def run(
    log: Annotated[str, typer.Argument(help="The decision log: a SQLite file, or postgresql://…")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    preset: Annotated[
        str | None,
        typer.Option(help="eu-ai-act-12: events in chronological order, with hashes instead of inputs."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write the log of `evenhand serve` or of a DecisionLoop to files.

    By default, the whole log is written as Parquet. With a preset, the files are a record of what was
    decided, by which version and on what input; record.json says what the record leaves out.
    """
    try:
        from evenhand.decisions import keeping, recording
        from evenhand.decisions.log import Log
    except ModuleNotFoundError as error:
        raise JobFailedError(f"A log needs {error.name}: pip install 'evenhand[serve]'.") from error
    if preset is not None:
        one_of("preset", preset, [recording.PRESET])
    if "://" not in log and not Path(log).is_file():
        raise FileNotFoundError(f"There is no file {log}; expected a decision log.")
    opened = Log(log)
    try:
        files = recording.record(opened, output, time.time()) if preset else keeping.export(opened, output)
    finally:
        opened.close()
    if as_json:
        print_json({"written": files})
    else:
        show("\n".join(map(str, files)))
