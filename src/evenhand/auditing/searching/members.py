"""Asking a model about possible people as members of every group, each person once, within a budget."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags, Floats
from evenhand.auditing.searching.moves import Found
from evenhand.auditing.searching.possible import Possible
from evenhand.metrics.asking import Question
from evenhand.metrics.classifiers import labels_of
from evenhand.metrics.divergence import total_variation

BATCH = 256  # people who are asked about at once


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
