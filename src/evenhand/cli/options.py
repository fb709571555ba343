"""Options that several commands share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

# Under which heading `--help` shows an option; others stand under 'Options'.
PANELS = {
    "Columns and groups": "label sensitive positive drop categorical weight unknown min_group merge_small",
    "Choosing a model": "criterion max_discrimination max_flip",
    "Training": "weights policies epochs buffer_rows jobs",
    "Output": "output report summary as_json",
    "Reading files": "encoding decimal sheet map",
    "Tables to file": "preset sex race rate small",
    "More analyses": "twins edges certify radius search time_limit",
}

Data = Annotated[
    Path, typer.Argument(help="A CSV (also .csv.gz), Parquet or Excel file, or a folder of Parquet files.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Label = Annotated[str | None, typer.Option(help="Column to predict. Guessed if left out.")]
Sensitive = Annotated[
    list[str] | None, typer.Option(help="Sensitive column. Repeat the option to combine several.")
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="Label that counts as the positive decision. With two labels it is guessed. With more there is "
        "none by default, and a difference between groups is the largest over the labels."
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out. Repeat the option, or write a,b.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="Column whose numbers are categories. Repeat the option, or write a,b."),
]
Unknown = Annotated[
    str,
    typer.Option(
        help="People of unknown group (an empty cell, '?', 'unknown', 'N/A'): 'drop' them, or 'keep' them as "
        "a group."
    ),
]
MinGroup = Annotated[
    int, typer.Option(min=1, help="Groups with fewer people count for less when groups are compared.")
]
MergeSmall = Annotated[
    str | None,
    typer.Option(help="Merge groups with fewer than --min-group people into one group of this name."),
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file.")]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal sign, '.' or ','. Guessed if columns are not separated by commas.")
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel file. Default: the first.")]
Map = Annotated[
    list[str] | None,
    typer.Option(
        help="Rename a value: VALUE=NEW for the label, COLUMN:VALUE=NEW for another column. VALUE= makes it "
        "missing. Repeatable."
    ),
]
MaxModelSize = Annotated[
    int, typer.Option(min=1, help="Refuse a model that takes more GiB than this when unpacked.")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed. The same seed gives the same result.")]
Part = Annotated[
    str,
    typer.Option(
        help="Of the file that the model was trained on, use 'all' people, or only the 'test' part."
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="Column with sample weights: how many people each row stands for.")
]
Report = Annotated[Path | None, typer.Option(help="Write a report: one HTML file that opens offline.")]
Summary = Annotated[Path | None, typer.Option(help="Write the report's data as JSON, for `evenhand report`.")]


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
