"""Write tables a piece at a time: CSV, Parquet or Excel, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from evenhand.atomic import replacing
from evenhand.tables.csv_format import FORMULA_SIGNS, unguarded
from evenhand.tables.files import pyarrow_for
from evenhand.tables.paths import ending_of, is_packed
from evenhand.tables.workbook import MOST_ROWS, openpyxl_for, plain_cell

WRITTEN = (".csv", ".csv.gz", ".parquet", ".xlsx")
_NUMBER = re.compile(r"[+-]?[.,]?\d[\d.,]*([eE][+-]?\d+)?")  # in any notation


class Writer:
    """Writes tables one after another to a CSV, Parquet or Excel file, or as CSV to standard output.

    In CSV, text that a spreadsheet would take for a formula gets an apostrophe before it; reading removes it
    again. `writing` opens a writer. A `path` of None is standard output.
    """

    def __init__(self, path: Path | None, opened: ExitStack) -> None:
        self.path = path
        self.rows = 0
        self.keep = True  # if set to False, the file does not appear
        self._opened = opened
        self._ending = "" if path is None else ending_of(path)
        self._sink: Any = None
        self._csv: Any = None

    @property
    def begun(self) -> bool:
        """Whether anything was written, even if only the column names."""
        return self._sink is not None

    def write(
        self, table: pd.DataFrame, schema: Any = None, separator: str = ",", decimal: str | None = None
    ) -> None:
        """Append the rows of a table; the columns must be the same every time.

        For Parquet, `schema` has the types of some columns; other columns without values are text. In CSV,
        `separator` separates the columns, and `decimal` is the decimal sign of numbers; text stays as it is.
        """
        if self._ending == ".parquet":
            self._write_parquet(table, schema)
        elif self._ending == ".xlsx":
            self._write_sheet(table)
        else:
            self._write_csv(table, separator, decimal)
        self.rows += len(table)

    def _write_csv(self, table: pd.DataFrame, separator: str, decimal: str | None) -> None:
        if self._sink is None:
            self._sink = sys.stdout
            if self.path is not None:
                partial = self._opened.enter_context(replacing(self.path))
                self._sink = self._opened.enter_context(self._open_text(partial))
            self._csv = csv.writer(self._sink, delimiter=separator, lineterminator="\n")
            self._csv.writerow([safe_cell(name) for name in table.columns])
        cell = _with_comma if decimal == "," else safe_cell
        columns = [[cell(value) for value in table.iloc[:, at].tolist()] for at in range(table.shape[1])]
        self._csv.writerows(zip(*columns, strict=True))

    def _open_text(self, partial: Path) -> TextIO:
        if not is_packed(partial):
            return partial.open("w", encoding="utf-8", newline="")
        file = self._opened.enter_context(partial.open("wb"))
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # the same rows make the same file
        return io.TextIOWrapper(packed, encoding="utf-8", newline="")

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

    def _write_sheet(self, table: pd.DataFrame) -> None:
        assert self.path is not None
        if self._sink is None:
            book = openpyxl_for(self.path).Workbook(write_only=True)
            partial = self._opened.enter_context(replacing(self.path))
            self._sink = book.create_sheet("decided")
            self._opened.callback(book.save, partial)
            self._sink.append([plain_cell(self._sink, name) for name in table.columns])
        if self.rows + len(table) >= MOST_ROWS:
            raise ValueError(
                f"{self.path} would have more than {MOST_ROWS:,} rows, the most that Excel takes; write CSV."
            )
        for row in table.itertuples(index=False):
            self._sink.append([plain_cell(self._sink, value) for value in row])


class _NotKeptError(Exception):
    """Ends a block whose file should not appear."""


@contextmanager
def writing(path: Path | None) -> Iterator[Writer]:
    """Open a writer; the file appears under its name only if the block ends without an error."""
    with suppress(_NotKeptError), ExitStack() as opened:
        writer = Writer(path, opened)
        yield writer
        if not writer.keep:
            raise _NotKeptError


def _with_comma(value: Any) -> Any:
    """Return a cell with a decimal comma if it is a number, in a form that is read back as one."""
    if not isinstance(value, float):
        return safe_cell(value)
    return np.format_float_positional(value, trim="0").replace(".", ",")  # 1,5e-05 would be read as text


def safe_cell(value: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet takes for a formula; `unguarded` gives the text back.

    Numbers stay as they are, and so does a single character, which computes nothing.

    >>> [safe_cell(value) for value in ("=1+1", "-5", "-1.000,5", "-5 apples", -5, "-", "plain")]
    ["'=1+1", '-5', '-1.000,5', "'-5 apples", -5, '-', 'plain']
    """
    if not isinstance(value, str) or len(value) < 2:
        return value
    formula = value[0] in FORMULA_SIGNS and not _NUMBER.fullmatch(value)
    # Text that already has an apostrophe there gets another, since reading removes one.
    return "'" + value if formula or unguarded(value) != value else value
