"""Pulls: terms that compare the acting policy with those of the other groups, and also train these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.rewards.term import Reward, Seen, Setting, Weighted


class Packed(NamedTuple):
    """A pull as a number; the weight is 0 if the term is left out."""

    weight: float


class PullLines(NamedTuple):
    """The compiled side of a pull: functions of numbers for Numba, inlined into the training loop.

    p and q are the probabilities of one action under the acting policy and under another policy. `taken` says
    whether it is the action taken, and `heard` whether the other policy drew it.
    `apart(p, q, log_p, log_q, heard, expected)` is the cost of the action. The other policy listens:
    `heard(share, total, p, q, log_p, log_q, taken, heard, expected)` is its logit gradient. `share` is the
    weight, divided by the number of other groups. `total` is the sum of
    `total(p, q, log_p, log_q, taken, expected)` over all actions, or, if actions are sampled, its value for
    the other policy's draw.
    """

    apart: Callable[..., Any]
    total: Callable[..., Any]
    heard: Callable[..., Any]


class Pair(NamedTuple):
    """Each person's acting policy p, and one listening policy q."""

    p: Floats  # (n, K)
    q: Floats
    log_p: Floats
    log_q: Floats
    action: Flags  # (n, K): the action taken
    heard: Flags  # (n, K): the action that the listening policy drew
    expected: bool


@dataclass(frozen=True)
class Pull(Weighted):
    """r(a) = −λ · apart(a), averaged over the other groups. Subclasses define `apart`."""

    lines: ClassVar[PullLines]
    draws: ClassVar[bool] = False  # whether it needs the other policies' own draws, if actions are sampled
    # The term's curvature at equal policies, relative to that of the KL divergence. Use 0 for a term that
    # does not cancel out in the mean of the policies; a divergence does.
    stiffness: ClassVar[float] = 0.0

    @staticmethod
    def apart(pair: Pair) -> Floats:
        """Return the cost of each action, given one other group's policy (the definition)."""
        raise NotImplementedError

    @staticmethod
    def heard(pair: Pair) -> Floats:
        """Return the listening policy's logit gradient for weight 1 (the definition)."""
        raise NotImplementedError

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the weight."""
        return Packed(cls.weight_in(reward, setting))

    @classmethod
    def rewards(cls, own: Packed, seen: Seen) -> Floats:
        """Return −weight · apart, averaged over the other groups."""
        found, others = np.zeros_like(seen.own), max(seen.said.shape[1] - 1, 1)
        for pair, listens in pairs(seen):
            found -= np.where(listens[:, None], cls.apart(pair), 0) * own.weight / others
        return found

    @classmethod
    def listening(cls, own: Packed, seen: Seen) -> Floats:
        """Return every policy's logit gradient, (people, groups, actions); that of the acting policy is 0."""
        heard = [np.where(listens[:, None], cls.heard(pair), 0) for pair, listens in pairs(seen)]
        found: Floats = np.stack(heard, axis=1) * own.weight / max(seen.said.shape[1] - 1, 1)
        return found


def pairs(seen: Seen) -> list[tuple[Pair, Flags]]:
    """Return, for each group, its policy paired with everybody's own, and a mask of the people outside it."""
    actions, own_logs = np.arange(seen.said.shape[2]), seen.logs[np.arange(len(seen.groups)), seen.groups]
    found = []
    for g in range(seen.said.shape[1]):
        taken, heard = seen.actions[:, None] == actions, seen.draws[:, g, None] == actions
        pair = Pair(seen.own, seen.said[:, g], own_logs, seen.logs[:, g], taken, heard, seen.expected)
        found.append((pair, seen.groups != g))
    return found
