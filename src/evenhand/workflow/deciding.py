"""Deciding about everybody in a file of any size, in constant memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.atomic import write_text
from evenhand.checks import one_of
from evenhand.progress import Progress, or_nothing
from evenhand.tables.csv_format import with_mark
from evenhand.tables.decimals import decimal_of, with_points
from evenhand.tables.files import read_table, sha256_of
from evenhand.tables.mapping import mapped
from evenhand.tables.paths import TEXT_FILES, bare_name, ending_of, is_packed, kind_of_file, open_text
from evenhand.tables.pieces import parquet_files
from evenhand.tables.streaming import CHUNK, Chunk, read_chunks
from evenhand.tables.writing import WRITTEN, Writer, writing
from evenhand.version import __version__
from evenhand.wording import people
from evenhand.workflow.decisions import OWN, Decisions, Unseen
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.parts import PARTS, met_in_training, test_rows
from evenhand.workflow.persistence import MOST_BYTES, load
from evenhand.workflow.table import NoUsableRowsError, check_written

STANDARD_OUTPUT = Path("-")
NOT_RECORDED = [
    "Who ran it, and who checked the decisions.",
    "What was decided about whom: that is in the output, whose hash is here.",
    "Proof that nothing was changed: keep the hashes elsewhere.",
]


@dataclass(frozen=True)
class Outcome:
    """What happened to the rows of a file; the first four count rows."""

    decided: int
    rejected: int
    would_flip: int
    by_rule: int  # those of the decided whose group is unknown
    output: Path | None  # None for standard output
    rejects: Path | None  # None if no such file was written
    unseen: dict[str, int]  # per column, the number of people with a category that training did not see
    notes: list[str]  # `by_rule` and `unseen` in words


def open_model(path: str | Path, *, max_bytes: int = MOST_BYTES) -> Deployed:
    """Read a model of `evenhand fit`; raise if the file holds another kind of model."""
    held = load(path, max_bytes=max_bytes)
    if not isinstance(held, Deployed):
        raise ValueError(f"{path} holds a {type(held).__name__}, but expected a model of `evenhand fit`.")
    return held


def decide_file(
    model: Deployed | str | Path,
    data: str | Path,
    output: str | Path | None = None,
    *,
    rejects: str | Path | None = None,
    prefix: str = "",
    unknown_group: str = "reject",
    chunk: int = CHUNK,
    encoding: str = "utf-8",
    decimal: str | None = None,
    sheet: str | None = None,
    map: Mapping[Any, Any] | None = None,
    part: str = "all",
    max_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> Outcome:
    """Decide about everybody in a file or a folder of Parquet files; add the columns of `Decisions.to_frame`.

    A row that can't be scored goes to the file of rejects, with its line and the reason. `evenhand predict`
    describes the arguments.
    """
    deployed = model if isinstance(model, Deployed) else open_model(model, max_bytes=max_bytes)
    decimal = decimal_for(deployed, data, encoding, decimal)
    data = Path(data).resolve() if Path(data).is_dir() else Path(data)  # '.' has no name
    decided_path, rejects_path = _places(data, output, rejects)
    check_written(decided_path, rejects_path, inputs=(data, None if model is deployed else Path(str(model))))
    # A file of an earlier run must not be taken for this run's.
    header = rejects is not None or rejects_path.exists()
    wanted = None
    if one_of("part", part, PARTS) != "all":
        table = read_table(data, encoding=encoding, decimal=decimal, sheet=sheet)
        table = replace(table, frame=mapped(table.plain(), map, [deployed.label]))
        wanted = test_rows(deployed, met_in_training(deployed, table), table.origin)
    flips, by_rule, strange = 0, 0, Unseen({}, {})
    stage = or_nothing(progress).stage("Deciding")
    with stage as done, writing(rejects_path) as refused, writing(decided_path) as out:
        chunks = read_chunks(data, size=chunk, encoding=encoding, decimal=decimal, sheet=sheet)
        for piece in chunks if wanted is None else _only(chunks, wanted):
            rows = with_points(piece.rows) if piece.decimal == "," else piece.rows
            found = deployed.decide(mapped(rows, map, [deployed.label]), unknown_group=unknown_group)
            _refuse(refused, piece, found, header=header)
            out.write(
                pd.concat([piece.rows[found.scored], _added(piece, found, prefix)], axis=1),
                piece.schema,
                piece.separator,
                piece.decimal,
            )
            flips += int(found.would_flip.sum())
            by_rule += 0 if found.by is None else int((found.by != OWN).sum())
            strange.add(found.unseen)
            done(f"{out.rows:,} people", pieces=len(piece.lines))
        out.keep = out.rows > 0 or refused.rows == 0
    if not out.keep:
        raise NoUsableRowsError(f"None of {refused.rows:,} rows could be scored; {rejects_path} says why.")
    kept = rejects_path if refused.begun else None
    told = {"mean": "the mean of all policies", "agree": "what all policies agree on"}
    notes = [f"{people(by_rule)} of unknown group: decided by {told[unknown_group]}."] if by_rule else []
    notes += strange.notes()
    return Outcome(out.rows, refused.rows, flips, by_rule, decided_path, kept, strange.people, notes)


def decimal_for(deployed: Deployed, data: str | Path, encoding: str, given: str | None) -> str | None:
    """Return the decimal sign of a file for a model: as given, as the file shows it, or as in training."""
    path = Path(data)
    if given is not None or deployed.card.get("data", {}).get("decimal sign") != "," or path.is_dir():
        return given
    if kind_of_file(path) not in TEXT_FILES:
        return given
    with open_text(path, with_mark(encoding), "replace") as file:
        return decimal_of(path, file, likely=",")


def _only(chunks: Iterable[Chunk], wanted: Codes) -> Iterator[Chunk]:
    """Yield the pieces of a file without damaged rows, with only the rows that are wanted."""
    start = 0
    for piece in chunks:
        kept = np.flatnonzero(np.isin(np.arange(start, start + len(piece.rows)), wanted))
        start += len(piece.rows)
        rows = piece.rows.iloc[kept].reset_index(drop=True)
        yield piece._replace(rows=rows, lines=[piece.lines[at] for at in kept])


def _places(data: Path, output: Any, rejects: Any) -> tuple[Path | None, Path]:
    """Return where the decisions and the rejects go; None is standard output."""
    # The decisions about a folder of Parquet files go to one file next to it.
    kind, name = (".parquet", data.name) if data.is_dir() else (kind_of_file(data), bare_name(data))
    ending = kind if kind in WRITTEN else ".csv"
    packed = ".gz" if is_packed(data) else ""
    decided = data.with_name(f"{name}.decided{ending}{packed}") if output is None else Path(output)
    beside = data if decided == STANDARD_OUTPUT else decided
    refused = beside.with_name(f"{name}.rejects.csv") if rejects is None else Path(rejects)
    if decided != STANDARD_OUTPUT:
        packing = decided.suffix.lower() if is_packed(decided) else ""
        one_of(f"the ending of {decided.name}", ending_of(decided) + packing, WRITTEN)
    if ending_of(refused) in (".parquet", ".xlsx"):
        raise ValueError(f"Got {refused} for the rejected rows, but expected a CSV file.")
    return None if decided == STANDARD_OUTPUT else decided, refused


def _added(part: Chunk, found: Decisions, prefix: str) -> pd.DataFrame:
    added = found.to_frame(prefix)
    taken = next((name for name in added.columns if name in part.rows.columns), None)
    if taken is not None:
        raise ValueError(f"The file already has a column {taken!r}. Set a prefix, such as --prefix new_.")
    return added


def _refuse(refused: Writer, part: Chunk, found: Decisions, *, header: bool) -> None:
    """Write the rows that can't be scored: line, reason and fields, or the whole row if it is damaged.

    If `header` is true, the column names are written even if there is no such row.
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
    refused.write(pd.DataFrame(rows, columns=names), separator=part.separator, decimal=part.decimal)


def now() -> str:
    """Return the date and time in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _digest(path: Path) -> str:
    return parquet_files(path).sha256() if path.is_dir() else sha256_of(path)


def write_record(path: Path, model: Path, data: Path, found: Outcome, *, began: str, command: str) -> Path:
    """Write the record of a run as JSON; files that were not written, and standard output, are null."""
    files = {"model": model, "input": data, "output": found.output, "rejects": found.rejects}
    told = {
        "schema": "evenhand-run-1",
        "began": began,
        "ended": now(),
        "evenhand": __version__,
        "command": command,
        "files": {
            what: None if file is None else {"name": str(file), "sha256": _digest(file)}
            for what, file in files.items()
        },
        "decided": found.decided,
        "rejected": found.rejected,
        "would_flip": found.would_flip,
        "by_rule": found.by_rule,
        "notes": found.notes,
        "not_recorded": NOT_RECORDED,
    }
    return write_text(path, json.dumps(told, ensure_ascii=False, indent=1))
