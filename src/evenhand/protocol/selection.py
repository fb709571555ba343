"""Which checkpoint is tested: the scores on validation, the criteria, and the callback that keeps the best.

A criterion ranks a checkpoint by its scores on the validation part; the highest rank wins. Ranks end in
tie-breakers, and what is still equal goes to the earlier checkpoint, then to the earlier point of the grid:
the choice is the same on every machine. No rank looks at the test part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.checks import number
from evenhand.network import Network
from evenhand.protocol.decisions import Floats, own_decisions, said_by_group

Rank = tuple[float, ...]
Kept = TypeVar("Kept")


class Scores(NamedTuple):
    """How a checkpoint does on some people."""

    accuracy: float
    discrimination: float
    positive_rate: float
    flip_rate: float

    @property
    def delta(self) -> float:
        """Accuracy minus discrimination."""
        return self.accuracy - self.discrimination


class Criterion(Protocol):
    """A name, and a rank of scores: the higher the better. `repr` is part of a result's key.

    One with `looks_at_flips = False` promises not to, and checkpoints are scored in half the time.
    """

    @property
    def name(self) -> str:
        """As tables show it."""

    def rank(self, scores: Scores) -> Rank:
        """Return what to compare by, first things first."""


@dataclass(frozen=True)
class LowestDiscrimination:
    """The paper's first: lowest discrimination; ties go to the higher accuracy."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "discrimination"

    def rank(self, scores: Scores) -> Rank:
        """Return discrimination, the other way round, then accuracy."""
        return (-scores.discrimination, scores.accuracy)


@dataclass(frozen=True)
class HighestDelta:
    """The paper's second: highest accuracy − discrimination; ties go to the lower discrimination."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "delta"

    def rank(self, scores: Scores) -> Rank:
        """Return delta, then discrimination the other way round."""
        return (scores.delta, -scores.discrimination)


@dataclass(frozen=True)
class BoundedDiscrimination:
    """Highest accuracy among those with discrimination at most a bound; if there is none, the nearest to it.

    >>> criterion = BoundedDiscrimination(0.05)
    >>> fair, better, unfair = (Scores(a, d, 0.3, 0.0) for a, d in [(0.7, 0.01), (0.8, 0.05), (0.9, 0.06)])
    >>> max([fair, better, unfair], key=criterion.rank).accuracy
    0.8
    """

    bound: float = 0.05
    looks_at_flips: ClassVar[bool] = False
    name: str = "bounded"

    def __post_init__(self) -> None:
        number("bound", self.bound, low=0, high=1)

    def rank(self, scores: Scores) -> Rank:
        """Return whether the bound is kept, then accuracy if so, then discrimination the other way round."""
        within = scores.discrimination <= self.bound
        return (float(within), scores.accuracy if within else 0.0, -scores.discrimination)


CRITERIA: tuple[Criterion, ...] = (LowestDiscrimination(), HighestDelta(), BoundedDiscrimination())


@dataclass(frozen=True, eq=False)
class Judged:
    """Some people with all that scoring needs: contexts, and labels and groups as numbers."""

    X: Any
    y: npt.NDArray[np.int64]
    s: npt.NDArray[np.int64]
    labels: npt.NDArray[Any]
    groups: npt.NDArray[Any]
    positive: int

    def said(self, model: Any, *, decisions_only: bool = False) -> Floats:
        """Return what a model says of these people as members of every group."""
        return said_by_group(
            model, self.X, labels=self.labels, groups=self.groups, decisions_only=decisions_only
        )

    def scores(self, model: Any, *, flips: bool = True) -> Scores:
        """Return a model's scores; without `flips` the flip rate is NaN, and policies are asked once."""
        policies = getattr(model, "policies_", None)
        if not flips and isinstance(policies, Network) and len(policies.b2) == len(self.groups):
            return score(own_decisions(policies, self.apart)[:, None], self)
        return score(self.said(model, decisions_only=True).argmax(axis=2), self)

    @cached_property
    def apart(self) -> list[tuple[npt.NDArray[np.intp], Any]]:
        """Who is in each group, and their contexts."""
        members = [np.flatnonzero(self.s == group) for group in range(len(self.groups))]
        return [(who, self.X[who]) for who in members]


def score(decided: npt.NDArray[np.int64], people: Judged) -> Scores:
    """Return the scores of decisions as numbers, by counting.

    They are (people, groups), or (people, 1) by everybody's own group. A group that has nobody here is left
    out; where that leaves one group, discrimination is 0.
    """
    alone = decided.shape[1] < len(people.groups)
    own = decided[:, 0] if alone else decided[np.arange(len(decided)), people.s]
    positive = own == people.positive
    counts = np.bincount(people.s, minlength=len(people.groups))
    chosen = np.bincount(people.s[positive], minlength=len(people.groups))
    rates = chosen[counts > 0] / counts[counts > 0]
    return Scores(
        float((own == people.y).mean()),
        float(rates.max() - rates.min()),
        float(positive.mean()),
        float("nan") if alone else float((decided != own[:, None]).any(axis=1).mean()),
    )


class Best(NamedTuple, Generic[Kept]):
    """The best checkpoint by one criterion: its rank and scores on validation, and what was kept of it."""

    rank: Rank
    step: int
    scores: Scores
    kept: Kept


class Selector(Generic[Kept]):
    """A checkpoint callback: scores the model on validation and keeps the best by each criterion.

    Parameters
    ----------
    validation : Judged
    criteria : the criteria
    keep : what to keep of a model that is the best so far, say its predictions on the test part

    Attributes
    ----------
    best : dict of criterion name to `Best`
    checkpoints : how many were scored
    """

    def __init__(
        self, validation: Judged, criteria: Sequence[Criterion], keep: Callable[[Any], Kept]
    ) -> None:
        self.validation = validation
        self.criteria = criteria
        self.keep = keep
        self.best: dict[str, Best[Kept]] = {}
        self.checkpoints = 0
        self._flips = any(getattr(criterion, "looks_at_flips", True) for criterion in criteria)

    def __call__(self, step: int, model: Any) -> None:
        """Score a checkpoint."""
        self.checkpoints += 1
        scores = self.validation.scores(model, flips=self._flips)
        ranks = {criterion.name: criterion.rank(scores) for criterion in self.criteria}
        better = [
            name for name, rank in ranks.items() if name not in self.best or rank > self.best[name].rank
        ]
        if better:
            scores = scores if self._flips else self.validation.scores(model)
            kept = self.keep(model)
            for name in better:
                self.best[name] = Best(ranks[name], step, scores, kept)
