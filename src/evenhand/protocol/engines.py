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
from typing import Any, NamedTuple

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from evenhand.checks import integer, one_of
from evenhand.protocol.grids import Method, Point
from evenhand.protocol.selection import Criterion
from evenhand.protocol.trial import Outcome, Prepared, quietly, run_trial

TRIES = 3  # of a trial whose worker dies
_AHEAD = 2  # trials given to a cluster beyond those that run, so that no worker waits


class Task(NamedTuple):
    """A trial to run: its key, the key of its data, and what to do."""

    key: str
    data: str
    method: Method
    point: Point
    seed: int
    criteria: tuple[Criterion, ...]


Finished = tuple[str, Outcome]
Data = Mapping[str, Prepared]


def run_tasks(
    tasks: Iterable[Task],
    data: Data,
    *,
    engine: str = "threads",
    workers: int | None = None,
    address: str | None = None,
) -> Iterator[Finished]:
    """Run trials, and yield each key with its outcome as it finishes.

    Parameters
    ----------
    tasks : the trials, taken as workers become free
    data : the prepared data sets by key
    engine : 'threads', 'processes', 'dask' or 'ray'
    workers : how many at a time; by default one a core. An existing cluster has its own.
    address : of an existing Dask scheduler or Ray cluster; without it one is started here.
    """
    one_of("engine", engine, ENGINES)
    if address is not None and engine not in ("dask", "ray"):
        raise ValueError(f"Got address={address!r} with engine={engine!r}, but expected 'dask' or 'ray'.")
    count = joblib.effective_n_jobs(-1) if workers is None else integer("workers", workers)
    return ENGINES[engine](iter(tasks), data, count, address)


def _run(prepared: Prepared, task: Task) -> Outcome:
    return run_trial(prepared, task.method, task.point, task.seed, task.criteria)


def _run_quietly(prepared: Prepared, task: Task) -> Outcome:
    with quietly():
        return _run(prepared, task)


def died(reason: object) -> Outcome:
    """Return the outcome of a trial that took its worker down every time."""
    return Outcome(None, f"The worker died {TRIES} times while it ran this trial: {reason}", 0.0)


# Threads -----------------------------------------------------------------------------------------------


def _threads(tasks: Iterator[Task], data: Data, workers: int, address: None) -> Iterator[Finished]:
    def run(task: Task) -> Finished:
        return task.key, _run(data[task.data], task)

    # Warnings and BLAS threads are the whole process's: they are set once, around all threads.
    with quietly():
        pool = joblib.Parallel(workers, backend="threading", return_as="generator_unordered")
        yield from pool(joblib.delayed(run)(task) for task in tasks)


# Processes ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _from_file(path: Path) -> Prepared:
    """Map a data set into this worker's memory, once; processes share the pages."""
    prepared: Prepared = joblib.load(path, mmap_mode="r")
    return prepared


def _run_from_file(folder: Path, task: Task) -> Finished:
    return task.key, _run_quietly(_from_file(folder / f"{task.data}.joblib"), task)


def _processes(tasks: Iterator[Task], data: Data, workers: int, address: None) -> Iterator[Finished]:
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for key, prepared in data.items():
            joblib.dump(prepared, folder / f"{key}.joblib")
        tries: dict[str, int] = {}
        waiting: dict[str, Task] = {}

        def handed_out(source: Iterable[Task]) -> Iterator[Task]:
            for task in source:
                waiting[task.key] = task
                tries[task.key] = tries.get(task.key, 0) + 1
                yield task

        def pool(source: Iterable[Task]) -> Iterator[Finished]:
            parallel = joblib.Parallel(max(workers, 2), backend="loky", return_as="generator_unordered")
            for key, outcome in parallel(
                joblib.delayed(_run_from_file)(folder, task) for task in handed_out(source)
            ):
                waiting.pop(key)
                yield key, outcome

        again: list[Task] = []
        while True:
            try:
                yield from pool(itertools.chain(again, tasks))
                return
            except TerminatedWorkerError:
                # Those that waited beside the guilty one are innocent: the suspects get a pool of their own.
                suspects = [task for key, task in waiting.items() if tries[key] >= TRIES]
                again = [task for key, task in waiting.items() if tries[key] < TRIES]
                waiting.clear()
                for task in suspects:
                    try:
                        yield from pool([task])
                    except TerminatedWorkerError as error:
                        waiting.clear()
                        yield task.key, died(str(error).splitlines()[0])


# Clusters ----------------------------------------------------------------------------------------------


def _import(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"engine={extra!r} needs: pip install 'evenhand[{extra}]' ({error})") from error


def _dask(tasks: Iterator[Task], data: Data, workers: int, address: str | None) -> Iterator[Finished]:
    distributed = _import("distributed", "dask")
    with contextlib.ExitStack() as stack:
        if address is None:
            cluster = distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=None)
            client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        else:
            client = stack.enter_context(distributed.Client(address))
        # On every worker: one that dies takes no data with it.
        sent = {key: client.scatter(prepared, broadcast=True, hash=False) for key, prepared in data.items()}

        def submit(task: Task) -> Any:
            return client.submit(_run_quietly, sent[task.data], task, pure=False, key=f"trial-{task.key}")

        slots = _AHEAD + sum(client.nthreads().values())
        started = {submit(task): task.key for task in itertools.islice(tasks, slots)}
        arriving = distributed.as_completed(list(started))
        for future in arriving:
            key = started.pop(future)
            try:
                outcome = future.result()
            except distributed.KilledWorker as error:
                outcome = died(error)
            for task in itertools.islice(tasks, 1):
                following = submit(task)
                started[following] = task.key
                arriving.add(following)
            future.release()
            yield key, outcome


def _ray(tasks: Iterator[Task], data: Data, workers: int, address: str | None) -> Iterator[Finished]:
    ray = _import("ray", "ray")
    ours = not ray.is_initialized()
    if ours:
        local: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address or "local", log_to_driver=False, **local)
    try:
        sent = {key: ray.put(prepared) for key, prepared in data.items()}  # one copy a machine
        remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_run_quietly)
        slots = _AHEAD + int(ray.cluster_resources().get("CPU", workers))
        started = {remote.remote(sent[task.data], task): task.key for task in itertools.islice(tasks, slots)}
        while started:
            (reference,), _ = ray.wait(list(started), num_returns=1)
            key = started.pop(reference)
            try:
                outcome = ray.get(reference)
            except ray.exceptions.RayError as error:
                outcome = died(error)
            for task in itertools.islice(tasks, 1):
                started[remote.remote(sent[task.data], task)] = task.key
            yield key, outcome
    finally:
        if ours:
            ray.shutdown()


Engine = Callable[[Iterator[Task], Data, int, Any], Iterator[Finished]]
ENGINES: dict[str, Engine] = {"threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray}
