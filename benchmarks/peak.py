"""The seconds that a piece of work takes, and the memory that it adds at its peak, by looking every few milliseconds (Linux)."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

Result = TypeVar("Result")


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


def measured(run: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """Return what `run` returns, and its seconds, those of all processors, and the memory added, in MB."""
    with AddedMemory() as memory:
        started, worked = time.perf_counter(), time.process_time()
        found = run()
        seconds, processor = time.perf_counter() - started, time.process_time() - worked
    return found, {"seconds": seconds, "processor_seconds": processor, "megabytes": memory.added}


def cap(megabytes: float) -> None:
    """Let this process add no more memory than so much, from now on."""
    lines = Path("/proc/self/status").read_text().splitlines()
    now = next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    most = now * 1024 + int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
