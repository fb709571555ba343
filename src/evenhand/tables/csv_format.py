"""The format of a CSV file: its header, encoding, missing values, codes and guarded formulas."""

from __future__ import annotations

import codecs
import csv
import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

import pandas as pd

from evenhand.tables.paths import open_bytes, open_text

# Marks of a missing value in any CSV field. Other text stays as it is: "None" can be a category.
MISSING_MARKS = ("", "NA", "NaN", "nan", "N/A", "n.a.", "null", "NULL", "#N/A", "#NULL!", "#DIV/0!")
_LONGEST_LINE = 1_000_000
_LONGEST_FIELD = 131_072
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?[\r\n]*', re.IGNORECASE)  # before the names, for Excel
_INDEX = "Unnamed: 0"  # pandas' name for a first column without a name, such as an index that it wrote
# A machine can read this as a number, but people write amounts without leading zeros.
CODE = re.compile(r"\s*0\d+(\.\d*)?([eE][+-]?\d+)?\s*")
# A spreadsheet may take text that begins with one for a formula: evenhand writes an apostrophe before it.
FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
GUARDED = re.compile(f"'+[{re.escape(FORMULA_SIGNS)}]")
# For a row's fields, one per line: one search per row, as most rows hold neither. Blanks must not match line
# ends, or the search would go through a field's empty lines again from each of them.
_MAY_HOLD_EITHER = re.compile(rf"\n([^\S\n]*0\d|{GUARDED.pattern})")


class Header(NamedTuple):
    """The header of a CSV file: the separator, the column names, and the number of lines that they take."""

    separator: str
    names: list[str]
    lines: int


