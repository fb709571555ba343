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
    """Hand each data set over once, in a file, however many seeds it is split with."""
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as folder:
        files = {id(dataset): Path(folder, f"{id(dataset)}.joblib") for dataset, _ in wanted.values()}
        for dataset in {id(dataset): dataset for dataset, _ in wanted.values()}.values():
            joblib.dump(dataset, files[id(dataset)])
        paths, seeds = zip(*((files[id(dataset)], seed) for dataset, seed in wanted.values()), strict=True)
        with ProcessPoolExecutor(workers) as pool:
            yield from pool.map(functools.partial(_ready_from_file, how), paths, seeds)


def _ready_from_file(how: str, path: Path, seed: int) -> Prepared:
    return make_ready(_from_file(path), seed, how)


@functools.lru_cache(maxsize=4)
def _from_file(path: Path) -> Any:
    return joblib.load(path)
