"""CSV files larger than memory, some rows at a time; columns get the same types as in a file read whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from evenhand.checks import one_of
from evenhand.frames import duckdb_module
from evenhand.tables import csv_format, pieces
from evenhand.tables.columns import is_number
from evenhand.tables.decimals import as_numbers, decimal_of, with_points
from evenhand.tables.files import on_reading, reading
from evenhand.tables.paths import TEXT_FILES, kind_of_file, open_text
from evenhand.tables.pieces import DaskPieces, DuckdbPieces, FilePieces, ParquetPieces, Pieces, parquet_files

LARGE = 1 << 30  # bytes; a larger CSV file is not held in memory


@dataclass(frozen=True)
class _Looked:
    """What is known about the columns after every line was checked."""

    decimal: str
    text: frozenset[str]  # columns that are neither all numbers nor all truth values
    guarded: tuple[str, ...]  # columns with an apostrophe to remove


class CsvPieces(FilePieces):
    """A CSV file, possibly compressed. It is checked first for damaged lines and for columns' types."""

    def __init__(self, path: Path, encoding: str, decimal: str | None) -> None:
        super().__init__(path, [path])
        self._encoding, self._given = encoding, decimal
        self._looked: _Looked | None = None

    @property
    def large(self) -> bool:
        """Whether it has more than LARGE bytes."""
        return self._path.stat().st_size > LARGE

    def place(self, row: Any) -> str:
        """Return the line of a row."""
        return f"{self._path}, line {csv_format.line_of_row(self._path, int(row), encoding=self._encoding)}"

    def _frames(self, columns: list[str] | None, coded: list[str]) -> Iterator[pd.DataFrame]:
        try:
            looked = self._looked = self._looked or self._look()
            for chunk in self._chunks(looked):
                yield chunk if columns is None else chunk[columns]
        except UnicodeError as error:
            raise ValueError(csv_format.wrong_encoding(self._path, self._encoding)) from error

    def _look(self) -> _Looked:
        """Raise if a line is damaged; return how columns are to be read."""
        with self._opened() as file:
            leading, guarded = csv_format.check_lines(self._path, file)
        with self._opened() as file:
            decimal = self.decimal = decimal_of(self._path, file, self._given)
        with self._opened() as file:
            separator = csv_format.read_header(self._path, file).separator
        self.notes = on_reading(self._path, separator, guessed=decimal if self._given is None else ".")
        text, kinds = frozenset(leading), dict[str, set[str]]()
        for chunk in self._chunks(_Looked(decimal, text, tuple(guarded))):
            for name in chunk.columns:
                truths = pd.api.types.is_bool_dtype(chunk[name])
                kind = "truth" if truths else "number" if is_number(chunk[name]) else "text"
                kinds.setdefault(str(name), set()).add(kind)
        mixed = {name for name, found in kinds.items() if found not in ({"number"}, {"truth"})}
        return _Looked(decimal, text | mixed, tuple(guarded))

    def _chunks(self, looked: _Looked) -> Iterator[pd.DataFrame]:
        comma = looked.decimal == ","
        with self._opened() as file:
            header = csv_format.read_header(self._path, file)
            options = reading(header, looked.decimal, looked.text)
            for chunk in pd.read_csv(file, chunksize=pieces.BATCH, **options):
                for name in looked.guarded:
                    chunk[name] = chunk[name].map(csv_format.unguarded, na_action="ignore")
                yield as_numbers(with_points(chunk), but=list(looked.text)) if comma else chunk

    def _opened(self) -> AbstractContextManager[TextIO]:
        return open_text(self._path, csv_format.with_mark(self._encoding))


def pieces_of(table: Any, *, encoding: str = "utf-8", decimal: str | None = None) -> Pieces | None:
    """Return a table in pieces; None if it is in memory or can't be read in pieces.

    Parquet and CSV files, folders of Parquet files, Dask frames, DuckDB relations and Arrow data sets can be.
    """
    comma = one_of("decimal", decimal or ".", (".", ",")) == ","
    if not isinstance(table, (str, Path)):
        library = type(table).__module__.lstrip("_")
        if library.startswith("pyarrow") and hasattr(table, "scanner"):
            return DuckdbPieces(duckdb_module("a data set of Arrow").from_arrow(table), comma)
        if library.startswith("duckdb"):
            return DuckdbPieces(table, comma)
        return DaskPieces(table, comma) if library.startswith("dask") else None
    path = Path(table)
    if path.is_dir():
        return parquet_files(path, comma)
    kind = kind_of_file(path)
    if kind == ".parquet":
        return ParquetPieces(path, [path], comma)
    return CsvPieces(path, encoding, decimal) if kind in TEXT_FILES else None
