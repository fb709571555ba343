"""Match cells with what training saw: the same number, date, category or group, however it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Flags
from evenhand.checks import did_you_mean
from evenhand.tables.columns import CATEGORY, LARGEST, NO_NUMBER, NUMBER, is_number
from evenhand.tables.csv_format import MISSING_MARKS
from evenhand.tables.dates import ISO, days_of, read_dates
from evenhand.wording import listed

Reasons = Array  # why each row can't be scored, '' if it can


def read_contexts(
    rows: pd.DataFrame, kinds: dict[str, str], preprocessor: Any, reasons: Reasons
) -> pd.DataFrame:
    """Return the columns of a table in the form that the preprocessor was fitted on.

    `kinds` is what `kinds_of_columns` returns. A row that can't be read gets a reason, unless it has one.
    """
    return pd.DataFrame(
        {
            name: as_learned(rows[name], kind, known_categories(preprocessor, name), reasons)
            for name, kind in kinds.items()
        },
        index=rows.index,
    )


def contexts_of(rows: pd.DataFrame, kinds: dict[str, str], preprocessor: Any) -> pd.DataFrame:
    """Return the contexts in a table; dates may be days since 1970. Raise if a row can't be read."""
    check_columns(rows, kinds)
    reasons = np.full(len(rows), "", dtype=object)
    as_given = {
        name: NUMBER if kind != CATEGORY and pd.api.types.is_numeric_dtype(rows[name]) else kind
        for name, kind in kinds.items()
    }
    contexts = read_contexts(rows, as_given, preprocessor, reasons)
    check_reasons(rows, reasons)
    return contexts


def known_categories(preprocessor: Any, name: str) -> dict[str, str]:
    """Return the categories that training saw in a column, by each of their spellings."""
    for _, step, names in preprocessor.transformers_:
        if hasattr(step, "categories_") and name in names:
            return spellings(step.categories_[list(names).index(name)])
    return {}


def unmet(contexts: pd.DataFrame, kinds: dict[str, str], preprocessor: Any) -> dict[str, dict[str, int]]:
    """Return, per column, how many people have each category that training did not see."""
    found = {}
    for name, kind in kinds.items():
        known = set(known_categories(preprocessor, name).values()) if kind == CATEGORY else set()
        if known:
            counts = contexts[name].value_counts(sort=False)
            found[name] = {str(value): int(count) for value, count in counts.items() if value not in known}
    return {name: values for name, values in found.items() if values}


def as_labels(column: pd.Series[Any], labels: Array) -> pd.Series[Any]:
    """Return a file's labels in a model's own type: '1.0', in a column with gaps, becomes 1."""
    known = spellings(labels)
    own = {str(label): label for label in labels.tolist()}
    return each_once(text_of(column), lambda value: own.get(met(value, known, value), value))


def check_columns(rows: pd.DataFrame, needed: Iterable[str]) -> None:
    """Raise if a column that a model needs is missing."""
    missing = [name for name in needed if name not in rows.columns]
    if not missing:
        return
    near = did_you_mean(missing[0], rows.columns) if len(missing) == 1 else ""
    raise ValueError(
        f"The model needs the column{'s' * (len(missing) > 1)} {listed(missing, most=20)}, which the table "
        f"does not have.{near or f' It has {listed(rows.columns, most=20)}.'}"
    )


def check_reasons(rows: pd.DataFrame, reasons: Reasons) -> None:
    """Raise if a row has a reason why it can't be scored."""
    if (reasons != "").any():
        at = int((reasons != "").argmax())
        raise ValueError(f"Row {rows.index[at]!r}, {reasons[at]}.")


def as_learned(column: pd.Series[Any], kind: str, known: dict[str, str], reasons: Reasons) -> pd.Series[Any]:
    """Return a column as numbers, or as categories spelled as in training; unreadable values get a reason.

    >>> reasons = np.full(3, "", dtype=object)
    >>> as_learned(pd.Series(["7", "", "x"], name="age"), NUMBER, {}, reasons).tolist()
    [7.0, nan, nan]
    >>> reasons.tolist()
    ['', '', "column 'age': got 'x', expected a number"]
    """
    if kind == CATEGORY:

        def category(value: str) -> str:
            return met(value, known, "missing" if value in MISSING_MARKS else value)

        return each_once(text_of(column).where(column.notna(), "missing"), category)
    wanted = "a number" if kind == NUMBER else "a date" if kind == ISO else f"a date like {kind}"
    if kind == NUMBER and is_number(column):
        numbers = pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan), index=column.index)
        missing = numbers.isna()
    elif kind != NUMBER and pd.api.types.is_datetime64_any_dtype(column):
        missing, numbers = column.isna(), days_of(column)
    else:
        text = text_of(column).str.strip()
        missing = text.str.lower().isin(NO_NUMBER)
        there = text.where(~missing)
        if kind == NUMBER:
            numbers = pd.to_numeric(there, errors="coerce").astype(np.float64)
        else:
            numbers = read_dates(there, kind)
    bad = (~missing & ~(numbers.abs() <= LARGEST)).to_numpy()

    def why(at: int) -> str:
        bound = f" up to {LARGEST:.2g}" if np.isfinite(numbers.iloc[at]) else ""
        return f"column {column.name!r}: got {str(column.iloc[at])!r}, expected {wanted}{bound}"

    reject(reasons, bad, why)
    return numbers


def reject(reasons: Reasons, bad: Flags, why: Callable[[int], str]) -> None:
    """Give a reason to the bad rows that have none yet."""
    for at in np.flatnonzero(bad & (reasons == "")):
        reasons[at] = why(int(at))


def each_once(column: pd.Series[Any], change: Callable[[str], Any]) -> pd.Series[Any]:
    """Return the column with every value changed; `change` is called once per distinct value."""
    codes, values = pd.factorize(column)
    changed = np.array([change(str(value)) for value in values], dtype=object)
    return pd.Series(changed[codes], index=column.index, name=column.name, dtype=object)


def text_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as text, '' where it is missing."""
    missing = column.isna()
    return column.astype(object).where(~missing, "").astype(str)


def spellings(names: Any, between: str | None = None) -> dict[str, str]:
    """Map each name, and its spellings as another kind of number or truth value, to the name."""
    spelled: dict[str, str] = {}
    for name in map(str, names):
        spelled.setdefault(_plain(name, between), name)
        if name in ("True", "False"):
            spelled |= {name.lower(): name, name.upper(): name}
    return spelled | {str(name): str(name) for name in names}


def met(value: str, known: dict[str, str], unmet: str, between: str | None = None) -> str:
    """Return a value's name in training, even if it is written as another kind of number; otherwise `unmet`.

    `known` is what `spellings` returns, for the same `between`.

    >>> [met(value, spellings(["f", "f "]), "?") for value in ("f", "f ", " f", "g")]
    ['f', 'f ', 'f', '?']
    """
    return known.get(value, known.get(_plain(value, between), unmet))


def _plain(text: str, between: str | None) -> str:
    """Return a name with `plain_number` applied to each of the values that it joins."""
    if between is None:
        return plain_number(text)
    parts = [part.rpartition("=") for part in text.split(between)]  # 'senior=0', or a value alone
    return between.join(f"{name.strip()}{sign}{plain_number(value)}" for name, sign, value in parts)


def plain_number(text: str) -> str:
    """Return '1' for '1.0': a code is the same code, whether or not its column has gaps elsewhere."""
    whole, point, decimals = text.strip().partition(".")
    return whole if point and whole.lstrip("-").isdigit() and not decimals.strip("0") else text.strip()
