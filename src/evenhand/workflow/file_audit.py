"""Audit the people of a file: with a saved model, or with a column of decisions from any source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing import Audit, audit
from evenhand.auditing.predictions import decisions_at
from evenhand.checks import MIN_GROUP, did_you_mean, one_of
from evenhand.code_version import Source
from evenhand.progress import Progress
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.files import Table, read_table
from evenhand.tables.load import groups_in, load_table, weights_in, without_blanks
from evenhand.tables.mapping import mapped
from evenhand.tables.matching import Reasons, as_labels, reject, unmet
from evenhand.tables.paths import bare_name
from evenhand.tables.roles import find_roles, named_columns
from evenhand.wording import listed
from evenhand.workflow import prediction_column
from evenhand.workflow.decisions import Unseen
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.parts import PARTS, met_in_training, n_trained_on, test_rows
from evenhand.workflow.persistence import MOST_BYTES, load
from evenhand.workflow.table import NoUsableRowsError, source_of, with_dates

_NEIGHBOURS = 5  # of each person, for consistency
_REASONS = 3  # how many reasons for leaving rows out are named


@dataclass(frozen=True)
class FileAudit:
    """The audit of a file, and what a report says about the file."""

    audit: Audit  # people are numbered by their row in the file, from 0
    label: str
    sensitive: str
    source: Source


@dataclass(frozen=True)
class _Columns:
    """The roles of the file's columns, as far as they were given."""

    label: str | None
    sensitive: Sequence[str] | None
    positive: str | None
    drop: Sequence[str]
    categorical: Sequence[str]
    unknown: str
    merge_small: str | None
    part: str
    map: Mapping[Any, Any]
    weight: str | None

    def check_unused(self, held: Deployed) -> None:
        """Raise if a name would be ignored, since a model of `evenhand fit` knows its columns."""
        if self.sensitive and held.sensitive and list(self.sensitive) != held.sensitive:
            raise ValueError(
                f"Got the sensitive column {', '.join(self.sensitive)}, which has no effect with this model: "
                f"it has a policy for every group of {', '.join(held.sensitive)}."
            )
        grouped = self.sensitive and not held.sensitive
        merging = [self.merge_small] if self.merge_small and not grouped else []
        for what, names in (
            ("drop", self.drop), ("categorical", self.categorical), ("merge_small", merging),
        ):  # fmt: skip
            if names:
                raise ValueError(
                    f"Got {', '.join(names)} in {what}, which has no effect with this model: it knows its "
                    "columns."
                )

    def groups(
        self, rows: pd.DataFrame, names: list[str], origin: str, notes: list[str], least: int
    ) -> tuple[pd.Series[Any], dict[str, str]]:
        """Return each row's group, missing if it is unknown, and the groups that were merged."""
        merging: dict[str, Any] = {"merge_small": self.merge_small, "min_group": least}
        groups, merged = groups_in(rows, names, origin, notes, unknown=self.unknown, **merging)
        return groups.reindex(rows.index), merged


@dataclass(frozen=True)
class _Settings:
    """How to measure."""

    options: dict[str, Any]  # of `audit`
    progress: Progress

    def audit(
        self, asked: Any, X: pd.DataFrame, y: Any, groups: Any, pos_label: Any, rows: Codes, weights: Any
    ) -> Audit:
        """Run the audit; number people by their row in the file, even if others were left out."""
        if len(X) <= _NEIGHBOURS:
            raise ValueError(
                f"Got {len(X)} people to audit, but expected more than {_NEIGHBOURS}: each is compared with "
                f"the {_NEIGHBOURS} most similar others."
            )
        with self.progress.stage("Measuring"):
            found = audit(
                asked, X if X.shape[1] else None, None if y is None else y.to_numpy(), k=_NEIGHBOURS,
                sensitive_features=groups, pos_label=pos_label, sample_weight=weights, **self.options,
            )  # fmt: skip
        return found.numbered(rows)


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
    columns = _Columns(
        label, sensitive, positive, drop or (), categorical or (), unknown, merge_small,
        one_of("part", part, PARTS), map or {}, weight,
    )  # fmt: skip
    options: dict[str, Any] = {
        "threshold": threshold, "epsilon": epsilon, "n_listed": n_listed, "min_group": min_group,
        "random_state": seed, "twins": twins, "certify": certify, "search": search, "engine": engine,
    }  # fmt: skip
    settings = _Settings(options, progress or Progress())
    if part != "all" and not isinstance(held, Deployed):
        raise ValueError(f"Got part={part!r}, but only a model of `evenhand fit` knows its parts.")
    if isinstance(held, Deployed):
        columns.check_unused(held)
    table = read_table(data, encoding=encoding, decimal=decimal, sheet=sheet)
    if isinstance(held, Deployed):
        return _audit_deployed(held, table, columns, settings)
    return _audit_table(held, predictions, table, columns, settings)


