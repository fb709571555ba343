"""Data sets split and preprocessed, many at a time."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from evenhand.progress import Progress
from evenhand.protocol.testers import ONE_THREAD
from evenhand.protocol.trial import Prepared, make_ready
from evenhand.tables.dataset import Dataset

MANY = 32  # from which on processes are worth the seconds they take to start


def all_ready(
    wanted: Mapping[str, tuple[Dataset, int]],
    how: str,
    *,
    processes: bool,
    workers: int | None,
    progress: Progress,
) -> dict[str, Prepared]:
    """Return data sets made ready, by the keys they are wanted under, each a data set and a seed.

    Preprocessing holds Python's lock, so that more threads hardly help: many are made ready in processes,
    if these are wanted.
    """
    count = joblib.effective_n_jobs(-1) if workers is None else workers
    ready = (_in_processes if processes and len(wanted) >= MANY else _in_threads)(wanted, how, count)
    data: dict[str, Prepared] = {}
    with progress.stage("Data sets", len(wanted), sum(len(each) for each, _ in wanted.values())) as done:
        for (key, (dataset, seed)), prepared in zip(wanted.items(), ready, strict=True):
            data[key] = prepared
            done(f"{dataset.name}, seed {seed}", len(dataset))
    return data


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
                yield joblib.load(path, mmap_mode="c")


def _ready_in_file(how: str, given: Path, seed: int, into: Path) -> Path:
    joblib.dump(make_ready(_from_file(given), seed, how), into)
    return into


@functools.lru_cache(maxsize=4)
def _from_file(path: Path) -> Any:
    return joblib.load(path)
