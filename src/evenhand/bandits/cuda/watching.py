"""Checkpoints of models on a GPU: they are scored there, and the best by each criterion stays there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.bandits.contexts import as_rows
from evenhand.bandits.cuda.fleet import Fleet
from evenhand.bandits.cuda.packing import canonical
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.scaling import Scaling
from evenhand.checks import MIN_GROUP
from evenhand.metrics.networks import Frozen
from evenhand.metrics.rates import divide, filled
from evenhand.metrics.selection import Best, Criterion, Judged, Scores


class Asked(NamedTuple):
    """The people on whom a model's checkpoints are scored, in the kernels' format, and the positive label."""

    rows: Any  # a CSR matrix
    people: People
    positive: int
    scaling: Scaling | None  # of the rows; the same as in training

    @classmethod
    def of(cls, judged: Judged, scaling: Scaling | None) -> Asked:
        """Return people on a model's training scale, with their groups and labels as numbers."""
        X, people = judged.X.astype(np.float32), judged.people
        rows = as_rows(X if scaling is None else scaling.applied(X))
        own, labels = people.own.astype(np.int64), people.truth.astype(np.int64)
        assert people.positive is not None, "checked where people come in"
        if people.weights is not None:
            raise ValueError(
                "Got sample_weight for people that checkpoints are scored on, but engine='cuda' counts each "
                "person once; use engine='cpu'."
            )
        return cls(canonical(rows, X.shape[1]), People(own, labels), people.positive, scaling)


def asked_of(judged: Judged, scalings: Sequence[Scaling | None]) -> list[Asked]:
    """Return these people on each model's training scale; models with the same scale share them."""
    scales = {id(scaling): scaling for scaling in scalings}
    on_scale = {key: Asked.of(judged, scaling) for key, scaling in scales.items()}
    return [on_scale[id(scaling)] for scaling in scalings]


class Watched(NamedTuple):
    """The result for a model: its best checkpoint by each criterion, the number of checkpoints, any error."""

    best: dict[str, Best[Frozen]]
    checkpoints: int
    error: Exception | None


class Watch:
    """Trains a fleet from checkpoint to checkpoint, and keeps track of the best ones."""

    def __init__(self, fleet: Fleet, asked: Sequence[Asked], criteria: Sequence[Criterion]) -> None:
        self.fleet, self.asked, self.criteria = fleet, asked, criteria
        self._every = np.array([run.options.interval for run in fleet.runs])
        self._positive = np.array([one.positive for one in asked])
        self._judge = fleet.judges([(one.rows, one.people) for one in asked])
        self._checkpoints = np.zeros(len(asked), np.int64)
        self._best: list[list[Best[Any] | None]] = [[None] * len(criteria) for _ in asked]
        self._going = self._left()

    @property
    def going(self) -> bool:
        """Whether some models are still in training."""
        return len(self._going) > 0

    def advance(self) -> int:
        """Start to train every model up to its next checkpoint; return the total number of steps."""
        steps = self.fleet.steps
        return self.fleet.advance(np.minimum(steps - steps % self._every + self._every, self.fleet.ends))

    def score(self) -> None:
        """Score the models that were trained, and keep the policies of those that are the best so far."""
        going, fleet = self._going, self.fleet
        scored = scores_of(self._judge(going), fleet.spec.G, fleet.spec.K, self._positive[going])
        self._checkpoints[going] += 1
        better = np.zeros((len(self.criteria), len(self._best)), bool)
        for at, scores in zip(going.tolist(), scored, strict=True):
            for which, criterion in enumerate(self.criteria):
                rank, before = criterion.rank(scores), self._best[at][which]
                if before is None or rank > before.rank:
                    self._best[at][which] = Best(rank, int(fleet.steps[at]), scores, None)
                    better[which, at] = True
        if better.any():
            fleet.keep(better)
        self._going = self._left()

    def _left(self) -> Any:
        return np.flatnonzero(self.fleet.steps < self.fleet.ends)

    def finish(self) -> list[Watched]:
        """Return each model's best checkpoints; their policies take unscaled rows.

        Criteria that chose the same checkpoint share its policies.
        """
        kept = self.fleet.kept()  # first: `finish` replaces the policies that they are unpacked beside
        errors = self.fleet.finish()
        found = []
        for at, (best, error) in enumerate(zip(self._best, errors, strict=True)):
            if error is not None:
                found.append(Watched({}, int(self._checkpoints[at]), error))
                continue
            policies = {each.step: kept[which][at] for which, each in enumerate(best) if each is not None}
            scaling = self.asked[at].scaling
            frozen = {
                step: Frozen(trained if scaling is None else scaling.folded(trained))
                for step, trained in policies.items()
            }
            named = {
                criterion.name: each._replace(kept=frozen[each.step])
                for criterion, each in zip(self.criteria, best, strict=True)
                if each is not None
            }
            found.append(Watched(named, int(self._checkpoints[at]), None))
        return found


def scores_of(counts: Any, n_groups: int, n_labels: int, positive: Any) -> list[Scores]:
    """Return each model's scores, given its counts by group, label and decision, and then its flips.

    The last label stands for all that the models don't know: whatever is decided is wrong.

    >>> scores_of(np.array([[3, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 2]]), 2, 2, np.array([1]))
    [Scores(accuracy=0.625, discrimination=0.25, positive_rate=0.375, flip_rate=0.25)]
    """
    decided = counts[:, :-1].astype(np.float64).reshape(-1, n_groups, n_labels + 1, n_labels)
    people, sizes = decided.sum((1, 2, 3)), decided.sum((2, 3))
    given = np.take_along_axis(decided.sum(2), positive[:, None, None], 2)[:, :, 0]
    # As in every metric, small groups are filled up with average people, and empty groups are left out.
    rates = divide(*filled(given[:, :, None], sizes[:, :, None], MIN_GROUP))[:, :, 0]
    columns = (
        np.trace(decided, axis1=2, axis2=3).sum(1) / people,
        np.nanmax(rates, 1) - np.nanmin(rates, 1),
        given.sum(1) / people,
        counts[:, -1] / people,
    )
    return [Scores(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
