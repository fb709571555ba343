"""Step sizes, and the update of the policies after each batch: plain ascent, Adam, or joint Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.bandits.kernels.simd import LANES, load, roots, store, zeros
from evenhand.jit import jit

SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
FLOOR = 0.01  # a decaying schedule ends at this share of the learning rate
HALF_LIFE = 10_000.0  # steps after which 'inverse_sqrt' has fallen to 1/√2
DECAY_1, DECAY_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants


@jit(inline="always")
def learning_rate(options: Any, step: int) -> Any:
    """Return the step size that the schedule gives a step."""
    rate = options.learning_rate
    if options.schedule == 3:
        return rate / np.sqrt(1.0 + step / HALF_LIFE)
    if options.schedule == 0 or options.horizon == 0:
        return rate
    done = min(step / options.horizon, 1.0)
    share = 1.0 - done if options.schedule == 1 else 0.5 * (1.0 + np.cos(np.pi * done))
    return rate * (FLOOR + (1.0 - FLOOR) * share)


@jit(inline="always")
def adam_factors(updates: int) -> Any:
    """Return the factors that correct Adam's averages for their start at zero."""
    return 1.0 / (1.0 - DECAY_1**updates), 1.0 / np.sqrt(1.0 - DECAY_2**updates)


@jit()
def move(
    weights: Any, gradient: Any, first: Any, second: Any, g: int, share: float, rate: float, keep: float,
    updates: int, adam: bool,
) -> None:  # fmt: skip
    """Move group g's weights up the gradient times `share`, by SGD or Adam, and clear the gradient.

    Weight decay multiplies the weights by `keep`, whatever the gradient is.
    """
    kind, n = weights.dtype.type, weights.size // weights.shape[0]
    share_, rate_, keep_ = kind(share), kind(rate), kind(keep)
    keep_1, keep_2, new_1, new_2 = kind(DECAY_1), kind(DECAY_2), kind(1.0 - DECAY_1), kind(1.0 - DECAY_2)
    by_1, by_2 = adam_factors(updates)
    size, root, tiny = kind(rate * by_1), kind(by_2), kind(EPSILON)
    for i in range(g * n, (g + 1) * n, LANES):
        slope = share_ * load(gradient, i)
        store(gradient, i, zeros(gradient))
        if adam:
            mean = keep_1 * load(first, i) + new_1 * slope
            square = keep_2 * load(second, i) + new_2 * slope * slope
            store(first, i, mean)
            store(second, i, square)
            store(weights, i, keep_ * load(weights, i) + size * mean / (roots(square) * root + tiny))
        else:
            store(weights, i, keep_ * load(weights, i) + rate_ * slope)


@jit()
def move_jointly(
    weights: Any, gradient: Any, first: Any, second: Any, share: float, rate: float, apart: float,
    keep: float, updates: int,
) -> None:  # fmt: skip
    """Move the policies' mean by Adam, and their differences from it `apart` times as fast.

    The pull between policies, with weight λ, only affects their differences. If Adam updated each policy
    separately, the size of that pull would also slow down what the policies learn in common. The differences
    share one scale, `second[0]`, so that they sum to zero and leave the mean unchanged. The last rows hold
    the averages of the mean.
    """
    if weights.shape[0] == 2:  # the compiler then knows the size, and unrolls the loops
        _move_jointly(2, weights, gradient, first, second, share, rate, apart, keep, updates)
    else:
        _move_jointly(weights.shape[0], weights, gradient, first, second, share, rate, apart, keep, updates)


@jit(inline="always")
def _move_jointly(
    n_groups: int, weights: Any, gradient: Any, first: Any, second: Any, share: float, rate: float,
    apart: float, keep: float, updates: int,
) -> None:  # fmt: skip
    kind = weights.dtype.type
    n = weights.size // n_groups
    share_, keep_, part = kind(share), kind(keep), kind(1.0 / n_groups)
    keep_1, keep_2, new_1, new_2 = kind(DECAY_1), kind(DECAY_2), kind(1.0 - DECAY_1), kind(1.0 - DECAY_2)
    by_1, by_2 = adam_factors(updates)
    together, each, root, tiny = kind(rate * by_1), kind(apart * rate * by_1), kind(by_2), kind(EPSILON)
    for i in range(0, n, LANES):
        mean = zeros(weights)
        for g in range(n_groups):
            mean = mean + load(gradient, g * n + i)
        mean = share_ * (part * mean)
        spread = zeros(weights)
        for g in range(n_groups):
            slope = share_ * load(gradient, g * n + i) - mean
            store(gradient, g * n + i, zeros(weights))
            store(first, g * n + i, keep_1 * load(first, g * n + i) + new_1 * slope)
            spread = spread + slope * slope
        spread = keep_2 * load(second, i) + new_2 * part * spread
        store(second, i, spread)
        scale = each / (roots(spread) * root + tiny)
        last = n_groups * n + i
        square = keep_2 * load(second, last) + new_2 * mean * mean
        mean = keep_1 * load(first, last) + new_1 * mean
        store(first, last, mean)
        store(second, last, square)
        step = together * mean / (roots(square) * root + tiny)
        for g in range(n_groups):
            at = g * n + i
            store(weights, at, keep_ * load(weights, at) + scale * load(first, at) + step)


@jit()
def close_batch(
    policies: Any, moments: Any, rate: float, adam: bool, apart: float, weight_decay: float
) -> None:
    """Update every policy of the open batch by its mean gradient, and start the next batch.

    With `apart` above 0, all policies move jointly, and their differences at that share of the rate. Weights
    decay, biases do not.
    """
    keep = 1.0 - rate * weight_decay
    gradient, first, second = moments.gradient, moments.first, moments.second
    share = 1.0 / moments.pending[0]
    moments.pending[0] = 0
    if apart > 0.0:
        for g in range(moments.updates.shape[0]):
            moments.pending[1 + g] = 0
            moments.updates[g] += 1
        n = moments.updates[0]
        move_jointly(policies.W1, gradient.W1, first.W1, second.W1, share, rate, apart, keep, n)
        move_jointly(policies.W2, gradient.W2, first.W2, second.W2, share, rate, apart, keep, n)
        move_jointly(policies.b1, gradient.b1, first.b1, second.b1, share, rate, apart, 1.0, n)
        move_jointly(policies.b2, gradient.b2, first.b2, second.b2, share, rate, apart, 1.0, n)
        return
    for g in range(moments.updates.shape[0]):
        if moments.pending[1 + g] > 0:
            moments.pending[1 + g] = 0
            moments.updates[g] += 1
            n = moments.updates[g]
            move(policies.W1, gradient.W1, first.W1, second.W1, g, share, rate, keep, n, adam)
            move(policies.W2, gradient.W2, first.W2, second.W2, g, share, rate, keep, n, adam)
            move(policies.b1, gradient.b1, first.b1, second.b1, g, share, rate, 1.0, n, adam)
            move(policies.b2, gradient.b2, first.b2, second.b2, g, share, rate, 1.0, n, adam)
