"""Custom: a reward function of the user's own, compiled and called inside the training loop."""

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
    """A function that Numba has compiled, which can be called from Python too, and whether it is asked."""

    present: bool
    function: Any


@jit(inline="always")
def _earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    return reward + own.function(k, label, group, policies, state.rates[0])


@dataclass(frozen=True)
class Custom(Term):
    """A reward of your own: a function that Numba can compile, run inside the training loop.

    It is called as `function(action, label, group, policies, rates)` with integers for the first three (a log
    has no labels: `update` and `fit_logged` give -1), `policies[g, a]` every group's probabilities for this
    person, `rates[g, y, a]` the running share of action a among people of group g with label y (the last y is
    'whatever the label'), and returns a float. It need not be differentiable, and must only read.

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
        """Return the compiled function; without this term, one that is never called."""
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
