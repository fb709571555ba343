"""Tables too large for memory: rows in chunks from CSV or Parquet, and out again, safe for a spreadsheet."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand.checks import did_you_mean, one_of

TEXT_FILES = (".csv", ".tsv", ".txt")
CHUNK = 10_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Reject(NamedTuple):
    """A row that could not be used: its line (or row) in the file, the reason, and its fields."""

    line: int
    reason: str
    fields: list[str]


class Chunk(NamedTuple):
    """Some rows, the line (or the row, of a Parquet file) where each begins, and lines that were no row.

    `schema` is that of a Parquet file: a chunk by itself may not tell the type of a column.
    """

    rows: pd.DataFrame
    lines: list[int]
    rejects: list[Reject]
    schema: Any = None


def read_chunks(path: Path, *, size: int = CHUNK, encoding: str = "utf-8") -> Iterator[Chunk]:
    """Read a CSV file as text, or a Parquet file as it is, `size` rows at a time."""
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"There is no file {path}.{did_you_mean(path.name, near)}")
    ending = one_of(f"the ending of {path.name}", path.suffix.lower(), (*TEXT_FILES, ".parquet"))
    return _parquet_chunks(path, size) if ending == ".parquet" else _csv_chunks(path, size, encoding)


def _csv_chunks(path: Path, size: int, encoding: str) -> Iterator[Chunk]:
    plain = encoding.lower() in ("utf-8", "utf8")
    # Bytes that are no text become lone surrogates, so that only their row is rejected.
    with path.open(
        encoding="utf-8-sig" if plain else encoding,
        errors="surrogateescape" if plain else "strict",
        newline="",
    ) as file:
        first = file.readline()
        separator = max(",;\t|", key=first.count)
        header = next(csv.reader([first], delimiter=separator), [])
        if not header or len(set(header)) < len(header) or not all(map(str.strip, header)):
            raise ValueError(
                f"{path}, line 1: expected column names, each once; got {first.strip()[:200]!r}."
            )
        reader = csv.reader(file, delimiter=separator, strict=True)
        rows: list[list[str]] = []
        lines: list[int] = []
        rejects: list[Reject] = []
        begins = 2
        try:
            for fields in reader:
                line, begins = begins, reader.line_num + 2
                if not fields:
                    continue
                reason = _damage(fields, len(header), encoding)
                if reason:
                    rejects.append(Reject(line, reason, [_printable(cell) for cell in fields]))
                else:
                    rows.append(fields)
                    lines.append(line)
                if len(rows) + len(rejects) >= size:
                    yield Chunk(pd.DataFrame(rows, columns=header, dtype=object), lines, rejects)
                    rows, lines, rejects = [], [], []
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {begins}: {error}. Is a quote not closed, or the file cut off?"
            ) from error
        if rows or rejects or begins == 2:
            yield Chunk(pd.DataFrame(rows, columns=header, dtype=object), lines, rejects)


def _damage(fields: list[str], wanted: int, encoding: str) -> str:
    if len(fields) != wanted:
        return f"{len(fields)} fields, but the header has {wanted} names"
    if any("\udc80" <= sign <= "\udcff" for cell in fields if not cell.isascii() for sign in cell):
        return f"a byte that is not {encoding.upper()}"
    return ""


def _printable(cell: str) -> str:
    return cell if cell.isascii() else cell.encode("utf-8", "replace").decode("utf-8", "replace")


def _parquet_chunks(path: Path, size: int) -> Iterator[Chunk]:
    pyarrow = _pyarrow(path)
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is no whole Parquet file: {error}") from error
    with file:
        start = 1
        for batch in file.iter_batches(batch_size=size):
            rows = batch.to_pandas()
            yield Chunk(rows, list(range(start, start + len(rows))), [], file.schema_arrow)
            start += len(rows)


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path.name} needs pyarrow: pip install 'evenhand[parquet]'.") from error
    return pyarrow


class Writer:
    """Writes tables one after another to a CSV file, a Parquet file, or, for '-', CSV on standard output.

    The file appears under its name once it is whole. In CSV, a text that a spreadsheet would take for a
    formula gets an apostrophe before it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows = 0
        self._parquet = path is not None and path.suffix.lower() == ".parquet"
        self._partial = None if path is None else path.with_name(path.name + ".partial")
        self._sink: Any = None
        self._csv: Any = None

    def write(self, table: pd.DataFrame, schema: Any = None) -> None:
        """Append the rows of a table, whose columns are the same every time.

        `schema` tells the types of some columns for Parquet; other text is text even where there is none.
        """
        if self._parquet:
            self._write_parquet(table, schema)
        else:
            if self._csv is None:
                self._sink = (
                    sys.stdout
                    if self._partial is None
                    else self._partial.open("w", encoding="utf-8", newline="")
                )
                self._csv = csv.writer(self._sink, lineterminator="\n")
                self._csv.writerow([safe_cell(name) for name in table.columns])
            columns = [
                [safe_cell(value) for value in table.iloc[:, at].tolist()] for at in range(table.shape[1])
            ]
            self._csv.writerows(zip(*columns, strict=True))
        self.rows += len(table)

    def _write_parquet(self, table: pd.DataFrame, known: Any) -> None:
        assert self.path is not None
        pyarrow = _pyarrow(self.path)
        if self._sink is None:
            fields = []
            for field in pyarrow.Schema.from_pandas(table, preserve_index=False):
                if known is not None and field.name in known.names:
                    field = known.field(field.name)
                elif pyarrow.types.is_null(field.type):
                    field = field.with_type(pyarrow.string())
                fields.append(field)
            self._sink = pyarrow.parquet.ParquetWriter(self._partial, pyarrow.schema(fields))
        self._sink.write_table(
            pyarrow.Table.from_pandas(table, schema=self._sink.schema, preserve_index=False)
        )

    def close(self, *, whole: bool) -> None:
        """Finish; a file that is not whole is removed."""
        if self._sink is None or self._partial is None:
            return
        self._sink.close()
        if whole and self.path is not None:
            self._partial.replace(self.path)
        self._partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path | None) -> Iterator[Writer]:
    """Open a writer; leave nothing behind when the block fails."""
    writer = Writer(path)
    try:
        yield writer
    except BaseException:
        writer.close(whole=False)
        raise
    writer.close(whole=True)


def safe_cell(value: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet takes for a formula; numbers stay as they are.

    >>> [safe_cell(value) for value in ("=1+1", "-5", "-5 apples", -5, "plain")]
    ["'=1+1", '-5', "'-5 apples", -5, 'plain']
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return "'" + value
    return value
