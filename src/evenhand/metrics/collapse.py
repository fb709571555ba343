"""Detect a model that gives everybody the same decision, and warn about it."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Floats

# Among the first LOOKED_AT people, a fit warns if at least a share of ALIKE_FROM gets one decision although
# at least WRONG_FROM have another label.
ALIKE_FROM, WRONG_FROM, LOOKED_AT = 0.99, 0.2, 10_000
SHORT = 10_000  # training on fewer people is a trial run and may have learned nothing yet


class CollapseWarning(UserWarning):
    """Everybody, or nearly everybody, gets the same decision: the model hardly distinguishes people."""


def one_decision(probabilities: Floats, share: float = 1.0) -> int | None:
    """Return the action that at least this share of people gets; None if there is no such action."""
    counts = np.bincount(probabilities.argmax(axis=1))
    return int(counts.argmax()) if counts.max() >= share * len(probabilities) else None
