"""The sweep: every method at every point of its grid, on every data set and seed; the best of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand.checks import integer, one_of
from evenhand.code_version import code_version
from evenhand.datasets import Dataset, load
from evenhand.progress import Progress
from evenhand.protocol.engines import Task, run_tasks
from evenhand.protocol.grids import Method, Point
from evenhand.protocol.selection import CRITERIA, Criterion
from evenhand.protocol.store import Result, Store, key_of
from evenhand.protocol.trial import METRICS, SPLITS, Prepared, make_ready, run_trial

_LEAST_WORK = 10_000.0  # of any trial: its own overhead


class Trial(NamedTuple):
    """One trial to be done, and the hash of everything that determines it."""

    key: str
    dataset: Dataset
    seed: int
    method: Method
    point: Point

    @property
    def label(self) -> str:
        """What a progress bar shows."""
        return f"{self.method.name} on {self.dataset.name}, seed {self.seed}"

    @property
    def work(self) -> float:
        """How long it takes, roughly, in some unit: one-hot columns are sparse, so features count little."""
        people = min(len(self.dataset), self.method.most_people or len(self.dataset))
        return float(self.method.weight * people * self.dataset.contexts.shape[1] ** 0.4) + _LEAST_WORK


@dataclass(frozen=True, eq=False)
class Sweep:
    """Methods × grid × data sets × seeds, with every criterion.

    Parameters
    ----------
    methods : sequence of Method
        `paper_methods(full=True)`, `our_methods(full=True)`, or your own.
    datasets : sequence of Dataset or names
        Names are those of `evenhand.datasets.available()`.
    seeds : int or sequence of int
        How many splits, or their seeds.
    criteria : sequence of Criterion
        How checkpoints and points of the grid are chosen on validation.
    split : {'published', 'random', 'stratified'}
        'published' keeps the published test part where one is known and is random elsewhere; 'stratified'
        keeps the groups' shares.
    store : Store, path or None
        Where results are kept: what is there is not done again. None keeps them in memory.

    Examples
    --------
    >>> from evenhand.protocol.grids import paper_methods
    >>> sweep = Sweep(paper_methods(full=False)[:1], ["german"], seeds=1)
    >>> table = sweep.run()
    >>> table[["dataset", "method", "criterion"]].values.tolist()[0]
    ['german', 'LR', 'discrimination']
    """

    methods: Sequence[Method]
    datasets: Sequence[Dataset | str]
    seeds: int | Sequence[int] = 1
    criteria: Sequence[Criterion] = CRITERIA
    split: str = "published"
    store: Store | str | Path | None = None
    _loaded: list[Dataset] = field(default_factory=list, init=False, repr=False)
    _opened: list[Store] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        for seed in self.all_seeds:
            integer("seeds", seed, low=0)
        self._loaded.extend(load(item) if isinstance(item, str) else item for item in self.datasets)
        _distinct("method", [method.name for method in self.methods])
        _distinct("data set", [dataset.name for dataset in self._loaded])
        _distinct("criterion", [criterion.name for criterion in self.criteria])
        self._opened.append(self.store if isinstance(self.store, Store) else Store(self.store))

    @property
    def all_seeds(self) -> list[int]:
        """The seeds of the splits; each also seeds its trials."""
        if isinstance(self.seeds, int):
            return list(range(integer("seeds", self.seeds)))
        return list(self.seeds)

    @property
    def trials(self) -> list[Trial]:
        """Every trial there is to do, the longest first."""
        found = [
            Trial(self._key(dataset, seed, method, point), dataset, seed, method, point)
            for dataset in self._loaded
            for seed in self.all_seeds
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
        """Do what is not done yet, and return the best of each method.

        The engine may be 'threads', 'processes', 'dask' or 'ray'; see `run_tasks`. Killed at any moment, it
        goes on from where it stopped when run again on the same store.

        Returns
        -------
        A row for each data set, seed, method and criterion: the chosen point of the grid (`parameters`) and
        checkpoint (`step`), and the metrics on the test part.
        """
        shown = Progress() if progress is None else progress
        store, trials = self._opened[0], self.trials
        pending = [trial for trial in trials if not store.succeeded(trial.key)]
        if pending:
            self._do(pending, len(trials) - len(pending), engine, workers, address, shown)
        return self.best()

    def best(self) -> pd.DataFrame:
        """Return the best of each method, from what the store has."""
        rows = []
        for (dataset, seed, method), results in self._by_method():
            for criterion in self.criteria:
                done = [r.outcome["criteria"][criterion.name] | {"of": r} for r in results if r.outcome]
                if done:
                    # max returns the first of equals: the earlier point of the grid.
                    chosen = max(done, key=lambda one: tuple(one["rank"]))
                    rows.append(
                        {
                            "dataset": dataset,
                            "seed": seed,
                            "method": method,
                            "criterion": criterion.name,
                            "parameters": json.dumps(chosen["of"].what["parameters"]),
                            "step": chosen["step"],
                            "validation_accuracy": chosen["validation"]["accuracy"],
                            "validation_discrimination": chosen["validation"]["discrimination"],
                            **chosen["test"],
                        }
                    )
        if not rows:
            names = ("dataset", "seed", "method", "criterion", "parameters", "step", *METRICS)
            return pd.DataFrame(columns=list(names), dtype=object)
        return pd.DataFrame(rows)

    def chosen(self, dataset: str, seed: int, method: str, criterion: str) -> dict[str, Any] | None:
        """Return all that is kept of the best of one method, submodels and curve too; None if all failed."""
        for at, results in self._by_method():
            if at == (dataset, seed, method):
                done = [(r.outcome["criteria"][criterion], r) for r in results if r.outcome]
                if done:
                    best, result = max(done, key=lambda one: tuple(one[0]["rank"]))
                    return {**best, "parameters": result.what["parameters"], "curve": result.outcome["curve"]}
        return None

    def failures(self) -> pd.DataFrame:
        """Return the trials that ended in an error, with it."""
        known = self._opened[0].read(trial.key for trial in self.trials)
        rows = [
            {
                "dataset": trial.dataset.name,
                "seed": trial.seed,
                "method": trial.method.name,
                "parameters": json.dumps(trial.point),
                "error": known[trial.key].error,
            }
            for trial in self.trials
            if trial.key in known and known[trial.key].error
        ]
        return pd.DataFrame(rows, columns=["dataset", "seed", "method", "parameters", "error"])

    def _key(self, dataset: Dataset, seed: int, method: Method, point: Point) -> str:
        return key_of(
            {
                "data": dataset.fingerprint,
                "code": code_version(run_trial.__module__, method.make.__module__),
                "method": [method.name, method.version, method.most_people],
                "parameters": point,
                "seed": seed,
                "split": self.split,
                "criteria": [repr(criterion) for criterion in self.criteria],
            }
        )

    def _do(
        self,
        pending: list[Trial],
        finished: int,
        engine: str,
        workers: int | None,
        address: str | None,
        progress: Progress,
    ) -> None:
        store = self._opened[0]
        if finished:
            progress.say(f"{finished} trials are in the store already and are not repeated.")
        data = self._prepare(pending, progress)
        by_key = {trial.key: trial for trial in pending}

        def tasks() -> Iterator[Task]:
            for trial in pending:
                # Another run on the same store may have done it meanwhile.
                if store.succeeded(trial.key):
                    progress.done(trial.label, trial.work)
                else:
                    yield Task(
                        trial.key,
                        self._data_key(trial),
                        trial.method,
                        trial.point,
                        trial.seed,
                        tuple(self.criteria),
                    )

        progress.start("Trials", len(pending), sum(trial.work for trial in pending))
        try:
            running = run_tasks(tasks(), data, engine=engine, workers=workers, address=address)
            for key, outcome in running:
                trial = by_key[key]
                what = {
                    "dataset": trial.dataset.name,
                    "seed": trial.seed,
                    "method": trial.method.name,
                    "parameters": trial.point,
                }
                store.write(key, what, outcome=outcome.selected, error=outcome.error, seconds=outcome.seconds)
                progress.done(trial.label, trial.work)
        finally:
            progress.stop()

    def _prepare(self, pending: list[Trial], progress: Progress) -> dict[str, Prepared]:
        wanted = {self._data_key(trial): trial for trial in pending}
        progress.start("Data sets", len(wanted), sum(len(trial.dataset) for trial in wanted.values()))
        data: dict[str, Prepared] = {}
        for key, trial in wanted.items():
            data[key] = make_ready(trial.dataset, trial.seed, self.split, key)
            progress.done(f"{trial.dataset.name}, seed {trial.seed}", len(trial.dataset))
        progress.stop()
        return data

    def _data_key(self, trial: Trial) -> str:
        return key_of([trial.dataset.fingerprint, trial.seed, self.split])

    def _by_method(self) -> Iterator[tuple[tuple[str, int, str], list[Result]]]:
        """Yield the results of each data set, seed and method, in the order of the grid."""
        for dataset in self._loaded:
            for seed in self.all_seeds:
                for method in self.methods:
                    keys = [self._key(dataset, seed, method, point) for point in method.points(len(dataset))]
                    known = self._opened[0].read(keys)
                    yield (dataset.name, seed, method.name), [known[key] for key in keys if key in known]


def _distinct(what: str, names: list[str]) -> None:
    if not names:
        raise ValueError(f"Got no {what}, but expected one at least.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Got the {what} {twice[0]!r} twice, but expected distinct names.")
