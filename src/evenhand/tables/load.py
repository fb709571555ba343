"""The user's own table: which column is what, given or guessed, and said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.checks import did_you_mean
from evenhand.tables.columns import tidy_columns
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import read_table

_MOST_LABELS = 20
_MOST_GROUPS = 50
_LABEL_NAMES = ("label", "target", "y", "outcome", "class", "decision", "income", "approved", "hired")
_SENSITIVE_NAMES = ("sex", "gender", "race", "ethnicity", "religion", "disability", "nationality")
_POSITIVE_NAMES = (
    "1", "1.0", "+", "y", "yes", "true", "good", "positive", "pos", "success", "successful", "accept",
    "accepted", "approve", "approved", "admit", "admitted", "grant", "granted", "hire", "hired", "invite",
    "invited", "offer", "offered", "pass", "passed", "pay", "paid", "repaid", "select", "selected",
    "qualified", "eligible", ">50k", ">50k.",
)  # fmt: skip


def load_table(
    source: Any,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    pos_label: Any = None,
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Make a data set of the user's own table; `notes` says what was guessed, left out or changed.

    Text becomes categories, dates become days, identifiers and constant columns are left out; a missing
    number stays missing, a missing category gets the name 'missing'. Labels and groups lose blanks around
    them; people without either are left out.

    Parameters
    ----------
    source : path or DataFrame
        A CSV or Parquet file, or a DataFrame (pandas, Polars, or with the dataframe interchange).
    label : str, optional
        The column to predict; guessed from common names, else the last column that has two values.
    sensitive : str or list of str, optional
        The sensitive column, or several with the default one first; guessed from common names.
    drop : str or list of str
        Columns to leave out.
    categorical : str or list of str
        Columns whose numbers are codes, not amounts.
    pos_label : object, optional
        The positive label; of two, by default the one with a common name ('yes', 1, 'paid', ...), else the
        second in order. Of more than two none is guessed: it is then None, and differences between groups
        are the largest over the labels.
    name : str, optional
        The data set's name; by default the file's.
    encoding : str
        Of a CSV file.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [25, 31, 47], "sex": ["f", "m", "f"], "hired": ["no", "yes", "yes"]})
    >>> load_table(people, label="hired", sensitive="sex")
    Dataset 'table' (3 people, 1 context), label 'hired' = 'yes': 66.7 %, sensitive 'sex': f 2, m 1
    >>> load_table(people, label="hird", sensitive="sex")
    Traceback (most recent call last):
    ...
    ValueError: Got label='hird', but the DataFrame has no such column. Did you mean 'hired'?
    """
    table = read_table(source, encoding=encoding)
    notes = list(table.notes)
    frame = table.frame.rename(columns=str).reset_index(drop=True)
    codes = named_columns("categorical", categorical, frame, table.origin)
    frame, target, groups = _with_roles(frame, table.origin, notes, label, sensitive, drop)
    frame = _known_people(frame, target, groups, table.origin, notes)
    positive, said = guessed_positive(frame[target]) if pos_label is None else (pos_label, "")
    features = frame.drop(columns=[target, *groups])
    contexts, dates = tidy_columns(features, notes, codes=codes, place=table.place)
    if contexts.shape[1] == 0:
        raise ValueError(
            f"{table.origin} has no column left to learn from beside {target!r} and {', '.join(groups)}."
        )
    return Dataset(
        name=name or (table.path.stem if table.path else "table"),
        contexts=contexts,
        label=frame[target].reset_index(drop=True),
        sensitive=frame[groups].reset_index(drop=True),
        pos_label=_same_text(positive, frame[target]),
        description=f"The user's own table, {table.origin}",
        source=table.origin,
        licence="the user's own",
        notes=[*notes, *([said] if said else [])],
        dates=dates,
        kept_rows=frame.index.to_numpy(),
        sha256=table.sha256,
    )


def _with_roles(
    frame: pd.DataFrame,
    origin: str,
    notes: list[str],
    label: str | None,
    sensitive: str | Sequence[str] | None,
    drop: str | Sequence[str],
) -> tuple[pd.DataFrame, str, list[str]]:
    """Return the table without what is dropped, the label's column and the sensitive ones."""
    dropped = named_columns("drop", drop, frame, origin)
    for role, given in (("label", _as_list(label)), ("sensitive", _as_list(sensitive))):
        for column in given:
            if column in dropped:
                raise ValueError(f"Got {column!r} both as {role} and to drop; expected one of the two.")
    frame = frame.drop(columns=dropped)
    target = _label_column(label, frame, origin, notes)
    groups = _sensitive_columns(sensitive, frame, target, origin, notes)
    if target in groups:
        raise ValueError(f"Got {target!r} both as label and as sensitive column; expected two columns.")
    return frame, target, groups


def named_columns(argument: str, given: str | Sequence[str], frame: pd.DataFrame, origin: str) -> list[str]:
    """Return the columns named, each of which must exist."""
    wanted = _as_list(given)
    for column in wanted:
        if column not in frame.columns:
            near = did_you_mean(column, frame.columns) or f" It has {', '.join(frame.columns[:20])}."
            raise ValueError(f"Got {argument}={column!r}, but {origin} has no such column.{near}")
    return wanted


def _as_list(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given)


