"""Exploration: how often to try other actions, for whom, and at what cost.

If only some actions reveal an outcome, a policy without exploration learns only from the people it already
favours. Nothing here needs a log or a clock: all state is passed in.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Codes, Flags, Floats
from evenhand.bandits.offpolicy import finite


def with_floor(probabilities: npt.ArrayLike, floor: npt.ArrayLike) -> Floats:
    """Return probabilities raised to at least a floor; rows that already satisfy it are unchanged.

    Parameters
    ----------
    probabilities : array of shape (people, actions) or (people, groups, actions)
        The probabilities of one policy, or of every group's policy.
    floor : float or array of shape (people,)
        The minimum probability of every action, from 0 to 1/actions. A person has the same floor under every
        group's policy.

    Examples
    --------
    >>> with_floor([[1.0, 0.0], [0.7, 0.3]], 0.02)
    array([[0.98, 0.02],
           [0.7 , 0.3 ]])
    """
    said = np.asarray(probabilities, dtype=np.float64)
    least = np.broadcast_to(np.asarray(floor, dtype=np.float64), len(said))
    most = 1 / said.shape[-1]
    if not ((least >= 0) & (least <= most)).all():
        raise ValueError(f"Got a floor of {floor!r}, but expected one from 0 to 1/{said.shape[-1]}.")
    least = least.reshape(-1, *[1] * (said.ndim - 1))
    above = np.maximum(said - least, 0.0)
    total = above.sum(axis=-1, keepdims=True)
    share = (1 - said.shape[-1] * least) / np.where(total > 0, total, 1.0)
    return np.asarray(least + above * share)


def draw(probabilities: Floats, numbers: npt.ArrayLike) -> Codes:
    """Return the action that each person's number in [0, 1) picks, over the last axis.

    With the same number, policies with equal probabilities pick the same action.
    """
    drawn: Codes = (probabilities.cumsum(-1) <= np.asarray(numbers)[..., None]).sum(-1)
    return drawn.clip(max=probabilities.shape[-1] - 1)


def flips_of(said: Floats, numbers: Floats) -> Flags:
    """Return who would get a different action in another group, with the same draw.

    `said` has the probabilities of every group's policy: (people, groups, actions).
    """
    drawn = draw(said, numbers[:, None])
    return np.asarray((drawn != drawn[:, :1]).any(axis=1))


def explored(before: Floats, after: Floats, numbers: npt.ArrayLike) -> Flags:
    """Return for whom the floor changes the action that a uniform number picks.

    >>> explored(np.array([[1.0, 0.0]] * 2), np.array([[0.98, 0.02]] * 2), [0.5, 0.99])
    array([False,  True])
    """
    return np.asarray(draw(before, numbers) != draw(after, numbers))


@dataclass
class Novelty:
    """How much each person's outcome would teach, given the people whose outcomes are known.

    It is xᵀ(I + Σ z zᵀ)⁻¹x, with the sum over the people z whose outcome is known: the variance of a ridge
    regression's prediction, in units of the noise. It is large for people who are unlike all of them.

    Examples
    --------
    >>> novelty = Novelty(2).learn([[1.0, 0.0]] * 99)
    >>> novelty.of([[1.0, 0.0], [0.0, 1.0]])
    array([0.01, 1.  ])
    """

    n_features: int
    known: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.known = np.eye(checks.integer("n_features", self.n_features))

    def learn(self, X: npt.ArrayLike) -> Novelty:
        """Add people whose outcome is known."""
        rows = np.asarray(X, dtype=np.float64)
        self.known += rows.T @ rows
        return self

    def of(self, X: npt.ArrayLike) -> Floats:
        """Return each person's novelty."""
        rows = np.asarray(X, dtype=np.float64)
        return np.asarray((rows * np.linalg.solve(self.known, rows.T).T).sum(1))


class Spent(NamedTuple):
    """The cost of exploration for a group: its people, their mean floor, and the number explored."""

    people: int
    mean_floor: float
    explored: int


