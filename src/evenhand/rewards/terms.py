"""The reward terms and how they add up: `Correctness() + LogRatio(weight=1) + Parity(bound=0.01)`.

A term says what an action earns, given the label, the group and every group's policy for that person.
Terms whose `weight` is None take the estimator's `divergence_weight`, the paper's λ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand import checks


@dataclass(frozen=True)
class Term:
    """One summand of the reward; `+` makes a `Reward` of several."""

    name: ClassVar[str] = ""

    def __add__(self, other: Term | Reward) -> Reward:
        return Reward((self,)) + other

    def check(self, n_labels: int) -> None:
        """Raise an error that says what came and what was wanted."""


@dataclass(frozen=True)
class Correctness(Term):
    """r(a) = 1[a = y], or gains[y][a] when a matrix of gains is given (a cost is a negative gain).

    >>> Correctness(gains=[[1, 0], [-5, 1]])  # a missed second label costs 5
    Correctness(gains=((1.0, 0.0), (-5.0, 1.0)))
    """

    name: ClassVar[str] = "correctness"
    gains: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if self.gains is not None:
            object.__setattr__(self, "gains", tuple(tuple(float(g) for g in row) for row in self.gains))

    def check(self, n_labels: int) -> None:
        """Raise if the gains are not a finite square matrix, one row a label."""
        if self.gains is None:
            return
        lengths = {len(row) for row in self.gains}
        if len(self.gains) != n_labels or lengths != {n_labels}:
            raise ValueError(
                f"Got gains of {len(self.gains)} rows with lengths {sorted(lengths)}, but expected "
                f"{n_labels} × {n_labels}: one row a label, one column an action."
            )
        if not np.isfinite(self.gains).all():
            raise ValueError(f"Got gains={self.gains}, but expected finite numbers.")

    def matrix(self, n_labels: int) -> npt.NDArray[np.float64]:
        """Return gains[label, action]."""
        return np.eye(n_labels) if self.gains is None else np.array(self.gains, dtype=np.float64)


@dataclass(frozen=True)
class Likelihood(Term):
    """r(a) = 1[a = y] / π(a), at most `clip`: in expectation, maximum likelihood.

    For rare labels, where the gradient of plain correctness dies, and for calibrated probabilities.
    """

    name: ClassVar[str] = "likelihood"
    clip: float = 1000.0

    def check(self, n_labels: int) -> None:
        """Raise if `clip` is below 1."""
        checks.number("clip", self.clip, low=1)


@dataclass(frozen=True)
class _Weighted(Term):
    weight: float | None = None

    def check(self, n_labels: int) -> None:
        """Raise if the weight is negative."""
        if self.weight is not None:
            checks.number("weight", self.weight, low=0)


@dataclass(frozen=True)
class KL(_Weighted):
    """r = −λ·D(π_s ‖ π_o), mean over the other groups: as published, the same for every action.

    Its expected gradient is therefore zero; see `LogRatio` for the term that works.
    `divergence` may be 'kl', 'jensen_shannon', 'total_variation' or 'hellinger'.
    """

    name: ClassVar[str] = "kl"
    kinds: ClassVar[tuple[str, ...]] = ("kl", "jensen_shannon", "total_variation", "hellinger")
    divergence: str = "kl"

    def check(self, n_labels: int) -> None:
        """Raise if the weight is negative or the divergence unknown."""
        super().check(n_labels)
        checks.one_of("divergence", self.divergence, self.kinds)


@dataclass(frozen=True)
class LogRatio(_Weighted):
    """r(a) = −λ·log(π_s(a) / π_o(a)), mean over the other groups: its expected gradient is −λ·∇KL."""

    name: ClassVar[str] = "log_ratio"


@dataclass(frozen=True)
class Agreement(_Weighted):
    """r(a) = −λ·1[a ≠ a'], where a' is the other group's own sampled decision: no divergence at all.

    It ascends −λ(1 − Σ_a π_s(a)π_o(a)), which grows with how sure policies are, also where they are equal.
    Give it a small weight of its own, at most 1: with 5 and more everybody gets one decision.
    """

    name: ClassVar[str] = "agreement"


@dataclass(frozen=True)
class RateTerm(Term):
    """A bound on how far the groups' rates of an action may part, kept by dual ascent.

    Each group's running rates are watched; while they differ by more than `bound`, a price on the action
    rises for the groups above the middle of the highest and the lowest, and falls for those below.

    Parameters
    ----------
    bound : the largest difference between groups that is accepted.
    dual_step : how fast the price rises with the excess, per person; it falls with the learning rate, so that
        the prices settle as the policies do. 'auto' is 0.001, and more in a `fit` that meets fewer than
        100,000 people, in proportion: the price has less time to rise. While one group is small (of two: less
        than a fifth of the people), the step is smaller in proportion, and that group's `averaging` larger.
    pull : an immediate price on the excess, which damps the dual's swings.
    averaging : the weight of the newest person in the running rates.
    measure : 'decisions' counts the most probable action, 'probabilities' the policy's own.
    """

    bound: float = 0.0
    dual_step: float | str = "auto"
    pull: float = 1.0
    averaging: float = 2e-3
    measure: str = "decisions"

    def check(self, n_labels: int) -> None:
        """Raise if a parameter is out of range."""
        checks.number("bound", self.bound, low=0, high=1)
        if self.dual_step != "auto":
            checks.number("dual_step", self.dual_step, low=0)
        checks.number("pull", self.pull, low=0)
        checks.number("averaging", self.averaging, low=0, high=1, open_low=True)
        checks.one_of("measure", self.measure, ("decisions", "probabilities"))

    def step(self, n_steps: int) -> float:
        """Return the dual step of a fit that meets so many people; 0 is an online learner's, without end.

        >>> Parity().step(400_000), Parity().step(20_000), Parity(dual_step=0.01).step(20_000)
        (0.001, 0.005, 0.01)
        """
        if self.dual_step != "auto":
            return float(self.dual_step)
        return 0.001 * max(1.0, 100_000 / n_steps) if n_steps else 0.001

    def mask(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Return which rates are bounded: (labels + 1, actions); the last row is 'whatever the label'."""
        raise TypeError("RateTerm is no reward of its own: use Parity, EqualOpportunity or EqualizedOdds.")


@dataclass(frozen=True)
class Parity(RateTerm):
    """Demographic parity: every group gets each action equally often. With two labels, the second counts."""

    name: ClassVar[str] = "parity"

    def mask(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Bound the rates over everybody."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[-1, 1 if n_labels == 2 else 0 :] = True
        return mask


@dataclass(frozen=True)
class EqualOpportunity(RateTerm):
    """People with a label are given it equally often in every group. With two labels, the second counts."""

    name: ClassVar[str] = "equal_opportunity"

    def mask(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Bound the rate of the right action among those with that label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        for label in range(1 if n_labels == 2 else 0, n_labels):
            mask[label, label] = True
        return mask


@dataclass(frozen=True)
class EqualizedOdds(RateTerm):
    """Given the label, every group gets each action equally often."""

    name: ClassVar[str] = "equalized_odds"

    def mask(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Bound the rates among those with each label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[:-1, 1 if n_labels == 2 else 0 :] = True
        return mask


@dataclass(frozen=True)
class Custom(Term):
    """A reward of your own: a function that Numba can compile, run inside the training loop.

    It is called as `function(action, label, group, policies, rates)` with integers for the first three (a log
    has no labels: `update` and `fit_logged` give -1),
    `policies[g, a]` every group's probabilities for this person, `rates[g, y, a]` the running share of
    action a among people of group g with label y (the last y is 'whatever the label'), and returns a float.
    It need not be differentiable, and must only read.

    >>> def cautious(action, label, group, policies, rates):
    ...     return -0.5 if action == 1 and policies[group, 1] < 0.7 else 0.0
    >>> (Correctness() + Custom(cautious)).names
    ('correctness', 'custom')
    """

    name: ClassVar[str] = "custom"
    function: Callable[..., float] = field(default=lambda *_: 0.0)

    def check(self, n_labels: int) -> None:
        """Raise if the function can't be called."""
        if not callable(self.function):
            raise ValueError(f"Got function={self.function!r}, but expected a function Numba can compile.")


@dataclass(frozen=True)
class Reward:
    """A sum of terms, each of its kind at most once."""

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


_BY_NAME: dict[str, type[Term]] = {
    kind.name: kind
    for kind in (Correctness, Likelihood, KL, LogRatio, Agreement, Parity, EqualOpportunity, EqualizedOdds)
}


def as_reward(reward: Reward | Term | str) -> Reward:
    """Return a `Reward` from a reward, a term, or names joined by '+', each with its default parameters.

    >>> as_reward("likelihood + log_ratio").names
    ('likelihood', 'log_ratio')
    """
    if isinstance(reward, Reward):
        return reward
    if isinstance(reward, Term):
        return Reward((reward,))
    if isinstance(reward, str):
        return Reward(
            tuple(_BY_NAME[checks.one_of("reward", part.strip(), _BY_NAME)]() for part in reward.split("+"))
        )
    raise ValueError(
        f"Got reward={reward!r}, but expected reward terms joined by '+', such as "
        "Correctness() + LogRatio(), or their names in a string."
    )
