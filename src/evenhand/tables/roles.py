"""The roles of a table's columns, given or guessed, and the positive label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from evenhand.checks import did_you_mean
from evenhand.tables.columns import is_number
from evenhand.wording import listed

MOST_LABELS = 20
_FEW_LABELS = 5  # with more different numbers, they are probably amounts
_LABEL_NAMES = ("label", "target", "y", "outcome", "class", "decision", "income", "approved", "hired")
_SENSITIVE_NAMES = ("sex", "gender", "race", "ethnicity", "religion", "disability", "nationality")
_POSITIVE_NAMES = (
    "1", "1.0", "+", "y", "yes", "true", "good", "positive", "pos", "success", "successful", "accept",
    "accepted", "approve", "approved", "admit", "admitted", "grant", "granted", "hire", "hired", "invite",
    "invited", "offer", "offered", "pass", "passed", "pay", "paid", "repaid", "select", "selected",
    "qualified", "eligible", ">50k", ">50k.",
)  # fmt: skip


class Roles(NamedTuple):
    """The names of the label column, the sensitive columns, those that are not features, and more."""

    label: str
    sensitive: list[str]
    dropped: list[str]  # columns to leave out, and that of the weights
    codes: list[str]  # columns whose numbers are categories
    weight: str | None

    def check_features(self, contexts: pd.DataFrame, origin: str) -> None:
        """Raise if no feature is left."""
        if contexts.shape[1] == 0:
            raise ValueError(
                f"{origin} has no column left to learn from beside {self.label!r} and "
                f"{', '.join(self.sensitive)}."
            )


def find_roles(
    frame: pd.DataFrame,
    origin: str,
    notes: list[str],
    *,
    label: str | None,
    sensitive: str | Sequence[str] | None,
    drop: str | Sequence[str],
    categorical: str | Sequence[str] = (),
    weight: str | None = None,
) -> Roles:
    """Return the roles of the columns; a guess is added to the notes."""
    codes = named_columns("categorical", categorical, frame, origin)
    counted = named_columns("weight", weight, frame, origin)
    left_out = named_columns("drop", drop, frame, origin)
    dropped = [*left_out, *counted]
    for role, given in (("label", label), ("sensitive", sensitive)):
        for column in _as_list(role, given):
            if column in dropped:
                other = "to drop" if column in left_out else "as weight"
                raise ValueError(f"Got {column!r} both as {role} and {other}; expected one of the two.")
    frame = frame.drop(columns=dropped)
    target = _label_column(label, frame, origin, notes)
    groups = _sensitive_columns(sensitive, frame, target, origin, notes)
    if target in groups:
        raise ValueError(f"Got {target!r} both as label and as sensitive column; expected two columns.")
    return Roles(target, groups, dropped, codes, counted[0] if counted else None)


def named_columns(
    argument: str, given: str | Sequence[str] | None, frame: pd.DataFrame, origin: str
) -> list[str]:
    """Return the columns that an argument names, each of which must exist in `origin`."""
    wanted = [part for name in _as_list(argument, given) for part in _at_commas(name, frame)]
    for column in wanted:
        if column not in frame.columns:
            near = did_you_mean(column, frame.columns) or f" Its columns: {listed(frame.columns, most=40)}."
            raise ValueError(f"Got {argument}={column!r}, but {origin} has no such column.{near}")
    return wanted


def _at_commas(name: str, frame: pd.DataFrame) -> list[str]:
    """Split 'a,b' into columns, unless a column has just this name, or one of the parts is not a column."""
    parts = [part.strip() for part in name.split(",")]
    return parts if name not in frame.columns and set(parts) <= set(frame.columns) else [name]


def _as_list(argument: str, given: Any) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    whole = type(given).__name__ == "Series" or not isinstance(given, Iterable)  # of pandas, or of Polars
    names: list[Any] = [given] if whole else list(given)
    for name in names:
        if not isinstance(name, str):
            got = "a Series" if type(name).__name__ == "Series" else repr(name)
            lambdas = " The λ to try are `weights`." if argument == "weight" else ""
            raise ValueError(f"Got {got} as {argument}, but expected the name of a column.{lambdas}")
    return names


def _label_column(given: str | None, frame: pd.DataFrame, origin: str, notes: list[str]) -> str:
    if given is not None:
        return named_columns("label", given, frame, origin)[0]
    # Next to an 'approved' with two values, an 'income' with thousands of amounts is a feature.
    named = [
        column
        for column in frame.columns
        if column.lower() in _LABEL_NAMES and frame[column].nunique() <= MOST_LABELS
    ]
    two_valued = [column for column in frame.columns if frame[column].nunique() == 2]
    if not named and not two_valued:
        raise ValueError(f"Could not guess the label of {origin}; name one of {', '.join(frame.columns)}.")
    guessed = str((named or two_valued[-1:])[0])
    notes.append(f"Guessed that {guessed!r} is the label.")
    return guessed


def _sensitive_columns(
    given: str | Sequence[str] | None, frame: pd.DataFrame, label: str, origin: str, notes: list[str]
) -> list[str]:
    if given is not None:
        wanted = named_columns("sensitive", given, frame, origin)
        if not wanted:
            raise ValueError("Got no sensitive column, but expected at least one name.")
        twice = next((name for name in wanted if wanted.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"Got the sensitive column {twice!r} more than once; expected each once.")
        return wanted
    others = [column for column in frame.columns if column != label]
    guessed = [column for column in others if column.lower() in _SENSITIVE_NAMES][:1]
    if not guessed:
        raise ValueError(
            f"Could not guess the sensitive column of {origin}; name one or more of "
            f"{listed(others, most=40)}."
        )
    notes.append(f"Guessed that {guessed[0]!r} is the sensitive column.")
    return guessed


def settled_label(column: pd.Series[Any], pos_label: Any) -> tuple[pd.Series[Any], Any, list[str]]:
    """Return the labels, the given or guessed positive one (see `guessed_positive`), and notes on it."""
    label = _plain_labels(column)
    positive, said = guessed_positive(label) if pos_label is None else (pos_label, [])
    return label, written_alike(positive, label), said


def _plain_labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as numbers, truth values or text, whichever of these they or their categories are.

    >>> _plain_labels(pd.Series(pd.Categorical([0, 1]))).tolist()
    [0, 1]
    """
    if is_number(column):
        return column
    own = column.astype(object).infer_objects()
    return own if pd.api.types.is_numeric_dtype(own) else column.astype(str).astype(object)


