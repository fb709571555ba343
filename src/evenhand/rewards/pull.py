"""Pulls: terms that compare the acting policy with each other group's, and let that policy listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.rewards.term import Reward, Seen, Setting, Weighted


class Packed(NamedTuple):
    """A pull in numbers; a weight of 0 is a term left out."""

    weight: float


class PullLines(NamedTuple):
    """The compiled side of a pull: functions of numbers for Numba, inlined into the training loop.

    p and q are what the acting and one other policy give an action, which may be the one `taken`, or the one
    `heard` as the other policy's own draw. `apart(p, q, log_p, log_q, heard, expected)` is what it costs. The
    other policy listens: `total(p, q, log_p, log_q, taken, expected)` is summed over the actions, or read at
    its draw where actions are sampled; `heard(share, total, p, q, log_p, log_q, taken, heard, expected)` is
    its logit gradient, `share` being the weight.
    """

    apart: Callable[..., Any]
    total: Callable[..., Any]
    heard: Callable[..., Any]


class Pair(NamedTuple):
    """Each person's acting policy p beside one listening policy q."""

    p: Floats  # (n, K)
    q: Floats
    log_p: Floats
    log_q: Floats
    action: Flags  # (n, K): which action was taken
    heard: Flags  # (n, K): which the listening policy drew
    expected: bool


@dataclass(frozen=True)
class Pull(Weighted):
    """r(a) = −λ · apart(a), mean over the other groups. A subclass says what is apart."""

    lines: ClassVar[PullLines]
    draws: ClassVar[bool] = False  # with sampled actions, it reads the other policies' own draws
    # The term's curvature where policies are equal, in units of the KL divergence's. The halves of a
    # divergence cancel in the policies' mean; a term that does not cancel there has 0.
    stiffness: ClassVar[float] = 0.0

    @staticmethod
    def apart(pair: Pair) -> Floats:
        """Return what each action costs with regard to one other group: the definition."""
        raise NotImplementedError

    @staticmethod
    def heard(pair: Pair) -> Floats:
        """Return the listening policy's logit gradient, at weight 1: the definition."""
        raise NotImplementedError

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the weight."""
        return Packed(cls.weight_in(reward, setting))

    @classmethod
    def rewards(cls, own: Packed, seen: Seen) -> Floats:
        """Return −weight · apart, mean over the other groups."""
        found, others = np.zeros_like(seen.own), max(seen.said.shape[1] - 1, 1)
        for pair, listens in pairs(seen):
            found -= np.where(listens[:, None], cls.apart(pair), 0) * own.weight / others
        return found

    @classmethod
    def listening(cls, own: Packed, seen: Seen) -> Floats:
        """Return every listening policy's logit gradient, (people, groups, actions); the actor's is 0."""
        heard = [np.where(listens[:, None], cls.heard(pair), 0) for pair, listens in pairs(seen)]
        found: Floats = np.stack(heard, axis=1) * own.weight / max(seen.said.shape[1] - 1, 1)
        return found


def pairs(seen: Seen) -> list[tuple[Pair, Flags]]:
    """Return, for each group, its policy beside everybody's own, and whose own it is not."""
    actions, own_logs = np.arange(seen.said.shape[2]), seen.logs[np.arange(len(seen.groups)), seen.groups]
    found = []
    for g in range(seen.said.shape[1]):
        taken, heard = seen.actions[:, None] == actions, seen.draws[:, g, None] == actions
        pair = Pair(seen.own, seen.said[:, g], own_logs, seen.logs[:, g], taken, heard, seen.expected)
        found.append((pair, seen.groups != g))
    return found