def codes_in(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns of codes, each with an example: text, at least half numbers, with leading zeros.

    >>> people = {"branch": ["10", "01", "?"], "age": ["7", "0", "0.5"], "agent": ["007", "M", "Q"]}
    >>> codes_in(pd.DataFrame(people))
    {'branch': '01'}
    """
    found = {}
    for name in frame.columns:
        if pd.api.types.is_string_dtype(frame[name].dtype):
            values = frame[name].dropna().astype(str)
            codes = values[values.str.fullmatch(CODE)]
            if len(codes) and pd.to_numeric(values, errors="coerce").notna().mean() >= 0.5:
                found[str(name)] = str(codes.iloc[0])
    return found


def unguarded(text: str) -> str:
    """Return a field without the apostrophe that keeps a spreadsheet from taking it for a formula.

    >>> [unguarded(text) for text in ("'=1+1", "'+", "'tis", "=1+1")]
    ['=1+1', '+', "'tis", '=1+1']
    """
    return text[1:] if text.startswith("'") and GUARDED.match(text) else text


def line_of_row(path: Path, row: int, *, encoding: str = "utf-8") -> int:
    """Return the line where a data row (from 0) begins, counting quoted line breaks and empty lines."""
    with open_text(path, with_mark(encoding)) as file:
        header = read_header(path, file)
        reader = csv.reader(file, delimiter=header.separator)
        begins, position = header.lines + 1, 0
        for fields in reader:
            if fields and position == row:
                break
            position += bool(fields)
            begins = header.lines + reader.line_num + 1
    return begins


def read_header(path: Path, file: TextIO) -> Header:
    """Read the header of a CSV file; leave the file at its first row."""
    line, first = 1, file.readline(_LONGEST_LINE)
    told = _SEPARATOR_LINE.fullmatch(first)
    if told:
        line, first = 2, file.readline(_LONGEST_LINE)
    if not first:
        raise ValueError(f"{path} is empty; expected a table with column names.")
    if len(first) >= _LONGEST_LINE:
        raise ValueError(
            f"{path}, line {line} is longer than {_LONGEST_LINE:,} characters; expected column names, and "
            "then one row a line."
        )
    separator = told[1] if told else max(SEPARATORS, key=first.count)
    more = iter(lambda: file.readline(_LONGEST_LINE), "")
    reader = csv.reader(chain([first], more), delimiter=separator, strict=True)
    try:
        names = [unguarded(name) for name in next(reader)]
    except csv.Error as error:
        raise ValueError(f"{path}, line {line - 1 + reader.line_num}: {_explained(error)}") from error
    if not names:
        raise ValueError(f"{path}, line {line} is empty; expected column names.")
    return Header(separator, checked_names(names, f"{path}, line {line}"), line - 1 + reader.line_num)


def checked_names(names: list[str], place: str) -> list[str]:
    """Return the column names; raise if one is missing, except the first, or occurs twice."""
    if len(names) > 1 and not names[0].strip():
        names = [_INDEX, *names[1:]]
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise ValueError(f"{place}: column {position} has no name; expected a name for every column.")
        if name in seen:
            raise ValueError(f"{place}: the column name {name!r} appears twice.")
        seen.add(name)
    return names


def unequal(what: str, came: int, names: int) -> str:
    """Say that a row does not have one field, or cell, per column name.

    >>> unequal("field", 1, 2), unequal("cell", 3, 1)
    ('1 field, but there are 2 column names', '3 cells, but there is 1 column name')
    """
    there = f"there is {names} column name" if names == 1 else f"there are {names} column names"
    return f"{came} {what}{'s' * (came != 1)}, but {there}"


def check_lines(path: Path, file: TextIO) -> tuple[list[str], list[str]]:
    """Read a file field by field, so that a damaged line is an error and not filled with blanks.

    Return the columns with leading zeros, and those with an apostrophe to remove.
    """
    coded: set[str] = set()
    guarded: set[str] = set()
    try:
        header = read_header(path, file)
        reader = csv.reader(file, delimiter=header.separator, strict=True)
        for fields in reader:
            if fields and len(fields) != len(header.names):
                raise ValueError(
                    f"{path}, line {header.lines + reader.line_num} has "
                    f"{unequal('field', len(fields), len(header.names))}. Is the file cut off, or a comma "
                    "unquoted?"
                )
            if _MAY_HOLD_EITHER.search("\n".join(["", *fields])):
                named = list(zip(header.names, fields, strict=True))
                coded |= {name for name, field in named if CODE.fullmatch(field)}
                guarded |= {name for name, field in named if GUARDED.match(field)}
    except csv.Error as error:
        raise ValueError(f"{path}, line {header.lines + reader.line_num}: {_explained(error)}") from error
    return sorted(coded), sorted(guarded)


def _explained(error: csv.Error) -> str:
    said = str(error)
    if "field larger" in said:
        return (
            f"a field is longer than {_LONGEST_FIELD:,} characters; expected a table. Is a quote not closed?"
        )
    if "unexpected end of data" in said:
        return "the file ends inside a quoted field. Is it cut off, or a quote not closed?"
    return f"this is not CSV ({said})."


def wrong_encoding(path: Path, encoding: str) -> str:
    """Say which byte of a file is not valid in its encoding."""
    likely = "" if with_mark(encoding) != "utf-8-sig" else _likely(path)
    advice = f"Save the file as UTF-8, or give its encoding (--encoding, in Python encoding=){likely}."
    whole = f"{path} is not {encoding.upper()}. {advice}"
    if not "\n\n".encode(encoding).endswith(b"\n\n"):  # as in UTF-16, whose lines end in more than that byte
        return whole
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return (
                    f"{path}, line {number}: the byte 0x{line[error.start]:02x} at position "
                    f"{error.start + 1} is not {encoding.upper()}. {advice}"
                )
    return whole


def _likely(path: Path) -> str:
    """Say which encoding a file that is not UTF-8 may have: one that spreadsheets write."""
    with open_bytes(path) as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return ", which is utf-16 by its first bytes" if marked else ", often cp1252"


def with_mark(encoding: str) -> str:
    """Return Python's name for an encoding; for UTF-8, the one that skips spreadsheets' byte order mark."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"Got the encoding {encoding!r}, but expected one that Python knows, such as 'cp1252'."
        ) from None
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name
