"""When a model decides everybody alike: how that is seen, and the warning of it."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Floats

# A fit warns where this share gets one decision, though this share has another label; it looks at so many.
ALIKE_FROM, WRONG_FROM, LOOKED_AT = 0.99, 0.2, 10_000
SHORT = 10_000  # a fit that meets fewer people is a trial, and may well have learned nothing yet


class CollapseWarning(UserWarning):
    """Every person gets the same decision: nothing that was learned tells people apart."""


def one_decision(probabilities: Floats, share: float = 1.0) -> int | None:
    """Return the action that everybody gets, or this share of people, or None where decisions differ."""
    counts = np.bincount(probabilities.argmax(axis=1))
    return int(counts.argmax()) if counts.max() >= share * len(probabilities) else None
