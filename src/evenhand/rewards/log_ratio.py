"""LogRatio: a divergence reward that depends on the action, so that policies learn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.pull import Pair, Pull, PullLines


@jit(inline="always")
def _apart(p: float, q: float, log_p: float, log_q: float, heard: bool, expected: bool) -> Any:
    return log_p - log_q


@jit(inline="always")
def _total(p: float, q: float, log_p: float, log_q: float, taken: bool, expected: bool) -> Any:
    return 0.0


@jit(inline="always")
def _heard(
    share: float, total: float, p: float, q: float, log_p: float, log_q: float, taken: bool, heard: bool,
    expected: bool,
) -> Any:  # fmt: skip
    return share * ((p if expected else (1.0 if taken else 0.0)) - q)


@dataclass(frozen=True)
class LogRatio(Pull):
    """r(a) = −λ·log(π_s(a) / π_o(a)), averaged over the other groups. Its expected gradient is −λ·∇KL.

    Parameters
    ----------
    weight : float, optional
        λ; by default the estimator's `divergence_weight`.
    """

    name: ClassVar[str] = "log_ratio"
    lines: ClassVar[PullLines] = PullLines(_apart, _total, _heard)
    stiffness: ClassVar[float] = 1.0

    @staticmethod
    def apart(pair: Pair) -> Floats:
        """Return log(p/q) for every action."""
        return pair.log_p - pair.log_q

    @staticmethod
    def heard(pair: Pair) -> Floats:
        """Return −∂KL/∂(logits of q) = p − q; with sampled actions, the action taken replaces p."""
        return (pair.p if pair.expected else pair.action) - pair.q
