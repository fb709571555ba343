"""Numbers with a decimal comma: find out whether a file has them, and convert them."""

from __future__ import annotations

import csv
import re
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from evenhand.checks import one_of
from evenhand.tables.csv_format import read_header

_LOOKED_AT = 10_000  # rows, to guess the decimal sign
_THOUSANDS = r"[1-9]\d{0,2}(?:\.\d{3})+"
_WITH_COMMA = re.compile(rf"\s*[+-]?(?:\d+|{_THOUSANDS}),\d+\s*|\s*[+-]?{_THOUSANDS}\s*")
# Not 1,234, which may be a thousand.
_ONLY_WITH_COMMA = re.compile(rf"\s*[+-]?(?:\d+,(?:\d{{1,2}}|\d{{4,}})|{_THOUSANDS},\d+)\s*")
_ONLY_WITH_POINT = re.compile(rf"\s*[+-]?(?!{_THOUSANDS}\s*$)\d*\.\d+\s*")


def decimal_of(path: Path, file: TextIO, given: str | None = None, likely: str = ".") -> str:
    """Return the decimal sign of a CSV file: a comma if some numbers in its first rows have one.

    No number may have a decimal point, and the separator must be another sign. If no number there shows the
    sign, it is the `likely` one. The file's position changes.
    """
    if given is not None:
        return one_of("decimal", given, (".", ","))
    header = read_header(path, file)
    if header.separator == ",":
        return "."
    found = likely
    try:
        for fields in islice(csv.reader(file, delimiter=header.separator), _LOOKED_AT):
            if any(map(_ONLY_WITH_POINT.fullmatch, fields)):
                return "."
            if any(map(_ONLY_WITH_COMMA.fullmatch, fields)):
                found = ","
    except (csv.Error, UnicodeError):  # reading the file will say where
        return "."
    return found


def with_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with decimal points in its text: '1.234,5' becomes '1234.5', and '1.234' becomes '1234'.

    >>> people = pd.DataFrame({"pay": ["1.234,5", "7", "?"], "born": ["31.12.2020", "", "a, b"]})
    >>> with_points(people).values.tolist()
    [['1234.5', '31.12.2020'], ['7', ''], ['?', 'a, b']]
    """
    changed = {
        name: frame[name].map(_with_point, na_action="ignore")
        for name in frame.columns
        if frame[name].dtype == object or pd.api.types.is_string_dtype(frame[name].dtype)
    }
    return frame.assign(**changed)


def _with_point(value: Any) -> Any:
    if not isinstance(value, str) or not _WITH_COMMA.fullmatch(value):
        return value
    return value.replace(".", "").replace(",", ".")


def as_numbers(frame: pd.DataFrame, but: list[str]) -> pd.DataFrame:
    """Convert columns of text that hold only numbers to numbers, except those in `but`."""
    found = {name: pd.to_numeric(frame[name], errors="coerce") for name in frame.columns if name not in but}
    whole = {name: column for name, column in found.items() if column.notna().equals(frame[name].notna())}
    return frame.assign(**whole)
