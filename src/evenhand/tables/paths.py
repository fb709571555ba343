"""A table's file by its name: which format it has, and what it holds when it is unpacked."""

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
MOST_UNPACKED = 1 << 30  # bytes of a packed file that is held in memory: a small file can hold any number
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def ending_of(path: Path) -> str:
    """Return the format that a name ends in; a packed file has that of what it holds.

    >>> ending_of(Path("people.csv.gz")), ending_of(Path("people.XLSX"))
    ('.csv', '.xlsx')
    """
    held = path.with_suffix("") if is_packed(path) else path
    return held.suffix.lower()


def bare_name(path: Path) -> str:
    """Return a name without what says the format.

    >>> bare_name(Path("data/people.csv.gz")), bare_name(Path("people.2020.csv"))
    ('people', 'people.2020')
    """
    return path.with_suffix("").stem if is_packed(path) else path.stem


def is_packed(path: Path) -> bool:
    """Return whether a name says that the file is packed."""
    return path.suffix.lower() in _OPENERS


def kind_of_file(path: Path) -> str:
    """Return the ending of a table's file, which must exist and have a format that can be read."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file: CSV, Parquet or Excel.")
    if not path.is_file():
        near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"There is no file {path}.{did_you_mean(path.name, near)}")
    if is_packed(path):
        packed = [f"{ending}{path.suffix.lower()}" for ending in TEXT_FILES]
        one_of(f"the ending of {path.name}", f"{ending_of(path)}{path.suffix.lower()}", packed)
        return ending_of(path)
    return one_of(f"the ending of {path.name}", ending_of(path), (*TEXT_FILES, ".parquet", ".xlsx"))


@contextmanager
def open_bytes(path: Path, content: bytes | None = None) -> Iterator[Any]:
    """Open a file, whose bytes may have been read before, to read what it holds."""
    try:
        with path.open("rb") if content is None else io.BytesIO(content) as file:
            unpack = _OPENERS.get(path.suffix.lower())
            yield file if unpack is None else unpack(file, "rb")
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if not is_packed(path) or getattr(error, "errno", None) is not None:  # as a disk's errors have
            raise
        raise ValueError(f"{path} is damaged or cut off, and can't be unpacked ({error}).") from error


@contextmanager
def open_text(path: Path, encoding: str, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file of text; its line ends stay as they are."""
    with open_bytes(path) as held, io.TextIOWrapper(held, encoding, errors, newline="") as file:
        yield file


def unpacked(path: Path, content: bytes) -> bytes:
    """Return what the bytes of a file hold; raise if they are packed and hold too much for memory."""
    if not is_packed(path):
        return content
    with open_bytes(path, content) as file:
        held: bytes = file.read(MOST_UNPACKED + 1)
    check_unpacked(path, len(held))
    return held


def check_unpacked(path: Path, size: int) -> None:
    """Raise if a packed file holds too much to be held in memory."""
    if size > MOST_UNPACKED:
        raise ValueError(
            f"{path} holds more than {MOST_UNPACKED >> 30} GiB when it is unpacked, though the file has only "
            f"{path.stat().st_size:,} bytes. If that is right, unpack it first, to CSV."
        )
