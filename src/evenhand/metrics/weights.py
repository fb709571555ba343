"""Sample weights (the number of people that each person stands for) and the effective number of people."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Floats


def check_weights(sample_weight: Any, n_people: int) -> Floats:
    """Return weights as floats; raise unless there is one per person, none is negative and some are above 0.

    >>> check_weights([1, -1], 2)
    Traceback (most recent call last):
    ...
    ValueError: Got a sample_weight of -1 in row 1, but expected finite numbers of at least 0.
    """
    weights: Floats = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_people,):
        raise ValueError(
            f"Got sample_weight of shape {weights.shape}, but expected one weight for each of "
            f"{n_people} people."
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"Got a sample_weight of {weights[at]:g} in row {at}, but expected finite numbers of at least 0."
        )
    if not weights.any():
        raise ValueError("Got a sample_weight of zero for everybody, but expected some above 0.")
    return weights


def effective(sample_weight: Any, n_people: int) -> Floats | None:
    """Return weights that sum to the effective number of people, (Σw)² / Σw²; None if there are no weights.

    A weighted share is as uncertain as a share of this number of people with equal weights (Kish 1965).

    >>> weights = effective([1, 1, 2], 3)
    >>> weights.round(3).tolist(), round(float(weights.sum()), 3)
    ([0.667, 0.667, 1.333], 2.667)
    """
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, n_people)
    return np.asarray(weights * weights.sum() / (weights**2).sum())
