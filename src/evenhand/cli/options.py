"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Label = Annotated[str | None, typer.Option("--label", help="The column to decide; guessed if left out.")]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="A sensitive column; give it several times to cross columns."),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        help="The label that counts as the positive decision; guessed of two. Of more than two none is "
        "guessed: differences between groups are then the largest over the labels.",
    ),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="A column to leave out; repeatable.")]
Categorical = Annotated[
    list[str] | None, typer.Option("--categorical", help="A column whose numbers are codes; repeatable.")
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of a CSV file.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same result.")]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write the report, one HTML file that opens offline.")
]
Summary = Annotated[
    Path | None, typer.Option("--summary", help="Write the report's data as JSON, for `evenhand report`.")
]
