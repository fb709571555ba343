"""Correctness: an action earns 1 if it is the label, or its gain from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand.arrays import Floats
from evenhand.jit import jit
from evenhand.rewards.term import Lines, Reward, Seen, Setting, Term


class Packed(NamedTuple):
    """Correctness in numbers."""

    gains: Floats  # by label and action


@jit(inline="always")
def _earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    return reward + own.gains[label, k]


@dataclass(frozen=True)
class Correctness(Term):
    """r(a) = `1[a = y]`, or `gains[y][a]` if `gains` is given.

    Parameters
    ----------
    gains : sequence of sequences of float, optional
        What each action earns: one row per label, one column per action. A cost is a negative gain.

    Examples
    --------
    >>> Correctness(gains=[[1, 0], [-5, 1]])  # a missed second label costs 5
    Correctness(gains=((1.0, 0.0), (-5.0, 1.0)))
    """

    name: ClassVar[str] = "correctness"
    lines: ClassVar[Lines] = Lines(_earn)
    of_labels: ClassVar[bool] = True
    reads_labels: ClassVar[bool] = True
    gains: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if self.gains is not None:
            object.__setattr__(self, "gains", tuple(tuple(float(g) for g in row) for row in self.gains))

    def check(self, n_labels: int) -> None:
        """Raise if the gains are not a finite square matrix with one row per label."""
        if self.gains is None:
            return
        lengths = {len(row) for row in self.gains}
        if len(self.gains) != n_labels or lengths != {n_labels}:
            raise ValueError(
                f"Got gains of {len(self.gains)} rows with lengths {sorted(lengths)}, but expected "
                f"{n_labels} × {n_labels}: one row per label, one column per action."
            )
        if not np.isfinite(self.gains).all():
            raise ValueError(f"Got gains={self.gains}, but expected finite numbers.")

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the gains; without this term, zeros."""
        term, n_labels = reward.get(cls.name), setting.n_labels
        if term is None:
            return Packed(np.zeros((n_labels, n_labels)))
        return Packed(np.eye(n_labels) if term.gains is None else np.array(term.gains, dtype=np.float64))

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Return the gains for each person's label; zeros without a label."""
        return np.where(seen.labels[:, None] >= 0, own.gains[seen.labels], 0.0)
