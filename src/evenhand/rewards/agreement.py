"""Agreement: an action costs λ if another group's policy draws a different one for the same person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.pull import Pair, Pull, PullLines
from evenhand.rewards.term import Setting

SHARPENS_FROM = 5.0  # with at least this weight, everybody got the same decision, on three tables


@jit(inline="always")
def _apart(p: float, q: float, log_p: float, log_q: float, heard: bool, expected: bool) -> Any:
    return 1.0 - q if expected else (0.0 if heard else 1.0)


@jit(inline="always")
def _total(p: float, q: float, log_p: float, log_q: float, taken: bool, expected: bool) -> Any:
    return q * p if expected else (1.0 if taken else 0.0)


@jit(inline="always")
def _heard(
    share: float, total: float, p: float, q: float, log_p: float, log_q: float, taken: bool, heard: bool,
    expected: bool,
) -> Any:  # fmt: skip
    if expected:
        return share * q * (p - total)
    return (0.0 if total > 0.0 else -share) * ((1.0 if heard else 0.0) - q)


@dataclass(frozen=True)
class Agreement(Pull):
    """r(a) = −λ·1[a ≠ a'], where a' is the action that the other group's policy draws.

    With several other groups, r is the mean over them. The expected reward is −λ(1 − Σ_a π_s(a)π_o(a)). This
    is not a divergence: even for equal policies, it is larger if they are sure. Therefore use a weight of at
    most 1; with 5 or more, everybody gets the same decision.

    Parameters
    ----------
    weight : float, optional
        λ; by default the estimator's `divergence_weight`, which is usually too large for this term.
    """

    name: ClassVar[str] = "agreement"
    lines: ClassVar[PullLines] = PullLines(_apart, _total, _heard)
    draws: ClassVar[bool] = True

    def caution(self, setting: Setting) -> str | None:
        """Return a warning if the weight is too large."""
        weight = setting.divergence_weight if self.weight is None else self.weight
        if np.size(setting.group_sizes) < 2 or weight < SHARPENS_FROM:
            return None
        return (
            f"Got Agreement with a weight of {weight:g}: policies agree most where they are sure, and with "
            "such a weight everybody gets one decision. Give it one of at most 1, or take LogRatio()."
        )

    @staticmethod
    def apart(pair: Pair) -> Floats:
        """Return the probability that the other policy draws a different action, or whether it did."""
        return 1 - (pair.q if pair.expected else pair.heard.astype(np.float64))

    @staticmethod
    def heard(pair: Pair) -> Floats:
        """Return the gradient of Σ p·q; with sampled actions, a draw other than the action taken costs 1."""
        if pair.expected:
            gradient: Floats = pair.q * (pair.p - (pair.p * pair.q).sum(1, keepdims=True))
        else:
            agree = (pair.action & pair.heard).any(1, keepdims=True)
            gradient = np.where(agree, 0.0, pair.q - pair.heard)
        return gradient
