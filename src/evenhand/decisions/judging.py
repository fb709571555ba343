"""Judge on held-out people whether a candidate is better than the policy in force, and fair enough."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import select

from evenhand.arrays import Floats
from evenhand.decisions.confidence import DiscriminationSequence, difference_sequence, flip_sequence
from evenhand.decisions.exploration import flips_of, with_floor
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, lessons
from evenhand.decisions.sequences import ConfidenceSequence


@dataclass(frozen=True)
class Bounds:
    """The bounds that a candidate must keep to be promoted, and their confidence."""

    max_discrimination: float | None = None
    max_flip: float | None = None
    confidence: float = 0.95


@dataclass(frozen=True)
class Judgement:
    """What the log says about a candidate, with intervals that hold however often you look.

    Attributes
    ----------
    version, incumbent : int
        The versions of the candidate and of the policy in force that it was compared with.
    people, outcomes, unknown : int
        The number of held-out people it was judged on, the number of their rewards that were compared, and
        the number of rewards that are not known although they should be.
    gain : tuple of float
        Interval of how much more it earns per person than the incumbent, whatever the unknown rewards are.
    discrimination, flip_rate : tuple of float
        Intervals of the largest difference between two groups in the mean probability of an action, and of
        the share of people who would get a different action in another group, with the same draw.
    against : list of str
        The reasons not to promote it; empty if there are none.
    promoted : bool
        Whether it was put in force.
    """

    version: int
    incumbent: int
    people: int
    outcomes: int
    unknown: int
    gain: tuple[float, float]
    discrimination: tuple[float, float]
    flip_rate: tuple[float, float]
    against: list[str] = field(default_factory=list)
    promoted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        return asdict(self)


class _Seen:
    """The confidence sequences of a candidate's gain, flips and rates, updated piece by piece."""

    def __init__(self, rules: Rules, candidate: Policy, risk: float) -> None:
        low, high = rules.reward_range
        third = 1.0 - risk / 3.0  # each of the three takes a third of the risk
        sixth, least = 1.0 - risk / 6.0, max(rules.explore, 0.001)
        # The gain has two sequences. The first needs no limit of the weights. The second uses the difference
        # for each person and is narrower once there are many. Both hold, so their intersection does too.
        self._gain = ConfidenceSequence(sixth, low - high, high - low, least**-0.5)
        farthest = (high - low) / 2.0 / least
        limited = rules.explore >= least and rules.explore_per_day is None
        self._paired = ConfidenceSequence(sixth, -farthest, farthest) if limited else None
        self.known, self.unknown = 0, 0
        self.flips = ConfidenceSequence(third)
        n_actions, groups = len(candidate.actions), list(candidate.groups)
        each = 1.0 - risk / 3.0 / n_actions
        self.rates = [DiscriminationSequence(list(groups), each) for _ in range(n_actions)]

    def compare(self, new: Floats, old: Floats, rewards: Floats, logged: Floats, rules: Rules) -> None:
        """Add the two policies' probabilities of logged actions, with their rewards; NaN if not known."""
        low, high = rules.reward_range
        missing = np.isnan(rewards)
        self.known, self.unknown = self.known + int((~missing).sum()), self.unknown + int(missing.sum())
        difference_sequence(new, old, rewards, logged, low=low, high=high, onto=self._gain)
        if self._paired is not None:
            apart, half = (new - old) / logged, (high - low) / 2.0
            above = rewards - (low + high) / 2.0
            least = np.where(missing, -np.abs(apart) * half, apart * above)
            most = np.where(missing, np.abs(apart) * half, apart * above)
            self._paired.follow(self._paired.between(least), 1.0 - self._paired.between(most))

    def gain(self) -> tuple[float, float]:
        """Return the interval of how much more the candidate earns than the incumbent."""
        low, high = self._gain.interval()
        if self._paired is None:
            return low, high
        lower, higher = self._paired.interval()
        return max(low, lower), min(high, higher)

    def discrimination(self) -> tuple[float, float]:
        """Return the interval of the largest difference between groups, over all actions."""
        found = [sequence.interval() for sequence in self.rates]
        return max(low for low, _ in found), max(high for _, high in found)


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
    """Compare a candidate with the policy in force, which promotion number `promotion` put there.

    Rewards are compared only for decisions older than `within`: among younger ones, those whose reward is
    already known are not typical. Without `within`, any reward may still come. A reward that is missing may
    be any: if it were left out, actions whose reward is always known would count too much.

    Every pair of candidate and incumbent that a log can ever have gets its own share of the risk. The
    probability that any judgement is wrong is at most 1 - confidence.
    """
    pair = (candidate.version - 1) * candidate.version * promotion * (promotion + 1)
    seen = _Seen(rules, candidate, (1.0 - bounds.confidence) / pair)
    query = (
        select(
            decisions.c.id, decisions.c.at, decisions.c.context, decisions.c.group, decisions.c.action,
            decisions.c.probability, decisions.c.floor, lessons.c.reward,
        )
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .where(decisions.c.held_out)
        .order_by(decisions.c.number)
    )  # fmt: skip
    for piece in log.pieces(query):
        _look(seen, rules, candidate, incumbent, piece, now - (rules.within or 0.0))
    gain, flip, apart = seen.gain(), seen.flips.interval(), seen.discrimination()
    against = _doubts(seen, gain, incumbent)
    for name, most, found in (
        ("discrimination", bounds.max_discrimination, apart),
        ("flip rate", bounds.max_flip, flip),
    ):
        if most is not None and not found[1] <= most:
            against.append(f"its {name} may be {found[1]:.3g}, above {most:g}")
    return Judgement(
        candidate.version, incumbent.version, seen.flips.n, seen.known, seen.unknown, gain, apart, flip,
        against,
    )  # fmt: skip


def _doubts(seen: _Seen, gain: tuple[float, float], incumbent: Policy) -> list[str]:
    """Return the reasons why the candidate may earn no more than the incumbent."""
    if gain[0] > gain[1]:
        return [
            "its gain has no possible value: the people have changed, or probabilities in the log are wrong"
        ]
    if gain[0] > 0:
        return []
    silent = "" if not seen.unknown else f"; {seen.unknown} outcomes are not known, and may be any"
    return [f"its value is not proven to be above that of version {incumbent.version}{silent}"]


def _look(
    seen: _Seen, rules: Rules, candidate: Policy, incumbent: Policy, piece: list[Any], ripe: float
) -> None:
    read = candidate.read([row.context for row in piece], [row.group for row in piece])
    everyone = np.arange(len(piece))
    floors = [row.floor for row in piece]
    new = with_floor(candidate.probabilities(read.features), floors)
    own = new[everyone, read.groups]
    old = with_floor(incumbent.probabilities(read.features), floors)[everyone, read.groups]
    numbers = rules.draws([row.id for row in piece])[0]
    flip_sequence(flips_of(new, numbers), onto=seen.flips)
    for action, sequence in enumerate(seen.rates):
        sequence.update(own[:, action].clip(0.0, 1.0), [row.group for row in piece])
    due = np.array([row.at <= ripe for row in piece])
    if due.any():
        taken = np.array([candidate.actions.index(row.action) for row in piece])
        seen.compare(
            own[everyone, taken][due],
            old[everyone, taken][due],
            np.array([row.reward for row in piece], dtype=np.float64)[due],  # None becomes NaN
            np.array([row.probability for row in piece])[due],
            rules,
        )
