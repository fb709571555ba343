"""On whom to explore: those whose outcome teaches most, and every group alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.decisions.exploration import Novelty

WIDEST = 4.0  # nobody's floor is more than so many times the mean, or less than one such part of it
OWED = 25.0  # how many floors a group may be ahead or behind
_DOUBLED = 5.0  # a group that is so many behind has floors twice as high: it need not come to the limit
_LATELY = 100  # people over whom the usual worth of an outcome is taken
_NARROW = 300  # more features than that are mixed into so many: the work grows with their square
_LARGEST = 1e9  # of a feature: squares are to be added up
_GROWN = 1.1  # how much must be known before novelty is computed anew


class Spending:
    """Each person's floor: higher where an outcome would teach more, the same on average in every group.

    What an action would teach is the `Novelty` of a person among those it was taken for, if it reveals an
    outcome; it counts by how seldom the policy takes it. However novel the people of a group are, their
    floors add up to the mean floor times their number, give or take `OWED` mean floors, at any time.

    Parameters
    ----------
    floor : float
        The mean.
    shows : array of bool
        Which actions reveal an outcome.
    n_features : int
        How many features a person has.
    """

    def __init__(self, floor: float, shows: Flags, n_features: int) -> None:
        self._mean, self._shows = floor, np.flatnonzero(shows)
        self._low, self._high = floor / WIDEST, min(floor * WIDEST, 1 / len(shows))
        self._mix = None
        if n_features > _NARROW:
            self._mix = np.random.default_rng(0).normal(size=(n_features, _NARROW)) / np.sqrt(_NARROW)
        self._known = [_Known(min(n_features, _NARROW)) for _ in self._shows]
        self._usual: dict[str, tuple[int, float]] = {}  # by group: what an outcome would teach, lately
        self._owed: dict[str, float] = defaultdict(float)  # by group: how far it is behind the mean

    def draft(self) -> Spending:
        """Return one that owes as much and knows the same people, for floors that may not be given."""
        made = copy(self)
        made._usual, made._owed = self._usual.copy(), self._owed.copy()
        return made

    def floors(self, features: Any, said: Floats, groups: Sequence[str]) -> Floats:
        """Return floors for people of whom the policy said this; `give` tells which were given."""
        rows, worth = self._rows(features), np.zeros(len(said))
        for action, known in zip(self._shows, self._known, strict=True):
            worth += (1 - said[:, action]) * known.novelty(rows)
        owed, found = self._owed.copy(), []
        for group, teaches in zip(groups, worth.tolist(), strict=True):
            people, usual = self._usual.get(group, (0, 0.0))
            people = min(people + 1, _LATELY)
            usual += (teaches - usual) / people
            self._usual[group] = people, usual
            due = self._mean + owed[group]
            floor = self._mean * teaches / usual if usual > 0 else self._mean
            floor *= 2 ** (owed[group] / self._mean / _DOUBLED)
            # The mean itself is within both limits, so that the second stays within the first, except for
            # rounding: the one that no policy can go beyond comes last.
            floor = min(max(floor, due - OWED * self._mean), due + OWED * self._mean)
            floor = min(max(floor, self._low), self._high)
            owed[group] += self._mean - floor
            found.append(floor)
        return np.array(found)

    def give(self, groups: Sequence[str], floors: Floats) -> None:
        """Take in which floors people were given; 0 is none, and owes nothing."""
        for group, floor in zip(groups, floors.tolist(), strict=True):
            if floor > 0:
                self._owed[group] += self._mean - floor

    def learn(self, features: Any, taken: Sequence[int]) -> None:
        """Take in people who were decided about, and the actions."""
        rows, actions = self._rows(features), np.array(taken)
        for action, known in zip(self._shows, self._known, strict=True):
            known.learn(rows[actions == action])

    def _rows(self, features: Any) -> Floats:
        rows = np.nan_to_num(features) if isinstance(features, np.ndarray) else features
        if self._mix is not None:
            rows = rows @ self._mix
        dense = np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)
        return dense.clip(-_LARGEST, _LARGEST)


class _Known:
    """A `Novelty` for one person at a time: its matrix is inverted once it has grown enough."""

    def __init__(self, n_features: int) -> None:
        self._novelty = Novelty(n_features)
        self._inverse = np.eye(n_features)
        self._people = self._inverted = 0

    def learn(self, rows: Floats) -> None:
        self._novelty.learn(rows)
        self._people += len(rows)
        if self._people > self._inverted * _GROWN:
            self._inverse = np.asarray(np.linalg.pinv(self._novelty.known, hermitian=True), dtype=np.float64)
            self._inverted = self._people

    def novelty(self, rows: Floats) -> Floats:
        return np.asarray(np.maximum(((rows @ self._inverse) * rows).sum(1), 0.0))
