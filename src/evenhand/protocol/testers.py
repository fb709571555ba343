"""Checkpoints tested by many workers, beside the process that trains."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from evenhand.protocol.selection import Best
from evenhand.protocol.trial import Prepared, Selected, tested

_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
ONE_THREAD = dict.fromkeys(_LIMITS, "1")  # a worker; the others are busy, too

Chosen = dict[str, Selected]
Submit = Callable[[str, Mapping[str, Best[Any]]], Future[Chosen]]


@contextmanager
def pool_of_testers(data: Mapping[str, Prepared], workers: int, *, processes: bool) -> Iterator[Submit]:
    """Give a function that has the best checkpoints of a model tested on one of the data sets, by its key.

    Threads wait for one another to hold Python's lock, however little they hold it: thousands of models take
    a tenth of the time in processes.
    """
    if not processes:
        with ThreadPoolExecutor(workers) as threads:
            yield lambda key, best: threads.submit(tested, best, data[key].test, data[key].neighbours)
        return
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as folder:
        lock = Lock()

        def file_of(key: str) -> Path:
            path = Path(folder, key)
            with lock:  # models are trained, and handed in, in threads
                if not path.exists():
                    joblib.dump((data[key].test, data[key].neighbours), path)
            return path

        pool = ProcessPoolExecutor(workers, env=ONE_THREAD)
        try:
            yield lambda key, best: pool.submit(_tested, file_of(key), best)
        finally:
            pool.shutdown(kill_workers=True)  # what still runs, nobody waits for any more


def _tested(path: Path, best: Mapping[str, Best[Any]]) -> Chosen:
    return tested(best, *from_file(path))


@functools.lru_cache(maxsize=16)
def from_file(path: Path) -> Any:
    """Map what a file holds into this worker's memory, once; processes share the pages nobody writes to."""
    return joblib.load(path, mmap_mode="c")
