"""Trials of networks on a GPU: trained all at once, with their checkpoints scored on the GPU too."""

from __future__ import annotations

import pickle
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from itertools import chain, groupby, islice
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, TypeVar

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.cuda import packing
from evenhand.bandits.cuda.fleet import Fleet
from evenhand.bandits.cuda.watching import Asked, Watch, Watched, asked_of
from evenhand.bandits.cuda.waves import Plan
from evenhand.bandits.many import Together, has_run_on_gpu
from evenhand.bandits.scaling import Scaling
from evenhand.bandits.splits import Crowd
from evenhand.bandits.training import Run
from evenhand.metrics.selection import Best
from evenhand.protocol.trial import Prepared, Result, Selected, Trial, quietly, seed_of, tested, told
from evenhand.protocol.workers import Submit, pool_of_workers

SIDE_BY_SIDE = 12  # fleets: while one is being scored, the others train
AT_ONCE = 600  # networks made ready together: they train while the data sets of the next are prepared
MANY = 500  # from this many networks on, processes that ready and test them are worth their start
Given = TypeVar("Given")
Found = TypeVar("Found")
Tested = list[
    dict[str, Selected] | str
]  # of each model: its best checkpoints with metrics on test, or an error


class Underway(NamedTuple):
    """A model in training, and the people on whom its checkpoints are scored."""

    model: Any
    run: Run
    scaling: Scaling | None
    asked: Asked


class Ended(NamedTuple):
    """A trial whose model is trained."""

    trial: Trial
    underway: Underway
    watched: Watched


def networks_among(trials: Iterator[Trial]) -> tuple[list[tuple[Trial, Any]], list[Trial]]:
    """Return the trials of networks, one for each group, with the models to train, and the other trials."""
    networks, others = [], []
    for trial in trials:
        model = None
        with suppress(Exception):  # the trial itself reports the error
            model = trial.method.make(seed_of(trial.seed, trial.method.name, trial.point), **trial.point)
        if isinstance(model, CooperativeBandits):
            networks.append((trial, model))
        else:
            others.append(trial)
    return networks, others


def on_gpu(
    networks: Sequence[tuple[Trial, Any]], data: Mapping[str, Prepared], workers: int
) -> Iterator[tuple[Trial, Result]]:
    """Train networks, and yield each trial with what `Trial.run` returns.

    While some networks train, workers make the next ones ready and test those that are done.
    """
    start, stopped = time.perf_counter(), Event()
    by_training: dict[int, tuple[Trial, Underway]] = {}
    refused: list[tuple[Trial, str]] = []

    def fleets() -> Iterator[Fleet]:
        for members in _portions(networks):
            underway = []
            for trial, one in _underway(members, submit, folder):
                if isinstance(one, str):
                    refused.append((trial, one))
                else:
                    underway.append((trial, one))
            if not underway:
                continue
            by_training.update({id(one.run.training): (trial, one) for trial, one in underway})
            copies = len(underway[0][0].criteria)  # all trials of a sweep have the same
            plan = Plan([one.run for _, one in underway], [one.asked.rows for _, one in underway], copies)
            for wave in plan.waves():
                while wave:
                    yield wave.pop(0)

    def trained(fleet: Fleet) -> list[tuple[list[Ended], Future[Tested]]]:
        mine = [by_training.pop(id(run.training)) for run in fleet.runs]
        watch = Watch(fleet, [one.asked for _, one in mine], mine[0][0].criteria)
        while watch.going and not stopped.is_set():
            watch.advance()
            watch.score()
        # The models of one split are tested together: each worker maps few data sets into its memory.
        alike: dict[str, list[Ended]] = {}
        for (trial, one), watched in zip(mine, watch.finish(), strict=True):
            alike.setdefault(trial.data, []).append(Ended(trial, one, watched))
        return [
            (ended, submit(_tested, key, [each.watched.best for each in ended]))
            for key, ended in alike.items()
        ]

    with ExitStack() as stack:
        stack.enter_context(quietly())
        many, folder = len(networks) >= MANY, None
        if many:
            own = tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True)
            folder = stack.enter_context(own)
        stack.callback(packing.every_column.cache_clear)
        submit = stack.enter_context(pool_of_workers(data, workers, processes=many))
        stack.callback(stopped.set)  # called first on leaving
        for ended, chosen in chain.from_iterable(_side_by_side(trained, fleets())):
            seconds = (time.perf_counter() - start) / len(networks)
            for place, each in enumerate(ended):
                yield each.trial, _result(each, chosen, place, seconds)
        yield from ((trial, Result(None, error, 0.0)) for trial, error in refused)


def _portions(networks: Sequence[tuple[Trial, Any]]) -> Iterator[list[tuple[Trial, Any]]]:
    """Yield networks in their order, up to `AT_ONCE` at a time, all of one data set."""
    for _, alike in groupby(networks, key=lambda one: one[0].dataset):
        while portion := list(islice(alike, AT_ONCE)):
            yield portion


