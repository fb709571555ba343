"""Audit the people of a file: with a saved model, or with a column of decisions from any source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.predictions import decisions_at
from evenhand.auditing.tally import Assessed
from evenhand.checks import MIN_GROUP, one_of
from evenhand.progress import Progress, or_nothing
from evenhand.tables.columns import GAPS_FILLED
from evenhand.tables.files import Table, read_table
from evenhand.tables.load import load_table, without_blanks
from evenhand.tables.mapping import mapped
from evenhand.wording import listed
from evenhand.workflow import prediction_column
from evenhand.workflow.audit_plan import Columns, FileAudit, Settings, amounts
from evenhand.workflow.deciding import decimal_for
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.deployed_audit import audit_deployed
from evenhand.workflow.parts import PARTS
from evenhand.workflow.persistence import MOST_BYTES, load
from evenhand.workflow.table import source_of, with_dates


def audit_file(
    data: str | Path,
    *,
    model: Any = None,
    predictions: str | None = None,
    label: str | None = None,
    sensitive: Sequence[str] | None = None,
    positive: str | None = None,
    drop: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    threshold: float | None = None,
    epsilon: float = 0.05,
    n_listed: int = 20,
    seed: int = 0,
    encoding: str = "utf-8",
    decimal: str | None = None,
    sheet: str | None = None,
    map: Mapping[Any, Any] | None = None,
    max_bytes: int = MOST_BYTES,
    unknown: str = "drop",
    merge_small: str | None = None,
    min_group: int = MIN_GROUP,
    part: str = "all",
    weight: str | None = None,
    twins: bool | dict[str, Any] = False,
    certify: bool | dict[str, Any] = False,
    search: bool | dict[str, Any] = False,
    progress: Progress | None = None,
    engine: str = "cpu",
) -> FileAudit:
    """Audit the people of a file with a model, or with the decisions in one of its columns.

    The column `predictions` may hold scores if there is a label or a threshold. Columns and groups are as in
    `load_table`; a model of `evenhand fit` knows most of them. `threshold`, `epsilon`, `n_listed`,
    `min_group`, `twins`, `certify`, `search` and `engine` are as in `evenhand.audit`, and `max_bytes` as in
    `evenhand.load`.
    """
    if (model is None) == (predictions is None):
        labels = " To audit the labels themselves, name their column as predictions."
        raise ValueError(
            f"Got {'neither' if model is None else 'both'} of model and predictions, but expected one "
            f"(--model or --predictions).{labels * (model is None)}"
        )
    held = load(model, max_bytes=max_bytes) if isinstance(model, (str, Path)) else model
    if held is not None and threshold is not None:
        raise ValueError("Got a threshold, which has no effect with a model: the model decides by itself.")
    columns = Columns(
        label, sensitive, positive, drop or (), categorical or (), unknown, merge_small,
        one_of("part", part, PARTS), map or {}, weight,
    )  # fmt: skip
    options: dict[str, Any] = {
        "threshold": threshold, "epsilon": epsilon, "n_listed": n_listed, "min_group": min_group,
        "random_state": seed, "twins": twins, "certify": certify, "search": search, "engine": engine,
    }  # fmt: skip
    settings = Settings(options, or_nothing(progress))
    if part != "all" and not isinstance(held, Deployed):
        raise ValueError(f"Got part={part!r}, but only a model of `evenhand fit` knows its parts.")
    if isinstance(held, Deployed):
        columns.check_unused(held)
        decimal = decimal_for(held, data, encoding, decimal)
    table = read_table(data, encoding=encoding, decimal=decimal, sheet=sheet)
    if isinstance(held, Deployed):
        return audit_deployed(held, table, columns, settings)
    return _audit_table(held, predictions, table, columns, settings)


def _audit_table(
    held: Any, predictions: str | None, table: Table, columns: Columns, settings: Settings
) -> FileAudit:
    """Audit a model that takes a table's columns, or a column of predictions."""
    label, sensitive = columns.label, list(columns.sensitive or ())
    named = [name for name in (label, predictions) if name is not None]  # if none, a guessed label is mapped
    if named:
        table = replace(table, frame=mapped(table.plain(), columns.map, named, table.origin))
    frame = table.plain()
    if predictions is not None:
        prediction_column.check_predictions(frame, predictions, table.origin, sensitive)
        said = frame[predictions] = without_blanks(frame[predictions])
        if label is None:
            label = predictions  # it is no feature, and its values are the labels
            if (threshold := settings.options["threshold"]) is None:
                prediction_column.check_decisions(frame[predictions])
            else:
                said = prediction_column.decide_at(frame, predictions, threshold)
                positive = decisions_at(threshold)[1]
                table, columns = replace(table, frame=frame), replace(columns, positive=positive)
    added = [name for name in prediction_column.added_by_predict(frame) if name not in (label, *sensitive)]
    also = [predictions] if predictions and predictions != label else []
    dataset = load_table(
        table, label=label, sensitive=sensitive or None, pos_label=columns.positive,
        categorical=columns.categorical, drop=list(dict.fromkeys([*columns.drop, *added, *also])),
        map=None if named else columns.map, unknown=columns.unknown, merge_small=columns.merge_small,
        min_group=settings.options["min_group"], weight=columns.weight, featureless=predictions is not None,
    )  # fmt: skip
    settings.progress.say(repr(dataset))
    rows = dataset.row_numbers
    asked = held if predictions is None else prediction_column.decided_by(said.iloc[rows], dataset)
    y = None if columns.label is None and predictions is not None else dataset.label
    found = settings.audit(
        asked, with_dates(dataset.contexts, dataset.dates), y, dataset.sensitive_features, dataset.pos_label,
        rows, dataset.weights,
    )  # fmt: skip
    if found.tally:
        assessed = _assessed(frame, said if predictions else None, columns.weight)
        made_of = frame[dataset.sensitive_columns], rows, assessed, dataset.merged
        found = replace(found, tally=found.tally.of_file(dataset.sensitive_features, *made_of))
    if predictions is not None and prediction_column.would_flip(frame, predictions) is not None:
        from evenhand.workflow.predicted_flips import in_memory  # with narwhals, only where it is needed

        beside = frame.iloc[rows].assign(**{predictions: asked})
        found = in_memory(found, beside, predictions, dataset, settings.options["n_listed"])
    made = [f"Left out, since `evenhand predict` added them: {listed(added)}."] if added else []
    # Without a model, nothing is filled.
    told = [note.removesuffix(GAPS_FILLED) if held is None else note for note in dataset.notes]
    found = replace(found, notes=[*found.notes, *told, *made])
    return FileAudit(found, str(dataset.label.name), str(dataset.sensitive.columns[0]), source_of(dataset))


def _assessed(frame: pd.DataFrame, said: pd.Series[Any] | None, weight: str | None) -> Assessed:
    """Return who was assessed, in all rows of a file, whether or not their group and label are known."""
    people = np.ones(len(frame)) if weight is None else amounts(frame[weight])
    if said is None:
        return Assessed(np.ones(len(frame), dtype=bool), people)
    scores = pd.to_numeric(said, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return Assessed(said.notna().to_numpy(), people, scores if np.isfinite(scores).any() else None)
