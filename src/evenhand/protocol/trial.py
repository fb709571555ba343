"""One trial: a method at one point of its grid, on one split of one data set, scored by every criterion."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.arrays import Array, Codes
from evenhand.baselines import CollapseWarning
from evenhand.checks import integer, one_of
from evenhand.groups import codes_of, sorted_unique
from evenhand.metrics import Answers, gower_neighbours
from evenhand.metrics.networks import freeze
from evenhand.metrics.selection import Best, Criterion, Judged, Selector
from evenhand.protocol.grids import Method, Point
from evenhand.protocol.measuring import Measured, curve, measured
from evenhand.tables.dataset import Dataset
from evenhand.tables.preprocessing import Part, Parts, prepare
from evenhand.tables.splits import FRACTIONS, Split, split
from evenhand.wording import listed

NEIGHBOURS = 5


def published_split(dataset: Dataset, seed: int) -> Split:
    """Split with the published test part; if none is known, 70/15/15 at random, as the paper says.

    If only the size of the test part is known, it is drawn at random with that size. The validation part is
    then a random 15/85 of the people outside the test part.

    Examples
    --------
    >>> from evenhand.datasets import load_german
    >>> [len(part) for part in published_split(load_german(rows="published"), seed=0)]
    [659, 141, 200]
    """
    integer("seed", seed, low=0)
    random = np.random.Generator(np.random.PCG64(seed))
    if dataset.test_rows is not None:
        test, others = np.flatnonzero(dataset.test_rows), np.flatnonzero(~dataset.test_rows)
        others = random.permutation(others)
    elif dataset.test_people is not None:
        test, others = np.split(random.permutation(len(dataset)), [dataset.test_people])
    else:
        return split(dataset, seed=seed)
    train = round(len(others) * FRACTIONS[0] / (FRACTIONS[0] + FRACTIONS[1]))
    return Split(others[:train], others[train:], test)


SPLITS: dict[str, Callable[[Dataset, int], Split]] = {
    "published": published_split,
    "random": lambda dataset, seed: split(dataset, seed=seed),
    "stratified": lambda dataset, seed: split(dataset, seed=seed, stratify="group"),
}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set, split and preprocessed: everything that a worker needs, sent to it once."""

    X: Any
    y: Array
    s: Array
    validation: Judged
    test: Judged
    neighbours: Codes = field(repr=False)


def make_ready(dataset: Dataset, seed: int, how: str) -> Prepared:
    """Split a data set, fit the preprocessing on the training part, and find the test people's neighbours."""
    parts = prepare(dataset, SPLITS[one_of("split", how, SPLITS)](dataset, seed))
    _check_training(parts, f"Data set {dataset.name!r}, seed {seed}, split={how!r}", how)
    labels = np.unique(parts.train.y).tolist()
    groups = sorted_unique(parts.train.s)[0]
    k = min(NEIGHBOURS, len(parts.test.y) - 1)
    neighbours = gower_neighbours(parts.test.contexts, k).indices

    def judged(part: Part) -> Judged:
        own = codes_of(part.s, len(part.s), groups)
        people = Answers(labels, groups.tolist(), own, y=_in_place(part.y), pos_label=parts.pos_label)
        return Judged(part.X, people)

    X, y, s = parts.train.X, _in_place(parts.train.y), _in_place(parts.train.s)
    return Prepared(X, y, s, judged(parts.validation), judged(parts.test), neighbours)


def _in_place(values: Array) -> Array:
    """Return strings as one block of characters, because objects in a file are read one by one.

    >>> [_in_place(np.array(values, dtype=object)).dtype.kind for values in (["no", "yes"], [1, "yes"])]
    ['U', 'O']
    """
    beside = values.astype(str) if values.dtype == object else values
    return beside if np.array_equal(beside, values) else values


def _check_training(parts: Parts, where: str, how: str) -> None:
    """Raise if the training part lacks a group, or the positive label."""
    elsewhere = (parts.validation, parts.test)
    known = set(parts.train.s.tolist())
    unknown = [group for part in elsewhere for group in part.s.tolist() if group not in known]
    if unknown:
        named = ", ".join(f"{group!r} ({unknown.count(group)})" for group in dict.fromkeys(unknown))
        remedy = "Merge rare groups" + ", or use split='stratified'" * (how != "stratified")
        raise ValueError(
            f"{where}: the training part has nobody from these groups, but the other parts have (with their "
            f"numbers of people): {named}. {remedy}."
        )
    if parts.pos_label is None:
        raise ValueError(
            f"{where}: got no positive label, but expected one of the data set's labels: set pos_label."
        )
    labels = set(parts.train.y.tolist())
    if parts.pos_label not in labels or len(labels) < 2:
        raise ValueError(
            f"{where}: the labels in the training part are {listed(sorted(labels, key=str))}, but expected "
            f"the positive one, {parts.pos_label!r}, and another. Use another seed, or more people."
        )


