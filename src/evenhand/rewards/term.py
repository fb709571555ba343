"""The parts of a reward term, and how terms add up to a reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.jit import jit

TINY = 1e-300  # keeps logarithms and quotients finite where a probability underflows


@jit(inline="always")
def other_at(group: int, turn: int, n_groups: int) -> Any:
    """Return the group `turn` places after `group`, cyclically.

    >>> [other_at(1, turn, 3) for turn in range(3)]
    [1, 2, 0]
    """
    return group + turn if group + turn < n_groups else group + turn - n_groups


class Setting(NamedTuple):
    """What a term may need to know to turn its parameters into numbers."""

    divergence_weight: float
    n_labels: int
    n_steps: int  # the number of steps of a fit; 0 for online learning
    group_sizes: npt.ArrayLike


class Seen(NamedTuple):
    """People as the NumPy definitions see them: n people, G groups, K actions."""

    labels: Codes  # (n,), -1 where there is none
    groups: Codes  # (n,)
    said: Floats  # (n, G, K): π_g(a)
    logs: Floats  # (n, G, K): log π_g(a)
    actions: Codes  # (n,): the action taken
    draws: Codes  # (n, G): each policy's own sampled decision
    expected: bool  # whether rewards are averaged over the actions, so that `actions` and `draws` don't count
    state: Any  # the running rates, see `rates.Rates`

    @property
    def own(self) -> Floats:
        """The probabilities (n, K) of each person's own group's policy."""
        return self.said[np.arange(len(self.groups)), self.groups]


class Lines(NamedTuple):
    """The compiled side of a term: functions for Numba, inlined into the training loop.

    `earn(own, reward, note, k, label, group, policies, state)` returns the reward of action k with this term
    added; `own` has the term's packed numbers. `note(own, kl, group, policies, logs)` is optional, and is
    computed once per person. A `Pull` has `PullLines` instead.
    """

    earn: Callable[..., Any]
    note: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Term:
    """One summand of the reward. Terms are added with `+`, which gives a `Reward`."""

    name: ClassVar[str] = ""
    lines: ClassVar[Any]
    of_labels: ClassVar[bool] = False  # whether it rewards correct labels, and is 0 without a label
    reads_labels: ClassVar[bool] = False  # whether policies can learn labels from it
    needs_labels: ClassVar[bool] = False  # whether it has no meaning without labels, as in a log
    settled: ClassVar[bool] = True  # whether it depends only on this person, and on no running state

    def __add__(self, other: Term | Reward) -> Reward:
        return Reward((self,)) + other

    def check(self, n_labels: int) -> None:
        """Raise a ValueError if a parameter is invalid."""

    def caution(self, setting: Setting) -> str | None:
        """Return a warning for the user before a fit, or None."""
        return None

    @classmethod
    def variants(cls) -> tuple[type[Term], ...]:
        """Return the public classes that this class implements."""
        return (cls,)

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Any:
        """Return the term as numbers for NumPy and Numba; if the term is left out, they must add nothing."""
        raise NotImplementedError

    @staticmethod
    def rewards(own: Any, seen: Seen) -> Floats:
        """Return what the term adds to r(a), for every person and action (the definition)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Weighted(Term):
    """A term with a weight; None means the estimator's `divergence_weight`."""

    weight: float | None = None

    def check(self, n_labels: int) -> None:
        """Raise if the weight is negative."""
        if self.weight is not None:
            checks.number("weight", self.weight, low=0)

    @classmethod
    def weight_in(cls, reward: Reward, setting: Setting) -> float:
        """Return the term's weight in a reward; 0 if the term is left out."""
        term = reward.get(cls.name)
        if term is None:
            return 0.0
        return float(setting.divergence_weight if term.weight is None else term.weight)


@dataclass(frozen=True)
class Reward:
    """A sum of terms; each kind of term can appear only once.

    Parameters
    ----------
    terms : tuple of Term
        The summands.
    """

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"Got the reward term {twice[0]!r} twice in one reward, but expected it once.")

    def __add__(self, other: Term | Reward) -> Reward:
        if isinstance(other, Reward):
            return Reward(self.terms + other.terms)
        if isinstance(other, Term):
            return Reward((*self.terms, other))
        return NotImplemented

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """The terms' names, in order."""
        return tuple(term.name for term in self.terms)

    def get(self, name: str) -> Any:
        """Return the term of that name, or None."""
        return next((term for term in self.terms if term.name == name), None)
