"""Where trials run: in local threads or processes, or on a Dask or Ray cluster, with the same results.

With 'cuda', networks are trained on a GPU, all at once and in single precision. All else runs in threads.

Threads and processes are joblib's. Dask and Ray are called directly, because joblib's Ray backend returns
results only when all are there, so a kill would lose them. Its Dask backend keeps data on one worker only, so
the death of that worker would lose it. In all four, data is sent to a worker once and results come as they
finish. If a worker dies, its running trials are tried again.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from evenhand.checks import integer, one_of
from evenhand.protocol.readying import from_file, in_file
from evenhand.protocol.trial import Prepared, Result, Trial, quietly

TRIES = 3  # of a trial whose worker dies
_AHEAD = 2  # trials handed out beyond those that run, so that no worker waits


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
    """Run trials as workers become free, and yield each trial with its result as it finishes.

    `data` has the prepared data sets by key. For the other parameters see `Sweep.run`.
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
    """Return the result of a trial whose worker died every time."""
    return Result(None, f"The worker died {TRIES} times while it ran this trial: {reason}", 0.0)


def _threads(trials: Iterator[Trial], data: Data, workers: int, address: None) -> Iterator[Finished]:
    def run(trial: Trial) -> Finished:
        return trial, trial.run(data[trial.data])

    # Warnings and BLAS threads are settings of the whole process, so they are set once, around all threads.
    with quietly():
        pool = joblib.Parallel(workers, backend="threading", return_as="generator_unordered")
        yield from pool(joblib.delayed(run)(trial) for trial in trials)


def _run_from_file(path: Path, trial: Trial) -> Result:
    return _run_quietly(from_file(path), trial)


def _processes(trials: Iterator[Trial], data: Data, workers: int, address: None) -> Iterator[Finished]:
    """Keep a few trials running in a pool of processes. When a process dies, the pool is replaced.

    All trials that ran in the pool are lost and tried again. A trial that has been lost `TRIES` times gets a
    pool of its own, which shows whether it is the cause.
    """
    tries: Counter[str] = Counter()
    again: deque[Trial] = deque()
    running: dict[Any, Trial] = {}
    with tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as folder:
        pool = ProcessPoolExecutor(workers)
        try:
            while True:
                while len(running) < workers + _AHEAD:
                    trial = again.popleft() if again else next(trials, None)
                    if trial is None:
                        break
                    running[_submitted(pool, in_file(data, trial.data, folder), trial)] = trial
                if not running:
                    return
                dead = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    trial = running.pop(future)
                    if isinstance(future.exception(), BrokenExecutor):
                        dead.append(trial)
                    else:
                        yield trial, future.result()
                if dead:
                    dead += running.values()
                    running.clear()
                    pool.shutdown(kill_workers=True)
                    pool = ProcessPoolExecutor(workers)
                for trial in dead:
                    tries[trial.key] += 1
                    if tries[trial.key] < TRIES:
                        again.append(trial)
                    else:
                        yield trial, _alone(in_file(data, trial.data, folder), trial)
        finally:
            pool.shutdown(kill_workers=True)


def _submitted(pool: ProcessPoolExecutor, path: Path, trial: Trial) -> Future[Result]:
    """Submit a trial. If the pool has died meanwhile, the future says so, as if it died a moment later."""
    try:
        future: Future[Result] = pool.submit(_run_from_file, path, trial)
    except BrokenExecutor as error:
        future = Future()
        future.set_exception(error)
    return future


def _alone(path: Path, trial: Trial) -> Result:
    pool = ProcessPoolExecutor(1)
    try:
        return _submitted(pool, path, trial).result()
    except BrokenExecutor as error:
        return died(str(error).splitlines()[0])
    finally:
        pool.shutdown(kill_workers=True)


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
        # Data is sent to every worker and kept there, so that a worker that dies takes no data with it.
        client.amm.stop()
        sent: dict[str, Any] = {}
        tries: Counter[str] = Counter()

        def send() -> None:
            sent.update({key: client.scatter(held, broadcast=True, hash=False) for key, held in data.items()})

        def submit(trial: Trial) -> Any:
            tries[trial.key] += 1
            key = f"trial-{trial.key}-{tries[trial.key]}"
            return client.submit(_run_quietly, sent[trial.data], trial, pure=False, key=key)

        send()
        slots = _AHEAD + sum(client.nthreads().values())
        started = {submit(trial): trial for trial in itertools.islice(trials, slots)}
        arriving = distributed.as_completed(list(started))
        for future in arriving:
            trial, result = started.pop(future), None
            try:
                result = future.result()
            except distributed.KilledWorker as error:
                result = died(error)
            except CancelledError as error:  # the last worker that had the data died
                if tries[trial.key] >= TRIES:
                    result = died(error)
                else:
                    send()
            for after in [trial] if result is None else itertools.islice(trials, 1):
                handed_out = submit(after)
                started[handed_out] = after
                arriving.add(handed_out)
            future.release()
            if result is not None:
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


def _cuda(trials: Iterator[Trial], data: Data, workers: int, address: None) -> Iterator[Finished]:
    """Train networks on a GPU, all at once, and run all else in threads."""
    from evenhand.protocol.gpu import networks_among, on_gpu

    networks, others = networks_among(trials)
    if networks:
        yield from on_gpu(networks, data, workers)
    yield from _threads(iter(others), data, workers, address)


Engine = Callable[[Iterator[Trial], Data, int, Any], Iterator[Finished]]
ENGINES: dict[str, Engine] = {
    "threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray, "cuda": _cuda
}  # fmt: skip
