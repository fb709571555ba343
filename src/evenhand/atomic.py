"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a new, empty file beside `path` to write to; when the block ends well, it takes the path's place.

    The file is this call's own, whatever other files are there and whoever else writes to `path`. It is on
    the disk before it takes its place, and gone when the block fails.
    """
    partial = _new_beside(Path(path))
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _new_beside(path: Path) -> Path:
    # At most 255 bytes, which is what file systems take.
    stem = os.fsencode(path.stem)[:200].decode(errors="ignore")
    partial = path.with_name(f".{stem}.{secrets.token_hex(8)}{path.suffix}")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return partial


def try_writing(path: Path) -> None:
    """Raise if no file can be made where `path` is to appear; asking for rights alone can mislead."""
    try:
        _new_beside(path).unlink()
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(f"Got {path} to write to, but no file can be made in {path.parent}: {why}.") from error


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file in UTF-8, whole or not at all; return its path."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)
