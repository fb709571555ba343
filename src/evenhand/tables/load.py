"""Make a data set of the user's own table: people with a label and a group, and tidy columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.checks import MIN_GROUP
from evenhand.tables.columns import tidy_columns
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import read_table
from evenhand.tables.grouping import crossed, so_many, with_known_groups, with_small_merged
from evenhand.tables.mapping import mapped
from evenhand.tables.paths import bare_name
from evenhand.tables.roles import MOST_LABELS, Roles, find_roles, settled_label
from evenhand.wording import listed, people

_MOST_GROUPS = 50


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
    decimal: str | None = None,
    sheet: str | None = None,
    map: Mapping[Any, Any] | None = None,
    unknown: str = "drop",
    merge_small: str | None = None,
    min_group: int = MIN_GROUP,
    weight: str | None = None,
    featureless: bool = False,
) -> Dataset:
    """Make a data set of your own table; its `notes` say what was guessed, left out or changed.

    Text becomes categories, and dates become days since 1970. Identifiers and constant columns are left out.
    A missing number stays missing; a missing category becomes the category 'missing'. Spaces around labels
    and groups are removed. People without a label are left out; so are those without a group, by default.

    Parameters
    ----------
    source : path or DataFrame
        A CSV, Parquet or Excel file, or a DataFrame of pandas, Polars, Arrow or any other library that
        narwhals supports. A table that is lazy, or in DuckDB, Dask or Spark, is loaded into memory.
    label : str, optional
        The column to predict. Guessed from common names; otherwise, the last column with two values.
    sensitive : str or list of str, optional
        The sensitive column. With several, the groups are the combinations of values. Guessed from common
        names.
    drop, categorical, encoding, decimal, sheet, map, unknown, merge_small, weight
        As in `evenhand.explore`.
    pos_label : object, optional
        The positive label. With two labels, the default is the one with a common name ('yes', 1, 'paid',
        ...), otherwise the second in order. With more, the default is None, and a difference between groups
        is the largest over the labels.
    name : str, optional
        The data set's name; by default that of the file.
    min_group : int
        With `merge_small`, groups with fewer people are merged.
    featureless : bool
        Whether a table without features is accepted.

    Returns
    -------
    Dataset
        The people with a label and a group.

    Raises
    ------
    ValueError
        If the table can't be used, or an argument doesn't fit it; the message says what to change.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [25, 31, 47], "sex": ["f", "m", "f"], "hired": ["no", "yes", "yes"]})
    >>> load_table(people, label="hired", sensitive="sex")
    Dataset 'table' (3 people, 1 feature), label 'hired' = 'yes': 66.7 %, sensitive 'sex' (f: 2, m: 1)
    """
    table = read_table(source, encoding=encoding, decimal=decimal, sheet=sheet)
    notes = list(table.notes)
    frame = table.plain()
    try:
        roles = find_roles(
            frame, table.origin, notes, label=label, sensitive=sensitive, drop=drop, categorical=categorical,
            weight=weight,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{error}{table.sheets}") from None
    frame = mapped(frame, map, [roles.label], table.origin)
    people, groups, merged, target, positive, said = settled(
        frame.drop(columns=roles.dropped), roles, table.origin, notes, unknown=unknown,
        merge_small=merge_small, min_group=min_group, pos_label=pos_label,
    )  # fmt: skip
    features = people.drop(columns=[roles.label, *roles.sensitive])
    contexts, dates = tidy_columns(features, notes, codes=roles.codes, place=table.place)
    if not featureless:
        roles.check_features(contexts, table.origin)
    return Dataset(
        name=name or (bare_name(table.path) if table.path else "table"),
        contexts=contexts,
        label=target.reset_index(drop=True),
        sensitive=groups.to_frame(),
        pos_label=positive,
        description=f"The user's own table, {table.origin}",
        source=table.origin,
        licence="the user's own",
        notes=[*notes, *said],
        dates=dates,
        kept_rows=people.index.to_numpy(),
        crossed=tuple(roles.sensitive) if len(roles.sensitive) > 1 else (),
        merged=merged,
        sha256=table.sha256,
        decimal=table.decimal,
        weights=weights_in(frame.loc[people.index, roles.weight], table.origin) if roles.weight else None,
    )


class Settled(NamedTuple):
    """People with a label and a group, the names of both, and which label is the positive one."""

    people: pd.DataFrame
    groups: pd.Series[Any]
    merged: dict[str, str]
    target: pd.Series[Any]
    positive: Any
    said: list[str]


def settled(
    frame: pd.DataFrame, roles: Roles, origin: str, notes: list[str], *, unknown: str,
    merge_small: str | None, min_group: int, pos_label: Any, each: pd.Series[Any] | None = None,
) -> Settled:  # fmt: skip
    """Return the people who have a label and a group; `each` is the number of people per row."""
    people = _known_people(frame, roles, origin, notes, unknown, each)
    counts = None if each is None else each[people.index].to_numpy()
    groups, merged = with_small_merged(
        crossed(people[roles.sensitive]), merge_small, min_group, notes, counts
    )
    _check_groups(groups, origin)
    return Settled(people, groups, merged, *settled_label(people[roles.label], pos_label))


def weights_in(column: pd.Series[Any], origin: str, *, some: bool = True) -> pd.Series[Any]:
    """Return how many people each row stands for, checked; with `some`, raise if all of them are 0.

    >>> weights_in(pd.Series(["2", "0.5"], name="w"), "people.csv").tolist()
    [2.0, 0.5]
    """
    weights = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = ~np.asarray(np.isfinite(weights) & (weights >= 0))
    if wrong.any() or (some and not weights.any()):
        at = int(wrong.argmax()) if wrong.any() else 0
        raise ValueError(
            f"The weight {column.name!r} of {origin} is {listed([column.iloc[at]])} in row "
            f"{column.index[at] + 1:,}, but expected numbers of at least 0, some of them above 0."
        )
    return weights.reset_index(drop=True)


def without_blanks(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels or groups without the spaces around them; one of only spaces becomes missing.

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


def _without_blanks(
    frame: pd.DataFrame, columns: list[str], notes: list[str], each: pd.Series[Any] | None
) -> pd.DataFrame:
    for name in columns:
        before = frame[name]
        column = without_blanks(before)
        if column is not before:
            blank = before[before.notna() & (before.astype(object) != column)]
            notes.append(
                f"{name!r} has blanks around the values of {so_many(blank.index, each)} people, such "
                f"as {blank.iloc[0]!r}; these were removed."
            )
            frame = frame.assign(**{name: column})
    return frame


def _differ_in_case(frame: pd.DataFrame) -> list[str]:
    """Name labels and groups that differ only in case and may be meant as one."""
    notes = []
    for name in frame.columns:
        spelled: dict[str, list[str]] = {}
        for value in frame[name].unique().tolist():
            if isinstance(value, str):
                spelled.setdefault(value.casefold(), []).append(value)
        notes += [
            f"{name!r} has {' and '.join(map(repr, sorted(same)))}, which differ only in case: they stay "
            "separate."
            for same in spelled.values()
            if len(same) > 1
        ]
    return notes


def _known_people(
    frame: pd.DataFrame, roles: Roles, origin: str, notes: list[str], unknown: str,
    each: pd.Series[Any] | None,
) -> pd.DataFrame:  # fmt: skip
    """Return the people with a label and a group, both without spaces around them."""
    columns = [roles.label, *roles.sensitive]
    frame = _without_blanks(frame, columns, notes, each)
    missing = frame[roles.label].isna()
    if missing.any():
        notes.append(f"Left out: {people(so_many(frame.index[missing], each))} without {roles.label!r}.")
        frame = frame[~missing]
    frame = with_known_groups(frame, roles.sensitive, unknown, notes, each)
    if frame.empty:
        raise ValueError(f"{origin} has no row with both a label and a group; expected some.")
    frame = _as_written(frame, columns)
    _check_label(frame[roles.label], origin)
    for name in roles.sensitive:
        _check_groups(frame[name], origin)
    notes.extend(_differ_in_case(frame[columns]))
    return frame


def groups_in(
    frame: pd.DataFrame, names: list[str], origin: str, notes: list[str], *, unknown: str,
    merge_small: str | None, min_group: int,
) -> tuple[pd.Series[Any], dict[str, str]]:  # fmt: skip
    """Return the groups in some columns, by row, and the merged ones; rows of unknown group are left out."""
    frame = _without_blanks(frame[names], names, notes, None)
    frame = with_known_groups(frame, names, unknown, notes if unknown == "keep" else [])
    if frame.empty:
        raise ValueError(f"{origin} has no row with a group in {listed(names)}; expected some.")
    frame = _as_written(frame, names)
    for name in names:
        _check_groups(frame[name], origin)
    notes.extend(_differ_in_case(frame))
    groups = crossed(frame)
    groups, merged = with_small_merged(groups, merge_small, min_group, notes)
    _check_groups(groups, origin)
    return groups.set_axis(frame.index), merged


def _as_written(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return whole numbers as such: a missing value made them floats, but 1 should not be called 1.0."""
    return frame.assign(**{name: frame[name].astype("int64") for name in columns if _whole(frame[name])})


def _whole(column: pd.Series[Any]) -> bool:
    floats = pd.api.types.is_float_dtype(column)
    return floats and bool(((column % 1 == 0) & (column.abs() < 2**53)).all())


def _check_label(label: pd.Series[Any], origin: str) -> None:
    values = label.nunique()
    if values < 2:
        raise ValueError(
            f"The label {label.name!r} of {origin} is always {listed([label.iloc[0]])}; expected at least "
            "two values."
        )
    if values > MOST_LABELS:
        raise ValueError(
            f"The label {label.name!r} of {origin} has {values} values; expected classes, at most "
            f"{MOST_LABELS}. Turn it into classes first, such as above and below a threshold."
        )


def _check_groups(column: pd.Series[Any], origin: str) -> None:
    values = column.nunique()
    if values < 2:
        raise ValueError(
            f"The sensitive column {column.name!r} of {origin} has one value only; expected groups."
        )
    if values > _MOST_GROUPS:
        raise ValueError(
            f"The sensitive column {column.name!r} of {origin} has {values} values; expected groups, at most "
            f"{_MOST_GROUPS}. Put the values into bands first, such as ages under 40 and over."
        )
