"""Options that several commands share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[
    Path, typer.Argument(help="A CSV (also .csv.gz), Parquet or Excel file, or a folder of Parquet files.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Label = Annotated[str | None, typer.Option("--label", help="Column to predict; guessed by default.")]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="Sensitive column; repeat it to combine several columns."),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        help="Label that counts as the positive decision. Of two it is guessed; of more none is, and "
        "differences between groups are then the largest over the labels.",
    ),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeatable, or a,b.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="Column of codes, not amounts; repeatable, or a,b."),
]
Unknown = Annotated[
    str,
    typer.Option(
        "--unknown",
        help="People of unknown group (a gap, '?', 'unknown', 'N/A'): 'drop', or 'keep' as a group.",
    ),
]
MinGroup = Annotated[
    int, typer.Option("--min-group", min=1, help="A smaller group counts for less where groups are compared.")
]
MergeSmall = Annotated[
    str | None,
    typer.Option(
        "--merge-small", help="Put groups with fewer than --min-group people into one of this name."
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a CSV file.")]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        help="Sign before decimals, '.' or ','. Guessed where columns are not separated by commas.",
    ),
]
Sheet = Annotated[
    str | None, typer.Option("--sheet", help="Sheet of an Excel file; the first one by default.")
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="VALUE=NEW: what a value of the label is called instead; COLUMN:VALUE=NEW for another column. "
        "Without NEW, the value is missing. Repeatable.",
    ),
]
MaxModelSize = Annotated[
    int,
    typer.Option("--max-model-size", min=1, help="The largest model that is loaded, in GiB when unpacked."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed; the same seed gives the same result.")]
Part = Annotated[
    str,
    typer.Option("--part", help="Of the people that a model was made with: 'all', or the 'test' part alone."),
]
Weight = Annotated[
    str | None, typer.Option("--weight", help="Column that says how many people each person stands for.")
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write a report, one HTML file that opens offline.")
]
Summary = Annotated[
    Path | None, typer.Option("--summary", help="Write the report's data as JSON, for `evenhand report`.")
]


def changes(given: list[str] | None) -> dict[str, Any]:
    """Return what `--map` asks for; a NEW that is written like a number is one."""
    found: dict[str, Any] = {}
    for text in given or ():
        value, sign, new = text.rpartition("=")
        if not sign or not value:
            raise ValueError(f"Got --map {text!r}, but expected VALUE=NEW, such as yes=1.")
        found[value] = _number(new) if new else None
    return found


def _number(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
