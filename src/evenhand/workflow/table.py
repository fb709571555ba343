"""A user's table for a command: read, its roles said, several sensitive columns crossed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.checks import did_you_mean
from evenhand.cli.console import note
from evenhand.datasets import Dataset, load_table
from evenhand.groups import group_values
from evenhand.tables.files import read_table, sha256_of
from evenhand.tables.load import guessed_positive, without_blanks
from evenhand.tables.matching import CATEGORY, NUMBER
from evenhand.tables.preprocessing import is_number

PERSON_NUMBER = "A person's number is their row in the file; the first row after the names is 1."


def open_table(
    path: Path,
    *,
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    drop: list[str] | None,
    categorical: list[str] | None,
    encoding: str,
) -> tuple[Dataset, list[str]]:
    """Read the user's file; return it with one sensitive column, and the columns that this one stands for."""
    found = load_table(
        path,
        label=label,
        sensitive=sensitive or None,
        drop=drop or [],
        categorical=categorical or [],
        encoding=encoding,
    )
    columns = [str(name) for name in found.sensitive.columns]
    crossed = pd.DataFrame({" & ".join(columns): group_values(found.sensitive, len(found))})
    plain = _plain_label(found.label)
    guessed = None if found.pos_label is None else _as_label(str(found.pos_label), plain)
    dataset = replace(found, sensitive=crossed, label=plain, pos_label=guessed)
    if positive is not None:
        guess = guessed_positive(found.label)[1]
        told = [said for said in found.notes if said != guess]
        dataset = replace(dataset, pos_label=_as_label(positive, dataset.label), notes=told)
    return dataset, columns


def source_of(dataset: Dataset, path: Path) -> dict[str, Any]:
    """Return what a report and a card say of the data: `sha256` is the file's, `fingerprint` the table's."""
    return {
        "name": dataset.name,
        "people": len(dataset),
        "sha256": sha256_of(path),
        "fingerprint": dataset.fingerprint,
        "source": str(path),
    }


def read_columns(path: Path, encoding: str) -> pd.DataFrame:
    """Return all rows of the user's file, its columns named as those of the data set."""
    return read_table(path, encoding=encoding).frame.rename(columns=str)


def rows_of(dataset: Dataset, frame: pd.DataFrame, sensitive: list[str]) -> npt.NDArray[np.int64]:
    """Return each person's row in the file, from 0; those without a label or a group were left out."""
    roles = frame[[str(dataset.label.name), *sensitive]].apply(without_blanks)
    return np.flatnonzero(roles.notna().all(axis=1))


def check_written(*outputs: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise, before the work, if a file could not be written in the end, or only over another one."""
    taken = [path for path in inputs if path is not None]
    n_inputs = len(taken)
    for path in outputs:
        if path is None:
            continue
        if path.is_dir():
            raise IsADirectoryError(f"Got {path} to write to, which is a folder; expected a file.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"Got {path} to write to, but there is no folder {path.parent}.")
        for place, other in enumerate(taken):
            if same_file(path, other):
                why = "is an input" if place < n_inputs else "another output goes to"
                raise ValueError(f"Got {path} as output, which {why}; expected another file.")
        taken.append(path)


def same_file(one: Path, other: Path) -> bool:
    """Say whether two paths are one file, also where links or another spelling lead there."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def check_groups(dataset: Dataset, training: npt.NDArray[np.int64]) -> None:
    """Raise if a group has too few people in the training part for a policy of its own."""
    groups = dataset.sensitive_features
    everybody, trained = groups.value_counts(), groups.iloc[training].value_counts()
    for name, count in everybody.items():
        there = int(trained.get(name, 0))
        if there < 2:
            raise ValueError(
                f"The group {str(name)!r} in {str(groups.name)!r} has {people(int(count))}, {there} of them "
                "in the training part, but expected at least 2 there. Merge small groups, or leave their "
                "people out."
            )


def people(count: int) -> str:
    """Return '1 person', '2 people'."""
    return f"{count:,} {'person' if count == 1 else 'people'}"


def describe(dataset: Dataset) -> None:
    """Tell the user which column is what, and what was guessed, left out or changed."""
    note(repr(dataset))
    for said in dataset.notes:
        note(f"  {said}")


def kinds_of(dataset: Dataset) -> dict[str, str]:
    """Return the kind of each context column, as `Deployed` wants them."""
    kinds = {
        str(name): NUMBER if is_number(dataset.contexts[name]) else CATEGORY
        for name in dataset.contexts.columns
    }
    return kinds | dataset.dates


def with_dates(contexts: pd.DataFrame, dates: Iterable[str]) -> pd.DataFrame:
    """Return contexts for people to read: dates as dates, which models take as days since 1970."""
    read = {name: pd.to_datetime(contexts[name], unit="D").dt.round("ms") for name in dates}
    return contexts.assign(**read)


def _plain_label(label: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as plain text or numbers, whatever the file's own type of them."""
    return label if is_number(label) else label.astype(str).astype(object)


def _as_label(text: str, label: pd.Series[Any]) -> Any:
    labels = label.unique().tolist()
    for value in labels:
        if text == str(value):
            return value
    listed = ", ".join(map(repr, labels))
    raise ValueError(f"Got --positive {text!r}, but the label has {listed}.{did_you_mean(text, labels)}")
