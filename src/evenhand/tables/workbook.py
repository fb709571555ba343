"""Excel workbooks: one sheet, read a row at a time; no formula and no macro is run."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.checks import did_you_mean
from evenhand.tables.csv_format import MISSING_MARKS, checked_names, unequal
from evenhand.tables.paths import check_unpacked, open_bytes
from evenhand.wording import as_plain, listed

_LARGE_PARTS = ("xl/worksheets/", "xl/sharedStrings", "xl/media/", "xl/drawings/", "xl/pivotCache/")
_LARGEST_PART = 16 << 20  # bytes of any other part, since these are read at once: styles, names, links
MOST_ROWS = 1_048_576  # of a sheet
_MOST_CELLS = 50_000_000  # held in memory; even a small workbook can claim any number of empty ones


class Sheet(NamedTuple):
    """The column names, the rows with their numbers in the sheet, and notes."""

    names: list[str]
    rows: Iterator[tuple[int, list[Any]]]
    notes: list[str]


def openpyxl_for(path: Path) -> Any:
    """Return openpyxl, which only Excel workbooks need."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(f"{path.name} needs openpyxl: pip install 'evenhand[excel]'.") from error
    return openpyxl


@contextmanager
def open_sheet(path: Path, sheet: str | None = None, content: bytes | None = None) -> Iterator[Sheet]:
    """Open one sheet of a workbook, by default the first; raise ValueError if the file is not a workbook."""
    openpyxl = openpyxl_for(path)
    with open_bytes(path, content) as file:
        with _blaming(path):
            _check_parts(path, file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about drawings, styles and the like, which are not data
                book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            pages = {page.title: page for page in book.worksheets}
        if sheet is not None and sheet not in pages:
            near = did_you_mean(sheet, pages) or f" It has {listed(list(pages))}."
            raise ValueError(f"Got sheet={sheet!r}, but {path} has no such sheet.{near}")
        rows = _rows(path, pages[sheet] if sheet is not None else next(iter(pages.values()), None))
        at, first = next(rows, (1, []))
        if not first:
            raise ValueError(f"{path} is empty; expected a table with column names.")
        names = checked_names(["" if name is None else str(name) for name in first], f"{path}, row {at}")
        several = sheet is None and len(pages) > 1
        notes = [f"{path.name} has the sheets {listed(list(pages))}; the first was read."] if several else []
        yield Sheet(names, rows, notes)


def _check_parts(path: Path, file: Any) -> None:
    """Raise if a workbook would take too much memory; no part can unpack to more than its stated size."""
    with zipfile.ZipFile(file) as parts:
        sizes = {part.filename: part.file_size for part in parts.infolist()}
    check_unpacked(path, sum(sizes.values()))
    for name, size in sizes.items():
        if size > _LARGEST_PART and not name.startswith(_LARGE_PARTS):
            raise ValueError(f"{path} has {size:,} bytes of {name}, but expected {_LARGEST_PART:,} at most.")


def read_sheet(
    path: Path, sheet: str | None, content: bytes
) -> tuple[list[str], list[list[Any]], list[int], list[str]]:
    """Return a whole sheet: names, rows, their numbers in the sheet, and notes."""
    rows: list[list[Any]] = []
    numbers: list[int] = []
    with open_sheet(path, sheet, content) as opened:
        for number, row in opened.rows:
            if len(row) > len(opened.names):
                raise ValueError(f"{path}, row {number} has {unequal('cell', len(row), len(opened.names))}.")
            rows.append(full(row, opened.names))
            numbers.append(number)
            if len(rows) * len(opened.names) > _MOST_CELLS:
                raise ValueError(f"{path} has more than {_MOST_CELLS:,} cells; save so large a table as CSV.")
        return opened.names, rows, numbers, opened.notes


def full(row: list[Any], names: list[str]) -> list[Any]:
    """Return a row with a cell for every name; sheets leave out empty cells at the end."""
    return row + [None] * (len(names) - len(row))


def plain_cell(page: Any, value: Any) -> Any:
    """Return a cell to be written; text that begins like a formula stays text."""
    if not isinstance(value, str):
        value = as_plain(value)
        known = (bool, int, float, date, time)  # a datetime is a date
        zoned = getattr(value, "tzinfo", None) is not None
        return value if value is None or (isinstance(value, known) and not zoned) else str(value)
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = WriteOnlyCell(page, ILLEGAL_CHARACTERS_RE.sub(" ", value))
    cell.data_type = "s"
    return cell


def _rows(path: Path, page: Any) -> Iterator[tuple[int, list[Any]]]:
    """Return the rows that are not empty, each without the empty cells at its end."""
    with _blaming(path):
        page.reset_dimensions()  # a sheet may state any size
        for number, cells in enumerate(page.iter_rows(values_only=True), start=1):
            row = [None if isinstance(cell, str) and cell in MISSING_MARKS else cell for cell in cells]
            while row and row[-1] is None:
                row.pop()
            if row:
                yield number, row


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a damaged workbook can raise any of them
        if isinstance(error, (ValueError, ImportError)) and str(path) in str(error):
            raise
        kind = type(error).__name__
        raise ValueError(f"{path} is not a readable Excel workbook ({kind}: {error}).") from error
