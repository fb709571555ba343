"""Trials of networks on a GPU, all at once: trained side by side, their checkpoints scored where they are."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from evenhand.protocol.selection import Best, Judged, Scores
from evenhand.protocol.trial import Prepared, Result, Trial, quietly, seed_of, told_of


class Underway(NamedTuple):
    """A trial in training, and the people that its checkpoints are scored on, as the kernels read them."""

    trial: Trial
    model: Any
    run: Run
    scaling: Scaling | None
    judged: tuple[Any, People]
    positive: int


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
    networks: Sequence[tuple[Trial, Any]], data: Mapping[str, Prepared]
) -> Iterator[tuple[Trial, Result]]:
    """Train networks, and yield each trial with what `Trial.run` returns."""
    start = time.perf_counter()
    with quietly():
        underway = list(_underway(networks, data))
        by_training = {id(one.run.training): one for one in underway}
        beside = [one.judged[0] for one in underway]
        for fleet in fleets_of([one.run for one in underway], beside):
            mine = [by_training[id(run.training)] for run in fleet.runs]
            best, checkpoints = _watched(fleet, mine)
            errors = fleet.finish()
            seconds = (time.perf_counter() - start) / len(underway)
            for at, one in enumerate(mine):
                try:
                    if (error := errors[at]) is not None:
                        raise error
                    has_run_on_gpu(one.model, one.run, one.scaling)
                    prepared = data[one.trial.data]
                    trained = told_of(best[at], int(checkpoints[at]), one.model, prepared)
                    yield one.trial, Result(trained, None, seconds)
                except Exception:  # as in `Trial.run`: the other trials go on
                    yield one.trial, Result(None, traceback.format_exc(), seconds)


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


def _watched(fleet: Fleet, mine: Sequence[Underway]) -> tuple[list[dict[str, Best[Any]]], Codes]:
    """Train from checkpoint to checkpoint; return the best by each criterion, and how many there were."""
    every = np.array([one.run.options.interval for one in mine])
    checkpoints = np.zeros(len(mine), np.int64)
    best: list[dict[str, Best[Any]]] = [{} for _ in mine]
    while (going := fleet.steps < fleet.ends).any():
        fleet.advance(np.minimum(fleet.steps - fleet.steps % every + every, fleet.ends))
        counts = fleet.judge([one.judged for one in mine])
        checkpoints += going
        better: list[tuple[int, str, Any, Scores]] = []
        for at in np.flatnonzero(going).tolist():
            scores = scores_of(counts[at], fleet.spec.G, fleet.spec.K, mine[at].positive)
            for criterion in mine[at].trial.criteria:
                rank = criterion.rank(scores)
                if criterion.name not in best[at] or rank > best[at][criterion.name].rank:
                    better.append((at, criterion.name, rank, scores))
        kept = fleet.snapshot({at for at, *_ in better})
        for at, name, rank, scores in better:
            scaling = mine[at].scaling
            policies = kept[at] if scaling is None else scaling.folded(kept[at])
            best[at][name] = Best(rank, int(fleet.steps[at]), scores, Frozen(policies))
    return best, checkpoints


def scores_of(counts: Any, n_groups: int, n_labels: int, positive: int) -> Scores:
    """Return the scores that decisions counted by group, label and decision make.

    >>> scores_of(np.array([3, 1, 0, 0, 1, 1, 1, 1, 2]), 2, 2, 1)
    Scores(accuracy=0.625, discrimination=0.25, positive_rate=0.375, flip_rate=0.25)
    """
    by_group = counts[:-1].astype(np.float64).reshape(n_groups, n_labels, n_labels)
    people, sizes = by_group.sum(), by_group.sum((1, 2))
    given = by_group[:, :, positive].sum(1)[sizes > 0] / sizes[sizes > 0]
    return Scores(
        accuracy=float(by_group.trace(axis1=1, axis2=2).sum() / people),
        discrimination=float(given.max() - given.min()),
        positive_rate=float(by_group[:, :, positive].sum() / people),
        flip_rate=float(counts[-1] / people),
    )
