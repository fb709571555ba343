"""Data sets split and preprocessed, many at a time."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from evenhand.protocol.testers import ONE_THREAD, from_file
from evenhand.protocol.trial import Prepared, make_ready
from evenhand.tables.dataset import Dataset

MANY = 32  # from which on processes are worth the seconds they take to start


class Arriving(Mapping[str, Prepared]):
    """Data sets by key, made ready in the order they are wanted in; whoever asks for one waits for it."""

    def __init__(self, keys: Iterable[str], ready: Iterator[Prepared]) -> None:
        self._there: dict[str, Prepared | None] = dict.fromkeys(keys)
        self._last = next(reversed(self._there), None)
        self._coming = zip(tuple(self._there), ready, strict=True)
        self._lock = Lock()

    def __getitem__(self, key: str) -> Prepared:
        if (there := self._there[key]) is not None:
            return there
        with self._lock:
            while (found := self._there[key]) is None:
                name, prepared = next(self._coming)
                self._there[name] = prepared
                if name == self._last:
                    next(self._coming, None)  # so that whoever made them ready ends
            return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._there)

    def __len__(self) -> int:
        return len(self._there)


def all_ready(
    wanted: Mapping[str, tuple[Dataset, int]], how: str, *, processes: bool, workers: int | None
) -> Arriving:
    """Return data sets made ready, by the keys they are wanted under, each a data set and a seed.

    Preprocessing holds Python's lock, so that more threads hardly help: many are made ready in processes,
    if these are wanted.
    """
    count = joblib.effective_n_jobs(-1) if workers is None else workers
    make = _in_processes if processes and len(wanted) >= MANY else _in_threads
    return Arriving(wanted, make(wanted, how, count))


def _in_threads(wanted: Mapping[str, tuple[Dataset, int]], how: str, workers: int) -> Iterator[Prepared]:
    ready: Iterator[Prepared] = joblib.Parallel(workers, backend="threading", return_as="generator")(
        joblib.delayed(make_ready)(dataset, seed, how) for dataset, seed in wanted.values()
    )
    return ready


def _in_processes(wanted: Mapping[str, tuple[Dataset, int]], how: str, workers: int) -> Iterator[Prepared]:
    """Send data sets and what is made of them through files: each data set once, however many its seeds."""
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as folder:
        named = {id(dataset): dataset for dataset, _ in wanted.values()}
        for name, dataset in named.items():
            joblib.dump(dataset, Path(folder, str(name)))
        given = [Path(folder, str(id(dataset))) for dataset, _ in wanted.values()]
        into = [Path(folder, key) for key in wanted]
        with ProcessPoolExecutor(workers, env=ONE_THREAD) as pool:
            seeds = [seed for _, seed in wanted.values()]
            for path in pool.map(functools.partial(_ready_in_file, how), given, seeds, into):
                yield joblib.load(path, mmap_mode="c")  # not kept: whoever asked keeps it


def _ready_in_file(how: str, given: Path, seed: int, into: Path) -> Path:
    joblib.dump(make_ready(from_file(given), seed, how), into)
    return into
