"""Read a user's file or DataFrame; errors name the file and, if possible, the line."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.checks import one_of
from evenhand.frames import as_pandas as from_any_library
from evenhand.tables import csv_format
from evenhand.tables.csv_bytes import plain_lines
from evenhand.tables.decimals import as_numbers, decimal_of, with_points
from evenhand.tables.paths import kind_of_file, unpacked
from evenhand.tables.workbook import read_sheet


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read.

    Parameters
    ----------
    frame : DataFrame
        All rows and columns.
    origin : str
        Where it comes from: the file's path, or 'the DataFrame'.
    notes : list of str
        Notes about how it was read.
    path : Path, optional
        The file.
    encoding : str
        The encoding of a CSV file.
    sha256 : str
        The digest of the file's bytes, as `sha256sum` prints it; '' for a DataFrame.
    rows : sequence of int
        The row numbers in an Excel sheet, counted from 1.
    decimal : str
        The decimal sign of its numbers.
    """

    frame: pd.DataFrame
    origin: str = "the DataFrame"
    notes: list[str] = field(default_factory=list)
    path: Path | None = None
    encoding: str = "utf-8"
    sha256: str = ""
    rows: Sequence[int] = ()
    decimal: str = "."

    def plain(self) -> pd.DataFrame:
        """Return the frame with column names as text, and rows numbered from 0."""
        return self.frame.rename(columns=str).reset_index(drop=True)

    @property
    def sheets(self) -> str:
        """What to add to an error about columns, which may be in another sheet; '' if there is none."""
        several = bool(self.rows and self.notes)
        return f" {' '.join(self.notes)} Name another with sheet= (--sheet)." if several else ""

    def place(self, row: Any) -> str:
        """Return where a row of the frame is: file and line, or the row of a DataFrame."""
        if self.rows:
            return f"{self.origin}, row {self.rows[int(row)]}"
        if self.path is None or self.path.suffix.lower() == ".parquet":
            return f"{self.origin}, row {getattr(row, 'item', lambda: row)()!r}"
        return f"{self.origin}, line {csv_format.line_of_row(self.path, int(row), encoding=self.encoding)}"


def read_table(
    source: Any, *, encoding: str = "utf-8", decimal: str | None = None, sheet: str | None = None
) -> Table:
    """Read a CSV, Parquet or Excel file, or take a DataFrame.

    A CSV file may be compressed (.csv.gz, .csv.bz2, .csv.xz). Its columns with leading zeros ('01', '007')
    are read as text, since they hold codes. A first column without a name, such as an index that pandas
    wrote, is called 'Unnamed: 0', as in pandas.

    Parameters
    ----------
    source : path, DataFrame or Table
        A CSV, Parquet or Excel file, or a DataFrame of pandas, Polars (lazy ones are collected), Arrow or any
        other library that narwhals supports. A `Table` is returned as it is.
    encoding : str
        The encoding of a CSV file.
    decimal : {'.', ','}, optional
        The decimal sign in text. Guessed for a CSV file whose columns are not separated by commas.
    sheet : str, optional
        The sheet of an Excel file; by default the first.

    Returns
    -------
    Table
        The rows and columns as `frame`, with `notes` on how they were read.

    Raises
    ------
    ValueError
        If the file is damaged, has no rows or columns, or has a column name twice.

    Examples
    --------
    >>> read_table(pd.DataFrame({"age": [25, 31]})).origin
    'the DataFrame'
    """
    if isinstance(source, Table):
        return source
    is_file = isinstance(source, (str, Path))
    if is_file:
        table = _read_file(Path(source), encoding, decimal, sheet)
    else:
        table = Table(_read_text(as_pandas(source), decimal))
    names = pd.Index(table.frame.columns)
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise ValueError(f"{table.origin} has the column {twice!r} more than once; expected each name once.")
    rows, columns = table.frame.shape
    if rows == 0 or columns == 0:
        raise ValueError(
            f"{table.origin} has {columns} columns and {rows} rows; expected at least one of each."
        )
    return table


def no_sheet(path: Path, sheet: str | None) -> None:
    """Raise if a sheet was asked for in a file that has none."""
    if sheet is not None:
        raise ValueError(f"Got sheet={sheet!r} with {path}, but only an Excel file (.xlsx) has sheets.")


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_text(frame: pd.DataFrame, decimal: str | None) -> pd.DataFrame:
    return with_points(frame) if one_of("decimal", decimal or ".", (".", ",")) == "," else frame


