"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a new, empty file next to `path`; when the block ends without an error, it replaces `path`.

    No other call uses this file, even if several write to `path` at once. The file is flushed to disk before
    it replaces `path`. If the block fails, the file is removed.
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
    # File systems allow names of at most 255 bytes.
    stem = os.fsencode(path.stem)[:200].decode(errors="ignore")
    partial = path.with_name(f".{stem}.{secrets.token_hex(8)}{path.suffix}")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (FileNotFoundError, NotADirectoryError):
        check_parent(path)
        raise
    return partial


def check_parent(path: Path) -> None:
    """Raise unless the file would lie in a folder."""
    parent = path.parent
    if parent.is_dir():
        return
    if parent.exists():
        raise NotADirectoryError(f"Got {path} to write to, but {str(parent)!r} is a file, not a folder.")
    raise FileNotFoundError(f"Got {path} to write to, but there is no folder {str(parent)!r}.")


def try_writing(path: Path) -> None:
    """Raise if no file can be created next to `path`; checking permissions alone can mislead."""
    try:
        _new_beside(path).unlink()
    except OSError as error:
        if error.errno is None:  # `check_parent` has said what is missing
            raise
        why = error.strerror or str(error)
        raise OSError(f"Got {path} to write to, but no file can be made in {path.parent}: {why}.") from error


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file in UTF-8, whole or not at all; return its path."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)
