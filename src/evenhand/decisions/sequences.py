"""Confidence sequences: an interval of a mean that holds at all times together, stored as a few numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.bandits.offpolicy import finite

LARGEST_BET = 0.5  # with 1, one surprise would lose everything; divided by `heaviest`


@dataclass
class Side:
    """A lower bound, valid at all times, of the mean of nonnegative numbers, if the mean is at most 1.

    For y ≥ -1 and a bet b in [0, 1), exp(b·y - ψ(b)·y²) ≤ 1 + b·y, where ψ(b) = -log(1 - b) - b. Let y be a
    number x minus a guess made before x came. Then Π exp(b·(x - mean) - ψ(b)·(x - guess)²) is a fair or
    losing game, and the probability that its stake ever exceeds 1/risk is at most `risk` (Ville). Solving for
    the mean gives the bound. The numbers need no upper limit.
    """

    bets: float = 0.0  # Σ b
    won: float = 0.0  # Σ b·x
    cost: float = 0.0  # Σ ψ(b)·(x - guess)²
    total: float = 0.0  # Σ x
    squares: float = 0.0  # Σ (x - mean so far)²

    def follow(self, x: Floats, n: int, risk: float, heaviest: float = 1.0) -> None:
        """Add numbers that came after the first n; few of them should exceed `heaviest`."""
        t = np.arange(n, n + len(x) + 1)  # the number before each, and the total
        guesses = np.minimum((0.5 + self.total + np.concatenate([[0.0], np.cumsum(x)])) / (t + 1), 1.0)
        misses = (x - guesses[1:]) ** 2
        spread = (0.25 * heaviest + self.squares + np.concatenate([[0.0], np.cumsum(misses)[:-1]])) / t[1:]
        bets = np.sqrt(2 * np.log(1 / risk) / (spread * t[1:] * np.log1p(t[1:])))
        bets = np.minimum(bets, LARGEST_BET / heaviest)
        self.bets += float(bets.sum())
        self.won += float(bets @ x)
        self.cost += float((-np.log1p(-bets) - bets) @ (x - guesses[:-1]) ** 2)
        self.total += float(x.sum())
        self.squares += float(misses.sum())

    def bound(self, risk: float) -> float:
        """Return the lower bound."""
        return max((self.won - self.cost + math.log(risk)) / self.bets, 0.0) if self.bets else 0.0


@dataclass
class ConfidenceSequence:
    """Interval of a mean between known limits. You may look at it after every person.

    Its state is a few numbers, however many people it has seen. `as_numbers` returns them, and `of_numbers`
    continues from there.

    Parameters
    ----------
    level : float
        The probability that the interval contains the mean at all times together.
    low, high : float
        The limits of the values, and so of their mean.
    heaviest : float
        The largest weight that is likely, at least 1: 1/explore if every action has at least the probability
        `explore`. It is not a limit. The interval holds for any value, but is wide if this one is far off.

    Examples
    --------
    >>> sequence = ConfidenceSequence()
    >>> low, high = sequence.update([0, 1] * 500).interval()
    >>> 0.4 < low < 0.5 < high < 0.6
    True
    >>> kept = sequence.as_numbers()
    >>> ConfidenceSequence.of_numbers(kept).update([1] * 1000).interval()[0] > 0.55
    True
    """

    level: float = 0.95
    low: float = 0.0
    high: float = 1.0
    heaviest: float = 1.0
    n: int = 0
    up: Side = field(default_factory=Side)
    down: Side = field(default_factory=Side)

    def __post_init__(self) -> None:
        checks.number("level", self.level, low=0, high=1, open_low=True)
        checks.number("low", self.low)
        checks.number("high", self.high, low=self.low, open_low=True)
        checks.number("heaviest", self.heaviest, low=1)
        if self.level == 1:
            raise ValueError("Got level=1, but expected a probability below 1.")

    def update(self, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Self:
        """Add the values that came next, in their order.

        Parameters
        ----------
        values : array of shape (people,)
            Numbers from `low` to `high`.
        weights : array of shape (people,), optional
            Importance weights with a mean of 1: the probability of each action under the policy being
            valued, divided by its probability under the policy that acted.
        """
        x = self.between(values)
        each = np.ones(len(x)) if weights is None else from_0_up("weights", weights, len(x))
        return self.follow(each * x, each * (1 - x))

    def follow(self, up: Floats, down: Floats) -> Self:
        """Add numbers whose means are the mean's distances from `low` and `high`, as shares of the range."""
        for side, numbers in ((self.up, up), (self.down, down)):
            side.follow(numbers, self.n, self._risk, self.heaviest)
        self.n += len(up)
        return self

    def interval(self) -> tuple[float, float]:
        """Return the current interval; before the first person, the limits themselves."""
        up, down = (min(side.bound(self._risk), 1.0) for side in (self.up, self.down))
        return self.low + (self.high - self.low) * up, self.high - (self.high - self.low) * down

    def as_numbers(self) -> dict[str, Any]:
        """Return the state of the sequence as plain data."""
        return asdict(self)

    @classmethod
    def of_numbers(cls, kept: Mapping[str, Any]) -> Self:
        """Restore the sequence from what `as_numbers` returned."""
        return cls(**{**kept, "up": Side(**kept["up"]), "down": Side(**kept["down"])})

    @property
    def _risk(self) -> float:
        return (1 - self.level) / 2

    def between(self, values: npt.ArrayLike) -> Floats:
        """Return values as shares of the range from `low` to `high`; raise if one is outside."""
        numbers = finite("values", values)
        outside = (numbers < self.low) | (numbers > self.high)
        if outside.any():
            raise ValueError(
                f"Got the value {numbers[outside][0]:g}, but expected values from {self.low:g} to "
                f"{self.high:g}: an interval for all times needs limits that hold."
            )
        return (numbers - self.low) / (self.high - self.low)


def from_0_up(name: str, values: npt.ArrayLike, n_people: int) -> Floats:
    """Return one number per person; raise if one is negative."""
    numbers = finite(name, values, n_people)
    if (numbers < 0).any():
        raise ValueError(f"Got {name} with the value {numbers.min():g}, but expected numbers from 0 up.")
    return numbers
