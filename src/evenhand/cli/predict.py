"""`evenhand predict`: decide about the people of a file of any size, and say who would flip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from evenhand import load
from evenhand.checks import one_of
from evenhand.cli import options
from evenhand.cli.console import JobFailedError, on_stdout, print_json, warn
from evenhand.progress import to_stderr
from evenhand.tables.files import kind_of_file
from evenhand.tables.streaming import CHUNK, Chunk, Writer, read_chunks, writing
from evenhand.workflow.deployed import Decisions, Deployed
from evenhand.workflow.table import check_written
from evenhand.workflow.unseen import Unseen

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand predict model.skops people.csv\n\n"
    "evenhand predict model.skops people.parquet -o decided.parquet --rejects bad.csv\n\n"
    "evenhand predict model.skops people.csv -o - | head"
)


def run(
    model: Annotated[Path, typer.Argument(help="A model that `evenhand fit` saved.")],
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file, one person a row.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="CSV or Parquet; '-' is standard output. Default: NAME.decided.EXT"
        ),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file for rows that can't be scored; if there are none, it gets its header alone. "
            "Default: NAME.rejects.csv, made only for rows that can't be scored. A file that is already "
            "there is replaced."
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Put before the names of the columns that are added.")] = "",
    chunk: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = CHUNK,
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Decide about everybody in a file, in constant memory.

    Added to each row: decision, probability (of the positive label; of the decision if there is no positive
    one), probability_of_LABEL for each of more than two labels, probability_as_GROUP (of the same label as
    probability, under each group's policy) and would_flip. A row that can't be scored goes to the rejects
    file with its line and the reason, and the rest go on.
    """
    deployed = load(model)
    if not isinstance(deployed, Deployed):
        raise ValueError(
            f"{model} holds a {type(deployed).__name__}, but expected a model of `evenhand fit`."
        )
    ending = ".parquet" if kind_of_file(data) == ".parquet" else ".csv"
    to_stdout = output == Path("-")
    if to_stdout and as_json:
        raise ValueError("Got both -o - and --json, but standard output holds only one of them.")
    decided_path = None if to_stdout else output or data.with_name(f"{data.stem}.decided{ending}")
    rejects_path = rejects or data.with_name(f"{data.stem}.rejects.csv")
    if decided_path is not None:
        one_of(f"the ending of {decided_path.name}", decided_path.suffix.lower(), (".csv", ".parquet"))
    if rejects_path.suffix.lower() == ".parquet":
        raise ValueError(f"Got --rejects {rejects_path}, but expected a CSV file.")
    check_written(decided_path, rejects_path, inputs=(data, model))
    # A file of an earlier run must not look like one of this run.
    header = rejects is not None or rejects_path.exists()
    flips, strange = 0, Unseen({}, {})
    with (
        to_stderr(lines=False).stage("Deciding") as done,
        writing(decided_path) as out,
        writing(rejects_path) as refused,
    ):
        for part in read_chunks(data, size=chunk, encoding=encoding):
            found = deployed.decide(part.rows)
            _write(deployed, found, part, prefix, out, refused, header=header)
            flips += int(found.would_flip.sum())
            strange.add(found.unseen)
            done(f"{out.rows:,} people", pieces=len(part.lines))
        out.keep = out.rows > 0 or refused.rows == 0
    _tell(out, refused, flips, strange, decided_path, rejects_path, as_json)


def _write(
    deployed: Deployed,
    found: Decisions,
    part: Chunk,
    prefix: str,
    out: Writer,
    refused: Writer,
    *,
    header: bool,
) -> None:
    _refuse(refused, part, found, header=header)
    decided = pd.concat([part.rows[found.scored], _added(deployed, part, found, prefix)], axis=1)
    out.write(decided, part.schema)


def _added(deployed: Deployed, part: Chunk, found: Decisions, prefix: str) -> pd.DataFrame:
    columns: dict[str, Any] = {"decision": found.decision, "probability": found.probability.round(6)}
    if len(deployed.classes_) > 2:
        for code, name in enumerate(deployed.classes_):
            columns[f"probability_of_{name}"] = found.by_label[:, code].round(6)
    for code, name in enumerate(deployed.groups_):
        columns[f"probability_as_{name}"] = found.by_group[:, code].round(6)
    columns["would_flip"] = found.would_flip
    added = pd.DataFrame(columns, index=part.rows.index[found.scored]).add_prefix(prefix)
    taken = [name for name in added.columns if name in part.rows.columns]
    if taken:
        raise ValueError(
            f"The file has a column {taken[0]!r} already; name another with --prefix, such as new_."
        )
    return added


def _refuse(refused: Writer, part: Chunk, found: Decisions, *, header: bool) -> None:
    """Write the rows that can't be scored: line, reason, their fields, or the whole row if it is damaged.

    The names of the columns are written even where there is no such row if `header` is true.
    """
    bad = ~found.scored
    if not bad.any() and not part.rejects and not header:
        return
    fields = part.rows[bad].astype(object).where(part.rows[bad].notna(), "")
    fields.insert(0, "reason", found.reasons[bad], allow_duplicates=True)
    fields.insert(0, "line", [part.lines[at] for at in bad.nonzero()[0]], allow_duplicates=True)
    fields.insert(fields.shape[1], "row", "", allow_duplicates=True)
    names = list(fields.columns)
    blanks = [""] * part.rows.shape[1]
    damaged = [[line, reason, *blanks, " | ".join(cells)] for line, reason, cells in part.rejects]
    rows = sorted([*fields.to_numpy(dtype=object).tolist(), *damaged], key=lambda row: int(row[0]))
    refused.write(pd.DataFrame(rows, columns=names))


def _tell(
    out: Writer,
    refused: Writer,
    flips: int,
    strange: Unseen,
    decided_path: Path | None,
    rejects_path: Path,
    as_json: bool,
) -> None:
    if not out.keep:
        raise JobFailedError(f"None of {refused.rows:,} rows could be scored; {rejects_path} says why.")
    if as_json:
        print_json(
            {"decided": out.rows, "rejected": refused.rows, "would_flip": flips, "output": str(decided_path),
             "rejects": str(rejects_path) if refused.begun else None, "unseen": strange.people,
             "notes": strange.notes()}
        )  # fmt: skip
        return
    if decided_path is not None:
        share = 100 * flips / max(1, out.rows)
        on_stdout().print(
            f"{out.rows:,} people decided, {flips:,} ({share:.1f} %) of whom would be decided otherwise in "
            f"another group: {decided_path}",
            soft_wrap=True,
            markup=False,
        )
    for note in strange.notes():
        warn(note)
    if refused.rows:
        warn(f"{refused.rows:,} rows could not be scored; {rejects_path} says why.")
