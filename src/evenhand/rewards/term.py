"""What a reward term is made of, and how terms add up to a reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.jit import jit

TINY = 1e-300  # keeps a logarithm or a quotient of an underflown probability finite


@jit(inline="always")
def other_at(group: int, turn: int, n_groups: int) -> Any:
    """Return the group so many places after one: with two groups, nobody has to ask which is the other.

    >>> [other_at(1, turn, 3) for turn in range(3)]
    [1, 2, 0]
    """
    return group + turn if group + turn < n_groups else group + turn - n_groups


class Setting(NamedTuple):
    """What a term may need to know when its parameters become numbers."""

    divergence_weight: float
    n_labels: int
    n_steps: int  # how many people a fit meets; 0 for learning without end
    group_sizes: npt.ArrayLike


class Seen(NamedTuple):
    """People as the NumPy definitions see them: n people, G groups, K actions."""

    labels: Codes  # (n,), -1 where there is none
    groups: Codes  # (n,)
    said: Floats  # (n, G, K): π_g(a)
    logs: Floats  # (n, G, K): log π_g(a)
    actions: Codes  # (n,): the action taken
    draws: Codes  # (n, G): each policy's own sampled decision
    expected: bool  # rewards are averaged over the actions, so that actions and draws don't count
    state: Any  # the running rates, see `rates.Rates`

    @property
    def own(self) -> Floats:
        """The probabilities (n, K) of each person's own group's policy."""
        return self.said[np.arange(len(self.groups)), self.groups]


class Lines(NamedTuple):
    """The compiled side of a term: functions for Numba, inlined into the training loop.

    `earn(own, reward, note, k, label, group, policies, state)` returns the reward of action k with this term
    added; `own` are the term's packed numbers. `note(own, kl, group, policies, logs)`, if there is one, is
    computed once per person. A `Pull` has other lines: see there.
    """

    earn: Callable[..., Any]
    note: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Term:
    """One summand of the reward; `+` makes a `Reward` of several."""

    name: ClassVar[str] = ""
    lines: ClassVar[Any]
    of_labels: ClassVar[bool] = False  # it rewards what the label says, and nothing where there is none
    reads_labels: ClassVar[bool] = False  # something is learned from labels by it
    needs_labels: ClassVar[bool] = False  # it has no meaning where there are no labels, as in a log
    settled: ClassVar[bool] = True  # its reward depends on this person's policies, and on no running state

    def __add__(self, other: Term | Reward) -> Reward:
        return Reward((self,)) + other

    def check(self, n_labels: int) -> None:
        """Raise a ValueError that says what came and what was expected."""

    def caution(self, setting: Setting) -> str | None:
        """Return what a user should be warned of before a fit, if anything."""
        return None

    @classmethod
    def variants(cls) -> tuple[type[Term], ...]:
        """Return the public classes of this mechanism."""
        return (cls,)

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Any:
        """Return the numbers that both definitions read; those of a term left out add nothing."""
        raise NotImplementedError

    @staticmethod
    def rewards(own: Any, seen: Seen) -> Floats:
        """Return what the term adds to r(a), for every person and action: the definition."""
        raise NotImplementedError


@dataclass(frozen=True)
class Weighted(Term):
    """A term with a weight; None stands for the estimator's `divergence_weight`."""

    weight: float | None = None

    def check(self, n_labels: int) -> None:
        """Raise if the weight is negative."""
        if self.weight is not None:
            checks.number("weight", self.weight, low=0)

    @classmethod
    def weight_in(cls, reward: Reward, setting: Setting) -> float:
        """Return the term's weight in a reward: 0 where it is left out."""
        term = reward.get(cls.name)
        if term is None:
            return 0.0
        return float(setting.divergence_weight if term.weight is None else term.weight)


@dataclass(frozen=True)
class Reward:
    """A sum of terms, each of its kind at most once.

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
