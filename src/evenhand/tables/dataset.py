"""One shape for every data set: contexts, label, sensitive columns, and where they come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags
from evenhand.checks import did_you_mean, one_of
from evenhand.wording import listed


class Whole(NamedTuple):
    """Counts of a table of which only a part of the people is held: by label, by group, and in training."""

    labels: dict[Any, int]
    groups: dict[Any, int]
    training: int


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table made ready: who the people are, what is decided about them, and their groups.

    Parameters
    ----------
    name : str
        A short name, such as 'adult'.
    contexts : DataFrame
        A person's features, one row each; categories keep their original names. It holds neither the label
        nor the default sensitive column.
    label : Series
        What is to be predicted.
    sensitive : DataFrame
        The sensitive columns that are known, the default one first.
    pos_label : object
        The label that counts as the positive decision; None where none of more than two labels does.
    description, source, licence : str
        What it is, where it comes from, and under what terms.
    rows : str
        The name of the row set.
    test_rows : array of bool, optional
        The published test part, where one is known.
    test_people : int, optional
        The size of the published test part, where only that is known.
    notes : list of str
        What was decided on the way, in words for the user.
    dates : dict
        The contexts that were dates and are days since 1970, each with the format that it was read by.
    kept_rows : array of int, optional
        The rows of the source that these people come from, counted from 0; None for all of them.
    crossed : tuple of str
        The columns that the one sensitive column joins, where there are several.
    merged : dict
        The small groups that were put into another one, by its name.
    sha256 : str
        The digest of the file; '' where it was no file of the user's.
    weights : Series, optional
        How many people each person stands for; None where everybody stands for one.
    whole : Whole, optional
        Counts of the whole table, where these people are a part of it drawn at random.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [25, 31]})
    >>> hired, sex = pd.Series(["no", "yes"], name="hired"), pd.DataFrame({"sex": ["f", "m"]})
    >>> Dataset("two", table, hired, sex, pos_label="yes")
    Dataset 'two' (2 people, 1 feature), label 'hired' = 'yes': 50.0 %, sensitive 'sex': f 1, m 1
    """

    name: str
    contexts: pd.DataFrame
    label: pd.Series[Any]
    sensitive: pd.DataFrame
    pos_label: Any
    description: str = ""
    source: str = ""
    licence: str = ""
    rows: str = "all"
    test_rows: Flags | None = None
    test_people: int | None = None
    notes: list[str] = field(default_factory=list)
    dates: dict[str, str] = field(default_factory=dict)
    kept_rows: Codes | None = None
    crossed: tuple[str, ...] = ()
    merged: dict[str, str] = field(default_factory=dict)
    sha256: str = ""
    weights: pd.Series[Any] | None = None
    whole: Whole | None = None

    def __post_init__(self) -> None:
        people = len(self.contexts)
        if people == 0:
            raise ValueError(f"Data set {self.name!r} has no rows; expected at least one person.")
        if self.sensitive.shape[1] == 0:
            raise ValueError(f"Data set {self.name!r} has no sensitive column; expected at least one.")
        for part in ("label", "sensitive", "test_rows", "kept_rows", "weights"):
            values = getattr(self, part)
            if values is not None and len(values) != people:
                raise ValueError(f"Got {len(values)} rows in {part}, but contexts has {people}.")
        for column in (self.label.name, self.sensitive.columns[0]):
            if column in self.contexts.columns:
                raise ValueError(
                    f"contexts holds the column {column!r}, which is the label or the sensitive one."
                )
        if self.label.isna().any():
            raise ValueError(
                f"The label {self.label.name!r} has missing values; expected a label for everybody."
            )
        labels = self.label.unique().tolist()
        if self.pos_label not in labels and not (self.pos_label is None and len(labels) > 2):
            raise ValueError(
                f"Got the positive label {self.pos_label!r}, but {self.label.name!r} has the values "
                f"{listed(labels, most=8)}.{did_you_mean(self.pos_label, labels)}"
            )

    @property
    def sensitive_features(self) -> pd.Series[Any]:
        """The default sensitive column, one value per person."""
        return self.sensitive.iloc[:, 0]

    @property
    def sensitive_columns(self) -> list[str]:
        """The names of the columns that the groups come from: one, or those that were crossed."""
        return list(self.crossed) or [str(self.sensitive.columns[0])]

    @property
    def row_numbers(self) -> Codes:
        """Each person's row in the source, counted from 0; people left out have none."""
        return np.arange(len(self)) if self.kept_rows is None else self.kept_rows

    @property
    def people(self) -> int:
        """How many people the table has, held or not."""
        return len(self) if self.whole is None else sum(self.whole.labels.values())

    @property
    def label_counts(self) -> dict[Any, int]:
        """How many people of the table have each label."""
        return self.label.value_counts().to_dict() if self.whole is None else self.whole.labels

    @property
    def group_counts(self) -> dict[Any, int]:
        """How many people of the table are in each group, the largest first."""
        return self.sensitive_features.value_counts().to_dict() if self.whole is None else self.whole.groups

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of everything a method sees: column names and values, in order, on any platform."""
        digest = hashlib.sha256()
        contexts, groups = (
            [column for _, column in part.items()] for part in (self.contexts, self.sensitive)
        )
        for column in (*contexts, self.label, *groups, *([] if self.weights is None else [self.weights])):
            digest.update(f"{column.name}\n".encode())
            digest.update(_bytes_of(column))
        digest.update(f"{self.pos_label}\n".encode())
        digest.update(b"" if self.test_rows is None else np.packbits(self.test_rows).tobytes())
        digest.update(b"" if self.test_people is None else f"{self.test_people}\n".encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.contexts)

    def __repr__(self) -> str:
        features = self.contexts.shape[1]
        counts = list(self.group_counts.items())
        groups = ", ".join(f"{group} {count:,}" for group, count in counts[:5])
        more = f" and {len(counts) - 5} more groups" if len(counts) > 5 else ""
        return (
            f"Dataset {self.name!r} ({self.people:,} people, {features} "
            f"feature{'' if features == 1 else 's'}), label {self._labels()}, "
            f"sensitive {self.sensitive.columns[0]!r}: {groups}{more}"
        )

    def _labels(self) -> str:
        counts, people = self.label_counts, self.people
        if self.pos_label is None:
            return f"{self.label.name!r}: " + ", ".join(
                f"{value} {100 * count / people:.1f} %" for value, count in counts.items()
            )
        return f"{self.label.name!r} = {self.pos_label!r}: {100 * counts[self.pos_label] / people:.1f} %"


def arrange(
    frame: pd.DataFrame, *, sensitive: str, known: tuple[str, ...], same: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Part a table into contexts and sensitive columns, the chosen one first.

    The other sensitive columns stay among the contexts too, as in the paper. Columns that say the `same`,
    coarse to fine, such as 'black' and 'race', leave together, or the finest stays.

    >>> people = pd.DataFrame({"age": [25], "sex": ["f"], "race": ["b"]})
    >>> contexts, groups = arrange(people, sensitive="sex", known=("sex", "race"))
    >>> list(contexts), list(groups)
    (['age', 'race'], ['sex', 'race'])
    """
    one_of("sensitive", sensitive, known)
    order = [sensitive, *(column for column in known if column != sensitive)]
    leaving = {sensitive, *(same if sensitive in same else same[:-1])}
    contexts = frame.drop(columns=list(leaving))
    groups = pd.DataFrame({column: frame[column].astype(str) for column in order})
    return contexts, groups


def _bytes_of(column: pd.Series[Any]) -> bytes:
    if pd.api.types.is_numeric_dtype(column.dtype):
        numbers = np.array(column.to_numpy(dtype="<f8", na_value=np.nan))
        numbers[np.isnan(numbers)] = np.nan  # one NaN out of the many that there are
        return numbers.tobytes()
    codes, values = pd.factorize(column.astype(object))
    return codes.astype("<i8").tobytes() + "\n".join(repr(str(value)) for value in values).encode()
