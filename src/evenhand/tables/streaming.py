"""Read tables too large for memory in chunks, from CSV, Parquet or Excel; `writing` writes them."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pandas as pd

from evenhand.tables.csv_format import (
    Header,
    read_header,
    unequal,
    unguarded,
    with_mark,
    wrong_encoding,
)
from evenhand.tables.decimals import decimal_of
from evenhand.tables.files import no_sheet, pyarrow_for
from evenhand.tables.paths import kind_of_file, open_text
from evenhand.tables.pieces import ParquetPieces, parquet_files
from evenhand.tables.workbook import full, open_sheet

CHUNK = 10_000
_LONGEST_LINE = 10_000_000
_ENDS = ("\n", "\r")  # of a line
_MOST_AGAIN = 200_000  # lines to read a second time; after that, a row may have at most
_MOST_LINES = 100  # lines, so that reading stays linear
_SHOWN = 1_000  # characters of a damaged line that its reject shows


class Reject(NamedTuple):
    """A row that could not be used: its line (or row) in the file, the reason, and its fields."""

    line: int
    reason: str
    fields: list[str]


class Chunk(NamedTuple):
    """Some rows, the line (or the row of a Parquet file) where each begins, and the damaged lines.

    `schema` is that of a Parquet file, since a chunk alone may not show the type of a column. `separator` is
    that of a CSV file. `decimal` is the decimal sign in text.
    """

    rows: pd.DataFrame
    lines: list[int]
    rejects: list[Reject]
    schema: Any = None
    separator: str = ","
    decimal: str | None = None


def read_chunks(
    path: Path,
    *,
    size: int = CHUNK,
    encoding: str = "utf-8",
    decimal: str | None = None,
    sheet: str | None = None,
) -> Iterator[Chunk]:
    """Read a CSV file as text, or a Parquet or Excel file as it is, `size` rows at a time.

    In a folder of Parquet files, rows are numbered across the files, sorted by name. `decimal` is that of
    `read_table`; it doesn't change the rows, but each chunk states it.
    """
    ending = ".parquet" if path.is_dir() else kind_of_file(path)
    if ending == ".xlsx":
        return _sheet_chunks(path, size, decimal, sheet)
    no_sheet(path, sheet)
    if ending == ".parquet":
        return _parquet_chunks(path, size, decimal)
    return _csv_chunks(path, size, encoding, decimal)


def _csv_chunks(path: Path, size: int, encoding: str, given: str | None) -> Iterator[Chunk]:
    known = with_mark(encoding)
    # Invalid bytes become lone surrogates, so that only their row is rejected.
    errors = "surrogateescape" if known == "utf-8-sig" else "strict"
    try:
        with open_text(path, known, errors) as file:
            decimal = decimal_of(path, file, given)
            file.seek(0)
            for chunk in _decoded_chunks(path, file, size, encoding):
                yield chunk._replace(decimal=decimal)
    except UnicodeError as error:
        raise ValueError(wrong_encoding(path, encoding)) from error


def _decoded_chunks(path: Path, file: TextIO, size: int, encoding: str) -> Iterator[Chunk]:
    header = read_header(path, file)
    if any(map(_undecoded, header.names)):
        raise ValueError(wrong_encoding(path, encoding))
    rows: list[list[str]] = []
    lines: list[int] = []
    rejects: list[Reject] = []
    none_yet = True
    for line, fields, damage in _records(file, header):
        reason = damage or _damage(fields, len(header.names), encoding)
        if reason:
            rejects.append(Reject(line, reason, [_printable(cell) for cell in fields]))
        else:
            rows.append([unguarded(cell) for cell in fields])
            lines.append(line)
        if len(rows) + len(rejects) >= size:
            yield Chunk(_table(rows, header), lines, rejects, separator=header.separator)
            rows, lines, rejects, none_yet = [], [], [], False
    if rows or rejects or none_yet:
        yield Chunk(_table(rows, header), lines, rejects, separator=header.separator)


def _table(rows: list[list[str]], header: Header) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=header.names, dtype=object)


def _records(file: TextIO, header: Header) -> Iterator[tuple[int, list[str], str]]:
    """Read the rows after the header: the line where each begins, its fields, and what is wrong with it.

    If a row is not valid CSV, only its first line is given up, and reading continues after that line: a quote
    that is not closed must not swallow the rows that follow.
    """
    lines = _Lines(file, begins=header.lines + 1)
    reader = csv.reader(lines, delimiter=header.separator, strict=True)
    while True:
        begins = lines.begins
        try:
            fields, damage = next(reader), ""
        except StopIteration:
            return
        except csv.Error as error:
            first = lines.begin_again().rstrip("\r\n")
            fields = [first if len(first) <= _SHOWN else first[:_SHOWN] + " …"]
            damage = f"no CSV ({error}); is a quote not closed, or not doubled?"
            if "limit" in str(error):
                damage = f"too long ({error}); is a quote not closed?"
        lines.end_row()
        if fields:
            yield begins, fields, damage


class _Lines:
    """The lines of a file, for a csv.reader; all lines of the current row but the first can be put back."""

    def __init__(self, file: TextIO, begins: int) -> None:
        self.begins = begins  # where the current row begins
        self._file = file
        self._row: list[str] = []
        self._again: deque[str] = deque()
        self._given_back = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        new = not self._again
        line = self._file.readline(_LONGEST_LINE) if new else self._again.popleft()
        if not line:
            raise StopIteration
        self._row.append(line)
        if self._given_back > _MOST_AGAIN and len(self._row) > _MOST_LINES:
            raise csv.Error(f"row of more than the limit ({_MOST_LINES} lines, in so damaged a file)")
        if len(line) >= _LONGEST_LINE and not line.endswith(_ENDS):
            while new and (rest := self._file.readline(_LONGEST_LINE)) and not rest.endswith(_ENDS):
                pass
            raise csv.Error(f"line larger than the limit ({_LONGEST_LINE})")
        return line

    def begin_again(self) -> str:
        """Put back the lines of the current row, except the first, which is returned."""
        self._given_back += len(self._row)
        self._again.extendleft(reversed(self._row[1:]))
        del self._row[1:]
        return self._row[0]

    def end_row(self) -> None:
        self.begins += len(self._row)
        self._row.clear()


def _damage(fields: list[str], wanted: int, encoding: str) -> str:
    if len(fields) != wanted:
        return unequal("field", len(fields), wanted)
    if any(map(_undecoded, fields)):
        return f"a byte that is not {encoding.upper()}"
    return ""


def _undecoded(cell: str) -> bool:
    return not cell.isascii() and any("\udc80" <= sign <= "\udcff" for sign in cell)


def _printable(cell: str) -> str:
    return cell if cell.isascii() else cell.encode("utf-8", "replace").decode("utf-8", "replace")


def _parquet_chunks(path: Path, size: int, decimal: str | None) -> Iterator[Chunk]:
    pieces = parquet_files(path) if path.is_dir() else ParquetPieces(path, [path])
    schema = pyarrow_for(path).parquet.read_schema(pieces.files[0])
    start = 1
    for rows in pieces.frames(size):
        yield Chunk(rows, list(range(start, start + len(rows))), [], schema, decimal=decimal)
        start += len(rows)
    if start == 1:
        yield Chunk(schema.empty_table().to_pandas(), [], [], schema, decimal=decimal)
    pieces.check()


def _sheet_chunks(path: Path, size: int, decimal: str | None, sheet: str | None) -> Iterator[Chunk]:
    with open_sheet(path, sheet) as opened:
        names = opened.names
        part = list(islice(opened.rows, size))
        while True:
            rows = [(at, full(row, names)) for at, row in part if len(row) <= len(names)]
            rejects = [
                Reject(at, unequal("cell", len(row), len(names)), list(map(str, row)))
                for at, row in part
                if len(row) > len(names)
            ]
            table = pd.DataFrame([row for _, row in rows], columns=names, dtype=object)
            yield Chunk(table, [at for at, _ in rows], rejects, decimal=decimal)
            part = list(islice(opened.rows, size))
            if not part:
                return
