"""`evenhand audit`: whose decision would change with their group, under anybody's model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from evenhand import load
from evenhand.auditing import Audit, audit
from evenhand.auditing.predictions import MOST_DECISIONS
from evenhand.checks import did_you_mean, one_of
from evenhand.cli import options
from evenhand.cli.console import JobFailedError, command_line, note, on_stdout, print_json, say
from evenhand.datasets import Dataset
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import write_html
from evenhand.report.summarise import MOST_PERSONS, made, write_summary
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.files import Table, read_table
from evenhand.tables.load import without_blanks
from evenhand.tables.matching import Reasons, reject
from evenhand.wording import printable
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.table import (
    PERSON_NUMBER,
    check_written,
    open_table,
    source_of,
    with_dates,
)
from evenhand.workflow.unseen import Unseen

_NEIGHBOURS = 5  # of each person, for consistency
_REASONS = 3  # named of those for which rows are left out
Rows = npt.NDArray[np.int64]  # of people in the file, from 0

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand audit people.csv --model model.skops --report audit.html\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions score --threshold 0.5 --json"
)


def run(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file, one person a row.")],
    label: options.Label = None,
    sensitive: options.Sensitive = None,
    model: Annotated[Path | None, typer.Option(help="A model saved by evenhand.")] = None,
    predictions: Annotated[
        str | None, typer.Option(help="The column with the decisions, or with scores, of any model.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="From where on a score is a positive decision; 0.5 for probabilities."),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(min=0, help="From where on a gap between the groups' probabilities counts as large."),
    ] = 0.05,
    positive: options.Positive = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    seed: options.Seed = 0,
    report: options.Report = None,
    summary: options.Summary = None,
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Measure how decisions treat people, groups, and people as members of other groups.

    Give a model that evenhand saved, or the column in which the decisions of any other model stand. Decisions
    without --label are compared between groups, but with no truth. The findings say what was measured; they
    give no verdict.
    """
    if (model is None) == (predictions is None):
        raise ValueError(
            "Got both or neither of --model and --predictions, but expected one. To audit the labels "
            "themselves, name their column: --predictions LABEL."
        )
    check_written(report, summary, inputs=(data, model))
    given: dict[str, Any] = {"seed": seed, "epsilon": epsilon, "threshold": threshold}
    held = None if model is None else load(model)
    if held is not None and threshold is not None:
        raise ValueError("Got --threshold, which has no effect with --model: the model decides by itself.")
    if isinstance(held, Deployed):
        _check_deployed(held, sensitive, drop, categorical)
        found, about = _audit_deployed(held, data, label, positive, encoding, given)
    else:
        table = read_table(data, encoding=encoding)
        frame = table.frame.rename(columns=str)
        if predictions is not None and predictions not in frame.columns:
            raise ValueError(
                f"Got --predictions {predictions}, but {data} has no such column."
                f"{did_you_mean(predictions, frame.columns)}"
            )
        if predictions in (sensitive or []):
            raise ValueError(
                f"Got {predictions!r} both for --predictions and --sensitive; expected two columns."
            )
        if predictions is not None:
            frame[predictions] = without_blanks(frame[predictions])
        unlabelled = predictions is not None and label is None
        if unlabelled:
            _check_decisions(frame, str(predictions))
            label = predictions  # which is no feature, and has the labels' names
        added = [name for name in _added_by_predict(frame) if name not in (label, *(sensitive or []))]
        also = [predictions] if predictions and predictions != label else []
        left_out = dict.fromkeys([*(drop or []), *added, *also])
        dataset = open_table(
            table, label=label, sensitive=sensitive, positive=positive, categorical=categorical,
            drop=list(left_out),
        )  # fmt: skip
        note(repr(dataset))
        rows = dataset.row_numbers
        asked = held if predictions is None else _predictions(frame, rows, predictions, dataset)
        contexts = with_dates(dataset.contexts, dataset.dates)
        y = None if unlabelled else dataset.label
        found = _audit(asked, contexts, y, dataset.sensitive_features, dataset.pos_label, given, rows)
        found.notes.extend(dataset.notes)
        if added:
            found.notes.append(f"Left out as made by `evenhand predict`: {', '.join(map(repr, added))}.")
        about = {
            "label": str(dataset.label.name), "sensitive": str(dataset.sensitive.columns[0]),
            "source": source_of(dataset),
        }  # fmt: skip
    whole = summary_of_audit(
        found, name=data.stem, label=about["label"], sensitive=about["sensitive"],
        how=made(command_line(), seeds=[seed], data=[about["source"]]),
        model=str(model) if model else f"Column {predictions}",
    )  # fmt: skip
    whole["studies"][0]["notes"].append(PERSON_NUMBER)
    written = {}
    if summary is not None:
        written["summary"] = str(write_summary(whole, summary))
    if report is not None:
        written["report"] = str(write_html(whole, report))
    if as_json:
        print_json(found.to_dict() | {"written": written})
        return
    on_stdout().print(printable(found.summary()), soft_wrap=True, markup=False)
    for what, path in written.items():
        on_stdout().print(f"{what:12} {path}", soft_wrap=True, markup=False)


