"""Numba kernels of the Rawlsian method: interval chaining, and rounds with rank-one updates."""

from __future__ import annotations

import math

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.jit import jit


@jit(error_model="python")
def chain_length(order: Codes, lower: Floats, upper: Floats, n_left: int) -> int:
    """Return how many of the first `n_left` intervals, sorted by descending upper end, form the top chain."""
    floor = lower[order[0]]
    length = 1
    while length < n_left and upper[order[length]] >= floor:
        floor = min(floor, lower[order[length]])
        length += 1
    return length


@jit(error_model="python")
def choose_from_chains(lower: Floats, upper: Floats, draws: Floats) -> Codes:
    """Return one index per draw, uniform over the top chain of those not yet chosen.

    >>> choose_from_chains(np.array([0.0, 0.4, 5.0]), np.array([0.5, 0.9, 6.0]), np.array([0.9, 0.9, 0.9]))
    array([2, 0, 1])
    """
    order = np.argsort(-upper, kind="mergesort")
    n_left = len(order)
    chosen = np.empty(len(draws), dtype=np.int64)
    for pick in range(len(draws)):
        at = int(draws[pick] * chain_length(order, lower, upper, n_left))
        chosen[pick] = order[at]
        n_left -= 1
        for place in range(at, n_left):
            order[place] = order[place + 1]
    return chosen


@jit(error_model="python")
def play_rounds(
    rows: Floats, rewards: Floats, presented: Codes, draws: Floats, start: int, stop: int, penalty: float,
    delta: float, coef: Floats, inverse: Floats, selected: Codes,
) -> None:  # fmt: skip
    """Play the rounds from `start` to `stop` − 1, and update `coef`, V⁻¹ in `inverse`, and `selected`."""
    n_groups, n_features = coef.shape
    images = np.empty((n_groups, n_features))
    squares = np.empty(n_groups)
    lower, upper = np.empty(n_groups), np.empty(n_groups)
    for step in range(start, stop):
        confidence = math.sqrt(n_features * math.log((1 + (step + 1) / penalty) / delta)) + math.sqrt(penalty)
        for arm in range(n_groups):
            x = rows[presented[step, arm]]
            images[arm] = 0
            estimate = 0.0
            for i in range(n_features):
                if x[i] != 0:  # one-hot rows are mostly zero
                    estimate += x[i] * coef[arm, i]
                    for j in range(n_features):
                        images[arm, j] += x[i] * inverse[arm, i, j]
            squares[arm] = 0
            for i in range(n_features):
                squares[arm] += x[i] * images[arm, i]
            width = math.sqrt(max(squares[arm], 0.0)) * confidence
            lower[arm], upper[arm] = estimate - width, estimate + width
        arm = choose_from_chains(lower, upper, draws[step : step + 1])[0]
        person = presented[step, arm]
        selected[step] = person
        _learn(rows[person], rewards[person], images[arm], squares[arm], coef[arm], inverse[arm])


@jit(error_model="python")
def _learn(x: Floats, reward: float, image: Floats, square: float, coef: Floats, inverse: Floats) -> None:
    """Add one person to an arm by the Sherman–Morrison formula; image is V⁻¹x, square is xᵀV⁻¹x."""
    surprise = reward
    for i in range(len(x)):
        surprise -= x[i] * coef[i]
    for i in range(len(x)):
        gain = image[i] / (1 + square)
        coef[i] += gain * surprise
        for j in range(len(x)):
            inverse[i, j] -= gain * image[j]
