"""A record of one run of `evenhand predict`: when, by which model, from which file to which."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from evenhand.atomic import write_text
from evenhand.tables.files import sha256_of
from evenhand.tables.pieces import parquet_files
from evenhand.version import __version__
from evenhand.workflow.deciding import Outcome

NOT_RECORDED = [
    "Who ran it, and who checked the decisions.",
    "What was decided about whom: that is in the output, whose hash is here.",
    "Proof that nothing was changed: keep the hashes elsewhere.",
]


def now() -> str:
    """Return the date and time in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _digest(path: Path) -> str:
    return parquet_files(path).sha256() if path.is_dir() else sha256_of(path)


def write_record(path: Path, model: Path, data: Path, found: Outcome, *, began: str, command: str) -> Path:
    """Write the record as JSON; a file that was not written, or went to standard output, is null."""
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
