"""Trials of networks on a GPU, all at once: trained side by side, their checkpoints scored where they are."""

from __future__ import annotations

import pickle
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import chain, groupby, islice
from pathlib import Path
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
from evenhand.protocol.trial import Prepared, Result, Selected, Trial, quietly, seed_of, tested, told
from evenhand.protocol.workers import Submit, pool_of_workers

SIDE_BY_SIDE = 12  # fleets: while one is being scored, the others train
AT_ONCE = 600  # networks made ready together: the first ones train while data sets of the next are prepared
MANY = (
    500  # networks from which on processes that ready and test them are worth the seconds they take to start
)
Given = TypeVar("Given")
Found = TypeVar("Found")


class Underway(NamedTuple):
    """A model in training, and the people that its checkpoints are scored on, as the kernels read them."""

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
    """Train networks, and yield each trial with what `Trial.run` returns.

    Some of them train while as many workers make the next ready, and test those that are done.
    """
    start, stopped = time.perf_counter(), Event()
    by_training: dict[int, tuple[Trial, Underway]] = {}

    def fleets() -> Iterator[Fleet]:
        for members in _portions(networks):
            underway = list(_underway(members, submit, folder))
            by_training.update({id(one.run.training): (trial, one) for trial, one in underway})
            yield from fleets_of([one.run for _, one in underway], [one.judged[0] for _, one in underway])

    def trained(fleet: Fleet) -> list[tuple[Trial, Underway, Watched, Future[dict[str, Selected]]]]:
        mine = [by_training.pop(id(run.training)) for run in fleet.runs]
        pairs = zip(mine, _watched(fleet, mine, stopped), strict=True)
        return [(*each, watched, submit(_tested, each[0].data, watched.best)) for each, watched in pairs]

    with ExitStack() as stack:
        stack.enter_context(quietly())
        many, folder = len(networks) >= MANY, None
        if many:
            own = tempfile.TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True)
            folder = stack.enter_context(own)
        submit = stack.enter_context(pool_of_workers(data, workers, processes=many))
        stack.callback(stopped.set)  # first of all
        for trial, one, watched, chosen in chain.from_iterable(_side_by_side(trained, fleets())):
            seconds = (time.perf_counter() - start) / len(networks)
            try:
                if watched.error is not None:
                    raise watched.error
                has_run_on_gpu(one.model, one.run, one.scaling)
                found = told(chosen.result(), watched.checkpoints, one.model)
                yield trial, Result(found, None, seconds)
            except Exception:  # as in `Trial.run`: the other trials go on
                yield trial, Result(None, traceback.format_exc(), seconds)


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


def _underway(
    networks: Sequence[tuple[Trial, Any]], submit: Submit, folder: str | None
) -> Iterator[tuple[Trial, Underway]]:
    """Have every model made ready; people of one split are checked and sent once.

    From workers in other processes they come as files in the folder.
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


def _ready(prepared: Prepared, models: list[Any], most_people: int | None) -> list[Underway]:
    """Return models of one split ready to be trained."""
    people, validation = slice(most_people), prepared.validation
    given = {"sensitive_features": prepared.s[people]}
    ready = ready_together(models, prepared.X[people], prepared.y[people], given)
    scaled = {id(scaling): _judged(validation, scaling) for _, scaling in ready}
    positive = validation.people.labels.index(validation.people.pos_label)
    pairs = zip(models, ready, strict=True)
    return [Underway(model, run, scaling, scaled[id(scaling)], positive) for model, (run, scaling) in pairs]


def _ready_in_file(prepared: Prepared, folder: str, *given: Any) -> Path:
    """Write what `_ready` returns into a file of the folder: pipes are slow with so much of it."""
    ready = [one._replace(run=_sendable(one.run)) for one in _ready(prepared, *given)]
    descriptor, path = tempfile.mkstemp(dir=folder)
    with open(descriptor, "wb") as file:
        pickle.dump(ready, file, pickle.HIGHEST_PROTOCOL)
    return Path(path)


def _sendable(run: Run) -> Run:
    """Return a run without the function of `Custom`, which is compiled here, and which no GPU calls."""
    return run._replace(terms=run.terms._replace(custom=run.terms.custom._replace(function=None)))


def _from_file(path: Path) -> list[Underway]:
    found: list[Underway] = pickle.loads(path.read_bytes())  # our own worker's, in a folder of our own
    path.unlink()
    return found


def _tested(prepared: Prepared, best: Mapping[str, Best[Any]]) -> dict[str, Selected]:
    return tested(best, prepared.test, prepared.neighbours)


def _judged(validation: Judged, scaling: Scaling | None) -> tuple[Any, People]:
    """Return people on the scale that a model learns on, with their groups and labels as numbers."""
    X, people = validation.X.astype(np.float32), validation.people
    rows = as_rows(X if scaling is None else scaling.applied(X))
    labels: Codes = np.searchsorted(np.asarray(people.labels), np.asarray(people.y)).astype(np.int64)
    return canonical(rows, X.shape[1]), People(people.own.astype(np.int64), labels)


def _watched(fleet: Fleet, mine: Sequence[tuple[Trial, Underway]], stopped: Event) -> list[Watched]:
    """Train from checkpoint to checkpoint; return each model's best by every criterion."""
    criteria, underway = (
        mine[0][0].criteria,
        [one for _, one in mine],
    )  # of a sweep, which has one set of them
    every = np.array([one.run.options.interval for one in underway])
    positive = np.array([one.positive for one in underway])
    judge = fleet.judges([one.judged for one in underway])
    checkpoints = np.zeros(len(mine), np.int64)
    best: list[list[Best[Any] | None]] = [[None] * len(criteria) for _ in mine]
    while (going := np.flatnonzero(fleet.steps < fleet.ends)).size and not stopped.is_set():
        fleet.advance(np.minimum(fleet.steps - fleet.steps % every + every, fleet.ends))
        scored = scores_of(judge(going), fleet.spec.G, fleet.spec.K, positive[going])
        checkpoints[going] += 1
        better = np.zeros((len(criteria), len(mine)), bool)
        for at, scores in zip(going.tolist(), scored, strict=True):
            for which, criterion in enumerate(criteria):
                rank, before = criterion.rank(scores), best[at][which]
                if before is None or rank > before.rank:
                    best[at][which] = Best(rank, int(fleet.steps[at]), scores, None)
                    better[which, at] = True
        fleet.keep(better)
    errors = fleet.finish()
    names = [criterion.name for criterion in criteria]
    kept = dict(zip(names, fleet.kept(), strict=True))
    frozen = []
    for at, one in enumerate(underway):
        found = {name: each for name, each in zip(names, best[at], strict=True) if each is not None}
        frozen.append(_frozen(found, {name: kept[name][at] for name in found}, one))
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
