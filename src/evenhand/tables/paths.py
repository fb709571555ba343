"""A table's file: the format that its name tells, and its content, decompressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from evenhand.checks import did_you_mean, one_of

TEXT_FILES = (".csv", ".tsv", ".txt")
MOST_UNPACKED = 1 << 30  # bytes of a compressed file in memory: even a small file can unpack to any size
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def ending_of(path: Path) -> str:
    """Return the ending that tells a file's format; for a compressed file, that of its content.

    >>> ending_of(Path("people.csv.gz")), ending_of(Path("people.XLSX"))
    ('.csv', '.xlsx')
    """
    held = path.with_suffix("") if is_packed(path) else path
    return held.suffix.lower()


def bare_name(path: Path) -> str:
    """Return a file's name without the endings that tell its format.

    >>> bare_name(Path("data/people.csv.gz")), bare_name(Path("people.2020.csv"))
    ('people', 'people.2020')
    """
    return path.with_suffix("").stem if is_packed(path) else path.stem


def is_packed(path: Path) -> bool:
    """Return whether a file's name says that it is compressed."""
    return path.suffix.lower() in _OPENERS


def kind_of_file(path: Path) -> str:
    """Return the ending of a table's file; raise if it does not exist or its format can't be read."""
    if path.is_dir():
        check_folder(path)
        raise IsADirectoryError(f"{path} is a folder; expected a file: CSV, Parquet or Excel.")
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"There is no file {path}.{did_you_mean(path.name, near)}")
    if is_packed(path):
        packed = [f"{ending}{path.suffix.lower()}" for ending in TEXT_FILES]
        one_of(f"the ending of {path.name}", f"{ending_of(path)}{path.suffix.lower()}", packed)
        return ending_of(path)
    return one_of(f"the ending of {path.name}", ending_of(path), (*TEXT_FILES, ".parquet", ".xlsx"))


def check_folder(path: Path) -> None:
    """Raise if a folder has no Parquet files."""
    if not any(path.glob("*.parquet")):
        raise ValueError(
            f"{path} is a folder without Parquet files; expected a CSV, Parquet or Excel file, or a folder "
            "of Parquet files."
        )


@contextmanager
def open_bytes(path: Path, content: bytes | None = None) -> Iterator[Any]:
    """Open a file, or its bytes if they were read before, to read its decompressed content."""
    try:
        with path.open("rb") if content is None else io.BytesIO(content) as file:
            unpack = _OPENERS.get(path.suffix.lower())
            yield file if unpack is None else unpack(file, "rb")
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if not is_packed(path) or getattr(error, "errno", None) is not None:  # an error of the disk
            raise
        raise ValueError(f"{path} is damaged or cut off, and can't be unpacked ({error}).") from error


@contextmanager
def open_text(path: Path, encoding: str, errors: str = "strict") -> Iterator[TextIO]:
    """Open a text file, decompressed; its line ends stay as they are."""
    with open_bytes(path) as held, io.TextIOWrapper(held, encoding, errors, newline="") as file:
        yield file


def unpacked(path: Path, content: bytes) -> bytes:
    """Return the decompressed content of a file's bytes; raise if that is too large for memory."""
    if not is_packed(path):
        return content
    with open_bytes(path, content) as file:
        held: bytes = file.read(MOST_UNPACKED + 1)
    check_unpacked(path, len(held))
    return held


def check_unpacked(path: Path, size: int) -> None:
    """Raise if the content of a compressed file is too large for memory."""
    if size > MOST_UNPACKED:
        raise ValueError(
            f"{path} holds more than {MOST_UNPACKED >> 30} GiB when it is unpacked, though the file has only "
            f"{path.stat().st_size:,} bytes. If that is right, unpack it first, to CSV."
        )