def _audit_table(
    held: Any, predictions: str | None, table: Table, columns: _Columns, settings: _Settings
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
    assessed = True if predictions is None else frame[predictions].notna().to_numpy()
    if found.tally:
        made_of = frame[dataset.sensitive_columns], rows, assessed, dataset.merged
        found = replace(found, tally=found.tally.of_file(dataset.sensitive_features, *made_of))
    made = [f"Left out, since `evenhand predict` added them: {listed(added)}."] if added else []
    found = replace(found, notes=[*found.notes, *dataset.notes, *made])
    return FileAudit(found, str(dataset.label.name), str(dataset.sensitive.columns[0]), source_of(dataset))


def _audit_deployed(held: Deployed, table: Table, columns: _Columns, settings: _Settings) -> FileAudit:
    """Audit a model of `evenhand fit`, which knows the columns of its file."""
    pos_label = held.pos_label
    if columns.positive is not None:
        known_as = {str(value): value for value in held.classes_.tolist()}
        pos_label = known_as[one_of("positive", columns.positive, known_as)]
    name = columns.label or held.label
    compared, merged, notes = held.sensitive, held.merged, list[str]()
    labelled = name in table.plain().columns
    if labelled:
        table = replace(table, frame=mapped(table.plain(), columns.map, [name], table.origin))
    elif columns.label is not None or columns.map:
        near = did_you_mean(name, table.plain().columns)
        raise ValueError(f"{table.origin} has no column {name!r} to compare with.{near}")
    else:
        near = did_you_mean(name, table.plain().columns)
        notes.append(f"{table.origin} has no column {name!r}, so there are no labels to compare with.{near}")
    rows = table.plain()
    contexts, codes, reasons = held.read(rows)
    every = pd.Series(held.groups_[codes], rows.index, name=held.sensitive_name)
    if columns.sensitive and not held.sensitive:  # it has one policy: it is audited by these groups
        roles = find_roles(rows, table.origin, [], label=name, sensitive=columns.sensitive, drop=())
        compared, least = roles.sensitive, settings.options["min_group"]
        every, merged = columns.groups(rows, compared, table.origin, notes, least)
        reject(reasons, every.isna().to_numpy(), lambda at: f"unknown {every.name!r}")
    truth = without_blanks(rows[name]) if labelled else None
    if truth is not None:
        reject(reasons, truth.isna().to_numpy(), lambda at: f"no {name!r}")
    met = met_in_training(held, table)
    if columns.part != "all":
        here = np.isin(np.arange(len(rows)), test_rows(held, met, table.origin))
        reject(reasons, ~here, lambda at: "not in the test part")
    known, left_out = reasons == "", _most_common(reasons)
    if not known.any():
        raise NoUsableRowsError(
            f"None of the {len(rows):,} rows of {table.origin} can be audited: {left_out}."
        )
    y = None if truth is None else _labels(held, truth[known], table.origin)
    dates = [column for column, kind in held.columns.items() if kind not in (NUMBER, CATEGORY)]
    kept = with_dates(contexts[known].reset_index(drop=True), dates)
    counted = named_columns("weight", () if columns.weight is None else [columns.weight], rows, table.origin)
    weights = weights_in(rows.loc[known, counted[0]], table.origin) if counted else None
    groups = every[known].reset_index(drop=True)
    at = np.flatnonzero(known)
    found = settings.audit(held, kept, y, groups, pos_label, at, weights)
    if found.tally and compared:
        assessed = ~np.char.startswith(reasons.astype(str), "not in the test part")
        made_of = rows[compared], at, assessed, merged
        found = replace(found, tally=found.tally.of_file(groups, *made_of))
    notes += [f"{int((~known).sum()):,} of {len(rows):,} rows are left out: {left_out}."] if left_out else []
    strange = Unseen({}, {})
    strange.add(unmet(contexts[known], held.columns, held.preprocessor))
    notes += strange.notes()
    trained = None if met is None or columns.part != "all" else n_trained_on(held, met, at)
    if trained:
        found = replace(found, about={**found.about, "trained_on": trained})
    source: Source = {
        "name": bare_name(Path(table.origin)), "people": len(at), "sha256": table.sha256,
        "source": table.origin,
    }  # fmt: skip
    return FileAudit(found.with_notes(*notes), name, str(every.name), source)


def _most_common(reasons: Reasons) -> str:
    """Return the most common reasons, each with its number of rows; '' if there are none."""
    told = Counter(reasons[reasons != ""].tolist()).most_common()
    more = [f"other reasons ({sum(count for _, count in told[_REASONS:]):,})"] if told[_REASONS:] else []
    return "; ".join([*(f"{why} ({count:,})" for why, count in told[:_REASONS]), *more])


def _labels(held: Deployed, truth: pd.Series[Any], origin: str) -> pd.Series[Any]:
    """Return the true labels in the model's own type; raise if the model doesn't know one."""
    y = as_labels(truth, held.classes_)
    others = y[~y.isin(held.classes_.tolist())]
    if len(others):
        raise ValueError(
            f"Column {truth.name!r} of {origin} has {others.iloc[0]!r} in row {others.index[0] + 1:,} "
            f"({len(others):,} such rows), but expected what the model decides: "
            f"{listed(held.classes_.tolist())}."
        )
    return y
