"""How a search goes on: whom it starts from, and what it changes about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.searching.possible import Possible

DRAWN = 8  # of whom the best is a parent
CROSSED = 0.1  # of new people, the share that is mixed of two
MATE, NEAR = 0.3, 0.6  # of new values, the share of another parent's, and of numbers nearby


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
