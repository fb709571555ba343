"""Trials of networks on a GPU, all at once: trained side by side, their checkpoints scored where they are."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import chain, groupby, islice
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evenhand.arrays import Codes
from evenhand.bandits.base import PolicyLearner
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.cuda.fleet import Fleet, fleets_of
from evenhand.bandits.cuda.packing import canonical
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.many import has_run_on_gpu, ready_together
from evenhand.bandits.scaling import Scaling
from evenhand.bandits.training import Run
from evenhand.metrics.networks import Frozen
from evenhand.network import Network
from evenhand.protocol.selection import Best, Judged, Scores
from evenhand.protocol.testers import pool_of_testers
from evenhand.protocol.trial import Prepared, Result, Selected, Trial, quietly, seed_of, told

SIDE_BY_SIDE = 4  # fleets: while one is being scored, the others train
AT_ONCE = 1000  # networks made ready together: the first ones train while data sets of the next are prepared
MANY = 500  # networks from which on processes that test them are worth the seconds they take to start
Given = TypeVar("Given")
Found = TypeVar("Found")


class Underway(NamedTuple):
    """A trial in training, and the people that its checkpoints are scored on, as the kernels read them."""

    trial: Trial
    model: Any
    run: Run
    scaling: Scaling | None
    judged: tuple[Any, People]
    positive: int


class Watched(NamedTuple):
    """What became of a trial: its best checkpoint by each criterion, how many there were, or its error."""

    best: dict[str, Best[Any]]
    checkpoints: int
    error: Exception | None


def networks_among(trials: Iterator[Trial]) -> tuple[list[tuple[Trial, Any]], list[Trial]]:
    """Return the trials of networks with the models to train, and the others."""
    networks, others = [], []
    for trial in trials:
        model = trial.method.make(seed_of(trial.seed, trial.method.name, trial.point), **trial.point)
        if isinstance(model, PolicyLearner):
            networks.append((trial, model))
        else:
            others.append(trial)
    return networks, others


def on_gpu(
    networks: Sequence[tuple[Trial, Any]], data: Mapping[str, Prepared], workers: int
) -> Iterator[tuple[Trial, Result]]:
    """Train networks, and yield each trial with what `Trial.run` returns; as many workers test them.

    Some of them train while the next are made ready.
    """
    start, stopped = time.perf_counter(), Event()
    by_training: dict[int, Underway] = {}

    def fleets() -> Iterator[Fleet]:
        for members in _portions(networks):
            underway = list(_underway(members, data))
            by_training.update({id(one.run.training): one for one in underway})
            yield from fleets_of([one.run for one in underway], [one.judged[0] for one in underway])

    def trained(fleet: Fleet) -> list[tuple[Underway, Watched, Future[dict[str, Selected]]]]:
        mine = [by_training.pop(id(run.training)) for run in fleet.runs]
        pairs = zip(mine, _watched(fleet, mine, stopped), strict=True)
        return [(one, watched, submit(one.trial.data, watched.best)) for one, watched in pairs]

    with ExitStack() as stack:
        stack.enter_context(quietly())
        submit = stack.enter_context(pool_of_testers(data, workers, processes=len(networks) >= MANY))
        stack.callback(stopped.set)  # first of all
        for one, watched, chosen in chain.from_iterable(_side_by_side(trained, fleets())):
            seconds = (time.perf_counter() - start) / len(networks)
            try:
                if watched.error is not None:
                    raise watched.error
                has_run_on_gpu(one.model, one.run, one.scaling)
                found = told(chosen.result(), watched.checkpoints, one.model)
                yield one.trial, Result(found, None, seconds)
            except Exception:  # as in `Trial.run`: the other trials go on
                yield one.trial, Result(None, traceback.format_exc(), seconds)


def _portions(networks: Sequence[tuple[Trial, Any]]) -> Iterator[list[tuple[Trial, Any]]]:
    """Yield networks in their order, some at a time, and those of one data set."""
    for _, alike in groupby(networks, key=lambda one: one[0].dataset):
        while portion := list(islice(alike, AT_ONCE)):
            yield portion


def _side_by_side(work: Callable[[Given], Found], given: Iterator[Given]) -> Iterator[Found]:
    """Yield what work makes of things, a few at a time, as it is done; meanwhile the next is made ready."""
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


def _underway(networks: Sequence[tuple[Trial, Any]], data: Mapping[str, Prepared]) -> Iterator[Underway]:
    """Make every trial ready; people of one split are checked and sent once."""
    alike: dict[tuple[str, int | None], list[tuple[Trial, Any]]] = {}
    for trial, model in networks:
        alike.setdefault((trial.data, trial.method.most_people), []).append((trial, model))
    for (key, most_people), members in alike.items():
        prepared, people = data[key], slice(most_people)
        given = {"sensitive_features": prepared.s[people]}
        models = [model for _, model in members]
        ready = ready_together(models, prepared.X[people], prepared.y[people], given)
        scaled: dict[int, tuple[Any, People]] = {}
        for (trial, model), (run, scaling) in zip(members, ready, strict=True):
            if id(scaling) not in scaled:
                scaled[id(scaling)] = _judged(prepared.validation, scaling)
            positive = prepared.validation.people.labels.index(prepared.validation.people.pos_label)
            yield Underway(trial, model, run, scaling, scaled[id(scaling)], positive)


def _judged(validation: Judged, scaling: Scaling | None) -> tuple[Any, People]:
    """Return people on the scale that a model learns on, with their groups and labels as numbers."""
    X, people = validation.X.astype(np.float32), validation.people
    rows = as_rows(X if scaling is None else scaling.applied(X))
    labels: Codes = np.searchsorted(np.asarray(people.labels), np.asarray(people.y)).astype(np.int64)
    return canonical(rows, X.shape[1]), People(people.own.astype(np.int64), labels)


def _watched(fleet: Fleet, mine: Sequence[Underway], stopped: Event) -> list[Watched]:
    """Train from checkpoint to checkpoint; return each model's best by every criterion."""
    every = np.array([one.run.options.interval for one in mine])
    positive = np.array([one.positive for one in mine])
    judge = fleet.judges([one.judged for one in mine])
    checkpoints = np.zeros(len(mine), np.int64)
    best: list[dict[str, Best[Any]]] = [{} for _ in mine]
    while (going := np.flatnonzero(fleet.steps < fleet.ends)).size and not stopped.is_set():
        fleet.advance(np.minimum(fleet.steps - fleet.steps % every + every, fleet.ends))
        scored = scores_of(judge(going), fleet.spec.G, fleet.spec.K, positive[going])
        checkpoints[going] += 1
        better: dict[str, list[int]] = {}
        for at, scores in zip(going.tolist(), scored, strict=True):
            for criterion in mine[at].trial.criteria:
                rank, before = criterion.rank(scores), best[at].get(criterion.name)
                if before is None or rank > before.rank:
                    best[at][criterion.name] = Best(rank, int(fleet.steps[at]), scores, None)
                    better.setdefault(criterion.name, []).append(at)
        for name, which in better.items():
            fleet.keep(name, which)
    errors = fleet.finish()
    kept = {name: fleet.kept(name) for name in {name for found in best for name in found}}
    frozen = [
        _frozen(best[at], {name: kept[name][at] for name in best[at]}, one) for at, one in enumerate(mine)
    ]
    return [Watched(*each) for each in zip(frozen, checkpoints.tolist(), errors, strict=True)]


