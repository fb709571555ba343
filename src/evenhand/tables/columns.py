"""Turn the columns of a user's table into contexts: find text, dates, numbers, identifiers and constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Floats
from evenhand.tables.csv_format import MISSING_MARKS, codes_in
from evenhand.tables.dates import ISO, day_first, days_of, format_of, read_dates, strange_among
from evenhand.tables.files import Table
from evenhand.wording import as_plain

NUMBER, CATEGORY = "number", "category"
Place = Callable[[Any], str]  # says where a row is

# Marks of a missing number or date, in upper or lower case. In a column of text, '?' is a category.
NO_NUMBER = (*dict.fromkeys(map(str.lower, MISSING_MARKS)), "?", "-", ".", "none", "missing", "unknown")
LARGEST = float(np.finfo(np.float32).max)  # the largest number that models can compute with
_SOME_DISTINCT = 20  # columns with at most this many distinct values are never identifiers
_MANY_CATEGORIES = 100
_COUNTED, _DENSE = 100, 1.2  # fewest people, and largest range per person, of a running number
GAPS_FILLED = " A missing number is replaced by the mean of the training part, and a feature marks it; "
GAPS_FILLED += "a missing category becomes the category 'missing'."
_NAMED = 5  # columns with gaps, or words among numbers, that are named
_MOSTLY = 0.5  # text with a larger share of numbers is meant as numbers
# Whole numbers under such names are not amounts, but identifiers if there are many, otherwise codes.
_ID_NAME = re.compile(
    r"(?i:(?:.*[\s_.-])?(?:id|uuid|guid|nbr|rownames)|unnamed: 0|index|row|no|nr|number|seq)|.*[a-z]I[Dd]"
)
_CODE_NAME = re.compile(r"(?i:(?:.*[\s_.-])?(?:code|zip|zipcode|postcode|plz|fips))")
_SIGN = "(?:[€$£¥₹]|EUR|USD|GBP|CHF)"
# A number as people and spreadsheets may write it: '€ 2,433.67', '2433,67', '15.0 %'.
_WRITTEN_NUMBER = rf"[+-]?{_SIGN}?\s?[+-]?(?:\d{{1,3}}(?:[.,'’\s]\d{{3}})+|\d+)(?:[.,]\d*)?\s?(?:%|{_SIGN})?"
_NOT_PLAIN = r"[^\W\d_]+|[^\d.+-]"  # a character, or a run of letters, that no plain number has


def tidy_columns(
    frame: pd.DataFrame, notes: list[str], *, codes: Sequence[str] = (), place: Place | None = None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the columns as numbers and categories, and the formats of dates.

    Notes are added on what is changed or left out. Numbers in the columns `codes` are categories. For errors,
    `place` says where a row is. Only a column's kind is decided on the whole table. What is *measured*
    (means, frequent categories) is left to the preprocessing, which sees only the training part.

    >>> notes = []
    >>> people = pd.DataFrame({"born": ["1990-01-01", "1990-01-31"], "kind": ["a", "a"]})
    >>> contexts, dates = tidy_columns(people, notes)
    >>> contexts["born"].tolist(), dates
    ([7305.0, 7335.0], {'born': 'ISO8601'})
    >>> notes[1]
    "'kind' is always 'a' and is left out."
    """
    place = place or Table(frame).place
    kept: dict[str, pd.Series[Any]] = {}
    dates: dict[str, str] = {}
    for name in frame.columns:
        column = frame[name]
        missing = int(column.isna().sum())
        if column.nunique() <= 1 and (missing in (0, len(column))):
            only = "empty" if missing else f"always {as_plain(column.iloc[0])!r}"
            notes.append(f"{name!r} is {only} and is left out.")
            continue
        constant = column.nunique() == 1
        if constant:
            only = as_plain(column.dropna().iloc[0])
            notes.append(f"{name!r} is always {only!r} or missing: only whether it is missing is used.")
        coded = isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column)
        tidied: pd.Series[Any] | None
        if name in codes or coded or constant:
            tidied = _categories(column, notes)
        elif pd.api.types.is_numeric_dtype(column):
            tidied = _numbers(column, notes, place)
        elif (how := _date_format(column)) is not None:
            tidied = _days(column, how, notes)
            dates[str(name)] = how
        else:
            tidied = _text(column, notes, place)
        if tidied is not None:
            kept[str(name)] = tidied
    notes += _on_gaps(frame, kept)
    return pd.DataFrame(kept, index=frame.index).reset_index(drop=True), dates


