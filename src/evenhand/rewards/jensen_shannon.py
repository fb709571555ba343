"""JensenShannon: a pull with a symmetric, bounded divergence, which limits the pull on sure policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.pull import Pair, Pull, PullLines
from evenhand.rewards.term import TINY


@jit(inline="always")
def _apart(p: float, q: float, log_p: float, log_q: float, heard: bool, expected: bool) -> Any:
    return 0.5 * (log_p - np.log(0.5 * (p + q) + TINY))


@jit(inline="always")
def _total(p: float, q: float, log_p: float, log_q: float, taken: bool, expected: bool) -> Any:
    half = 0.5 * (log_q - np.log(0.5 * (p + q) + TINY))
    return q * half if expected else half


@jit(inline="always")
def _heard(
    share: float, total: float, p: float, q: float, log_p: float, log_q: float, taken: bool, heard: bool,
    expected: bool,
) -> Any:  # fmt: skip
    if expected:
        return share * q * (total - 0.5 * (log_q - np.log(0.5 * (p + q) + TINY)))
    return -share * total * ((1.0 if heard else 0.0) - q)


@dataclass(frozen=True)
class JensenShannon(Pull):
    """r(a) = −λ·½·log(π_s(a) / m(a)), m = (π_s + π_o)/2: its expected gradient is −λ·∇JS(π_s, π_o).

    With several other groups, r is the mean over them. The Jensen–Shannon divergence is at most log 2. Where
    one policy is sure and the other is not, its gradient stays bounded, while that of the KL divergence grows
    without limit. No action costs more than λ·½·log 2. If policies are nearly equal, it pulls a quarter as
    hard as `LogRatio` with the same weight.

    Parameters
    ----------
    weight : float, optional
        λ; by default the estimator's `divergence_weight`.
    """

    name: ClassVar[str] = "jensen_shannon"
    lines: ClassVar[PullLines] = PullLines(_apart, _total, _heard)
    draws: ClassVar[bool] = True
    stiffness: ClassVar[float] = 0.25

    @staticmethod
    def apart(pair: Pair) -> Floats:
        """Return ½·log(p/m) for every action."""
        return 0.5 * (pair.log_p - np.log((pair.p + pair.q) / 2 + TINY))

    @staticmethod
    def heard(pair: Pair) -> Floats:
        """Return −∂JS/∂(logits of q); with sampled actions, the listener's own draw costs ½·log(q/m)."""
        half = 0.5 * (pair.log_q - np.log((pair.p + pair.q) / 2 + TINY))
        if pair.expected:
            gradient: Floats = -pair.q * (half - (pair.q * half).sum(1, keepdims=True))
        else:
            gradient = -(half * pair.heard).sum(1, keepdims=True) * (pair.heard - pair.q)
        return gradient
