"""Whom to explore: people whose outcome teaches most, and every group equally."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.decisions.exploration import Novelty

WIDEST = 4.0  # floors stay between the mean divided by this and the mean times this
OWED = 25.0  # the number of mean floors that a group may be ahead or behind
_DOUBLED = 5.0  # a group this many behind has floors twice as high, to keep it off the limit
_LATELY = 100  # people over whom the usual worth of an outcome is averaged
_NARROW = 300  # more features are mixed into this many: the work grows with their square
_LARGEST = 1e9  # limit of a feature, so that squares can be summed
_GROWN = 1.1  # growth in known people after which a matrix is inverted again


class Spending:
    """Give each person a floor: higher where an outcome would teach more, equal on average in every group.

    An action that reveals an outcome teaches the person's `Novelty` among those it was taken for, weighted by
    how seldom the policy takes it. However novel the people of a group are, their floors add up to the mean
    floor times their number, give or take `OWED` mean floors, at any time.

    Parameters
    ----------
    floor : float
        The mean of the floors.
    shows : array of bool
        Which actions reveal an outcome.
    n_features : int
        The number of features of a person.
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
        """Return a copy that owes as much and knows the same people, for floors that may not be given."""
        made = copy(self)
        made._usual, made._owed = self._usual.copy(), self._owed.copy()
        return made

    def floors(self, features: Any, said: Floats, groups: Sequence[str]) -> Floats:
        """Return floors for people with these probabilities; `give` records the floors that were given."""
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
            # The mean is within both limits, so the second keeps the first, except for rounding. The limit
            # that no policy can exceed comes last.
            floor = min(max(floor, due - OWED * self._mean), due + OWED * self._mean)
            floor = min(max(floor, self._low), self._high)
            owed[group] += self._mean - floor
            found.append(floor)
        return np.array(found)

    def give(self, groups: Sequence[str], floors: Floats) -> None:
        """Record the floors that people were given. A floor of 0 means none, and changes nothing."""
        for group, floor in zip(groups, floors.tolist(), strict=True):
            if floor > 0:
                self._owed[group] += self._mean - floor

    def learn(self, features: Any, taken: Sequence[int]) -> None:
        """Add people who were decided about, with their actions."""
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
    """A `Novelty` that is fast for one person at a time: it inverts its matrix only after enough growth."""

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
