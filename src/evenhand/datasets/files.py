"""Reading a user's file: CSV, Parquet or a DataFrame; an error names the file, and the line where it can."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pandas as pd

from evenhand.checks import did_you_mean, one_of

# What says in any CSV field that there is no value. Other text stays as it stands: "None" can be a category.
MISSING_MARKS = ("", "NA", "NaN", "nan", "N/A", "null", "NULL")
_LONGEST_LINE = 1_000_000
_LONGEST_FIELD = 131_072
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TEXT_FILES = (".csv", ".tsv", ".txt")
# A number to a machine; but people who write amounts leave leading zeros out.
_CODE = re.compile(r"\s*0\d+(\.\d*)?([eE][+-]?\d+)?\s*")
_MAY_HOLD_CODE = re.compile(r"\n\s*0\d")  # of fields in lines: one search a row, as most rows hold none


class Table(NamedTuple):
    """A table as it was read: its columns, where it came from, and what there is to say of the reading."""

    frame: pd.DataFrame
    origin: str
    notes: list[str]


class Header(NamedTuple):
    """What the beginning of a CSV file says: the separator, the columns' names, the lines that they take."""

    separator: str
    names: list[str]
    lines: int


def read_table(source: Any, *, encoding: str = "utf-8") -> Table:
    """Read a CSV or Parquet file, or take a DataFrame (pandas, Polars, or with the dataframe interchange).

    A column of a CSV file in which a number has a leading zero ('01', '007') is text: these are codes.

    >>> read_table(pd.DataFrame({"age": [25, 31]})).origin
    'the DataFrame'
    """
    if isinstance(source, (str, Path)):
        path = Path(source)
        frame, notes = _read_file(path, encoding)
        origin = str(path)
    else:
        frame, notes, origin = _as_pandas(source), [], "the DataFrame"
    names = pd.Index(frame.columns)
    if names.has_duplicates:
        raise ValueError(
            f"{origin} has the column {names[names.duplicated()][0]!r} more than once; expected names once."
        )
    if frame.shape[1] == 0 or len(frame) == 0:
        raise ValueError(
            f"{origin} has {frame.shape[1]} columns and {len(frame)} rows; expected at least one of each."
        )
    return Table(frame, origin, notes)


def codes_in(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns of codes, each with an example: text, half of it numbers, some with a leading zero.

    >>> people = {"branch": ["10", "01", "?"], "age": ["7", "0", "0.5"], "agent": ["007", "M", "Q"]}
    >>> codes_in(pd.DataFrame(people))
    {'branch': '01'}
    """
    found = {}
    for name in frame.columns:
        if pd.api.types.is_string_dtype(frame[name].dtype):
            values = frame[name].dropna().astype(str)
            codes = values[values.str.fullmatch(_CODE)]
            if len(codes) and pd.to_numeric(values, errors="coerce").notna().mean() >= 0.5:
                found[str(name)] = str(codes.iloc[0])
    return found


def line_of_row(path: Path, row: int, *, encoding: str = "utf-8") -> int:
    """Return the line where a data row (from 0) begins, past quoted line breaks and empty lines."""
    with _open(path, encoding) as file:
        header = read_header(path, file)
        reader = csv.reader(file, delimiter=header.separator)
        begins, position = header.lines + 1, 0
        for fields in reader:
            if fields and position == row:
                break
            position += bool(fields)
            begins = header.lines + reader.line_num + 1
    return begins


def kind_of_file(path: Path) -> str:
    """Return the ending of a table's file, which must be there and be one that can be read."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a CSV or Parquet file.")
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"There is no file {path}.{did_you_mean(path.name, near)}")
    return one_of(f"the ending of {path.name}", path.suffix.lower(), (*TEXT_FILES, ".parquet"))


def read_header(path: Path, file: TextIO) -> Header:
    """Read the names of a CSV file's columns, each once; the file is left where its rows begin."""
    first = file.readline(_LONGEST_LINE)
    if not first:
        raise ValueError(f"{path} is empty; expected a table with column names.")
    if len(first) >= _LONGEST_LINE:
        raise ValueError(
            f"{path}, line 1 is longer than {_LONGEST_LINE:,} characters; expected column names, and then "
            "one row a line."
        )
    separator = max(_SEPARATORS, key=first.count)
    more = iter(lambda: file.readline(_LONGEST_LINE), "")
    reader = csv.reader(chain([first], more), delimiter=separator, strict=True)
    try:
        names = next(reader)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {_explained(error)}") from error
    if not names:
        raise ValueError(f"{path}, line 1 is empty; expected column names.")
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise ValueError(
                f"{path}, line 1: column {position} has no name; expected a name for every column."
            )
        if names.index(name) != position - 1:
            raise ValueError(f"{path}, line 1: the column {name!r} comes twice; expected each name once.")
    return Header(separator, names, reader.line_num)


