"""Intervals that hold at any time: look as often as you like, and stop when you like.

A usual 95 % interval is right 95 times in 100 if you look at it once. These intervals are right 95 times in
100 at *all* times together. They are empirical-Bernstein confidence sequences with predictable plug-in bets
(Waudby-Smith and Ramdas, 2024). For logs of another policy, they allow importance weights of any size
(Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, 2024).

People must come independently, from a population that stays the same. The policy that decides may change, as
long as the log has the probability of each decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.bandits.offpolicy import chances, finite
from evenhand.decisions.sequences import ConfidenceSequence, from_0_up
from evenhand.groups import encode_groups


def value_sequence(
    probabilities: npt.ArrayLike,
    rewards: npt.ArrayLike,
    propensities: npt.ArrayLike,
    *,
    level: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    heaviest: float = 10.0,
    onto: ConfidenceSequence | None = None,
) -> ConfidenceSequence:
    """Return a confidence sequence of what a policy earns per person, from another policy's log.

    Parameters
    ----------
    probabilities : array of shape (people,)
        The policy's probability of each logged action.
    rewards, propensities : array of shape (people,)
        The reward of each action, from `low` to `high`, and the probability with which it was taken.
    level, low, high, heaviest : float
        As for `ConfidenceSequence`.
    onto : ConfidenceSequence, optional
        A sequence to continue with this log. It keeps its own level and limits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> granted = rng.random(2000) < 0.5
    >>> rewards = np.where(granted, rng.random(2000) < 0.8, 0.0)
    >>> always = value_sequence(granted.astype(float), rewards, np.full(2000, 0.5))
    >>> low, high = always.interval()  # everybody is granted, and 0.8 of them repay
    >>> 0.65 < low < 0.8 < high < 0.95
    True
    """
    sequence = ConfidenceSequence(level, low, high, heaviest) if onto is None else onto
    old = chances(propensities, np.size(np.asarray(rewards)))
    return sequence.update(rewards, from_0_up("probabilities", probabilities, len(old)) / old)


def difference_sequence(
    candidate: npt.ArrayLike,
    incumbent: npt.ArrayLike,
    rewards: npt.ArrayLike,
    propensities: npt.ArrayLike,
    *,
    level: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    heaviest: float = 10.0,
    onto: ConfidenceSequence | None = None,
) -> ConfidenceSequence:
    """Return a confidence sequence of how much more one policy earns per person than another.

    Parameters
    ----------
    candidate, incumbent : array of shape (people,)
        Each policy's probability of each logged action.
    rewards : array of shape (people,)
        The reward of each action, from `low` to `high`. NaN if it is not known: the interval then holds
        whatever it is.
    propensities : array of shape (people,)
        The probability with which each action was taken.
    level, low, high : float
        The confidence level, and the limits of the rewards. The difference lies within ± (high - low).
    heaviest : float
        As for `ConfidenceSequence`.
    onto : ConfidenceSequence, optional
        A sequence to continue, made by this function with the same `low` and `high`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> granted = rng.random(2000) < 0.5
    >>> rewards = np.where(granted, rng.random(2000) < 0.8, 0.0)
    >>> even = np.full(2000, 0.5)
    >>> more = difference_sequence(np.where(granted, 0.9, 0.1), even, rewards, even)
    >>> more.interval()[0] > 0  # grants nine of ten, not five, and earns 0.32 more
    True
    """
    told = np.asarray(rewards, dtype=np.float64)
    known = ~np.isnan(told)
    x = ConfidenceSequence(level, low, high).between(np.where(known, told, low))
    old = chances(propensities, len(x))
    new = from_0_up("candidate", candidate, len(x)) / old
    now = from_0_up("incumbent", incumbent, len(x)) / old
    sequence = ConfidenceSequence(level, low - high, high - low, heaviest) if onto is None else onto
    # What one policy earns plus what the other one misses: at least 0, whatever the weights.
    least = np.minimum(new, now) / 2  # of both, whatever the reward is
    up, down = (new * x + now * (1 - x)) / 2, (now * x + new * (1 - x)) / 2
    return sequence.follow(np.where(known, up, least), np.where(known, down, least))


def flip_sequence(
    flips: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    onto: ConfidenceSequence | None = None,
) -> ConfidenceSequence:
    """Return a confidence sequence of the share of people whose decision would differ in another group.

    Parameters
    ----------
    flips : array of shape (people,)
        Whether each person's decision would differ, or the probability of that.
    weights : array of shape (people,), optional
        Importance weights with a mean of 1, above 1 for people who are rarer in the log than in the
        population.
    level : float
        As for `ConfidenceSequence`.
    onto : ConfidenceSequence, optional
        A sequence to continue.

    Examples
    --------
    >>> low, high = flip_sequence(np.zeros(2000)).interval()
    >>> low == 0 and high < 0.02
    True
    """
    sequence = ConfidenceSequence(level) if onto is None else onto
    return sequence.update(np.asarray(flips, dtype=np.float64), weights)


@dataclass
class DiscriminationSequence:
    """Interval, valid at all times, of the largest difference between two groups' rates of an action.

    Parameters
    ----------
    groups : list
        All groups that can ever occur. Each takes its share of the risk.
    level : float
        The probability that the interval contains the difference at all times together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.choice(["f", "m"], 4000)
    >>> granted = rng.random(4000) < np.where(s == "f", 0.3, 0.6)
    >>> low, high = DiscriminationSequence(["f", "m"]).update(granted, s).interval()
    >>> 0.2 < low < 0.3 < high < 0.45
    True
    """

    groups: list[Any]
    level: float = 0.95
    rates: dict[Any, ConfidenceSequence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("level", self.level, low=0, high=1, open_low=True)
        share = 1 - (1 - self.level) / max(len(self.groups), 1)
        self.rates = self.rates or {group: ConfidenceSequence(share) for group in self.groups}

    def update(
        self, chosen: npt.ArrayLike, sensitive_features: Any, weights: npt.ArrayLike | None = None
    ) -> Self:
        """Add the people who came next.

        Parameters
        ----------
        chosen : array of shape (people,)
            Whether each person got the action, or the policy's probability of it.
        sensitive_features : array-like
            Each person's group.
        weights : array of shape (people,), optional
            Importance weights with a mean of 1 in each group, if another policy made the decisions.
        """
        values = finite("chosen", chosen)
        codes, names = encode_groups(sensitive_features, len(values))
        each = None if weights is None else from_0_up("weights", weights, len(values))
        for at, group in enumerate(names):
            if group not in self.rates:
                raise ValueError(f"Got group {group!r}, but expected one of {list(self.rates)}.")
            rows = codes == at
            self.rates[group].update(values[rows], None if each is None else each[rows])
        return self

    def interval(self) -> tuple[float, float]:
        """Return the current interval; (0, 0) if there are fewer than two groups."""
        if len(self.rates) < 2:
            return 0.0, 0.0
        low, high = np.array([sequence.interval() for sequence in self.rates.values()]).T
        apart = high[:, None] - low[None, :]
        np.fill_diagonal(apart, 0.0)
        return max(float(low.max() - high.min()), 0.0), float(apart.max())

    def as_numbers(self) -> dict[str, Any]:
        """Return the state of the sequences as plain data, in the order of the groups."""
        rates = [self.rates[group].as_numbers() for group in self.groups]
        return {"groups": self.groups, "level": self.level, "rates": rates}

    @classmethod
    def of_numbers(cls, kept: Mapping[str, Any]) -> Self:
        """Restore the sequences from what `as_numbers` returned."""
        rates = [ConfidenceSequence.of_numbers(each) for each in kept["rates"]]
        return cls(kept["groups"], kept["level"], dict(zip(kept["groups"], rates, strict=True)))
