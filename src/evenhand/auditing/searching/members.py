"""Predict possible people as members of every group, each person once, within a budget."""

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

DRAWN = 8  # the number of people drawn, of whom the best is a parent
CROSSED = 0.1  # the share of new people that are mixed from two parents
MATE, NEAR = 0.3, 0.6  # the shares of new values taken from another parent, and from numbers nearby
BATCH = 256  # the number of people to predict at once


class Found(NamedTuple):
    """Predicted people, the real people they were made from, and how differently they are treated."""

    codes: Codes  # (people, features)
    start: Codes  # the real person each was made from, as a position among the real people
    flips: Flags
    gap: Floats  # how far apart the groups' probabilities are
    depth: Floats  # how far the decisions are from the boundary: above 0 for people who flip

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
        """Return at most `n` people to continue from: half by depth, half by gap."""
        if len(self.gap) <= n:
            return self
        deep, wide = (np.argsort(-merit, kind="stable")[: n // 2] for merit in (self.depth, self.gap))
        return self.take(np.union1d(deep, wide))


def children(parents: Found, possible: Possible, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Return new people, each one move away from a parent, and the real people they come from.

    A parent is the best of DRAWN people drawn. For half of the children, the best has the largest depth,
    which finds many flips; for the other half the largest gap, which finds the largest differences.
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
    """Return new values: a mate's value, a number nearby, or any value."""
    sizes = possible.sizes[column]
    ordered = np.array([feature.ordered for feature in possible.features])[column]
    how = rng.random(len(values))
    steps = rng.choice([-1, 1], len(values)) * rng.geometric(np.minimum(1, 10 / sizes))
    near = np.clip(values + steps, 0, np.maximum(ordered - 1, 0))
    moved = np.where((how < NEAR) & (values < ordered), near, rng.integers(sizes))
    return np.where(how >= 1 - MATE, mates, moved)


class Members:
    """Predicts possible people as members of every group, and keeps those who are treated differently.

    Parameters
    ----------
    asked : Question
        How to predict members of a group with the model.
    possible : Possible
        The possible people.
    most : int
        The largest number of predictions.
    until : float
        The time, by `time.monotonic`, when predictions end.
    """

    def __init__(self, asked: Question, possible: Possible, most: int, until: float) -> None:
        self.asked, self.possible, self._most, self._until = asked, possible, most, until
        self.predictions = self.n_found = 0
        self.labels: list[Any] = []
        self._seen: set[bytes] = set()
        # With two labels: the highest P(second) with the first as decision, and the lowest with the second.
        self._bar = [0.0, 1.0]
        # Of the people made from each real person: the values of the flip with the largest gap.
        self._widest, self._gaps = possible.real.copy(), np.full(len(possible.real), -1.0)
        self._farthest, self._from, self.gap = possible.real[:0], possible.people[:0], -1.0

    @property
    def people_left(self) -> int:
        """The number of people who may still be predicted."""
        over = self.predictions and time.monotonic() >= self._until
        return 0 if over else (self._most - self.predictions) // len(self.asked.members)

    def said(self, rows: pd.DataFrame) -> tuple[Array, Floats | None]:
        """Return decisions, (people, groups), and probabilities, for people as members of each group.

        As a member, a person gets the sensitive values that are most frequent in the group.
        """
        n, members = len(rows), np.array([group[0][0] for group in self.asked.members])
        self.predictions += n * len(members)
        # Predict all groups in one call, because calls have a large overhead in most models.
        said = self.asked.as_members(rows.iloc[np.tile(np.arange(n), len(members))], np.repeat(members, n))
        if said.scores is not None and not self.labels:
            self.labels = labels_of(self.asked.model, said)
        decided = said.decisions.reshape(len(members), n).T
        if said.scores is None:
            return decided, None
        return decided, said.scores.reshape(len(members), n, -1).transpose(1, 0, 2)

    def ask(self, codes: Codes, start: Codes) -> Found:
        """Predict the people who are new, within the budget; return how differently they are treated."""
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
        """Return how far probabilities are from the point where the decision changes, (people, groups)."""
        if scores.shape[2] != 2:
            runner_up, first = np.moveaxis(np.sort(scores, axis=2)[:, :, -2:], 2, 0)
            return np.asarray((first - runner_up) / 2)
        second, probability = decided == self.labels[1], scores[:, :, 1]
        # The model's threshold may differ from one half.
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
        """Return people who flip, largest gap first, and the real people they come from."""
        at = np.argsort(-self._gaps, kind="stable")[:most]
        at = at[self._gaps[at] >= 0]
        return self._widest[at], self.possible.people[at]

    def farthest(self) -> tuple[Codes, Codes]:
        """Return the person whose probabilities are farthest apart, whatever the decisions."""
        return self._farthest, self._from


def different(decided: Array) -> Flags:
    """Return whose decisions, (people, groups), differ between groups."""
    return np.asarray((decided != decided[:, :1]).any(axis=1))


def gap_between(scores: Floats) -> Floats:
    """Return the largest total variation between the probabilities of any two groups."""
    pairs = combinations(range(scores.shape[1]), 2)
    return np.asarray(np.max([total_variation(scores[:, a], scores[:, b]) for a, b in pairs], axis=0))
