"""KL: the published divergence reward, which is the same for every action, also with other divergences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.metrics.divergence import DIVERGENCES
from evenhand.rewards.term import TINY, Lines, Reward, Seen, Setting, Weighted, other_at

KINDS = ("kl", "jensen_shannon", "total_variation", "hellinger")  # the codes below are indices into it


class Packed(NamedTuple):
    """KL as numbers; the weight is 0 if the term is left out."""

    weight: float
    kind: int


@jit(inline="always")
def mean_divergence(kind: int, group: int, policies: Any, logs: Any) -> Any:
    """Return the mean of D(π_group ‖ π_other) over the other groups, for the divergence KINDS[kind]."""
    n_groups, n_actions = policies.shape
    mean = 0.0
    for turn in range(1, n_groups):
        other, total = other_at(group, turn, n_groups), 0.0
        for k in range(n_actions):
            p, q, log_p, log_q = policies[group, k], policies[other, k], logs[group, k], logs[other, k]
            if kind == 0:
                total += p * (log_p - log_q)
            elif kind == 1:
                middle = np.log(0.5 * (p + q) + TINY)
                total += 0.5 * p * (log_p - middle) + 0.5 * q * (log_q - middle)
            elif kind == 2:
                total += 0.5 * abs(p - q)
            else:
                total += 0.5 * (np.sqrt(p) - np.sqrt(q)) ** 2
        mean += np.sqrt(total) if kind == 3 else total
    return mean / max(n_groups - 1, 1)


@jit(inline="always")
def _note(own: Any, kl: float, group: int, policies: Any, logs: Any) -> Any:
    return kl if own.kind == 0 else mean_divergence(own.kind, group, policies, logs)


@jit(inline="always")
def _earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    return reward - own.weight * note


@dataclass(frozen=True)
class KL(Weighted):
    """r = −λ·D(π_s ‖ π_o), averaged over the other groups: as published, the same for every action.

    Its expected gradient is therefore zero. Use `LogRatio` or `JensenShannon` for an effect on the policies.

    Parameters
    ----------
    weight : float, optional
        λ; by default the estimator's `divergence_weight`.
    divergence : {'kl', 'jensen_shannon', 'total_variation', 'hellinger'}
        The divergence D.
    """

    name: ClassVar[str] = "kl"
    lines: ClassVar[Lines] = Lines(_earn, _note)
    divergence: str = "kl"

    def check(self, n_labels: int) -> None:
        """Raise if the weight is negative or the divergence unknown."""
        super().check(n_labels)
        checks.one_of("divergence", self.divergence, KINDS)

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the weight and the divergence's code."""
        term = reward.get(cls.name)
        return Packed(cls.weight_in(reward, setting), 0 if term is None else KINDS.index(term.divergence))

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Return −weight · the mean divergence from the other groups' policies, the same for every action."""
        n_people, n_groups, n_actions = seen.said.shape
        apart = np.zeros(n_people)
        for other in range(n_groups):  # D of a policy from itself is 0
            apart += DIVERGENCES[KINDS[own.kind]](seen.own, seen.said[:, other])
        return np.repeat(-own.weight * apart[:, None] / max(n_groups - 1, 1), n_actions, axis=1)
