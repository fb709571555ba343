"""Is a candidate better than the policy in force, and fair enough? Judged on people it never learned from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import select

from evenhand.arrays import Floats
from evenhand.decisions.intervals import mean_bounds
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy, draw
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, lessons


@dataclass(frozen=True)
class Bounds:
    """What a candidate must keep to be promoted, and how surely."""

    max_discrimination: float | None = None
    max_flip: float | None = None
    confidence: float = 0.95


@dataclass(frozen=True)
class Judgement:
    """What the log says of a candidate, with bounds that hold however often one looks.

    Attributes
    ----------
    version, incumbent : int
        The candidate, and the policy in force that it was compared with.
    people, outcomes : int
        How many held-out people it was judged on, and the rewards of how many of them are known.
    gain : tuple of float
        The least and the most that it earns above the incumbent, per person.
    discrimination, flip_rate : tuple of float
        The same of the largest difference between two groups in the share that gets an action, and of the
        share of people who would get another action in another group.
    against : list of str
        Why it is not to be promoted; empty if it may be.
    promoted : bool
        Whether it was.
    """

    version: int
    incumbent: int
    people: int
    outcomes: int
    gain: tuple[float, float]
    discrimination: tuple[float, float]
    flip_rate: tuple[float, float]
    against: list[str] = field(default_factory=list)
    promoted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        return asdict(self)


@dataclass
class _Seen:
    gains: list[Floats]
    flips: list[Floats]
    rates: list[Floats]  # (people, actions): the candidate's own probabilities
    groups: list[Any]


def judge(
    log: Log,
    rules: Rules,
    bounds: Bounds,
    candidate: Policy,
    incumbent: Policy,
    *,
    promotion: int,
    now: float,
) -> Judgement:
    """Compare a candidate with the policy in force, which the `promotion`-th promotion put there.

    Values are compared on decisions whose outcomes have had their time: among younger ones, those that are
    known already are not like the others.

    Every pair of candidate and incumbent that a log can ever have gets its own share of the risk, so that all
    judgements together are wrong with probability 1 - confidence at most.
    """
    seen = _look(log, rules, candidate, incumbent, now)
    pair = (candidate.version - 1) * candidate.version * promotion * (promotion + 1)
    risk = (1.0 - bounds.confidence) / pair / 3.0  # a third for each of value, rates and flips
    low, high = rules.reward_range
    farthest = (high - low) / 2.0 / max(rules.explore, 1e-9)
    gains = np.concatenate(seen.gains) if seen.gains else np.zeros(0)
    flips = np.concatenate(seen.flips) if seen.flips else np.zeros(0)
    gain = mean_bounds(gains, -farthest, farthest, risk)
    flip = mean_bounds(flips, 0.0, 1.0, risk)
    spread = _discrimination(seen, len(candidate.groups), risk)
    against = [] if gain[0] > 0 else [f"its value is not surely above that of version {incumbent.version}"]
    for name, most, found in (
        ("discrimination", bounds.max_discrimination, spread),
        ("flip rate", bounds.max_flip, flip),
    ):
        if most is not None and not found[1] <= most:
            against.append(f"its {name} may be {found[1]:.3g}, above {most:g}")
    return Judgement(
        candidate.version, incumbent.version, len(flips), len(gains), gain, spread, flip, against
    )


def _look(log: Log, rules: Rules, candidate: Policy, incumbent: Policy, now: float) -> _Seen:
    seen = _Seen([], [], [], [])
    middle = sum(rules.reward_range) / 2.0  # as many are expected of each: shifting rewards shifts no gain
    ripe = now - (rules.within or 0.0)
    query = (
        select(
            decisions.c.id, decisions.c.at, decisions.c.context, decisions.c.group, decisions.c.action,
            decisions.c.probability, lessons.c.reward,
        )
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .where(decisions.c.held_out)
        .order_by(decisions.c.number)
    )  # fmt: skip
    for piece in log.pieces(query):
        read = candidate.read([row.context for row in piece], [row.group for row in piece])
        everyone = np.arange(len(piece))
        new = candidate.probabilities(read.features, rules.explore)
        old = incumbent.probabilities(read.features, rules.explore)[everyone, read.groups]
        own = new[everyone, read.groups]
        numbers = np.array([rules.draws(row.id)[0] for row in piece])
        drawn = draw(new, np.repeat(numbers[:, None], new.shape[1], axis=1))
        seen.flips.append((drawn != drawn[everyone, read.groups][:, None]).any(axis=1).astype(float))
        seen.rates.append(own)
        seen.groups.append(read.groups)
        taken = np.array([candidate.actions.index(row.action) for row in piece])
        paid = np.array([np.nan if row.reward is None or row.at > ripe else row.reward for row in piece])
        weights = (own - old)[everyone, taken] / np.array([row.probability for row in piece])
        seen.gains.append((weights * (paid - middle))[np.isfinite(paid)])
    return seen


def _discrimination(seen: _Seen, n_groups: int, risk: float) -> tuple[float, float]:
    if n_groups < 2 or not seen.rates:
        return (0.0, 0.0) if n_groups < 2 else (0.0, 1.0)
    rates, groups = np.concatenate(seen.rates), np.concatenate(seen.groups)
    n_actions = rates.shape[1]
    found = np.array(
        [
            [
                mean_bounds(rates[groups == group, action], 0.0, 1.0, risk / n_groups / n_actions)
                for group in range(n_groups)
            ]
            for action in range(n_actions)
        ]
    )  # (actions, groups, lower and upper)
    lower, upper = found[..., 0], found[..., 1]
    most = (upper.max(1) - lower.min(1)).max()
    least = (lower.max(1) - upper.min(1)).max()
    return max(0.0, float(least)), min(1.0, float(most))