@dataclass
class Explorer:
    """Give each person a floor: higher where an outcome teaches more, about equal on average in every group.

    Floors are scaled per group, so that no group is explored more than another because its people are more
    novel. With a budget, exploration stops for the rest of the day once the budget is used up. The policy
    then decides alone, and people who come later teach nothing about actions that it never takes.

    Parameters
    ----------
    floor : float
        The mean of the floors: the minimum probability of every action.
    per_day : int, optional
        Exploration stops once it has changed this many decisions of a day. By default there is no limit.
    narrowest, widest : float
        Each floor is between `narrowest` times and `widest` times the mean.

    Examples
    --------
    >>> explorer = Explorer(0.02)
    >>> explorer.floors(["f", "f", "m", "m"], teaches=[1.0, 3.0, 10.0, 30.0]).round(3)
    array([0.01, 0.03, 0.01, 0.03])
    >>> explorer.note(["f", "f", "m", "m"], [0.01, 0.03, 0.01, 0.03], [False, True, False, False])
    >>> explorer.report()["f"]
    Spent(people=2, mean_floor=0.02, explored=1)
    """

    floor: float = 0.02
    per_day: int | None = None
    narrowest: float = 0.25
    widest: float = 4.0
    day: Any = None
    spent: int = 0
    people: dict[Any, int] = field(default_factory=dict)
    taught: dict[Any, float] = field(default_factory=dict)
    floors_given: dict[Any, float] = field(default_factory=dict)
    times: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("floor", self.floor, low=0, high=0.5)
        checks.number("narrowest", self.narrowest, low=0, high=1)
        checks.number("widest", self.widest, low=1)
        if self.per_day is not None:
            checks.integer("per_day", self.per_day, low=0)

    def floors(
        self, groups: Collection[Any], teaches: npt.ArrayLike | None = None, day: Any = None
    ) -> Floats:
        """Return each person's floor, and update each group's mean of `teaches`.

        Parameters
        ----------
        groups : list
            Each person's group.
        teaches : array of shape (people,), optional
            How much each person's outcome would teach, such as `Novelty.of`. By default equal for all.
        day : optional
            The current day. A new day has a new budget.
        """
        if day != self.day:
            self.day, self.spent = day, 0
        worth = np.ones(len(groups)) if teaches is None else finite("teaches", teaches, len(groups))
        names = np.asarray(groups, dtype=object)
        found = np.zeros(len(worth))
        for group in dict.fromkeys(groups):
            rows = names == group
            before, total = self.people.get(group, 0), self.taught.get(group, 0.0)
            mean = (total + worth[rows].sum()) / (before + rows.sum())
            scaled = worth[rows] / mean if mean > 0 else np.ones(rows.sum())
            found[rows] = self.floor * np.clip(scaled, self.narrowest, self.widest)
            self.people[group] = before + int(rows.sum())
            self.taught[group] = total + float(worth[rows].sum())
        over = self.per_day is not None and self.spent >= self.per_day
        return np.zeros(len(found)) if over else np.minimum(found, 0.5)

    def note(self, groups: Collection[Any], floors: npt.ArrayLike, explored: npt.ArrayLike) -> None:
        """Record decisions that were made with these floors, and which of them were `explored`."""
        given, differed = finite("floors", floors, len(groups)), np.asarray(explored, dtype=np.bool_)
        self.spent += int(differed.sum())
        for group, floor, other in zip(groups, given, differed, strict=True):
            self.floors_given[group] = self.floors_given.get(group, 0.0) + float(floor)
            self.times[group] = self.times.get(group, 0) + int(other)

    def report(self) -> dict[Any, Spent]:
        """Return the cost of exploration for each group."""
        return {
            group: Spent(n, self.floors_given.get(group, 0.0) / n, self.times.get(group, 0))
            for group, n in self.people.items()
        }
