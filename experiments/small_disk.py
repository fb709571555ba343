"""A disk of a few megabytes that can be filled to the last byte: for tests and experiments."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NoDiskError(RuntimeError):
    """Disks may not be mounted here."""


@contextmanager
def small_disk(size: str = "16m") -> Iterator[Path]:
    """Mount a disk in memory of its own, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="evenhand-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "evenhand", folder]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoDiskError("a disk of its own may not be mounted on this machine") from error
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Leave no byte on a disk for as long as the block lasts."""
    filler = disk / "filler"
    file = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 16, 1):
            try:
                while True:
                    os.write(file, b"x" * size)
            except OSError:
                continue
        yield
    finally:
        os.close(file)
        filler.unlink()
