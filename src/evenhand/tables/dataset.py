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
from evenhand.tables.columns import is_number
from evenhand.wording import group_called, listed


class Whole(NamedTuple):
    """Counts of a whole table of which only some people are in memory: per label, per group, in training."""

    labels: dict[Any, int]
    groups: dict[Any, int]
    training: int


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table ready for use: people's features, what is decided about them, and their groups.

    Parameters
    ----------
    name : str
        A short name, such as 'adult'.
    contexts : DataFrame
        The features, one row per person; categories keep their original names. The label and the default
        sensitive column are not among them.
    label : Series
        The labels to predict.
    sensitive : DataFrame
        The known sensitive columns, the default one first.
    pos_label : object
        The label that counts as the positive decision; None if none of more than two labels was named as it.
    description, source, licence : str
        What the data is, where it comes from, and under what terms.
    rows : str
        The name of the row set, such as 'all'.
    test_rows : array of bool, optional
        The published test part, if it is known.
    test_people : int, optional
        The size of the published test part, if only that is known.
    notes : list of str
        What was guessed, left out or changed, in words for the user.
    dates : dict
        The contexts that were dates and are now days since 1970, each with the format of the dates.
    kept_rows : array of int, optional
        The rows of the source that these people come from, counted from 0; None for all of them.
    crossed : tuple of str
        The columns whose combinations the sensitive column holds, if there are several.
    merged : dict
        The small groups that were merged, each with the name of its new group.
    sha256 : str
        The digest of the user's file; '' if there was none.
    weights : Series, optional
        How many people each person stands for; None if everybody stands for one.
    decimal : str
        The decimal sign of the user's file.
    whole : Whole, optional
        Counts of the whole table, if these people were drawn from it at random.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [25, 31]})
    >>> hired, sex = pd.Series(["no", "yes"], name="hired"), pd.DataFrame({"sex": ["f", "m"]})
    >>> Dataset("two", table, hired, sex, pos_label="yes")
    Dataset 'two' (2 people, 1 feature), label 'hired' = 'yes': 50.0 %, sensitive 'sex' (f: 1, m: 1)
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
    decimal: str = "."
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
        """The names of the columns that the groups come from: one, or those that were combined."""
        return list(self.crossed) or [str(self.sensitive.columns[0])]

    @property
    def row_numbers(self) -> Codes:
        """Each person's row in the source, counted from 0; people left out have none."""
        return np.arange(len(self)) if self.kept_rows is None else self.kept_rows

    @property
    def people(self) -> int:
        """The number of people in the table, in memory or not."""
        return len(self) if self.whole is None else sum(self.whole.labels.values())

    @property
    def label_counts(self) -> dict[Any, int]:
        """The number of people in the table with each label."""
        return self.label.value_counts().to_dict() if self.whole is None else self.whole.labels

    @property
    def group_counts(self) -> dict[Any, int]:
        """The number of people in the table in each group, the largest first."""
        return self.sensitive_features.value_counts().to_dict() if self.whole is None else self.whole.groups

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all that a method sees, column names and values in order; the same on any platform."""
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
        column = self.sensitive.columns[0]
        groups = ", ".join(f"{group_called(group, column)}: {count:,}" for group, count in counts[:5])
        more = f" and {len(counts) - 5} more groups" if len(counts) > 5 else ""
        return (
            f"Dataset {self.name!r} ({self.people:,} people, {features} "
            f"feature{'' if features == 1 else 's'}), label {self._labels()}, "
            f"sensitive {column!r} ({groups}{more})"
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
    """Divide a table into contexts and sensitive columns, the chosen one first.

    The other sensitive columns are also contexts, as in the paper. `same` names columns that say the same,
    from coarse to fine, such as 'black' and 'race'. If one of them is chosen, none is a context; otherwise,
    only the finest is.

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
    if is_number(column):  # True is hashed as 'True', as some files have it
        numbers = np.array(column.to_numpy(dtype="<f8", na_value=np.nan))
        numbers[np.isnan(numbers)] = np.nan  # the same bits for every NaN
        numbers += 0.0  # and for -0.0, which not every format keeps
        return numbers.tobytes()
    codes, values = pd.factorize(column.astype(object))
    return codes.astype("<i8").tobytes() + "\n".join(repr(str(value)) for value in values).encode()
