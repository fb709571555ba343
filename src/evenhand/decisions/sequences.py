"""Confidence sequences: an interval of a mean that holds at all times together, kept as a few numbers."""

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

LARGEST_BET = 0.5  # of 1, at which one surprise would end all; less where weights are large


@dataclass
class Side:
    """A lower bound, at all times, of the mean of numbers from 0 up whose mean is at most 1.

    For y ≥ -1 and a bet b in [0, 1), exp(b·y - ψ(b)·y²) ≤ 1 + b·y, where ψ(b) = -log(1 - b) - b. So with y a
    number less a guess made before it came, Π exp(b·(x - mean) - ψ(b)·(x - guess)²) is a fair or losing game,
    whose stake grows beyond 1/risk with probability `risk` at most, ever (Ville). All else is solving for the
    mean. No upper limit of the numbers is needed.
    """

    bets: float = 0.0  # Σ b
    won: float = 0.0  # Σ b·x
    cost: float = 0.0  # Σ ψ(b)·(x - guess)²
    total: float = 0.0  # Σ x
    squares: float = 0.0  # Σ (x - mean so far)²

    def follow(self, x: Floats, n: int, risk: float, heaviest: float = 1.0) -> None:
        """Go on with numbers that came after the first n; beyond `heaviest` they are rare."""
        t = np.arange(n, n + len(x) + 1)  # how many came before each, and in all
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
    """An interval of a mean between known limits that may be looked at after every person.

    It is a few numbers, however many people it has seen: `as_numbers` writes them down, and `of_numbers` goes
    on from there.

    Parameters
    ----------
    level : float
        The probability that the mean is inside at all times together.
    low, high : float
        What the mean lies between.
    heaviest : float
        The largest weight that is likely, at least 1: 1/explore if every action has that probability. It is
        no limit. The interval holds whatever it is, and is wide if it is far off.

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
        """Go on with what came next, in its order.

        Parameters
        ----------
        values : array of shape (people,)
            Numbers from `low` to `high`.
        weights : array of shape (people,), optional
            An importance weight of each, whose mean is 1: how much likelier the action is under the policy
            that is valued than it was under the one that acted.
        """
        x = self.between(values)
        each = np.ones(len(x)) if weights is None else from_0_up("weights", weights, len(x))
        return self.follow(each * x, each * (1 - x))

    def follow(self, up: Floats, down: Floats) -> Self:
        """Go on with numbers from 0 up, whose means are the mean's share of the way up, and of that down."""
        for side, numbers in ((self.up, up), (self.down, down)):
            side.follow(numbers, self.n, self._risk, self.heaviest)
        self.n += len(up)
        return self

    def interval(self) -> tuple[float, float]:
        """Return the interval as of now; before anybody came, the limits themselves."""
        up, down = (min(side.bound(self._risk), 1.0) for side in (self.up, self.down))
        return self.low + (self.high - self.low) * up, self.high - (self.high - self.low) * down

    def as_numbers(self) -> dict[str, Any]:
        """Return all that the sequence knows, as plain data."""
        return asdict(self)

    @classmethod
    def of_numbers(cls, kept: Mapping[str, Any]) -> Self:
        """Return the sequence that `as_numbers` wrote down."""
        return cls(**{**kept, "up": Side(**kept["up"]), "down": Side(**kept["down"])})

    @property
    def _risk(self) -> float:
        return (1 - self.level) / 2

    def between(self, values: npt.ArrayLike) -> Floats:
        """Return values as shares of the way from `low` to `high`; one outside is an error."""
        numbers = finite("values", values)
        outside = (numbers < self.low) | (numbers > self.high)
        if outside.any():
            raise ValueError(
                f"Got the value {numbers[outside][0]:g}, but expected values from {self.low:g} to "
                f"{self.high:g}: an interval for all times needs limits that hold."
            )
        return (numbers - self.low) / (self.high - self.low)


def from_0_up(name: str, values: npt.ArrayLike, n_people: int) -> Floats:
    """Return numbers, one per person, none of them negative."""
    numbers = finite(name, values, n_people)
    if (numbers < 0).any():
        raise ValueError(f"Got {name} with the value {numbers.min():g}, but expected numbers from 0 up.")
    return numbers
