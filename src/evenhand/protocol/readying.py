"""Split and preprocess data sets, many at a time."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from evenhand.protocol.trial import Prepared, make_ready
from evenhand.tables.dataset import Dataset

MANY = 32  # data sets from which on processes are worth the seconds they take to start
_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
ONE_THREAD = dict.fromkeys(_LIMITS, "1")  # per worker, because the other cores are busy too
_WRITING = Lock()


class Arriving(Mapping[str, Prepared]):
    """Data sets by key, made ready in the order of the keys. Whoever asks for one waits until it is ready.

    If they come in files, these are in `folder`, which is deleted together with this object.
    """

    def __init__(
        self,
        keys: Iterable[str],
        ready: Iterator[Prepared | Path],
        folder: str | None = None,
    ) -> None:
        self._there: dict[str, Prepared | Path | None] = dict.fromkeys(keys)
        self._last = next(reversed(self._there), None)
        self._coming = zip(tuple(self._there), ready, strict=True)
        self._lock = Lock()
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __getitem__(self, key: str) -> Prepared:
        found = self.arrived(key)
        prepared: Prepared = from_file(found) if isinstance(found, Path) else found
        return prepared

    def arrived(self, key: str) -> Prepared | Path:
        """Return a data set, or the file that contains it."""
        if (there := self._there[key]) is not None:
            return there
        with self._lock:
            while (found := self._there[key]) is None:
                name, prepared = next(self._coming)
                self._there[name] = prepared
                if name == self._last:
                    next(self._coming, None)  # lets the generator finish
            return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._there)

    def __len__(self) -> int:
        return len(self._there)


def all_ready(
    wanted: Mapping[str, tuple[Dataset, int]], how: str, *, processes: bool, workers: int | None
) -> Arriving:
    """Return prepared data sets by key; `wanted` has the data set and the seed for each key.

    Preprocessing holds Python's lock, so more threads hardly help. If `processes` is true, many data sets
    are prepared in processes.
    """
    count = joblib.effective_n_jobs(-1) if workers is None else workers
    if not processes or len(wanted) < MANY:
        return Arriving(wanted, _in_threads(wanted, how, count))
    folder = tempfile.mkdtemp(prefix="evenhand-")
    return Arriving(wanted, _in_processes(wanted, how, count, Path(folder)), folder)


def _in_threads(wanted: Mapping[str, tuple[Dataset, int]], how: str, workers: int) -> Iterator[Prepared]:
    ready: Iterator[Prepared] = joblib.Parallel(workers, backend="threading", return_as="generator")(
        joblib.delayed(make_ready)(dataset, seed, how) for dataset, seed in wanted.values()
    )
    return ready


def _in_processes(
    wanted: Mapping[str, tuple[Dataset, int]], how: str, workers: int, folder: Path
) -> Iterator[Path]:
    """Send data sets and results through files: each data set once, whatever its number of seeds."""
    named = {id(dataset): dataset for dataset, _ in wanted.values()}
    for name, dataset in named.items():
        joblib.dump(dataset, folder / str(name))
    given = [folder / str(id(dataset)) for dataset, _ in wanted.values()]
    with ProcessPoolExecutor(workers, env=ONE_THREAD, initializer=_give_way) as pool:
        seeds = [seed for _, seed in wanted.values()]
        into = [folder / key for key in wanted]
        yield from pool.map(functools.partial(_ready_in_file, how), given, seeds, into)


def _give_way() -> None:
    """Let other processes go first: training waits for those that work on the data sets that are ready."""
    if hasattr(os, "nice"):
        os.nice(10)


def _ready_in_file(how: str, given: Path, seed: int, into: Path) -> Path:
    joblib.dump(make_ready(from_file(given), seed, how), into)
    return into


def in_file(data: Mapping[str, Prepared], key: str, folder: str | Path) -> Path:
    """Return a file with one of the data sets: the one it came in, or else one in the folder."""
    if isinstance(data, Arriving) and isinstance(there := data.arrived(key), Path):
        return there
    prepared, path = data[key], Path(folder, key)
    with _WRITING:  # several threads may come here
        if not path.exists():
            joblib.dump(prepared, path)
    return path


@functools.lru_cache(maxsize=2)
def from_file(path: Path) -> Any:
    """Map a file into this process's memory, and keep it a while. Processes share the pages nobody writes to.

    Two files are kept: joblib replaces a worker that has taken another 300 MB, and shared pages count.
    """
    return joblib.load(path, mmap_mode="c")