def _read_file(path: Path, encoding: str, decimal: str | None, sheet: str | None) -> Table:
    kind = kind_of_file(path)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if kind == ".parquet":
        no_sheet(path, sheet)
        frame = _read_text(_read_parquet(path, content), decimal)
        return Table(frame, str(path), path=path, sha256=digest, decimal=decimal or ".")
    if kind == ".xlsx":
        names, cells, rows, notes = read_sheet(path, sheet, content)
        frame = _read_text(pd.DataFrame(cells, columns=names), decimal)
        return Table(frame, str(path), notes, path, sha256=digest, rows=rows, decimal=decimal or ".")
    no_sheet(path, sheet)
    frame, notes, decimal = _read_csv(path, unpacked(path, content), encoding, decimal)
    return Table(frame, str(path), notes, path, encoding, digest, decimal=decimal)


def _read_csv(
    path: Path, content: bytes, encoding: str, given: str | None
) -> tuple[pd.DataFrame, list[str], str]:
    called = csv_format.with_mark(encoding)
    try:
        with io.TextIOWrapper(io.BytesIO(content), called, newline="") as file:
            header = csv_format.read_header(path, file)
            looked = plain_lines(content, header, called)
            file.seek(0)
            coded, guarded = csv_format.check_lines(path, file) if looked is None else looked
            file.seek(0)
            decimal = decimal_of(path, file, given)
            file.seek(0)
            csv_format.read_header(path, file)
            frame = pd.read_csv(file, **reading(header, decimal, coded))
    except UnicodeError as error:
        raise ValueError(csv_format.wrong_encoding(path, encoding)) from error
    for name in guarded:
        frame[name] = frame[name].map(csv_format.unguarded, na_action="ignore")
    if decimal == ",":
        frame = as_numbers(with_points(frame), but=coded)
    notes = on_reading(path, header.separator, guessed=decimal if given is None else ".")
    return frame, notes, decimal


def reading(header: csv_format.Header, decimal: str, text: Iterable[str]) -> dict[str, Any]:
    """Return pandas' options for reading the rows after a header; columns in `text` stay text."""
    return {
        "sep": header.separator, "header": None, "names": header.names, "keep_default_na": False,
        "na_values": list(csv_format.MISSING_MARKS), "low_memory": False,
        "dtype": str if decimal == "," else dict.fromkeys(text, str),
    }  # fmt: skip


def on_reading(path: Path, separator: str, *, guessed: str) -> list[str]:
    """Return notes on what is unusual in how a CSV file is read; `guessed` is the guessed decimal sign."""
    sign = csv_format.SEPARATORS.get(separator, repr(separator))
    notes = [] if separator == "," else [f"Columns of {path.name} are separated by a {sign}."]
    if guessed == ",":
        notes.append(
            f"Numbers in {path.name} are read with a decimal comma; decimal='.' (--decimal .) reads points."
        )
    return notes


def _read_parquet(path: Path, content: bytes) -> pd.DataFrame:
    with whole_parquet(path) as pyarrow:
        frame: pd.DataFrame = pyarrow.parquet.read_table(pyarrow.BufferReader(content)).to_pandas()
    return frame


@contextmanager
def whole_parquet(path: Path) -> Iterator[Any]:
    """Yield pyarrow to read a file; its errors become one that says that the file is not complete."""
    pyarrow = pyarrow_for(path)
    try:
        yield pyarrow
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a complete Parquet file: {error}") from error


def pyarrow_for(path: Path) -> Any:
    """Return pyarrow, which only Parquet files need."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path.name} needs pyarrow: pip install 'evenhand[parquet]'.") from error
    return pyarrow


def as_pandas(source: Any) -> pd.DataFrame:
    """Return a frame of any library as a pandas DataFrame; it may offer Arrow or dataframe interchange."""
    source = from_any_library(source)
    if isinstance(source, pd.DataFrame):
        return source
    if isinstance(source, pd.Series):
        raise TypeError("Got a Series, but expected a DataFrame: of one person, it is frame.iloc[[0]].")
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow

        streamed: pd.DataFrame = pyarrow.table(source).to_pandas()
        return streamed
    if hasattr(source, "__dataframe__"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old, but some libraries offer nothing else
            return pd.api.interchange.from_dataframe(source)
    if isinstance(source, str | os.PathLike):
        raise TypeError(
            f"Got the path {str(source)!r}, but expected a DataFrame: read the file first, or use `evenhand "
            "predict`."
        )
    raise TypeError(
        f"Got a {type(source).__name__}, but expected the path of a CSV, Parquet or Excel file, or a frame."
    )
