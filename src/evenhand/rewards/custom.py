"""Custom: the user's own reward function, compiled and called inside the training loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.compiling import compile_custom
from evenhand.rewards.term import Lines, Reward, Seen, Setting, Term


class Packed(NamedTuple):
    """Whether the reward has a custom function, and the function, compiled by Numba."""

    present: bool
    function: Any


@jit(inline="always")
def _earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    return reward + own.function(k, label, group, policies, state.rates[0])


@dataclass(frozen=True)
class Custom(Term):
    """Your own reward: a function that Numba can compile and that runs inside the training loop.

    It is called as `function(action, label, group, policies, rates)` and returns a float. The first three are
    integers; the label is -1 where a log has none. `policies[g, a]` is the probability of action a for this
    person under the policy of group g. `rates[g, y, a]` is the running share of action a among people of
    group g with label y; the last y means 'any label'. The function need not be differentiable, and must not
    change its arguments.

    Parameters
    ----------
    function : callable
        Plain arithmetic on the five arguments.

    Examples
    --------
    >>> from evenhand.rewards import Correctness
    >>> def cautious(action, label, group, policies, rates):
    ...     return -0.5 if action == 1 and policies[group, 1] < 0.7 else 0.0
    >>> (Correctness() + Custom(cautious)).names
    ('correctness', 'custom')
    """

    name: ClassVar[str] = "custom"
    lines: ClassVar[Lines] = Lines(_earn)
    reads_labels: ClassVar[bool] = True
    settled: ClassVar[bool] = False
    function: Callable[..., float] = field(default=lambda *_: 0.0)

    def check(self, n_labels: int) -> None:
        """Raise if the function can't be called."""
        if not callable(self.function):
            raise ValueError(f"Got function={self.function!r}, but expected a function Numba can compile.")

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the compiled function; without this term, a placeholder."""
        term = reward.get(cls.name)
        return Packed(term is not None, compile_custom(None if term is None else term.function))

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Call the function in Python for every person and action."""
        found = np.zeros_like(seen.own)
        if own.present:
            for (i, k), _ in np.ndenumerate(found):
                asked = k, int(seen.labels[i]), int(seen.groups[i]), seen.said[i], seen.state.rates[0]
                found[i, k] = own.function(*asked)
        return found
