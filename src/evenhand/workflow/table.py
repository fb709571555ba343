"""A user's table for a command: read, several sensitive columns crossed, and what to know about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.atomic import try_writing
from evenhand.checks import JobFailedError
from evenhand.code_version import Source
from evenhand.groups import JOINT, encode_groups, group_values
from evenhand.metrics.group_columns import telling_columns
from evenhand.tables import Dataset, Split, load_table
from evenhand.tables.columns import Place, is_number
from evenhand.wording import people

PERSON_NUMBER = "A person's number is their row in the file; the first row after the names is 1."
FEW = 30  # people of a group, in a part that is measured
FEWEST = 7  # people of a label: of so many, the random split puts one at least into every part
_PLACES = 3  # named of those where a rare label stands


class NoUsableRowsError(JobFailedError):
    """No row of a file could be scored or audited."""


def open_table(
    source: Any,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] | None = None,
    positive: Any = None,
    drop: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Read the user's table as the workflow wants it: one sensitive column, labels as text or numbers.

    Several sensitive columns become one that joins their values; `Dataset.sensitive_columns` has their names.
    The arguments are those of `load_table`; `positive` is its `pos_label`.
    """
    found = load_table(
        source,
        label=label,
        sensitive=sensitive or None,
        drop=drop or [],
        categorical=categorical or [],
        pos_label=positive,
        encoding=encoding,
    )
    names = tuple(map(str, found.sensitive.columns))
    groups = pd.DataFrame({JOINT.join(names): group_values(found.sensitive, len(found))})
    target, pos_label = found.label, found.pos_label
    if not is_number(target):  # True and False, or a frame's categories
        target, pos_label = target.astype(str).astype(object), None if pos_label is None else str(pos_label)
    crossed = names if len(names) > 1 else ()
    return replace(found, sensitive=groups, crossed=crossed, label=target, pos_label=pos_label)


def source_of(dataset: Dataset) -> Source:
    """Return what a report and a card say of the data; `sha256` is the file's, `fingerprint` the table's."""
    return {
        "name": dataset.name,
        "people": len(dataset),
        "sha256": dataset.sha256,
        "fingerprint": dataset.fingerprint,
        "source": dataset.source,
    }


def check_written(*outputs: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise, before the work, if a file could not be written in the end, or only over another one."""
    taken = [(path, "is an input") for path in inputs if path is not None]
    for path in outputs:
        if path is None:
            continue
        if path.is_dir():
            raise IsADirectoryError(f"Got {path} to write to, which is a folder; expected a file.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"Got {path} to write to, but there is no folder {path.parent}.")
        for other, why in taken:
            if same_file(path, other):
                raise ValueError(f"Got {path} as output, which {why}; expected another file.")
        try_writing(path)
        taken.append((path, "another output goes to"))


def same_file(one: Path, other: Path) -> bool:
    """Say whether two paths are one file, also where links or another spelling lead there."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def check_labels(dataset: Dataset, training: Codes, place: Place) -> None:
    """Raise if a label is so rare that models can't learn it or be tested on it: most are mistyped.

    `place` says where a row of the source stands.
    """
    trained = set(dataset.label.iloc[training].unique().tolist())
    for label, count in dataset.label.value_counts().items():
        if count >= FEWEST and label in trained:
            continue
        rows = dataset.row_numbers[(dataset.label == label).to_numpy()]
        where = "; ".join(map(place, rows[:_PLACES])) + (" …" if count > _PLACES else "")
        wanted = f"{FEWEST} at least" if count < FEWEST else "some of them in the training part"
        raise ValueError(
            f"The label {label!r} in {str(dataset.label.name)!r} has {people(int(count))} ({where}), but "
            f"expected {wanted}. Correct the label, merge it with another, or leave its people out."
        )


def check_groups(dataset: Dataset, training: Codes) -> None:
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


def on_columns(dataset: Dataset) -> list[str]:
    """Name the columns that reveal the group: with them, leaving out the sensitive column hides nothing."""
    name = str(dataset.sensitive_features.name)
    own = encode_groups(dataset.sensitive_features, len(dataset)).codes
    telling = telling_columns(dataset.contexts, None, own)
    certain = [column for column in dataset.contexts.columns if column in {*telling.alone, *telling.more}]
    found = [(str(column), "reveals") for column in certain]
    found += [(str(column), "may reveal") for column in telling.perhaps]
    return [
        f"{column!r} {how} {name!r}, or a part of it. The flip rate doesn't show what is decided by such a "
        f"column. Leave it out with drop={[column]!r}, on the command line --drop {shlex.quote(column)}."
        for column, how in found
    ]


def on_groups(dataset: Dataset, parts: Split) -> list[str]:
    """Name the groups that have few people in the validation or the test part."""
    notes = []
    for name in sorted(dataset.sensitive_features.unique().tolist(), key=str):
        here = (dataset.sensitive_features == name).to_numpy()
        counts = {part: int(here[getattr(parts, part)].sum()) for part in ("validation", "test")}
        if min(counts.values()) < FEW:
            notes.append(
                f"The group {str(name)!r} has {people(counts['validation'])} in the validation part and "
                f"{counts['test']} in the test part: measures of fewer than {FEW} people say little."
            )
    return notes


def with_dates(contexts: pd.DataFrame, dates: Iterable[str]) -> pd.DataFrame:
    """Return contexts for people to read: dates as dates, which models take as days since 1970."""
    read = {name: (contexts[name] * 86_400e3).round().to_numpy(dtype=float) for name in dates}
    known = {name: np.where(np.isnan(days), 0, days).astype("datetime64[ms]") for name, days in read.items()}
    return contexts.assign(
        **{name: pd.Series(known[name], contexts.index).mask(np.isnan(read[name])) for name in read}
    )