def guessed_positive(label: pd.Series[Any]) -> tuple[Any, list[str]]:
    """Return the positive label (None if there are more than two labels), and the notes that say so.

    >>> guessed_positive(pd.Series(["paid", "unpaid"], name="loan"))
    ('paid', ["The positive label is 'paid'."])
    """
    values = sorted(label.unique().tolist(), key=lambda value: (str(type(value)), value))
    if len(values) > 2:
        notes = [
            f"{label.name!r} has {len(values)} labels, and none was named as the positive one: differences "
            "between groups are the largest over the labels."
        ]
        if len(values) > _FEW_LABELS and pd.api.types.is_numeric_dtype(label):
            notes.append(
                f"The {len(values)} values of {label.name!r} are numbers, and each is a label of its own. If "
                "they are amounts, make fewer labels of them first, such as above and below a threshold."
            )
        return None, notes
    known = [value for value in values if str(value).strip().lower() in _POSITIVE_NAMES]
    if len(known) == 1:
        return known[0], [f"The positive label is {known[0]!r}."]
    return values[1], [
        f"Guessed that the positive label is {values[1]!r}, the second in order. If it is {values[0]!r}, "
        "name that one as positive."
    ]


def written_alike(positive: Any, label: pd.Series[Any]) -> Any:
    """Return the label that is written like the positive one, which may be given as text: '1' for 1."""
    if positive is None:
        return None
    positive = positive.strip() if isinstance(positive, str) else positive
    return next((v for v in label.unique().tolist() if v == positive or str(v) == str(positive)), positive)
