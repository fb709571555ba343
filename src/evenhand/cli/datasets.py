"""`evenhand datasets`: what data there is, where it comes from, how many rows."""

from __future__ import annotations

from evenhand.cli import options
from evenhand.cli.console import print_json, print_table
from evenhand.datasets import available

EXAMPLES = "[bold]Example[/]\n\nevenhand datasets --json"


def run(as_json: options.Json = False) -> None:
    """List the data sets: people, task, sensitive column, source, licence, and whether they are here."""
    table = available().reset_index()
    if as_json:
        print_json(table.to_dict(orient="records"))
        return
    columns = ["name", "people", "predicts", "sensitive", "source", "licence", "ready"]
    rows = [[f"{row.people:,}" if name == "people" else str(getattr(row, name)) for name in columns]
            for row in table.itertuples()]  # fmt: skip
    print_table("Data sets", columns, rows)