def _side_by_side(work: Callable[[Given], Found], given: Iterator[Given]) -> Iterator[Found]:
    """Do work on a few items at a time and yield each result when it is done; meanwhile get the next item."""
    threads, maker = ThreadPoolExecutor(SIDE_BY_SIDE), ThreadPoolExecutor(1)
    try:
        running: set[Future[Found]] = set()
        coming: Future[Given | None] | None = maker.submit(next, given, None)
        while running or coming is not None:
            takes = coming is not None and len(running) < SIDE_BY_SIDE
            awaited: set[Future[Any]] = {*running, *([coming] if takes else ())}
            for future in wait(awaited, return_when=FIRST_COMPLETED).done:
                if future is not coming:
                    running.remove(future)
                    yield future.result()
                elif (each := future.result()) is None:
                    coming = None
                else:
                    running.add(threads.submit(work, each))
                    coming = maker.submit(next, given, None)
    finally:
        for pool in (threads, maker):
            pool.shutdown(wait=False, cancel_futures=True)


def _underway(
    networks: Sequence[tuple[Trial, Any]], submit: Submit, folder: str | None
) -> Iterator[tuple[Trial, Underway | str]]:
    """Yield each trial with its model ready to train, or with an error. People are sent once per split.

    Workers in other processes return the models in files of the folder.
    """
    alike: dict[tuple[str, int | None], list[tuple[Trial, Any]]] = {}
    for trial, model in networks:
        alike.setdefault((trial.data, trial.method.most_people), []).append((trial, model))
    ready = [
        submit(_ready, key, [model for _, model in members], most_people)
        if folder is None
        else submit(_ready_in_file, key, folder, [model for _, model in members], most_people)
        for (key, most_people), members in alike.items()
    ]
    for members, future in zip(alike.values(), ready, strict=True):
        underway = future.result() if folder is None else _from_file(future.result())
        yield from zip([trial for trial, _ in members], underway, strict=True)


def _ready(prepared: Prepared, models: list[Any], most_people: int | None) -> list[Underway | str]:
    """Return the models of one split, ready to train, or the errors of those that can't be trained."""
    people = slice(most_people)
    given = {"sensitive_features": prepared.s[people]}
    together = Together(Crowd(prepared.X[people], prepared.y[people], given, {}))
    found = _each(together.ready, models)
    asked = iter(asked_of(prepared.validation, [one[1] for one in found if not isinstance(one, str)]))
    return [
        one if isinstance(one, str) else Underway(model, *one, next(asked))
        for model, one in zip(models, found, strict=True)
    ]


def _ready_in_file(prepared: Prepared, folder: str, *given: Any) -> Path:
    """Write what `_ready` returns to a file in the folder: pipes are slow with so much data."""
    ready = [
        one if isinstance(one, str) else one._replace(run=_sendable(one.run))
        for one in _ready(prepared, *given)
    ]
    descriptor, path = tempfile.mkstemp(dir=folder)
    with open(descriptor, "wb") as file:
        pickle.dump(ready, file, pickle.HIGHEST_PROTOCOL)
    return Path(path)


def _sendable(run: Run) -> Run:
    """Return a run without the function of `Custom`, which is compiled here and never called on a GPU."""
    return run._replace(terms=run.terms._replace(custom=run.terms.custom._replace(function=None)))


def _from_file(path: Path) -> list[Underway | str]:
    # Our own worker wrote it, in our own folder.
    found: list[Underway | str] = pickle.loads(path.read_bytes())
    path.unlink()
    return found


def _tested(prepared: Prepared, models: list[Mapping[str, Best[Any]]]) -> Tested:
    """Return the best checkpoints of each model with their metrics on test, or an error."""
    return _each(lambda best: tested(best, prepared.test, prepared.neighbours), models)


def _each(work: Callable[[Given], Found], given: Iterable[Given]) -> list[Found | str]:
    """Do work on each item. An error takes the place of a result, and the others go on, as in `Trial.run`."""
    found: list[Found | str] = []
    for item in given:
        try:
            found.append(work(item))
        except Exception:
            found.append(traceback.format_exc())
    return found


def _result(ended: Ended, chosen: Future[Tested], place: int, seconds: float) -> Result:
    """Return a trial's result; its model is in this place among those that are tested together."""
    _, one, watched = ended
    try:
        if watched.error is not None:
            raise watched.error
        has_run_on_gpu(one.model, one.run, one.scaling)
        selected = chosen.result()[place]
        if isinstance(selected, str):
            return Result(None, selected, seconds)
        return Result(told(selected, watched.checkpoints, one.model), None, seconds)
    except Exception:  # as in `Trial.run`
        return Result(None, traceback.format_exc(), seconds)
