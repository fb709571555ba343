"""`evenhand predict`: decide about the people in a file of any size, and say who would flip."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options
from evenhand.cli.console import command_line, print_json, show, warn
from evenhand.wording import people

if TYPE_CHECKING:
    from evenhand.workflow.deciding import Outcome

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand predict model.skops people.csv\n\n"
    "evenhand predict model.skops people.parquet -o decided.parquet --rejects bad.csv\n\n"
    "evenhand predict model.skops people.csv -o - | head"
)


def run(
    model: Annotated[Path, typer.Argument(help="A model saved by `evenhand fit`.")],
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the decisions: CSV (also .csv.gz), Parquet or Excel; '-' is standard "
            "output. Default: NAME.decided.EXT",
        ),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for rows that can't be scored. If there are none, it has only a header. Default: "
            "NAME.rejects.csv next to the output, written only if there are such rows. An existing file is "
            "replaced."
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="Write a record of the run as JSON: its time, and the hashes of model and files."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Prefix for the names of the added columns.")] = "",
    unknown_group: Annotated[
        str,
        typer.Option(
            help="People of unknown group: 'reject' them, decide by the 'mean' of all policies, or decide if "
            "all policies 'agree'. The column decided_by marks them."
        ),
    ] = "reject",
    part: options.Part = "all",
    chunk: Annotated[int, typer.Option(min=1, help="Rows to hold in memory at a time.")] = 10_000,
    max_model_size: options.MaxModelSize = 1,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    map: options.Map = None,
    as_json: options.Json = False,
) -> None:
    """Decide about everybody in a file or in a folder of Parquet files, in constant memory.

    Each row gets these columns:

    • decision

    • probability: of the positive label, or of the decision if there is no positive label

    • probability_of_LABEL: of each label, if there are more than two

    • probability_as_GROUP: this probability under each group's policy

    • would_flip: whether the decision would be different in another group

    A row that can't be scored goes to the rejects file, with its line number and the reason. The other rows
    are decided.
    """
    from evenhand.progress import to_stderr
    from evenhand.workflow.deciding import STANDARD_OUTPUT, decide_file, now, write_record
    from evenhand.workflow.table import check_written

    began = now()
    check_written(record, inputs=(data, model))
    if output == STANDARD_OUTPUT and as_json:
        raise ValueError("Got both -o - and --json, but standard output takes only one of them.")
    found = decide_file(
        model, data, output, rejects=rejects, prefix=prefix, unknown_group=unknown_group, part=part,
        chunk=chunk, encoding=encoding, decimal=decimal, sheet=sheet, map=options.changes(map),
        max_bytes=max_model_size << 30, progress=to_stderr(lines=False),
    )  # fmt: skip
    if record is not None:
        write_record(record, model, data, found, began=began, command=command_line())
    if as_json:
        print_json(asdict(found))
    else:
        _show(found)


def _show(found: Outcome) -> None:
    from evenhand.workflow.decisions import so_many_rows

    if found.output is not None:
        share = 100 * found.would_flip / max(1, found.decided)
        show(
            f"Decided about {people(found.decided)}, of whom {found.would_flip:,} ({share:.1f} %) would get "
            f"a different decision in another group. Written to {found.output}"
        )
    for note in found.notes:
        warn(note)
    if found.rejected:
        warn(f"{so_many_rows(found.rejected)} could not be scored; {found.rejects} says why.")
