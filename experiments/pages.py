"""What the makers of tables for the pages share: where results lie, how they are read, and how a table is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]
RESULTS, GENERATED = ROOT / "results", ROOT / "docs" / "generated"
TITLES = {
    "adult": "Adult",
    "adult-all": "Adult, all rows",
    "compas": "COMPAS",
    "german": "German",
    "health": "Health",
}


def read(name: str, *, titled: bool = True, **options: Any) -> pd.DataFrame:
    """Return results/NAME.csv, with the data sets' titles in place of their names; `options` go to pandas."""
    table = pd.read_csv(RESULTS / f"{name}.csv", **options)
    if titled and "dataset" in table:
        table["dataset"] = table["dataset"].map(TITLES)
    return table


def figures(name: str) -> Any:
    """Return what results/NAME.json holds."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
