"""Recognise the people in a file that a model was made with, and find its test part."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from evenhand.arrays import Codes
from evenhand.tables.columns import CATEGORY
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import Table
from evenhand.tables.grouping import UNKNOWN
from evenhand.tables.load import load_table
from evenhand.tables.splits import split
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.table import digest_of

PARTS = ("all", "test")


def test_rows(held: Deployed, met: Dataset | None, origin: str) -> Codes:
    """Return the rows of the model's test part; raise if the file holds other people."""
    rows = None
    if met is not None:
        rows = met.row_numbers[split(met, seed=held.card["model"]["seed"], stratify="both").test]
    if rows is None or digest_of(rows) != held.card["data"].get("test part"):
        raise ValueError(
            f"Got part='test', but {origin} does not hold the people that the model was made with, or they "
            "were not split at random."
        )
    return rows


def met_in_training(held: Deployed, table: Table) -> Dataset | None:
    """Return the file as a data set if it holds the people that the model was made with, otherwise None."""
    frame, made_with = table.plain(), held.card.get("data", {})
    # A compressed model has forgotten its groups; its card has not.
    sensitive, merged = made_with.get("sensitive", held.sensitive), made_with.get("merged", held.merged)
    kept = {*held.columns, held.label, *sensitive}
    if not made_with or len(frame) < made_with["people"] or held.label not in frame.columns:
        return None
    numbers = [name for name in held.columns if pd.api.types.is_numeric_dtype(frame[name])]
    try:
        dataset = load_table(
            table, label=held.label, sensitive=sensitive,
            unknown="keep" if UNKNOWN in made_with.get("groups", held.groups_) else "drop",
            drop=[str(name) for name in frame.columns if name not in kept],
            categorical=[name for name in numbers if held.columns[name] == CATEGORY],
            weight=made_with.get("weight"),
        )  # fmt: skip
    except ValueError:  # a file that can't be read like the training data is another one
        return None
    if merged:
        dataset = replace(dataset, sensitive=dataset.sensitive.astype(str).replace(merged))
    dataset = replace(dataset, pos_label=held.pos_label)
    return dataset if dataset.fingerprint == made_with.get("fingerprint") else None
