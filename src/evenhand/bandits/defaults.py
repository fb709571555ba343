"""What 'auto' means: how many people a fit meets, and how far one step goes."""

from __future__ import annotations

import math

# Past 400,000 people larger tables overfit (experiments/tried.py); with fewer than 20,000, small ones learn
# too little.
EPOCHS, LEAST, MOST = 20, 20_000, 400_000
RATE = 0.01


def people_met(epochs: float | str, n_people: int) -> int:
    """Return how many people a fit meets: so many epochs, or by 'auto' 20, within limits, everybody once.

    >>> people_met("auto", 700), people_met("auto", 5_000), people_met("auto", 80_000), people_met(3, 700)
    (20000, 100000, 400000, 2100)
    """
    if epochs == "auto":
        return min(max(EPOCHS * n_people, LEAST), max(MOST, n_people))
    return max(1, round(float(epochs) * n_people))


def step_size(learning_rate: float | str, n_features: int) -> float:
    """Return the learning rate, or by 'auto' 0.01 / √features.

    Adam moves every weight alike: the more features there are, the further a step moves what a policy says.

    >>> step_size("auto", 100), step_size(0.1, 100)
    (0.001, 0.1)
    """
    return RATE / math.sqrt(n_features) if learning_rate == "auto" else float(learning_rate)
