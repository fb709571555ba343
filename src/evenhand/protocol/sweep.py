"""A sweep: every method at every point of its grid, on every data set and seed, and the best of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from evenhand.checks import integer, one_of
from evenhand.code_version import code_version
from evenhand.datasets import Dataset, load
from evenhand.metrics.selection import CRITERIA, Criterion
from evenhand.progress import Progress, or_nothing
from evenhand.protocol.engines import run_trials
from evenhand.protocol.grids import Method, Point
from evenhand.protocol.measuring import METRICS
from evenhand.protocol.readying import Arriving, all_ready
from evenhand.protocol.store import Store, StoreError, key_of
from evenhand.protocol.trial import SPLITS, Result, Selected, Trained, Trial

_LEAST_WORK = 10_000.0  # the overhead of any trial
_ON_GPU = "evenhand.protocol.gpu"  # read for its hash, and not imported here


class Chosen(NamedTuple):
    """The best trial of a method by one criterion, and what was kept of it."""

    trial: Trial
    trained: Trained
    selected: Selected


class Sweep:
    """Train every method at every point of its grid, on every data set and split, and choose the best.

    Parameters
    ----------
    methods : sequence of Method
        `paper_methods(full=True)`, `authors_methods`, `our_methods`, or your own.
    datasets : sequence of Dataset or str
        Data sets, or their names in `evenhand.datasets.available()`.
    seeds : int or sequence of int
        The number of splits, or their seeds. Each point of a grid trains with its own seed, made from the
        split's.
    criteria : sequence of Criterion
        How checkpoints and points of the grid are chosen on validation.
    split : {'published', 'random', 'stratified'}
        'published' keeps the published test part if one is known, and is random otherwise. 'stratified'
        keeps the groups' shares.
    store : Store, path or None
        Where results are kept. Results that are there are not computed again. None keeps them in memory.

    Examples
    --------
    >>> from evenhand.protocol.grids import paper_methods
    >>> sweep = Sweep(paper_methods(full=False)[:1], ["german"], seeds=1)
    >>> table = sweep.run()
    >>> table[["dataset", "method", "criterion"]].values.tolist()[0]
    ['german', 'LR', 'discrimination']
    """

    def __init__(
        self,
        methods: Sequence[Method],
        datasets: Sequence[Dataset | str],
        seeds: int | Sequence[int] = 1,
        criteria: Sequence[Criterion] = CRITERIA,
        split: str = "published",
        store: Store | str | Path | None = None,
    ) -> None:
        self.methods, self.criteria = list(methods), tuple(criteria)
        self.split = one_of("split", split, SPLITS)
        self.seeds = list(range(integer("seeds", seeds)) if isinstance(seeds, int) else seeds)
        for seed in self.seeds:
            integer("seeds", seed, low=0)
        self.datasets = [load(item) if isinstance(item, str) else item for item in datasets]
        _distinct("method", [method.name for method in self.methods])
        _distinct("data set", [dataset.name for dataset in self.datasets])
        _distinct("criterion", [criterion.name for criterion in self.criteria])
        self.store = store if isinstance(store, Store) else Store(store)

    @cached_property
    def trials(self) -> list[Trial]:
        """All trials, the longest first."""
        found = [
            self._trial(dataset, seed, method, point)
            for dataset in self.datasets
            for seed in self.seeds
            for method in self.methods
            for point in method.points(len(dataset))
        ]
        return sorted(found, key=lambda trial: -trial.work)

    def run(
        self,
        *,
        engine: str = "threads",
        workers: int | None = None,
        address: str | None = None,
        progress: Progress | None = None,
    ) -> pd.DataFrame:
        """Run the trials that are not done yet, and return the best of each method.

        If it is killed, run it again on the same store, and it continues where it stopped.

        Parameters
        ----------
        engine : {'threads', 'processes', 'dask', 'ray', 'cuda'}
            Where trials run. 'cuda' trains networks on a GPU, all at once, and runs all else in threads.
        workers : int, optional
            The number of workers; by default one per core. An existing cluster has its own.
        address : str, optional
            The address of an existing Dask scheduler or Ray cluster. By default, one is started here.
        progress : Progress, optional
            Shows the progress; by default nothing is shown.

        Returns
        -------
        DataFrame
            One row per data set, seed, method and criterion, with the chosen point of the grid (`parameters`)
            and checkpoint (`step`), the `engine` that trained it ('cpu' or 'cuda'), the accuracy and the
            discrimination on validation, and all metrics on the test part.
        """
        shown = or_nothing(progress)
        known = self.store.errors(trial.key for trial in self.trials)
        pending = [trial for trial in self.trials if known.get(trial.key, "not done") is not None]
        finished = len(self.trials) - len(pending)
        if pending:
            if finished:
                shown.say(f"{finished} trials are in the store already and are not repeated.")
            data = self._data(pending, engine, workers, shown)
            work = sum(trial.work for trial in pending)
            with shown.stage("Trials", len(pending), work), self.store.writing() as write:
                running = self._not_done_meanwhile(pending, shown)
                for trial, result in run_trials(
                    running, data, engine=engine, workers=workers, address=address
                ):
                    write(trial.key, trial.names | {"parameters": trial.point}, result)
                    shown.done(trial.label, trial.work)
            self._check_whole(pending)
        return self.best()

    def _data(self, pending: list[Trial], engine: str, workers: int | None, shown: Progress) -> Arriving:
        """Return the data sets of the trials. A GPU begins once the first are ready, with the largest."""
        named = {dataset.name: dataset for dataset in self.datasets}
        if engine == "cuda":
            shown.say("Data sets are made ready while the first networks train.")
            pending.sort(key=lambda trial: (-len(named[trial.dataset]), trial.dataset))
        wanted = {trial.data: (named[trial.dataset], trial.seed) for trial in pending}
        data = all_ready(wanted, self.split, processes=engine in ("processes", "cuda"), workers=workers)
        if engine != "cuda":
            people = sum(len(dataset) for dataset, _ in wanted.values())
            with shown.stage("Data sets", len(wanted), people) as done:
                for key, (dataset, seed) in wanted.items():
                    data[key]
                    done(f"{dataset.name}, seed {seed}", len(dataset))
        return data

    def _check_whole(self, trials: Sequence[Trial]) -> None:
        """Raise if a trial has neither a result nor an error: tables without it would mislead."""
        known = self.store.errors(trial.key for trial in trials)
        lost = [trial.label for trial in trials if trial.key not in known]
        if lost:
            raise StoreError(
                f"{len(lost)} of {len(trials)} trials have neither a result nor an error, such as {lost[0]}. "
                "Run it again: it continues with these."
            )

    def best(self) -> pd.DataFrame:
        """Return the best of each method, from the results in the store."""
        rows = [
            {
                **best.trial.names,
                "criterion": criterion.name,
                "parameters": json.dumps(best.trial.point),
                "step": best.selected["step"],
                "engine": best.trained["engine"],
                "validation_accuracy": best.selected["validation"]["accuracy"],
                "validation_discrimination": best.selected["validation"]["discrimination"],
                **best.selected["test"],
            }
            for trials in self._by_method.values()
            for known in [self.store.read(trial.key for trial in trials)]
            for criterion in self.criteria
            if (best := _chosen(trials, known, criterion.name)) is not None
        ]
        if not rows:
            names = ("dataset", "seed", "method", "criterion", "parameters", "step", "engine", *METRICS)
            return pd.DataFrame(columns=list(names), dtype=object)
        return pd.DataFrame(rows)

    def chosen(self, dataset: str, seed: int, method: str, criterion: str) -> Chosen | None:
        """Return the best trial of a method by a criterion, both given by name; None if all failed."""
        trials = self._by_method.get((dataset, seed, method), [])
        return _chosen(trials, self.store.read(trial.key for trial in trials), criterion)

    def failures(self) -> pd.DataFrame:
        """Return the trials that failed, with their errors."""
        known = self.store.errors(trial.key for trial in self.trials)
        rows = [
            {**trial.names, "parameters": json.dumps(trial.point), "error": error}
            for trial in self.trials
            if (error := known.get(trial.key))
        ]
        return pd.DataFrame(rows, columns=["dataset", "seed", "method", "parameters", "error"])

    @cached_property
    def _by_method(self) -> dict[tuple[str, int, str], list[Trial]]:
        """The trials of each data set, seed and method, in the order of the grid."""
        names = [(d.name, seed, m.name) for d in self.datasets for seed in self.seeds for m in self.methods]
        found: dict[tuple[str, int, str], list[Trial]] = {name: [] for name in names}
        for trial in self.trials:  # points of one method are equally long: sorting kept their order
            found[trial.dataset, trial.seed, trial.method.name].append(trial)
        return found

    def _trial(self, dataset: Dataset, seed: int, method: Method, point: Point) -> Trial:
        key = key_of(
            {
                "data": dataset.fingerprint,
                "code": code_version(Trial.__module__, _ON_GPU, method.make.__module__),
                "method": [method.name, method.version, method.most_people],
                "parameters": point,
                "seed": seed,
                "split": self.split,
                "criteria": [repr(criterion) for criterion in self.criteria],
            }
        )
        data = key_of([dataset.fingerprint, seed, self.split])
        # One-hot columns are sparse, so features count little.
        people = min(len(dataset), method.most_people or len(dataset))
        work = float(method.weight * people * dataset.contexts.shape[1] ** 0.4) + _LEAST_WORK
        return Trial(key, data, dataset.name, seed, method, point, self.criteria, work)

    def _not_done_meanwhile(self, pending: list[Trial], progress: Progress) -> Iterator[Trial]:
        """Yield trials as workers ask for them, except those that another run on the same store has done."""
        for trial in pending:
            if self.store.succeeded(trial.key):
                progress.done(trial.label, trial.work)
            else:
                yield trial


def _chosen(trials: Sequence[Trial], known: Mapping[str, Result], criterion: str) -> Chosen | None:
    """Return the best of some trials by one criterion; None if all failed."""
    done = [
        Chosen(trial, trained, trained["criteria"][criterion])
        for trial in trials
        if trial.key in known and (trained := known[trial.key].trained)
    ]
    # max returns the first of equals: the earlier point of the grid.
    return max(done, key=lambda one: tuple(one.selected["rank"]), default=None)


def _distinct(what: str, names: list[str]) -> None:
    if not names:
        raise ValueError(f"Got no {what}, but expected at least one.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Got the {what} {twice[0]!r} twice, but expected distinct names.")