def _audit(
    asked: Any, X: pd.DataFrame, y: pd.Series[Any] | None, groups: Any, pos_label: Any, given: dict[str, Any],
    rows: Rows,
) -> Audit:  # fmt: skip
    """Audit; people are named by their rows in the file, also where others were left out."""
    if len(X) <= _NEIGHBOURS:
        raise ValueError(
            f"Got {len(X)} people to audit, but expected more than {_NEIGHBOURS}: each is compared with the "
            f"{_NEIGHBOURS} most similar others."
        )
    say("Measuring …")
    found = audit(
        asked, X, None if y is None else y.to_numpy(), sensitive_features=groups, pos_label=pos_label,
        epsilon=given["epsilon"], threshold=given["threshold"], n_listed=MOST_PERSONS,
        random_state=given["seed"], k=_NEIGHBOURS,
    )  # fmt: skip
    pairs = {name: rows[found.neighbours[name].to_numpy(dtype=np.int64)] for name in ("person", "neighbour")}
    people = found.people.set_axis(rows[found.people.index.to_numpy(dtype=np.int64)])
    return replace(found, people=people, neighbours=found.neighbours.assign(**pairs))


def _check_deployed(
    held: Deployed, sensitive: list[str] | None, drop: list[str] | None, categorical: list[str] | None
) -> None:
    """Raise on options that would be ignored: a model of `evenhand fit` knows its columns."""
    if sensitive and sensitive != held.sensitive:
        raise ValueError(
            f"Got --sensitive {', '.join(sensitive)}, which has no effect with --model: the model has a "
            f"policy for every group of {', '.join(held.sensitive)}."
        )
    for option, names in (("--drop", drop), ("--categorical", categorical)):
        if names:
            raise ValueError(
                f"Got {option} {', '.join(names)}, which has no effect with --model: the model knows which "
                "columns it takes, and how."
            )


def _audit_deployed(
    held: Deployed, path: Path, label: str | None, positive: str | None, encoding: str, given: dict[str, Any]
) -> tuple[Audit, dict[str, Any]]:
    """Audit a model of `evenhand fit`, which knows the columns of its file."""
    pos_label = held.pos_label
    if positive is not None:
        known_as = {str(value): value for value in held.classes_.tolist()}
        pos_label = known_as[one_of("--positive", positive, known_as)]
    table = read_table(path, encoding=encoding)
    rows = table.frame.rename(columns=str)
    name = label or held.label
    if name not in rows.columns:
        raise ValueError(f"{path} has no column {name!r} to compare with.{did_you_mean(name, rows.columns)}")
    contexts, codes, reasons = held.read(rows)
    truth = without_blanks(rows[name])
    reject(reasons, truth.isna().to_numpy(), lambda at: f"no {name!r}")
    known = reasons == ""
    left_out = _left_out(reasons)
    if not known.any():
        raise JobFailedError(f"None of the {len(rows):,} rows of {path} can be audited: {left_out}.")
    y = held.labels(truth[known])
    labels = held.classes_.tolist()
    others = y[~y.isin(labels)]
    if len(others):
        raise ValueError(
            f"Column {name!r} of {path} has {others.iloc[0]!r} in row {others.index[0] + 1:,} "
            f"({len(others):,} such rows), but expected what the model decides: "
            f"{', '.join(map(repr, labels))}."
        )
    groups = held.groups_[codes[known]]
    dates = [column for column, kind in held.columns.items() if kind not in (NUMBER, CATEGORY)]
    kept = with_dates(contexts[known].reset_index(drop=True), dates)
    found = _audit(held, kept, y, groups, pos_label, given, np.flatnonzero(known))
    if left_out:
        found.notes.append(f"{int((~known).sum()):,} of {len(rows):,} rows are left out: {left_out}.")
    strange = Unseen({}, {})
    strange.add(held.unseen(contexts[known]))
    found.notes.extend([*strange.notes(), *_met_in_training(held, table)])
    source = {"name": path.stem, "people": len(y), "sha256": table.sha256, "source": str(path)}
    return found, {"label": name, "sensitive": " & ".join(held.sensitive), "source": source}