class Selected(TypedDict):
    """The checkpoint that one criterion selects on validation, with its metrics on the test part."""

    step: int
    rank: list[float]
    validation: dict[str, float]
    test: dict[str, float]
    submodels: dict[str, dict[str, float]]


class Trained(TypedDict):
    """What is kept of a trained model: the checkpoint that each criterion selects, and its curve if any."""

    criteria: dict[str, Selected]
    checkpoints: int
    steps: int
    curve: dict[str, list[float]] | None
    engine: str  # which trained it: 'cpu' or 'cuda'


class Result(NamedTuple):
    """The result of a trial: what was trained, or the error that it ended in."""

    trained: Trained | None
    error: str | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Trial:
    """A method to train at one point of its grid, on one split of one data set."""

    key: str  # the hash of everything that determines its result
    data: str  # the key of its prepared data
    dataset: str
    seed: int  # of the split; the seed of the training comes from it, see `seed_of`
    method: Method
    point: Point
    criteria: tuple[Criterion, ...]  # what selects checkpoints
    work: float = 1.0  # roughly how long it takes, in some unit

    @property
    def label(self) -> str:
        """What a progress bar shows."""
        return f"{self.method.name} on {self.dataset}, seed {self.seed}"

    @property
    def names(self) -> dict[str, Any]:
        """The columns that name the trial in tables and in the store."""
        return {"dataset": self.dataset, "seed": self.seed, "method": self.method.name}

    def run(self, prepared: Prepared) -> Result:
        """Train once, score every checkpoint on validation, and measure the selected ones on test.

        An error is part of the result, so that the other trials go on.
        """
        start = time.perf_counter()
        try:
            seed = seed_of(self.seed, self.method.name, self.point)
            trained = train_and_select(prepared, self.method, self.point, seed, self.criteria)
            return Result(trained, None, time.perf_counter() - start)
        except Exception:  # somebody else's method may raise anything
            return Result(None, traceback.format_exc(), time.perf_counter() - start)


def seed_of(seed: int, method: str, point: Point) -> int:
    """Return the training seed of one point. With one seed for all, one lucky start would help a whole grid.

    >>> seed_of(0, "CCB", {"hidden": 10}), seed_of(0, "CCB", {"hidden": 20})
    (137821555, 1519339426)
    """
    text = json.dumps([seed, method, point], sort_keys=True)
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) >> 1


def train_and_select(
    prepared: Prepared, method: Method, point: Point, seed: int, criteria: Sequence[Criterion]
) -> Trained:
    """Return, for each criterion, the checkpoint selected on validation and its metrics on test."""
    model = method.make(seed, **point)
    # Networks are copied and asked about the test part at the end; other models are asked now.
    selector = Selector(prepared.validation, criteria, lambda m: freeze(m) or prepared.test.ask(m))
    _fit(model, prepared, method.most_people, selector)
    best = tested(selector.best, prepared.test, prepared.neighbours)
    return told(best, selector.checkpoints, model)


def tested(best_by: Mapping[str, Best[Any]], test: Judged, neighbours: Codes) -> dict[str, Selected]:
    """Return the best checkpoints by each criterion, with their metrics on test."""
    found: dict[int, Measured] = {}
    for best in best_by.values():
        if id(best.kept) not in found:  # criteria often choose the same checkpoint
            answers = best.kept if isinstance(best.kept, Answers) else test.ask(best.kept)
            found[id(best.kept)] = measured(answers, neighbours)
    return {
        name: {
            "step": best.step,
            "rank": list(best.rank),
            "validation": best.scores.with_delta(),
            "test": found[id(best.kept)].metrics,
            "submodels": found[id(best.kept)].submodels,
        }
        for name, best in best_by.items()
    }


def told(chosen: dict[str, Selected], checkpoints: int, model: Any) -> Trained:
    """Return what is kept of a trained model whose best checkpoints are tested."""
    return {
        "criteria": chosen,
        "checkpoints": checkpoints,
        "steps": int(getattr(model, "n_steps_", 0)),
        "curve": curve(model),
        "engine": getattr(model, "engine_", "cpu"),
    }


def _fit(model: Any, prepared: Prepared, most_people: int | None, selector: Selector[Any]) -> None:
    """Fit a model; pass it the groups, and the selector as its callback, if it takes them."""
    accepted = inspect.signature(model.fit).parameters
    people = slice(most_people)
    extra: dict[str, Any] = {}
    if "sensitive_features" in accepted:
        extra["sensitive_features"] = prepared.s[people]
    if "callback" in accepted:
        extra["callback"] = selector
    model.fit(prepared.X[people], prepared.y[people], **extra)
    if not selector.checkpoints:
        selector(int(getattr(model, "n_steps_", 0)), model)


@contextmanager
def quietly() -> Iterator[None]:
    """Use one BLAS thread per worker, and hide warnings of collapse or missing convergence."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