def _on_gaps(frame: pd.DataFrame, kept: dict[str, pd.Series[Any]]) -> list[str]:
    """Return one note on all columns with missing values, and on what happens to these."""
    gaps = {
        name: int((column if is_number(column) else frame[name]).isna().sum())
        for name, column in kept.items()
    }
    known = [f"{name!r} ({count:,})" for name, count in gaps.items() if count]
    if not known:
        return []
    listed = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more columns" * (len(known) > _NAMED))
    return [f"Values are missing in {listed}.{GAPS_FILLED}"]


def kinds_of_columns(contexts: pd.DataFrame, dates: dict[str, str]) -> dict[str, str]:
    """Return each column's kind: 'number', 'category', or the format of a date, such as '%d.%m.%Y'."""
    kinds = {str(name): NUMBER if is_number(contexts[name]) else CATEGORY for name in contexts.columns}
    return kinds | dates


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a column is treated as an amount; True and False are categories."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _numbers(column: pd.Series[Any], notes: list[str], place: Place) -> pd.Series[Any] | None:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = values[~np.isnan(values)]
    called_id, called_code = (name.fullmatch(str(column.name)) for name in (_ID_NAME, _CODE_NAME))
    whole_numbers = bool(np.all(known == np.round(known)))
    if (called_id or called_code) and whole_numbers:
        distinct = len(np.unique(known))
        if called_id and distinct > _SOME_DISTINCT and distinct > min(_MANY_CATEGORIES, len(known) / 2):
            notes.append(
                f"{column.name!r} has {distinct:,} different numbers for {len(known):,} people (an "
                "identifier) and is left out. Name it in `categorical` to use it."
            )
            return None
        notes.append(f"{column.name!r} holds codes, judging by its name, not amounts: each is a category.")
        return _categories(column.astype("Int64"), notes)
    if np.isinf(values).any():
        where = place(column.index[np.isinf(values).argmax()])
        raise ValueError(
            f"{where}, column {column.name!r}: got an infinite number; expected finite numbers or nothing."
        )
    large = np.abs(values) > LARGEST
    if large.any():
        at = int(large.argmax())
        raise ValueError(
            f"{place(column.index[at])}, column {column.name!r}: got {values[at]:g}; expected numbers up to "
            f"{LARGEST:.2g}, or nothing."
        )
    if whole_numbers and _count_people(known):
        notes.append(f"{column.name!r} numbers the people from {known.min():.0f} on and is left out.")
        return None
    whole = pd.api.types.is_integer_dtype(column) and len(known) == len(values)
    return column if whole else pd.Series(values, index=column.index, name=column.name)


def _count_people(known: Floats) -> bool:
    """Whether numbers only number the people: almost every one in their range occurs, each once."""
    n = len(known)
    return n >= _COUNTED and known.max() - known.min() < _DENSE * n and len(np.unique(known)) == n


