"""Likelihood: the correct action earns 1/π, so that the expected gradient is that of maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.term import TINY, Lines, Reward, Seen, Setting, Term


class Packed(NamedTuple):
    """Likelihood as a number; the clip is 0 if the term is left out."""

    clip: float


@jit(inline="always")
def _earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    if k == label:
        reward += min(1.0 / max(policies[group, k], TINY), own.clip)
    return reward


@dataclass(frozen=True)
class Likelihood(Term):
    """r(a) = 1[a = y] / π(a), at most `clip`: maximum likelihood in expectation.

    Use it to get calibrated probabilities, and for rare labels, where the gradient of `Correctness` vanishes.

    Parameters
    ----------
    clip : float
        The largest reward.
    """

    name: ClassVar[str] = "likelihood"
    lines: ClassVar[Lines] = Lines(_earn)
    of_labels: ClassVar[bool] = True
    reads_labels: ClassVar[bool] = True
    clip: float = 1000.0

    def check(self, n_labels: int) -> None:
        """Raise if `clip` is below 1."""
        checks.number("clip", self.clip, low=1)

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the clip; without this term, 0."""
        term = reward.get(cls.name)
        return Packed(0.0 if term is None else float(term.clip))

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Return 1/π for each person's label, and 0 for the other actions."""
        right = seen.labels[:, None] == np.arange(seen.said.shape[2])
        return np.where(right, np.minimum(1 / np.maximum(seen.own, TINY), own.clip), 0.0)
