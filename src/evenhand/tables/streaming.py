"""Tables too large for memory: rows in chunks from CSV or Parquet, and out again, safe for a spreadsheet."""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pandas as pd

from evenhand.atomic import replacing
from evenhand.tables.csv_format import (
    FORMULA_SIGNS,
    Header,
    read_header,
    unguarded,
    with_mark,
    wrong_encoding,
)
from evenhand.tables.files import kind_of_file, pyarrow_for

CHUNK = 10_000
_LONGEST_LINE = 10_000_000
_ENDS = ("\n", "\r")  # of a line
_MOST_AGAIN = 200_000  # lines read a second time; in a file with more damage, a row has at most
_MOST_LINES = 100  # lines: reading stays linear
_SHOWN = 1_000  # signs of a damaged line that its reject shows
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Reject(NamedTuple):
    """A row that could not be used: its line (or row) in the file, the reason, and its fields."""

    line: int
    reason: str
    fields: list[str]


class Chunk(NamedTuple):
    """Some rows, the line (or the row of a Parquet file) where each begins, and lines that are no row.

    `schema` is that of a Parquet file: a chunk alone may not show the type of a column; `separator` is that
    of a CSV file.
    """

    rows: pd.DataFrame
    lines: list[int]
    rejects: list[Reject]
    schema: Any = None
    separator: str = ","


def read_chunks(path: Path, *, size: int = CHUNK, encoding: str = "utf-8") -> Iterator[Chunk]:
    """Read a CSV file as text, or a Parquet file as it is, `size` rows at a time."""
    ending = kind_of_file(path)
    return _parquet_chunks(path, size) if ending == ".parquet" else _csv_chunks(path, size, encoding)


def _csv_chunks(path: Path, size: int, encoding: str) -> Iterator[Chunk]:
    known = with_mark(encoding)
    # Bytes that are no text become lone surrogates, so that only their row is rejected.
    errors = "surrogateescape" if known == "utf-8-sig" else "strict"
    try:
        with path.open(encoding=known, errors=errors, newline="") as file:
            yield from _decoded_chunks(path, file, size, encoding)
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

    Of a row that is no CSV the first line alone is given up, and reading goes on after it: a quote that is
    not closed must not swallow the rows that follow.
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
    """The lines of a file, for a csv.reader; those of the row at hand can be given back but for the first."""

    def __init__(self, file: TextIO, begins: int) -> None:
        self.begins = begins  # where the row at hand begins
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
        """Give the lines of the row back, but for its first, which is returned."""
        self._given_back += len(self._row)
        self._again.extendleft(reversed(self._row[1:]))
        del self._row[1:]
        return self._row[0]

    def end_row(self) -> None:
        self.begins += len(self._row)
        self._row.clear()


def _damage(fields: list[str], wanted: int, encoding: str) -> str:
    if len(fields) != wanted:
        return f"{len(fields)} fields, but the header has {wanted} names"
    if any(map(_undecoded, fields)):
        return f"a byte that is not {encoding.upper()}"
    return ""


def _undecoded(cell: str) -> bool:
    return not cell.isascii() and any("\udc80" <= sign <= "\udcff" for sign in cell)


def _printable(cell: str) -> str:
    return cell if cell.isascii() else cell.encode("utf-8", "replace").decode("utf-8", "replace")


def _parquet_chunks(path: Path, size: int) -> Iterator[Chunk]:
    pyarrow = pyarrow_for(path)
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a complete Parquet file: {error}") from error
    with file:
        start = 1
        for batch in file.iter_batches(batch_size=size):
            rows = batch.to_pandas()
            yield Chunk(rows, list(range(start, start + len(rows))), [], file.schema_arrow)
            start += len(rows)
        if start == 1:
            yield Chunk(file.schema_arrow.empty_table().to_pandas(), [], [], file.schema_arrow)


class Writer:
    """Writes tables one after another to a CSV or Parquet file, or as CSV to standard output.

    In CSV, a text that a spreadsheet would take for a formula gets an apostrophe before it, which reading
    takes away again. `writing` opens one; None is standard output.
    """

    def __init__(self, path: Path | None, opened: ExitStack) -> None:
        self.path = path
        self.rows = 0
        self.keep = True  # set to False, the file does not appear
        self._opened = opened
        self._parquet = path is not None and path.suffix.lower() == ".parquet"
        self._sink: Any = None
        self._csv: Any = None

    @property
    def begun(self) -> bool:
        """Whether anything was written, if only the names of the columns."""
        return self._sink is not None

    def write(self, table: pd.DataFrame, schema: Any = None, separator: str = ",") -> None:
        """Append the rows of a table, whose columns are the same every time.

        For Parquet, `schema` has the types of some columns; others without values are text. In CSV,
        `separator` stands between the columns.
        """
        if self._parquet:
            self._write_parquet(table, schema)
        else:
            self._write_csv(table, separator)
        self.rows += len(table)

    def _write_csv(self, table: pd.DataFrame, separator: str) -> None:
        if self._sink is None:
            self._sink = sys.stdout
            if self.path is not None:
                partial = self._opened.enter_context(replacing(self.path))
                self._sink = self._opened.enter_context(partial.open("w", encoding="utf-8", newline=""))
            self._csv = csv.writer(self._sink, delimiter=separator, lineterminator="\n")
            self._csv.writerow([safe_cell(name) for name in table.columns])
        columns = [[safe_cell(value) for value in table.iloc[:, at].tolist()] for at in range(table.shape[1])]
        self._csv.writerows(zip(*columns, strict=True))

    def _write_parquet(self, table: pd.DataFrame, known: Any) -> None:
        assert self.path is not None
        pyarrow = pyarrow_for(self.path)
        if self._sink is None:
            fields = []
            for field in pyarrow.Schema.from_pandas(table, preserve_index=False):
                if known is not None and field.name in known.names:
                    field = known.field(field.name)
                elif pyarrow.types.is_null(field.type):
                    field = field.with_type(pyarrow.string())
                fields.append(field)
            partial = self._opened.enter_context(replacing(self.path))
            self._sink = pyarrow.parquet.ParquetWriter(partial, pyarrow.schema(fields))
            self._opened.callback(self._sink.close)
        self._sink.write_table(
            pyarrow.Table.from_pandas(table, schema=self._sink.schema, preserve_index=False)
        )


class _NotKeptError(Exception):
    """Ends a block whose file is not to appear."""


@contextmanager
def writing(path: Path | None) -> Iterator[Writer]:
    """Open a writer; the file appears under its name when the block ends well, and not otherwise."""
    with suppress(_NotKeptError), ExitStack() as opened:
        writer = Writer(path, opened)
        yield writer
        if not writer.keep:
            raise _NotKeptError


def safe_cell(value: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet takes for a formula; `unguarded` gives the text back.

    Numbers stay as they are, and so does a sign alone: it computes nothing.

    >>> [safe_cell(value) for value in ("=1+1", "-5", "-5 apples", -5, "-", "plain")]
    ["'=1+1", '-5', "'-5 apples", -5, '-', 'plain']
    """
    if not isinstance(value, str) or len(value) < 2:
        return value
    formula = value[0] in FORMULA_SIGNS and not _NUMBER.fullmatch(value)
    # A text with an apostrophe of its own there gets another, as reading takes one away.
    return "'" + value if formula or unguarded(value) != value else value
