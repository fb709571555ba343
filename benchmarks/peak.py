"""The memory that a piece of work adds at its peak, by looking every few milliseconds (Linux)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self


def resident() -> float:
    """Memory of this process now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class AddedMemory:
    """`with AddedMemory() as memory: ...` and then `memory.added`, in MB."""

    def __enter__(self) -> Self:
        self._before = self._most = resident()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._watch.join()
        self.added = self._most - self._before

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self._most = max(self._most, resident())