def _read_file(path: Path, encoding: str) -> tuple[pd.DataFrame, list[str]]:
    if kind_of_file(path) == ".parquet":
        return _read_parquet(path), []
    separator, coded = _check_lines(path, encoding)
    notes = (
        [] if separator == "," else [f"Columns of {path.name} are separated by a {_SEPARATORS[separator]}."]
    )
    frame = pd.read_csv(
        path,
        sep=separator,
        encoding=with_mark(encoding),
        keep_default_na=False,
        na_values=list(MISSING_MARKS),
        dtype=dict.fromkeys(coded, str),
        low_memory=False,
    )
    return frame, notes


def _read_parquet(path: Path) -> pd.DataFrame:
    pyarrow = pyarrow_for(path)
    try:
        frame: pd.DataFrame = pyarrow.parquet.read_table(path).to_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is no whole Parquet file: {error}") from error
    return frame


def pyarrow_for(path: Path) -> Any:
    """Return pyarrow, which only Parquet files need."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path.name} needs pyarrow: pip install 'evenhand[parquet]'.") from error
    return pyarrow


def _check_lines(path: Path, encoding: str) -> tuple[str, list[str]]:
    """Read the file once as bare fields, so that a damaged line is named, not filled with blanks.

    Return the separator, and the columns that hold a number with a leading zero.
    """
    with _open(path, encoding) as file:
        try:
            header = read_header(path, file)
            reader = csv.reader(file, delimiter=header.separator, strict=True)
            plain = set(range(len(header.names)))
            for fields in reader:
                if fields and len(fields) != len(header.names):
                    raise ValueError(
                        f"{path}, line {header.lines + reader.line_num}: got {len(fields)} fields, but the "
                        f"{len(header.names)} column names in line 1 want as many. Is the file cut off, or a "
                        "comma unquoted?"
                    )
                if _MAY_HOLD_CODE.search("\n".join(["", *fields])):
                    plain -= {at for at in plain if _CODE.fullmatch(fields[at])}
        except csv.Error as error:
            raise ValueError(f"{path}, line {header.lines + reader.line_num}: {_explained(error)}") from error
        except UnicodeError as error:
            raise ValueError(wrong_encoding(path, encoding)) from error
    return header.separator, [name for at, name in enumerate(header.names) if at not in plain]


def _explained(error: csv.Error) -> str:
    said = str(error)
    if "field larger" in said:
        return (
            f"a field is longer than {_LONGEST_FIELD:,} characters; expected a table. Is a quote not closed?"
        )
    if "unexpected end of data" in said:
        return "the file ends inside a quoted field. Is it cut off, or a quote not closed?"
    return f"this is no CSV ({said})."


def wrong_encoding(path: Path, encoding: str) -> str:
    """Say which byte of a file is not what its encoding allows."""
    advice = "Save the file as UTF-8, or say its encoding, such as encoding='latin-1'."
    whole = f"{path} is not {encoding.upper()}. {advice}"
    if not "\n\n".encode(encoding).endswith(b"\n\n"):  # as in UTF-16, whose lines end in more than that byte
        return whole
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return (
                    f"{path}, line {number}: the byte 0x{line[error.start]:02x} at position "
                    f"{error.start + 1} is not {encoding.upper()}. {advice}"
                )
    return whole


@contextmanager
def _open(path: Path, encoding: str) -> Iterator[TextIO]:
    with path.open(encoding=with_mark(encoding), newline="") as file:
        yield file


def with_mark(encoding: str) -> str:
    """Spreadsheets put a mark before UTF-8 text; it must not become part of the first column's name."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"Got the encoding {encoding!r}, but expected one that Python knows, such as 'latin-1'."
        ) from None
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name


def _as_pandas(source: Any) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "to_pandas"):
        converted = source.to_pandas()
        if isinstance(converted, pd.DataFrame):
            return converted
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow

        streamed: pd.DataFrame = pyarrow.table(source).to_pandas()
        return streamed
    if hasattr(source, "__dataframe__"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old, but what some libraries still speak
            return pd.api.interchange.from_dataframe(source)
    raise TypeError(
        f"Got a {type(source).__name__}, but expected the path of a CSV or Parquet file, or a DataFrame."
    )
