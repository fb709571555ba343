"""People's counterparts in other groups: how many get a different decision, and how many by chance."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.hybrids import Pairs
from evenhand.auditing.transport import Matched, transport
from evenhand.metrics.bootstrap import Interval, mean_interval

Direction = tuple[int, int]  # the group of the people, and the group of their counterparts


class World(NamedTuple):
    """People, real or made up, with their decisions, and who is whose counterpart."""

    frame: pd.DataFrame
    own: Codes  # groups
    decided: Codes
    matched: dict[Direction, Matched]
    real: int  # the number of real people; those after them are made up
    weights: Floats | None = None  # the number of people that each stands for; None if each stands for one

    def flipped(self, direction: Direction, positive: int | None) -> Flags:
        """Return who did not get the positive decision while their counterpart did.

        Without a positive label, return whose counterpart got a different decision.
        """
        found = self.matched[direction]
        mine, theirs = self.decided[found.people], self.decided[found.counterparts]
        if positive is None:
            return np.asarray(mine != theirs)
        return np.asarray((mine != positive) & (theirs == positive))

    def pairs(self, direction: Direction, at: Codes) -> Pairs:
        """Return some of the matches side by side."""
        found = self.matched[direction]
        people, counterparts = found.people[at], found.counterparts[at]
        mine, theirs = (self.frame.iloc[who].reset_index(drop=True) for who in (people, counterparts))
        return Pairs(
            mine, theirs, self.own[people], self.own[counterparts], people,
            np.where(counterparts < self.real, counterparts, -1), self.decided[counterparts],
        )  # fmt: skip


Matcher = Callable[[Codes, np.random.Generator], World]  # of groups, perhaps assigned at random


def by_transport(
    frame: pd.DataFrame, own: Codes, decided: Codes, groups: Codes, distances: Any, **how: Any
) -> Matcher:
    """Return a matcher whose counterparts are other real people, with the decisions that they got.

    `how` are the options of `transport`.
    """

    def match(codes: Codes, rng: np.random.Generator) -> World:
        matched = {}
        for a, b in itertools.combinations(groups.tolist(), 2):
            members = (np.flatnonzero(codes == code) for code in (a, b))
            matched[a, b], matched[b, a] = transport(distances, *members, rng=rng, **how)
        return World(frame, own, decided, matched, len(frame), how.get("weights"))

    return match


@dataclass(frozen=True)
class Found:
    """The flips in each direction, and those by chance, with groups assigned at random."""

    world: World
    directions: list[Direction]
    per_person: list[Floats]  # the share of each person's counterparts with a flip
    weights: list[Floats | None]  # the number of people that each of them stands for
    null: Floats  # (draws, directions): mean shares
    samples: list[list[Pairs]]  # some flipped pairs of each draw and direction

    @property
    def shares(self) -> Floats:
        """The share of people with a flip in each direction."""
        return np.array([_mean(*both) for both in zip(self.per_person, self.weights, strict=True)])


def find_flips(
    match: Matcher,
    codes: Codes,
    groups: Codes,
    positive: int | None,
    *,
    n_null: int,
    n_sampled: int,
    rng: np.random.Generator,
) -> Found:
    """Match people in their own groups, and `n_null` times with the compared groups' members shuffled."""
    directions = list(itertools.permutations(groups.tolist(), 2))
    world = match(codes, rng)
    compared = np.flatnonzero(np.isin(codes, groups))
    null, samples = np.empty((n_null, len(directions))), []
    for draw in range(n_null):
        shuffled = codes.copy()
        shuffled[compared] = rng.permutation(codes[compared])
        other = match(shuffled, rng)
        null[draw] = [_mean(*_per_person(other, direction, positive)) for direction in directions]
        samples.append([sample(other, direction, positive, n_sampled, rng) for direction in directions])
    per_person = [_per_person(world, direction, positive) for direction in directions]
    values, weights = [one for one, _ in per_person], [weights for _, weights in per_person]
    return Found(world, directions, values, weights, null, samples)


def sample(
    world: World, direction: Direction, positive: int | None, most: int, rng: np.random.Generator
) -> Pairs:
    """Return at most `most` flipped pairs, drawn in proportion to their shares and weights."""
    at = np.flatnonzero(world.flipped(direction, positive))
    if len(at) > most:
        found = world.matched[direction]
        shares = found.shares[at] * (1 if world.weights is None else world.weights[found.people[at]])
        at = np.sort(rng.choice(at, most, replace=False, p=shares / shares.sum()))
    return world.pairs(direction, at)


def _per_person(world: World, direction: Direction, positive: int | None) -> tuple[Floats, Floats | None]:
    """Return the share of each person's counterparts with a flip, and the people's weights."""
    found = world.matched[direction]
    people, place = np.unique(found.people, return_inverse=True)
    values = np.bincount(place, found.shares * world.flipped(direction, positive), len(people))
    return values.astype(float), None if world.weights is None else world.weights[people]


def _mean(values: Floats, weights: Floats | None) -> float:
    return float(np.average(values, weights=weights))


def chance(observed: Floats, null: Floats) -> Floats:
    """Return, for each value, the probability that chance alone makes any of the values stand out as much.

    Each value is standardised by its mean and spread over the draws, including the observed value. It is then
    compared with the largest value of each draw (Westfall and Young, 1993), so the probabilities allow for
    all values at once.

    >>> null = np.linspace(0, 1, 39)[:, None] * [1, 1]
    >>> chance(np.array([3.0, 0.5]), null).tolist()
    [0.025, 0.525]
    """
    every = np.vstack([observed, null])
    spread = every.std(axis=0)
    far = np.divide(every - every.mean(axis=0), spread, out=np.zeros_like(every), where=spread > 1e-12)
    largest = far.max(axis=1, initial=-np.inf)
    return np.asarray((1 + (largest[1:, None] >= far[0] - 1e-9).sum(axis=0)) / len(every))


def share_interval(values: Floats, **resampling: Any) -> Interval:
    """Return the mean with its interval; for zeros and ones it is exact, with a width even if all are equal.

    >>> [round(end, 2) for end in share_interval(np.ones(50), n=10, confidence=0.95, random_state=0)]
    [1.0, 0.93, 1.0]
    """
    whole = bool(np.isclose(values, values.round(), atol=1e-9).all())  # sums of parts may be a little off
    return mean_interval(values > 0.5 if whole else values, **resampling)


def flips_table(found: Found, names: list[Any], *, confidence: float, n: int, rng: Any) -> pd.DataFrame:
    """Return one row per direction: numbers of people, the share with its interval, the share by chance."""
    probability = chance(found.shares, found.null)
    rows = []
    for at, ((a, b), values) in enumerate(zip(found.directions, found.per_person, strict=True)):
        weights = found.weights[at]
        interval = share_interval(values, sample_weight=weights, n=n, confidence=confidence, random_state=rng)
        count = len(values) if weights is None else float(weights.sum())
        rows.append(
            {
                "group": names[a],
                "counterpart_group": names[b],
                "people": round(interval.estimate * count),
                "of": round(count),
                "share": interval.estimate,
                "low": interval.low,
                "high": interval.high,
                "by_chance": float(found.null[:, at].mean()),
                "by_chance_high": float(np.quantile(found.null[:, at], confidence)),
                "p_value": float(probability[at]),
                "clear": bool(probability[at] <= 1 - confidence + 1e-9),
            }
        )
    return pd.DataFrame(rows)
