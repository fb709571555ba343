"""Checks and notes about a user's table, and about the files that results are written to."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.atomic import check_parent, try_writing
from evenhand.checks import MIN_GROUP, JobFailedError
from evenhand.code_version import Source
from evenhand.groups import encode_groups
from evenhand.metrics.group_columns import telling_columns
from evenhand.tables import Dataset, Split
from evenhand.tables.columns import Place
from evenhand.tables.paths import check_folder
from evenhand.wording import as_plain, people

PERSON_NUMBER = "A person's number is their row in the file; the first row after the header is 1."
FEWEST = 7  # people of a label: with this many, the random split puts at least one into every part
_PLACES = 3  # how many places with a rare label are named


class NoUsableRowsError(JobFailedError):
    """No row of a file could be scored or audited."""


def source_of(dataset: Dataset) -> Source:
    """Return what reports and cards say about the data; `sha256` is the file's, `fingerprint` the table's."""
    return {
        "name": dataset.name,
        "people": dataset.people,
        "sha256": dataset.sha256,
        "fingerprint": dataset.fingerprint,
        "source": dataset.source,
    }


def digest_of(rows: Codes) -> str:
    """Return a digest of row numbers in any order, by which a card recognises its test part."""
    return hashlib.sha256(np.sort(np.asarray(rows, dtype="<i8")).tobytes()).hexdigest()[:16]


def check_written(*outputs: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise early if an output can't be written, or would overwrite an input or another output."""
    taken = [(path, "is an input") for path in inputs if path is not None]
    for path in outputs:
        if path is None:
            continue
        if path.is_dir():
            raise IsADirectoryError(f"Got {path} to write to, which is a folder; expected a file.")
        check_parent(path)
        for other, why in taken:
            if other.is_dir() and other.resolve() in path.resolve().parents:
                check_folder(other)
                raise ValueError(f"Got {path} as output, in a folder that is an input; expected another one.")
            if same_file(path, other):
                raise ValueError(f"Got {path} as output, which {why}; expected another file.")
        try_writing(path)
        taken.append((path, "another output goes to"))


def same_file(one: Path, other: Path) -> bool:
    """Say whether two paths are the same file, even through links or other spellings."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def check_labels(dataset: Dataset, training: Codes, place: Place) -> None:
    """Raise if a label has too few people to learn from or test on; most such labels are mistyped.

    `place` says where a row is in the source.
    """
    trained = set(dataset.label.iloc[training].unique().tolist())
    for label, count in dataset.label_counts.items():
        if count >= FEWEST and label in trained:
            continue
        rows = dataset.row_numbers[(dataset.label == label).to_numpy()]
        where = "; ".join(map(place, rows[:_PLACES])) + (" …" if count > min(_PLACES, len(rows)) else "")
        wanted = f"at least {FEWEST} are needed" if count < FEWEST else "some are needed in the training part"
        raise ValueError(
            f"The label {label!r} in {str(dataset.label.name)!r} has {people(int(count))} ({where}), but "
            f"{wanted}. Correct the label, merge it with another, or leave its people out."
        )


def check_groups(dataset: Dataset, training: Codes) -> None:
    """Raise if a group has too few people in the training part for a policy of its own."""
    groups = dataset.sensitive_features
    trained = groups.iloc[training].value_counts()
    where = "in the training part" if dataset.whole is None else "among those of the training part in memory"
    for name, count in dataset.group_counts.items():
        there = int(trained.get(name, 0))
        if there < 2:
            raise ValueError(
                f"The group {str(name)!r} in {str(groups.name)!r} has {people(int(count))}, {there} of them "
                f"{where}, but expected at least 2 there. Merge small groups with "
                "merge_small='other' (on the command line --merge-small other), or leave their people out."
            )


def on_columns(dataset: Dataset) -> list[str]:
    """Name the columns that reveal the group: with them, leaving out the sensitive column doesn't hide it."""
    name = str(dataset.sensitive_features.name)
    own = encode_groups(dataset.sensitive_features, len(dataset)).codes
    telling = telling_columns(dataset.contexts, None, own)
    certain = [column for column in dataset.contexts.columns if column in {*telling.alone, *telling.more}]
    found = [(str(column), telling.agreeing([column]), "reveals") for column in certain]
    found += [(str(column), repr(str(column)), "may reveal") for column in telling.perhaps]
    return [
        f"{called} {how} {name!r}, or a part of it. The flip rate doesn't show what is decided by such a "
        f"column. Leave it out with drop={[column]!r}, on the command line --drop {shlex.quote(column)}."
        for column, called, how in found
    ]


def on_groups(dataset: Dataset, parts: Split, min_group: int = MIN_GROUP) -> list[str]:
    """Name the groups that are too small to compare in the validation or the test part."""
    own = encode_groups(dataset.sensitive_features, len(dataset))
    counts = {
        part: np.bincount(own.codes[getattr(parts, part)], minlength=len(own.names))
        for part in ("validation", "test")
    }
    few = np.minimum(counts["validation"], counts["test"]) < min_group
    if not few.any():
        return []
    told = ", ".join(
        f"{str(name)!r} ({counts['validation'][at]} and {counts['test'][at]})"
        for at, name in enumerate(own.names)
        if few[at]
    )
    if all((sizes >= min_group).sum() < 2 for sizes in counts.values()):
        then = "There are no two larger groups, so they count as they are"
    else:
        then = "Where groups are compared, these are filled up to that number with average people"
    return [
        f"Groups with fewer than {people(min_group)} in the validation or test part, too few to say much: "
        f"{told}. {then}. merge_small='other' (--merge-small other) merges small groups into one; min_group "
        "(--min-group) sets the limit."
    ]


def on_labels(dataset: Dataset, parts: Split) -> list[str]:
    """Name the labels that few people have in the validation or the test part."""
    counts = [dataset.label.iloc[part].value_counts().to_dict() for part in (parts.validation, parts.test)]
    sizes = {label: [found.get(label, 0) for found in counts] for label in sorted(dataset.label_counts)}
    few = {label: found for label, found in sizes.items() if min(found) < MIN_GROUP}
    told = ", ".join(
        f"{as_plain(label)!r} ({chosen:,} and {tested:,})" for label, (chosen, tested) in few.items()
    )
    return [
        f"Labels with fewer than {people(MIN_GROUP)} in the validation or test part: {told}. The choice of a "
        "model and its measures rest on these few people."
    ] * bool(few)


def with_dates(contexts: pd.DataFrame, dates: Iterable[str]) -> pd.DataFrame:
    """Return contexts for people to read, with dates instead of days since 1970."""
    read = {name: (contexts[name] * 86_400e3).round().to_numpy(dtype=float) for name in dates}
    known = {name: np.where(np.isnan(days), 0, days).astype("datetime64[ms]") for name, days in read.items()}
    return contexts.assign(
        **{name: pd.Series(known[name], contexts.index).mask(np.isnan(read[name])) for name in read}
    )
