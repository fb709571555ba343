"""Where trials run: threads or processes here, or a Dask or Ray cluster; the same results, bit for bit.

Threads and processes are joblib's. Dask and Ray are spoken to directly: joblib's Ray backend gives results
back only when all are there, so that a kill would lose them, and its Dask backend keeps data on one worker
only, so that a death would lose it. In all four, the data goes to a worker once, results come as they finish,
and a worker that dies costs its running trials another try.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from evenhand.checks import integer, one_of
from evenhand.protocol.trial import Prepared, Result, Trial, quietly

TRIES = 3  # of a trial whose worker dies
_AHEAD = 2  # trials given to a cluster beyond those that run, so that no worker waits


Finished = tuple[Trial, Result]
Data = Mapping[str, Prepared]


def run_trials(
    trials: Iterable[Trial],
    data: Data,
    *,
    engine: str = "threads",
    workers: int | None = None,
    address: str | None = None,
) -> Iterator[Finished]:
    """Run trials, and yield each with its result as it finishes.

    Parameters
    ----------
    trials : iterable of Trial
        Taken as workers become free.
    data : mapping of str to Prepared
        The prepared data sets by key.
    engine : {'threads', 'processes', 'dask', 'ray'}
        Where they run.
    workers : int, optional
        How many at a time; by default one per core. An existing cluster has its own.
    address : str, optional
        Of an existing Dask scheduler or Ray cluster; without it one is started here.

    Returns
    -------
    iterator of (Trial, Result)
        In the order in which they finish.
    """
    one_of("engine", engine, ENGINES)
    if address is not None and engine not in ("dask", "ray"):
        raise ValueError(f"Got address={address!r} with engine={engine!r}, but expected 'dask' or 'ray'.")
    count = joblib.effective_n_jobs(-1) if workers is None else integer("workers", workers)
    return ENGINES[engine](iter(trials), data, count, address)


def _run_quietly(prepared: Prepared, trial: Trial) -> Result:
    with quietly():
        return trial.run(prepared)


def died(reason: object) -> Result:
    """Return the result of a trial that took its worker down every time."""
    return Result(None, f"The worker died {TRIES} times while it ran this trial: {reason}", 0.0)


# Threads -----------------------------------------------------------------------------------------------


def _threads(trials: Iterator[Trial], data: Data, workers: int, address: None) -> Iterator[Finished]:
    def run(trial: Trial) -> Finished:
        return trial, trial.run(data[trial.data])

    # Warnings and BLAS threads are the whole process's: they are set once, around all threads.
    with quietly():
        pool = joblib.Parallel(workers, backend="threading", return_as="generator_unordered")
        yield from pool(joblib.delayed(run)(trial) for trial in trials)


# Processes ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _from_file(path: Path) -> Prepared:
    """Map a data set into this worker's memory, once; processes share the pages."""
    prepared: Prepared = joblib.load(path, mmap_mode="r")
    return prepared


def _run_from_file(folder: Path, trial: Trial) -> tuple[str, Result]:
    return trial.key, _run_quietly(_from_file(folder / f"{trial.data}.joblib"), trial)


def _processes(trials: Iterator[Trial], data: Data, workers: int, address: None) -> Iterator[Finished]:
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for key, prepared in data.items():
            joblib.dump(prepared, folder / f"{key}.joblib")
        tries: dict[str, int] = {}
        waiting: dict[str, Trial] = {}

        def handed_out(source: Iterable[Trial]) -> Iterator[Trial]:
            for trial in source:
                waiting[trial.key] = trial
                tries[trial.key] = tries.get(trial.key, 0) + 1
                yield trial

        def pool(source: Iterable[Trial]) -> Iterator[Finished]:
            parallel = joblib.Parallel(max(workers, 2), backend="loky", return_as="generator_unordered")
            work = (joblib.delayed(_run_from_file)(folder, trial) for trial in handed_out(source))
            for key, result in parallel(work):
                yield waiting.pop(key), result

        again: list[Trial] = []
        while True:
            try:
                yield from pool(itertools.chain(again, trials))
                return
            except TerminatedWorkerError:
                # Those that waited beside the guilty one are innocent: the suspects get a pool of their own.
                suspects = [trial for key, trial in waiting.items() if tries[key] >= TRIES]
                again = [trial for key, trial in waiting.items() if tries[key] < TRIES]
                waiting.clear()
                for trial in suspects:
                    try:
                        yield from pool([trial])
                    except TerminatedWorkerError as error:
                        waiting.clear()
                        yield trial, died(str(error).splitlines()[0])


# Clusters ----------------------------------------------------------------------------------------------


def _import(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"engine={extra!r} needs: pip install 'evenhand[{extra}]' ({error})") from error


def _dask(trials: Iterator[Trial], data: Data, workers: int, address: str | None) -> Iterator[Finished]:
    distributed = _import("distributed", "dask")
    with contextlib.ExitStack() as stack:
        if address is None:
            cluster = distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=None)
            client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        else:
            client = stack.enter_context(distributed.Client(address))
        # On every worker: one that dies takes no data with it.
        sent = {key: client.scatter(prepared, broadcast=True, hash=False) for key, prepared in data.items()}

        def submit(trial: Trial) -> Any:
            return client.submit(_run_quietly, sent[trial.data], trial, pure=False, key=f"trial-{trial.key}")

        slots = _AHEAD + sum(client.nthreads().values())
        started = {submit(trial): trial for trial in itertools.islice(trials, slots)}
        arriving = distributed.as_completed(list(started))
        for future in arriving:
            trial = started.pop(future)
            try:
                result = future.result()
            except distributed.KilledWorker as error:
                result = died(error)
            for after in itertools.islice(trials, 1):
                following = submit(after)
                started[following] = after
                arriving.add(following)
            future.release()
            yield trial, result


def _ray(trials: Iterator[Trial], data: Data, workers: int, address: str | None) -> Iterator[Finished]:
    ray = _import("ray", "ray")
    ours = not ray.is_initialized()
    if ours:
        local: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address or "local", log_to_driver=False, **local)
    try:
        sent = {key: ray.put(prepared) for key, prepared in data.items()}  # one copy per machine
        remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_run_quietly)
        slots = _AHEAD + int(ray.cluster_resources().get("CPU", workers))
        started = {remote.remote(sent[trial.data], trial): trial for trial in itertools.islice(trials, slots)}
        while started:
            (reference,), _ = ray.wait(list(started), num_returns=1)
            trial = started.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                result = died(error)
            for after in itertools.islice(trials, 1):
                started[remote.remote(sent[after.data], after)] = after
            yield trial, result
    finally:
        if ours:
            ray.shutdown()


Engine = Callable[[Iterator[Trial], Data, int, Any], Iterator[Finished]]
ENGINES: dict[str, Engine] = {"threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray}
