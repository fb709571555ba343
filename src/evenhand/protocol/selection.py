"""Which checkpoint is tested: the scores on validation, the criteria, and the callback that keeps the best.

A criterion ranks a checkpoint by its scores on the validation part; the highest rank wins. Ranks end in
tie-breakers, and remaining ties go to the earlier checkpoint, then to the earlier point of the grid: the
choice is the same on every machine. No rank uses the test part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.checks import number
from evenhand.metrics.answers import Answers
from evenhand.metrics.classifiers import probabilities_by_group
from evenhand.metrics.measures import measure, value_of
from evenhand.metrics.networks import own_decisions, policies_of

Rank = tuple[float, ...]
Kept = TypeVar("Kept")


class Scores(NamedTuple):
    """What a checkpoint achieves on some people."""

    accuracy: float
    discrimination: float
    positive_rate: float
    flip_rate: float

    @property
    def delta(self) -> float:
        """Accuracy minus discrimination."""
        return self.accuracy - self.discrimination


class Criterion(Protocol):
    """A name, and a rank of scores, the higher the better; `repr` is part of a result's key.

    A criterion with `looks_at_flips = False` ignores the flip rate, which halves the time of scoring.
    """

    @property
    def name(self) -> str:
        """The name in tables."""

    def rank(self, scores: Scores) -> Rank:
        """Return what to compare by, the most important first."""


@dataclass(frozen=True)
class LowestDiscrimination:
    """The paper's first: lowest discrimination; ties go to the higher accuracy."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "discrimination"

    def rank(self, scores: Scores) -> Rank:
        """Return minus discrimination, then accuracy."""
        return (-scores.discrimination, scores.accuracy)


@dataclass(frozen=True)
class HighestDelta:
    """The paper's second: highest accuracy − discrimination; ties go to the lower discrimination."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "delta"

    def rank(self, scores: Scores) -> Rank:
        """Return delta, then minus discrimination."""
        return (scores.delta, -scores.discrimination)


@dataclass(frozen=True)
class BoundedDiscrimination:
    """Highest accuracy among those with discrimination at most a bound; if there is none, the nearest to it.

    Parameters
    ----------
    bound : float
        From 0 to 1.
    name : str
        The name in tables.

    Examples
    --------
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
        """Return whether the bound is kept, then accuracy if so, then minus discrimination."""
        within = scores.discrimination <= self.bound
        return (float(within), scores.accuracy if within else 0.0, -scores.discrimination)


CRITERIA: tuple[Criterion, ...] = (LowestDiscrimination(), HighestDelta(), BoundedDiscrimination())


@dataclass(frozen=True, eq=False)
class Judged:
    """People that checkpoints are scored on: contexts, and labels and groups without any answers yet."""

    X: Any
    people: Answers

    def ask(self, model: Any, *, decisions_only: bool = False) -> Answers:
        """Return a model's answers about these people; `decisions_only` skips probabilities where it can."""
        every = probabilities_by_group(
            model, self.X, labels=self.people.labels, groups=self.people.groups, products=True,
            decisions_only=decisions_only,
        )  # fmt: skip
        if decisions_only:
            return self.people.with_answers(decided=every.argmax(axis=2))
        return self.people.with_answers(every)

    def scores(self, model: Any, *, flips: bool = True) -> Scores:
        """Return a model's scores; without `flips` the flip rate is NaN, and each policy is asked once."""
        policies = policies_of(model)
        if not flips and policies is not None and len(policies.b2) == len(self.people.groups):
            return scores_of(self.people.with_answers(decided=own_decisions(policies, self.members)))
        return scores_of(self.ask(model, decisions_only=True))

    @cached_property
    def members(self) -> list[tuple[npt.NDArray[np.intp], Any]]:
        """The positions of each group's members, and their contexts."""
        members = [np.flatnonzero(self.people.own == group) for group in range(len(self.people.groups))]
        return [(who, self.X[who]) for who in members]


def scores_of(answers: Answers) -> Scores:
    """Return the scores of a checkpoint's answers.

    A group that has nobody here is left out; where that leaves one group, discrimination is 0.
    """
    found = measure(answers, Scores._fields, intervals=False)
    return Scores(*(value_of(found, name) for name in Scores._fields))


class Best(NamedTuple, Generic[Kept]):
    """The best checkpoint by one criterion: its rank and scores on validation, and what was kept of it."""

    rank: Rank
    step: int
    scores: Scores
    kept: Kept


class Selector(Generic[Kept]):
    """A checkpoint callback: scores the model on validation and keeps the `best` by each criterion's name.

    `keep` returns what to keep of a model that is the best so far, such as its answers about the test part.
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
