"""Shuffle people on disk: each goes to a random bucket, and a bucket is small enough for memory.

Rows in a file are often sorted. A buffer filled from the start of the file would then hold only one label.
With random buckets, people come in a random order, whatever the order of the file and the size of a bucket.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.checks import JobFailedError


class Spool:
    """Coded people in a folder, in `buckets` files.

    Parameters
    ----------
    folder : Path
        An empty folder.
    numbers, categories : int
        How many of each a person has.
    buckets : int
        The number of files.
    people : int
        About how many people will be added; there must be room for them on the disk.
    """

    def __init__(self, folder: Path, *, numbers: int, categories: int, buckets: int, people: int) -> None:
        self.folder, self.buckets = folder, buckets
        self._sizes = np.zeros(buckets, dtype=np.int64)
        self._kind = np.dtype(
            [("numbers", "<f4", numbers), ("codes", "<i4", categories), ("label", "<i4"), ("group", "<i4"),
             ("weight", "<f8")]
        )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        needed, free = people * self._kind.itemsize, shutil.disk_usage(folder).free
        if needed > free:
            raise JobFailedError(
                f"Got {free:,} free bytes in {folder}, but expected {needed:,}: people are shuffled there."
            )

    def add(
        self, bucket: Codes, numbers: Floats, codes: Codes, labels: Codes, groups: Codes, weights: Any
    ) -> None:
        """Append people to their buckets."""
        order = np.argsort(bucket, kind="stable")
        rows = np.empty(len(bucket), dtype=self._kind)
        parts = (numbers, codes, labels, groups, weights)
        for name, part in zip(self._kind.names or (), parts, strict=True):
            rows[name] = part
        rows = rows[order]
        ends = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        self._sizes += np.diff(ends)
        for at in range(self.buckets):
            if ends[at] < ends[at + 1]:
                with self._path(at).open("ab") as file:
                    file.write(rows[ends[at] : ends[at + 1]].tobytes())

    def read(self, bucket: int) -> Any:
        """Return the people of a bucket: `numbers`, `codes`, `label`, `group` and `weight`."""
        path, size = self._path(bucket), int(self._sizes[bucket])
        found = np.fromfile(path, self._kind) if path.exists() else np.empty(0, self._kind)
        if len(found) != size:
            raise JobFailedError(f"Got {len(found):,} people in {path}, but expected the {size:,} put there.")
        return found

    def _path(self, bucket: int) -> Path:
        return self.folder / f"{bucket:05d}.people"
