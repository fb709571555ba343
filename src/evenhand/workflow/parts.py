"""Recognise the people in a file that a model was made with, and find its test part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.frames import as_pandas
from evenhand.groups import as_columns
from evenhand.tables.columns import CATEGORY
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import Table
from evenhand.tables.load import load_table
from evenhand.tables.roles import written_alike
from evenhand.tables.splits import Split, split
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.table import digest_of

PARTS = ("all", "test")


def test_rows(held: Deployed, met: Dataset | None, origin: str) -> Codes:
    """Return the rows of the model's test part; raise if the file holds other people."""
    parts = None if met is None else _parts(held, met)
    if parts is None:
        raise ValueError(
            f"Got part='test', but {origin} does not hold the people that the model was made with, or they "
            "were not split at random."
        )
    return parts.test


def n_trained_on(held: Deployed, met: Dataset, rows: Codes) -> int | None:
    """Return how many of these rows the model was trained on; None if it is not known who was."""
    parts = _parts(held, met)
    if parts is not None:
        return int(np.isin(rows, parts.train).sum())
    return int(held.card["data"]["parts"]["train"]) if len(rows) == len(met) else None


def n_met(held: Deployed, X: Any, y: Any, sensitive_features: Any) -> int | None:
    """Return how many people of a table in memory the model was trained on; None if it holds others."""
    names, groups = held.card.get("data", {}).get("sensitive", held.sensitive), as_columns(sensitive_features)
    if y is None or groups.shape[1] != len(names):
        return None
    given = {name: groups.iloc[:, at].to_numpy() for at, name in enumerate(names)}
    frame = as_pandas(X).reset_index(drop=True).assign(**{held.label: np.asarray(y)}, **given)
    if not {*held.columns} <= {*frame.columns}:
        return None
    met = met_in_training(held, Table(frame, "X"))
    return None if met is None else n_trained_on(held, met, np.arange(len(frame)))


def _parts(held: Deployed, met: Dataset) -> Split | None:
    """Return the rows of each part; None if they were not split at random."""
    parts = Split(
        *(met.row_numbers[part] for part in split(met, seed=held.card["model"]["seed"], stratify="both"))
    )
    return parts if digest_of(parts.test) == held.card["data"].get("test part") else None


def met_in_training(held: Deployed, table: Table) -> Dataset | None:
    """Return the file as a data set if it holds the people that the model was made with, otherwise None."""
    frame, made_with = table.plain(), held.card.get("data", {})
    # A compressed model has forgotten its groups; its card has not.
    sensitive, merged = made_with.get("sensitive", held.sensitive), made_with.get("merged", held.merged)
    kept = {*held.columns, held.label, *sensitive}
    if not made_with or len(frame) < made_with["people"] or held.label not in frame.columns:
        return None
    numbers = [name for name in held.columns if pd.api.types.is_numeric_dtype(frame[name])]
    for unknown in ("drop", "keep"):  # the card does not say what was done with people of unknown group
        try:
            dataset = load_table(
                table, label=held.label, sensitive=sensitive, unknown=unknown,
                drop=[str(name) for name in frame.columns if name not in kept],
                categorical=[name for name in numbers if held.columns[name] == CATEGORY],
                weight=made_with.get("weight"),
            )  # fmt: skip
        except ValueError:  # a file that can't be read like the training data is another one
            continue
        if merged:
            dataset = replace(dataset, sensitive=dataset.sensitive.astype(str).replace(merged))
        dataset = replace(dataset, pos_label=written_alike(held.pos_label, dataset.label))
        if dataset.fingerprint == made_with.get("fingerprint"):
            return dataset
    return None
