"""`evenhand datasets`: what data there is, where it comes from, how many rows."""

from __future__ import annotations

from evenhand.cli import options
from evenhand.cli.console import print_json, print_table, show
from evenhand.datasets import available

# Two tables, since a terminal of 80 columns has no room for all columns in one.
TABLES = {
    "Data sets": ["name", "people", "predicts", "sensitive", "ready"],
    "\nWhere they come from": ["name", "source", "licence"],
}
EXAMPLES = "[bold]Example[/]\n\nevenhand datasets --json"


def run(as_json: options.Json = False) -> None:
    """List the data sets: people, task, sensitive column, source, licence, and whether they are here."""
    table = available().reset_index()
    if as_json:
        print_json(table.to_dict(orient="records"))
        return
    needs = table[table["ready"].str.startswith("needs ")]
    table["people"] = table["people"].map("{:,}".format)
    table.loc[needs.index, "ready"] = "needs files"
    for title, columns in TABLES.items():
        print_table(title, columns, table[columns].astype(str).to_numpy().tolist())
    if len(needs):
        show("")
    for row in needs.itertuples():
        show(f"{row.name} {row.ready}")