def _left_out(reasons: Reasons) -> str:
    """Return the commonest reasons, each with how many rows have it, '' where no row has any."""
    told = Counter(reasons[reasons != ""].tolist()).most_common()
    more = [f"other reasons ({sum(count for _, count in told[_REASONS:]):,})"] if told[_REASONS:] else []
    return "; ".join([*(f"{why} ({count:,})" for why, count in told[:_REASONS]), *more])


def _met_in_training(held: Deployed, table: Table) -> list[str]:
    """Return a note if the file holds the very people that the model was made with."""
    frame = table.frame.rename(columns=str)
    made_with = held.card.get("data", {})
    kept = {*held.columns, held.label, *held.sensitive}
    if not made_with or len(frame) < made_with["people"] or held.label not in frame.columns:
        return []
    numbers = [name for name in held.columns if pd.api.types.is_numeric_dtype(frame[name])]
    try:
        dataset = open_table(
            table, label=held.label, sensitive=held.sensitive,
            drop=[str(name) for name in frame.columns if name not in kept],
            categorical=[name for name in numbers if held.columns[name] == CATEGORY],
        )  # fmt: skip
    except ValueError:  # what can't be read as training read it is no such file
        return []
    if replace(dataset, pos_label=held.pos_label).fingerprint != made_with.get("fingerprint"):
        return []
    trained = made_with["parts"]["train"]
    return [
        f"The model was made with these very people: it was trained on {trained:,} of the {len(dataset):,}. "
        "How well it decides about new people is seen only on others."
    ]


def _added_by_predict(frame: pd.DataFrame) -> list[str]:
    """Return the columns that `evenhand predict` added, under any prefix: they are no features."""
    names = [str(name) for name in frame.columns]
    found: list[str] = []
    for name in names:
        prefix = name.removesuffix("would_flip")
        said = (f"{prefix}probability_as_", f"{prefix}probability_of_")
        probabilities = [other for other in names if other.startswith(said)]
        made = [f"{prefix}decision", f"{prefix}probability", *probabilities, name]
        if prefix != name and probabilities and set(made) <= set(names):
            found += made
    return found


def _check_decisions(frame: pd.DataFrame, column: str) -> None:
    """Raise if a column without a label beside it holds anything but a decision for everybody."""
    said = frame[column]
    if said.isna().any():
        raise ValueError(
            f"Column {column!r} has {int(said.isna().sum())} gaps; expected a decision for everybody."
        )
    if said.nunique() > MOST_DECISIONS:
        raise ValueError(
            f"Column {column!r} holds {said.nunique():,} different values, which are scores rather than "
            f"decisions (at most {MOST_DECISIONS}). Name the --label to decide at a threshold, or give "
            "decisions."
        )


def _predictions(frame: pd.DataFrame, rows: Rows, column: str, dataset: Dataset) -> Any:
    """Return the decisions in the labels' own type, or the scores, of the people in the data set."""
    said = frame[column].iloc[rows]
    if len(said) != len(dataset) or said.isna().any():
        raise ValueError(
            f"Column {column!r} has {int(said.isna().sum())} gaps; expected a decision for everybody."
        )
    labels = {str(label): label for label in dataset.label.unique().tolist()}
    if said.astype(str).isin(labels).all():
        return np.array([labels[value] for value in said.astype(str)])
    return said.to_numpy()