def _label_column(given: str | None, frame: pd.DataFrame, origin: str, notes: list[str]) -> str:
    if given is not None:
        return named_columns("label", given, frame, origin)[0]
    # An 'income' in thousands of amounts is a feature beside an 'approved' of two values.
    named = [
        column
        for column in frame.columns
        if column.lower() in _LABEL_NAMES and frame[column].nunique() <= _MOST_LABELS
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
            f"Could not guess the sensitive column of {origin}; name one or more of {', '.join(others)}."
        )
    notes.append(f"Guessed that {guessed[0]!r} is the sensitive column.")
    return guessed


def without_blanks(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels or groups without the blanks around them; one of nothing but blanks is missing.

    >>> without_blanks(pd.Series(["f ", "f", " "])).tolist()
    ['f', 'f', nan]
    """
    short = {
        value: value.strip() or np.nan
        for value in column.dropna().unique().tolist()
        if isinstance(value, str) and value != value.strip()
    }
    if not short:
        return column
    return column.astype(object).map(lambda value: short.get(value, value))


def _without_blanks(frame: pd.DataFrame, columns: list[str], notes: list[str]) -> pd.DataFrame:
    for name in columns:
        before = frame[name]
        column = without_blanks(before)
        if column is not before:
            blank = before[before.notna() & (before.astype(object) != column)]
            notes.append(
                f"{name!r} has blanks around the values of {len(blank)} people, such as {blank.iloc[0]!r}; "
                "they are taken without."
            )
            frame = frame.assign(**{name: column})
    return frame


def _differ_in_case(frame: pd.DataFrame) -> list[str]:
    """Name labels and groups that may be meant as one."""
    notes = []
    for name in frame.columns:
        spelled: dict[str, list[str]] = {}
        for value in frame[name].unique().tolist():
            if isinstance(value, str):
                spelled.setdefault(value.casefold(), []).append(value)
        notes += [
            f"{name!r} has {' and '.join(map(repr, sorted(same)))}, which differ in case alone: they stay "
            "apart."
            for same in spelled.values()
            if len(same) > 1
        ]
    return notes


def _known_people(
    frame: pd.DataFrame, label: str, groups: list[str], origin: str, notes: list[str]
) -> pd.DataFrame:
    """Return the people with a label and a group, both without blanks around them."""
    frame = _without_blanks(frame, [label, *groups], notes)
    for column in (label, *groups):
        missing = frame[column].isna()
        if missing.any():
            notes.append(
                f"{int(missing.sum())} people have no {column!r} and are left out; give the missing a name "
                "to keep them."
            )
            frame = frame[~missing]
    if frame.empty:
        raise ValueError(f"{origin} has no row with both a label and a group; expected some.")
    # A gap makes floats of whole numbers; but what is 1 in the file is not to be called 1.0.
    frame = frame.astype({column: "int64" for column in (label, *groups) if _whole(frame[column])})
    _check_label(frame[label], origin)
    _check_groups(frame, groups, origin)
    notes.extend(_differ_in_case(frame[[label, *groups]]))
    return frame


def _whole(column: pd.Series[Any]) -> bool:
    floats = pd.api.types.is_float_dtype(column)
    return floats and bool(((column % 1 == 0) & (column.abs() < 2**53)).all())


def _check_label(label: pd.Series[Any], origin: str) -> None:
    values = label.nunique()
    if values < 2:
        raise ValueError(
            f"The label {label.name!r} of {origin} is always {label.iloc[0]!r}; expected at least two values."
        )
    if values > _MOST_LABELS:
        raise ValueError(
            f"The label {label.name!r} of {origin} has {values} values; expected classes, at most "
            f"{_MOST_LABELS}. Turn it into classes first, such as above and below a threshold."
        )


def _check_groups(frame: pd.DataFrame, groups: list[str], origin: str) -> None:
    for column in groups:
        values = frame[column].nunique()
        if values < 2:
            raise ValueError(
                f"The sensitive column {column!r} of {origin} has one value only; expected groups."
            )
        if values > _MOST_GROUPS:
            raise ValueError(
                f"The sensitive column {column!r} of {origin} has {values} values; expected groups, at most "
                f"{_MOST_GROUPS}. Put the values into bands first, such as ages under 40 and over."
            )


def guessed_positive(label: pd.Series[Any]) -> tuple[Any, str]:
    """Return the positive label, None if there are more than two labels, and the note that says so.

    >>> guessed_positive(pd.Series(["paid", "unpaid"], name="loan"))
    ('paid', "The positive label is 'paid'.")
    """
    values = sorted(label.unique().tolist(), key=lambda value: (str(type(value)), value))
    if len(values) > 2:
        return None, (
            f"{label.name!r} has {len(values)} labels, and none was named as the positive one: differences "
            "between groups are the largest over the labels."
        )
    known = [value for value in values if str(value).strip().lower() in _POSITIVE_NAMES]
    if len(known) == 1:
        return known[0], f"The positive label is {known[0]!r}."
    return values[1], (
        f"Guessed that the positive label is {values[1]!r}, the second in order; name the positive one if it "
        f"is {values[0]!r}."
    )


def _same_text(positive: Any, label: pd.Series[Any]) -> Any:
    """Return the label that is written like the positive one, which may be given as text: '1' for 1."""
    positive = positive.strip() if isinstance(positive, str) else positive
    labels = label.unique().tolist()
    return positive if positive in labels else next((v for v in labels if str(v) == positive), positive)
