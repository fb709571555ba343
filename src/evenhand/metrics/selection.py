"""Choose the checkpoint to test: scores on validation, criteria, and a callback that keeps the best.

A criterion ranks checkpoints by their scores on the validation part; the highest rank wins. Ranks include
tie-breakers. Remaining ties go to the earlier checkpoint, then to the earlier grid point, so the choice is
the same on every machine. No rank uses the test part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.checks import number, one_of
from evenhand.metrics.answers import Answers
from evenhand.metrics.classifiers import probabilities_by_group
from evenhand.metrics.measures import measure, value_of
from evenhand.metrics.networks import own_decisions, policies_of

Rank = tuple[float, ...]
Kept = TypeVar("Kept")


class Scores(NamedTuple):
    """A checkpoint's scores on some people."""

    accuracy: float
    discrimination: float
    positive_rate: float
    flip_rate: float

    @property
    def delta(self) -> float:
        """Accuracy minus discrimination."""
        return self.accuracy - self.discrimination

    def with_delta(self) -> dict[str, float]:
        """Return all scores by name."""
        return {**self._asdict(), "delta": self.delta}


class Criterion(Protocol):
    """A name and a rank of scores, where higher is better; `repr` is part of a result's key.

    A criterion with `looks_at_flips = False` ignores the flip rate, which halves the time for scoring.
    """

    @property
    def name(self) -> str:
        """The name in tables."""

    def rank(self, scores: Scores) -> Rank:
        """Return the numbers to compare, the most important first."""


@dataclass(frozen=True)
class LowestDiscrimination:
    """The paper's first criterion: lowest discrimination; ties go to the higher accuracy."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "discrimination"

    def rank(self, scores: Scores) -> Rank:
        """Return minus discrimination, then accuracy."""
        return (-scores.discrimination, scores.accuracy)


@dataclass(frozen=True)
class HighestDelta:
    """The paper's second criterion: highest delta; ties go to the lower discrimination."""

    looks_at_flips: ClassVar[bool] = False
    name: str = "delta"

    def rank(self, scores: Scores) -> Rank:
        """Return delta, then minus discrimination."""
        return (scores.delta, -scores.discrimination)


@dataclass(frozen=True)
class BoundedDiscrimination:
    """Highest accuracy with discrimination within a bound; if none is, the lowest discrimination.

    Parameters
    ----------
    bound : float
        The largest allowed discrimination, from 0 to 1.
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
        """Return whether the bound is kept, then the accuracy if it is, then minus discrimination."""
        within = scores.discrimination <= self.bound
        return (float(within), scores.accuracy if within else 0.0, -scores.discrimination)


CRITERIA: tuple[Criterion, ...] = (LowestDiscrimination(), HighestDelta(), BoundedDiscrimination())


def criterion_of(select: str | Criterion) -> Criterion:
    """Return a criterion as it is, or the criterion with this name.

    >>> criterion_of("delta")
    HighestDelta(name='delta')
    """
    named = {criterion.name: criterion for criterion in CRITERIA}
    named_and_ranking = isinstance(getattr(select, "name", None), str) and hasattr(select, "rank")
    if named_and_ranking and not isinstance(select, str | type):
        return select
    return named[one_of("select", select, named)]


@dataclass(frozen=True, eq=False)
class Judged:
    """People to score checkpoints on: their contexts, and their labels and groups without predictions."""

    X: Any
    people: Answers

    def ask(self, model: Any, *, decisions_only: bool = False) -> Answers:
        """Return a model's predictions for these people; `decisions_only` skips probabilities if possible."""
        every = probabilities_by_group(
            model, self.X, labels=self.people.labels, groups=self.people.groups, products=True,
            decisions_only=decisions_only,
        )  # fmt: skip
        if decisions_only:
            return self.people.with_answers(decided=every.argmax(axis=2))
        return self.people.with_answers(every)

    def scores(self, model: Any, *, flips: bool = True) -> Scores:
        """Return a model's scores; without `flips`, networks only use own policies: the flip rate is NaN."""
        policies = policies_of(model)
        if not flips and policies is not None and len(policies.b2) == len(self.people.groups):
            return scores_of(self.people.with_answers(decided=own_decisions(policies, self.members)))
        return scores_of(self.ask(model, decisions_only=True))

    @cached_property
    def members(self) -> list[tuple[npt.NDArray[np.intp], Any]]:
        """The positions and contexts of each group's members."""
        members = [np.flatnonzero(self.people.own == group) for group in range(len(self.people.groups))]
        return [(who, self.X[who]) for who in members]


def scores_of(answers: Answers) -> Scores:
    """Return the scores of a checkpoint's predictions.

    Groups without people are left out; if only one group is left, discrimination is 0.
    """
    found = measure(answers, Scores._fields, intervals=False)
    return Scores(*(value_of(found, name) for name in Scores._fields))


class Best(NamedTuple, Generic[Kept]):
    """The best checkpoint by one criterion: its rank, step and validation scores, and what was kept of it."""

    rank: Rank
    step: int
    scores: Scores
    kept: Kept


class Selector(Generic[Kept]):
    """A callback that scores each checkpoint on validation and keeps the `best` one per criterion name.

    `keep` returns what to keep of a model that is the best so far, such as its predictions on the test part.
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