def _frozen(best: dict[str, Best[Any]], kept: dict[str, Network], one: Underway) -> dict[str, Best[Any]]:
    """Return the best checkpoints with their policies; criteria that chose the same one share it."""
    by_step = {found.step: kept[name] for name, found in best.items()}
    frozen = {
        step: Frozen(policies if one.scaling is None else one.scaling.folded(policies))
        for step, policies in by_step.items()
    }
    return {name: found._replace(kept=frozen[found.step]) for name, found in best.items()}


def scores_of(counts: Any, n_groups: int, n_labels: int, positive: Any) -> list[Scores]:
    """Return each model's scores from decisions counted by group, label and decision, and flips at the end.

    >>> scores_of(np.array([[3, 1, 0, 0, 1, 1, 1, 1, 2]]), 2, 2, np.array([1]))
    [Scores(accuracy=0.625, discrimination=0.25, positive_rate=0.375, flip_rate=0.25)]
    """
    decided = counts[:, :-1].astype(np.float64).reshape(-1, n_groups, n_labels, n_labels)
    people, sizes = decided.sum((1, 2, 3)), decided.sum((2, 3))
    given = np.take_along_axis(decided.sum(2), positive[:, None, None], 2)[:, :, 0]
    rates = given / np.where(sizes > 0, sizes, np.nan)  # a group that has nobody here is left out
    columns = (
        np.trace(decided, axis1=2, axis2=3).sum(1) / people,
        np.nanmax(rates, 1) - np.nanmin(rates, 1),
        given.sum(1) / people,
        counts[:, -1] / people,
    )
    return [Scores(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
