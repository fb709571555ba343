"""Asking a model about possible people as members of every group, each person once, within a budget."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags, Floats
from evenhand.auditing.searching.possible import Possible
from evenhand.metrics.asking import Question
from evenhand.metrics.classifiers import labels_of
from evenhand.metrics.divergence import total_variation

DRAWN = 8  # of whom the best is a parent
CROSSED = 0.1  # of new people, the share that is mixed of two
MATE, NEAR = 0.3, 0.6  # of new values, the share of another parent's, and of numbers nearby
BATCH = 256  # people who are asked about at once


class Found(NamedTuple):
    """People who were asked about, where they come from, and how differently they are treated."""

    codes: Codes  # (people, features)
    start: Codes  # the real person each was made from, by position among the real ones
    flips: Flags
    gap: Floats  # how far apart the groups' probabilities are
    depth: Floats  # how far a decision is from changing: above 0 for those decided differently

    def take(self, at: Codes) -> Found:
        """Return some of the people."""
        return Found(self.codes[at], self.start[at], self.flips[at], self.gap[at], self.depth[at])

    @classmethod
    def of_nobody(cls, n_features: int) -> Found:
        """Return no people."""
        none = np.empty(0)
        return cls(np.empty((0, n_features), int), none.astype(int), none.astype(bool), none, none)

    @classmethod
    def joined(cls, parts: Sequence[Found]) -> Found:
        """Return the people of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def best(self, n: int) -> Found:
        """Return at most so many to go on from: half by their depth, half by their gap."""
        if len(self.gap) <= n:
            return self
        deep, wide = (np.argsort(-merit, kind="stable")[: n // 2] for merit in (self.depth, self.gap))
        return self.take(np.union1d(deep, wide))


def children(parents: Found, possible: Possible, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Return new people, each one move away from a parent, and the real people they come from.

    A parent is the best of some drawn: for half of the children by depth, which finds many whose decision
    changes, for half by gap, which finds the one treated most differently.
    """
    drawn = rng.integers(len(parents.gap), size=(DRAWN, n))
    merit = np.where(np.arange(n) % 2, parents.depth[drawn], parents.gap[drawn])
    at = drawn[merit.argmax(axis=0), np.arange(n)]
    codes = parents.codes[at].copy()
    crossed = rng.random(n) < CROSSED
    mates = parents.codes[rng.integers(len(parents.gap), size=n)]
    mixed = crossed[:, None] & (rng.random(codes.shape) < rng.random((n, 1)))
    codes[mixed] = mates[mixed]
    one = np.flatnonzero(~crossed)
    column = rng.integers(codes.shape[1], size=len(one))
    codes[one, column] = _moved(codes[one, column], mates[one, column], column, possible, rng)
    return codes, parents.start[at]


def _moved(values: Codes, mates: Codes, column: Codes, possible: Possible, rng: np.random.Generator) -> Codes:
    """Return other values: a mate's, of numbers one nearby, or any."""
    sizes = possible.sizes[column]
    ordered = np.array([feature.ordered for feature in possible.features])[column]
    how = rng.random(len(values))
    steps = rng.choice([-1, 1], len(values)) * rng.geometric(np.minimum(1, 10 / sizes))
    near = np.clip(values + steps, 0, np.maximum(ordered - 1, 0))
    moved = np.where((how < NEAR) & (values < ordered), near, rng.integers(sizes))
    return np.where(how >= 1 - MATE, mates, moved)


class Members:
    """Possible people as members of every group, and those found whom the groups treat differently.

    Parameters
    ----------
    asked : Question
        How the model is asked about members of a group.
    possible : Possible
        The possible people.
    most : int
        How many predictions may be asked for.
    until : float
        The time, by `time.monotonic`, after which nobody is asked about any more.
    """

    def __init__(self, asked: Question, possible: Possible, most: int, until: float) -> None:
        self.asked, self.possible, self._most, self._until = asked, possible, most, until
        self.predictions = self.n_found = 0
        self.labels: list[Any] = []
        self._seen: set[bytes] = set()
        # Of two labels: the highest P(second) that wasn't decided so, and the lowest that was.
        self._bar = [0.0, 1.0]
        # Of those made from each real person, the values of the one decided differently whose gap is largest.
        self._widest, self._gaps = possible.real.copy(), np.full(len(possible.real), -1.0)
        self._farthest, self._from, self.gap = possible.real[:0], possible.people[:0], -1.0

    @property
    def people_left(self) -> int:
        """How many more people may be asked about."""
        over = self.predictions and time.monotonic() >= self._until
        return 0 if over else (self._most - self.predictions) // len(self.asked.members)

    def said(self, rows: pd.DataFrame) -> tuple[Array, Floats | None]:
        """Return the decisions, (people, groups), and the labels' probabilities about members of each group.

        A member has the sensitive values that are most common in the group.
        """
        n, members = len(rows), np.array([group[0][0] for group in self.asked.members])
        self.predictions += n * len(members)
        # Once for all groups: most models take longer to begin than to go on.
        said = self.asked.as_members(rows.iloc[np.tile(np.arange(n), len(members))], np.repeat(members, n))
        if said.scores is not None and not self.labels:
            self.labels = labels_of(self.asked.model, said)
        decided = said.decisions.reshape(len(members), n).T
        if said.scores is None:
            return decided, None
        return decided, said.scores.reshape(len(members), n, -1).transpose(1, 0, 2)

    def ask(self, codes: Codes, start: Codes) -> Found:
        """Ask about those who are new, as far as the budget goes; return how differently they are treated."""
        new = []
        for at, key in enumerate(map(bytes, np.ascontiguousarray(codes))):
            if key not in self._seen:
                self._seen.add(key)
                new.append(at)
        parts = [Found.of_nobody(codes.shape[1])]
        for begin in range(0, len(new), BATCH):
            some = np.array(new[begin : begin + BATCH])[: self.people_left]
            if len(some):
                parts.append(self._treated(codes[some], start[some]))
        return Found.joined(parts)

    def _treated(self, codes: Codes, start: Codes) -> Found:
        decided, scores = self.said(self.possible.rows(codes))
        flips = different(decided)
        gap = depth = flips.astype(np.float64)
        if scores is not None:
            gap = gap_between(scores)
            depth = np.where(flips, 1, -1) * self._to_boundary(decided, scores).min(axis=1)
        found = Found(codes, start, flips, gap, depth)
        self._remember(found)
        return found

    def _to_boundary(self, decided: Array, scores: Floats) -> Floats:
        """Return how far probabilities are from where the decision changes, (people, groups)."""
        if scores.shape[2] != 2:
            runner_up, first = np.moveaxis(np.sort(scores, axis=2)[:, :, -2:], 2, 0)
            return np.asarray((first - runner_up) / 2)
        second, probability = decided == self.labels[1], scores[:, :, 1]
        # The model may decide at another threshold than one half.
        self._bar[0] = max(self._bar[0], probability.max(where=~second, initial=0.0))
        self._bar[1] = min(self._bar[1], probability.min(where=second, initial=1.0))
        return np.asarray(np.abs(probability - np.mean(self._bar)))

    def _remember(self, found: Found) -> None:
        self.n_found += int(found.flips.sum())
        for at in np.flatnonzero(found.flips & (found.gap > self._gaps[found.start])):
            if found.gap[at] > self._gaps[found.start[at]]:
                self._gaps[found.start[at]], self._widest[found.start[at]] = found.gap[at], found.codes[at]
        if len(found.gap) and found.gap.max() > self.gap:
            at = found.gap.argmax()
            self.gap, self._farthest = float(found.gap[at]), found.codes[at : at + 1]
            self._from = self.possible.people[found.start[at : at + 1]]

    def listed(self, most: int) -> tuple[Codes, Codes]:
        """Return people who are decided differently, widest gap first, and the real ones they come from."""
        at = np.argsort(-self._gaps, kind="stable")[:most]
        at = at[self._gaps[at] >= 0]
        return self._widest[at], self.possible.people[at]

    def farthest(self) -> tuple[Codes, Codes]:
        """Return the person whose probabilities are farthest apart, however they are decided."""
        return self._farthest, self._from


def different(decided: Array) -> Flags:
    """Return for whom the groups' decisions, (people, groups), differ."""
    return np.asarray((decided != decided[:, :1]).any(axis=1))


def gap_between(scores: Floats) -> Floats:
    """Return how far apart the groups' probabilities are: the largest total variation of any two."""
    pairs = combinations(range(scores.shape[1]), 2)
    return np.asarray(np.max([total_variation(scores[:, a], scores[:, b]) for a, b in pairs], axis=0))
