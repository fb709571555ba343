"""When a model gives everybody the same decision: how to detect it, and the warning."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Floats

# A fit warns if this share gets one decision although this share has another label, among so many people.
ALIKE_FROM, WRONG_FROM, LOOKED_AT = 0.99, 0.2, 10_000
SHORT = 10_000  # training on fewer people is a trial, and may well have learned nothing yet


class CollapseWarning(UserWarning):
    """Everybody gets the same decision: the model does not distinguish between people."""


def one_decision(probabilities: Floats, share: float = 1.0) -> int | None:
    """Return the action that everybody gets, or this share of people, or None if decisions differ."""
    counts = np.bincount(probabilities.argmax(axis=1))
    return int(counts.argmax()) if counts.max() >= share * len(probabilities) else None
