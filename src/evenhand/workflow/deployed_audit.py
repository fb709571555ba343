"""Audit the people of a file with a model of `evenhand fit`, which knows the columns of its file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.tally import Assessed
from evenhand.checks import did_you_mean, one_of
from evenhand.code_version import Source
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.files import Table
from evenhand.tables.load import weights_in, without_blanks
from evenhand.tables.mapping import mapped
from evenhand.tables.matching import Reasons, as_labels, reject, unmet
from evenhand.tables.paths import bare_name
from evenhand.tables.roles import find_roles, named_columns
from evenhand.wording import listed
from evenhand.workflow.audit_plan import Columns, FileAudit, Settings, amounts
from evenhand.workflow.decisions import Unseen
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.parts import met_in_training, n_trained_on, test_rows
from evenhand.workflow.table import NoUsableRowsError, with_dates

_REASONS = 3  # how many reasons for leaving rows out are named


def audit_deployed(held: Deployed, table: Table, columns: Columns, settings: Settings) -> FileAudit:
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
        stands_for = amounts(rows[counted[0]]) if counted else np.ones(len(rows))
        made_of = rows[compared], at, Assessed(assessed, stands_for), merged
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
