"""Workers that work on data sets beside the process that trains."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from evenhand.protocol.readying import ONE_THREAD, from_file, in_file
from evenhand.protocol.trial import Prepared

Submit = Callable[..., Future[Any]]  # takes a function of a data set, the key, and further arguments


@contextmanager
def pool_of_workers(data: Mapping[str, Prepared], workers: int, *, processes: bool) -> Iterator[Submit]:
    """Give a function that submits work on one of the data sets to a pool of workers.

    Threads wait for each other because of Python's lock, however briefly they hold it. Thousands of models
    take a tenth of the time in processes.
    """
    if not processes:
        with ThreadPoolExecutor(workers) as threads:
            yield lambda work, key, *given: threads.submit(work, data[key], *given)
        return
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as folder:
        pool = ProcessPoolExecutor(workers, env=ONE_THREAD, initializer=_start)
        try:
            pool.submit(_start)  # starts all workers now, and not when the first data set is ready
            yield lambda work, key, *given: pool.submit(_done, work, in_file(data, key, folder), *given)
        finally:
            pool.shutdown(kill_workers=True)  # nobody waits for what still runs


def _start() -> None:
    """Do nothing; a worker that is told to has imported this module, and all that it imports."""


def _done(work: Callable[..., Any], path: Path, *given: Any) -> Any:
    return work(from_file(path), *given)