def _text(column: pd.Series[Any], notes: list[str], place: Place) -> pd.Series[Any] | None:
    values = _written(column)
    # A value like '?' means 'missing' among numbers and dates, but is a category in a column of text.
    spoken = _spoken(values)
    codes = codes_in(column.to_frame())
    numbers = pd.to_numeric(spoken, errors="coerce")
    if codes:
        code = codes[str(column.name)]
        notes.append(f"{column.name!r} has leading zeros, as in {code!r}: codes, not amounts.")
    elif len(numbers) and numbers.notna().all():
        if len(spoken) < len(values):
            marks = ", ".join(sorted({repr(value) for value in values[~values.index.isin(spoken.index)]}))
            notes.append(f"{column.name!r} is a column of numbers, in which {marks} counts as missing.")
        return _numbers(numbers.reindex(column.index), notes, place)
    elif words := _words_of_a_scale(spoken, numbers):
        notes.append(f"{column.name!r} has {words} beside a few numbers: each value is a category.")
    elif (numbers.notna() | spoken.str.fullmatch(_WRITTEN_NUMBER)).mean() > _MOSTLY:
        odd = numbers.index[numbers.isna()][0]
        count = int(numbers.isna().sum())
        may_be = re.fullmatch(r"[^,]*,[^.,]*", spoken[odd])
        comma = "Give decimal=',' (--decimal ,) if that is a decimal comma. " if may_be else ""
        raise ValueError(
            f"{place(odd)}, column {column.name!r}: got {column[odd]!r}{_written_with(spoken[odd])} in "
            f"a column of numbers ({count:,} such value{'s' * (count != 1)}). {comma}Correct the values, "
            f"{_as_missing(column, odd)}, drop the column, or name it in `categorical` if the numbers are "
            "codes."
        )
    elif len(strange := strange_among(spoken)):
        odd, count = strange.index[0], len(strange)
        raise ValueError(
            f"{place(odd)}, column {column.name!r}: got {column[odd]!r} in a column of dates ({count:,} such "
            f"value{'s' * (count != 1)}). Correct the values, {_as_missing(column, odd)}, drop the column, "
            "or name it in `categorical` to make each date a category."
        )
    distinct = values.nunique()
    most = _MANY_CATEGORIES if _ID_NAME.fullmatch(str(column.name)) else len(values) / 2
    if distinct > _SOME_DISTINCT and distinct > min(most, len(values) / 2):
        notes.append(
            f"{column.name!r} has {distinct:,} different texts for {len(values):,} people and is left out."
        )
        return None
    return _categories(column, notes)


def _as_missing(column: pd.Series[Any], at: Any) -> str:
    """Say how to treat a value as missing."""
    return f"treat them as missing (--map '{column.name}:{column[at]}=')"


def _words_of_a_scale(spoken: pd.Series[Any], numbers: pd.Series[Any]) -> str:
    """Return the words among a few different numbers, such as grades from 9 to 12; otherwise ''.

    Among many different numbers, a word is a mistake to correct, and so is an unusually written number.
    """
    odd = spoken[numbers.isna()]
    scale = spoken.nunique() <= _SOME_DISTINCT and numbers.notna().mean() > _MOSTLY
    if not scale or odd.empty or odd.str.fullmatch(_WRITTEN_NUMBER).any():
        return ""
    return ", ".join(repr(word) for word in odd.unique()[:_NAMED])


def _written_with(text: str) -> str:
    """Say which characters keep a number from being read as one; '' if the text is not a number.

    >>> _written_with("€ 2,433.67")
    ", written with '€', ' ' and ',' (expected numbers like 2433.67)"
    """
    if not re.fullmatch(_WRITTEN_NUMBER, text):
        return ""
    signs = [repr(sign) for sign in dict.fromkeys(re.findall(_NOT_PLAIN, text)) or ["."]]
    listed = " and ".join(filter(None, [", ".join(signs[:-1]), signs[-1]]))
    return f", written with {listed} (expected numbers like 2433.67)"


def _categories(column: pd.Series[Any], notes: list[str]) -> pd.Series[Any]:
    missing = column.isna()
    values = column.astype(object).where(~missing, "missing").astype(str)
    distinct = values.nunique()
    if distinct > _MANY_CATEGORIES:
        notes.append(
            f"{column.name!r} has {distinct:,} categories; those that are rare in the training part share "
            "one column."
        )
    return values.astype("category")


def _date_format(column: pd.Series[Any]) -> str | None:
    """Return the format of a column's dates; None unless every value is a date in the same usual format."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return ISO
    return format_of(_spoken(_written(column)))


def _days(column: pd.Series[Any], how: str, notes: list[str]) -> pd.Series[float]:
    """Return days since 1970: one number per date, so that a similarity counts it once."""
    if pd.api.types.is_datetime64_any_dtype(column):
        days, other = days_of(column), ""
    else:
        values = _spoken(_written(column))
        days, other = read_dates(values, how).reindex(column.index), day_first(values, how)
    notes.append(f"{column.name!r} holds dates, which are used as days since 1970-01-01.")
    if other:
        notes[-1] += f" They are read as {how}; {other} would fit too."
    return days


def _written(column: pd.Series[Any]) -> pd.Series[str]:
    return column.dropna().astype(str).str.strip()


def _spoken(values: pd.Series[str]) -> pd.Series[str]:
    """Return the values without marks of a missing value."""
    return values[~values.str.lower().isin(NO_NUMBER)]
