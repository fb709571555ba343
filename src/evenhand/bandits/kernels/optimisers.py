"""Step sizes, and how a batch's gradient moves the policies: plain ascent, Adam, or Adam on all jointly."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.bandits.kernels.layers import FAST
from evenhand.jit import jit

SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
FLOOR = 0.01  # a decaying schedule ends at this share of the learning rate
HALF_LIFE = 10_000.0  # steps after which 'inverse_sqrt' has fallen to 1/√2
DECAY_1, DECAY_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants


@jit(inline="always")
def learning_rate(options: Any, step: int) -> Any:
    """Return the step size of a step, by the schedule."""
    rate = options.learning_rate
    if options.schedule == 3:
        return rate / np.sqrt(1.0 + step / HALF_LIFE)
    if options.schedule == 0 or options.horizon == 0:
        return rate
    done = min(step / options.horizon, 1.0)
    share = 1.0 - done if options.schedule == 1 else 0.5 * (1.0 + np.cos(np.pi * done))
    return rate * (FLOOR + (1.0 - FLOOR) * share)


@jit(fastmath=FAST)
def move(
    weights: Any, gradient: Any, first: Any, second: Any, share: float, rate: float, keep: float,
    updates: int, adam: bool,
) -> None:  # fmt: skip
    """Move weights up the gradient times `share`, by SGD or Adam, and clear the gradient.

    `keep` is what weight decay leaves of the weights, whatever the gradient is.
    """
    kind = weights.dtype.type
    share_, rate_, keep_ = kind(share), kind(rate), kind(keep)
    if not adam:
        for i in range(weights.shape[0]):
            weights[i] = keep_ * weights[i] + rate_ * (share_ * gradient[i])
            gradient[i] = kind(0)
        return
    keep_1, keep_2, tiny = kind(DECAY_1), kind(DECAY_2), kind(EPSILON)
    new_1, new_2 = kind(1.0 - DECAY_1), kind(1.0 - DECAY_2)
    size = kind(rate / (1.0 - DECAY_1**updates))
    root = kind(1.0 / np.sqrt(1.0 - DECAY_2**updates))
    for i in range(weights.shape[0]):
        g = share_ * gradient[i]
        first[i] = keep_1 * first[i] + new_1 * g
        second[i] = keep_2 * second[i] + new_2 * g * g
        weights[i] = keep_ * weights[i] + size * first[i] / (np.sqrt(second[i]) * root + tiny)
        gradient[i] = kind(0)


@jit(fastmath=FAST)
def move_jointly(
    weights: Any, gradient: Any, first: Any, second: Any, share: float, rate: float, apart: float,
    keep: float, updates: int,
) -> None:  # fmt: skip
    """Move the policies' mean by Adam, and their differences from it `apart` times as fast.

    What pulls the policies together, λ times over, is all in the differences; in every policy's own weights
    Adam would divide what they learn together by it too. The differences share one scale, `second[0]`, so
    that they sum to nothing and leave the mean alone; the mean's averages lie in the last row.
    """
    kind = weights.dtype.type
    n_groups, n_weights = weights.shape
    share_, keep_, tiny = kind(share), kind(keep), kind(EPSILON)
    keep_1, keep_2 = kind(DECAY_1), kind(DECAY_2)
    new_1, new_2 = kind(1.0 - DECAY_1), kind((1.0 - DECAY_2) / n_groups)
    size = kind(apart * rate / (1.0 - DECAY_1**updates))
    root = kind(1.0 / np.sqrt(1.0 - DECAY_2**updates))
    mean, step, scale = np.zeros_like(weights[0]), np.zeros_like(weights[0]), np.zeros_like(weights[0])
    for g in range(n_groups):
        for i in range(n_weights):
            mean[i] += gradient[g, i]
    for i in range(n_weights):
        mean[i] /= kind(n_groups)
    for g in range(n_groups):
        for i in range(n_weights):
            gradient[g, i] = share_ * (gradient[g, i] - mean[i])
            scale[i] += gradient[g, i] * gradient[g, i]
    for i in range(n_weights):
        second[0, i] = keep_2 * second[0, i] + new_2 * scale[i]
        scale[i] = size / (np.sqrt(second[0, i]) * root + tiny)
    move(step, mean, first[n_groups], second[n_groups], share, rate, 1.0, updates, True)
    for g in range(n_groups):
        for i in range(n_weights):
            first[g, i] = keep_1 * first[g, i] + new_1 * gradient[g, i]
            weights[g, i] = keep_ * weights[g, i] + scale[i] * first[g, i] + step[i]
            gradient[g, i] = kind(0)


@jit(inline="always")
def by_group(weights: Any) -> Any:
    """Return weights with one row per group."""
    return weights.reshape((weights.shape[0], weights[0].size))


@jit()
def close_batch(
    policies: Any, moments: Any, rate: float, adam: bool, apart: float, weight_decay: float
) -> None:
    """Move every policy that the open batch touched by the mean of its gradients, and open the next.

    With `apart` above 0 all move jointly, their differences at that share of the rate. Weights decay, biases
    do not.
    """
    keep = 1.0 - rate * weight_decay
    gradient, first, second = moments.gradient, moments.first, moments.second
    share = 1.0 / moments.pending[0]
    moments.pending[0] = 0
    if apart > 0.0:
        moments.pending[:] = 0
        moments.updates[:] += 1
        n = moments.updates[0]
        move_jointly(
            by_group(policies.W1), by_group(gradient.W1), by_group(first.W1), by_group(second.W1),
            share, rate, apart, keep, n,
        )  # fmt: skip
        move_jointly(
            by_group(policies.W2), by_group(gradient.W2), by_group(first.W2), by_group(second.W2),
            share, rate, apart, keep, n,
        )  # fmt: skip
        move_jointly(policies.b1, gradient.b1, first.b1, second.b1, share, rate, apart, 1.0, n)
        move_jointly(policies.b2, gradient.b2, first.b2, second.b2, share, rate, apart, 1.0, n)
        return
    for g in range(moments.updates.shape[0]):
        if moments.pending[1 + g] > 0:
            moments.pending[1 + g] = 0
            moments.updates[g] += 1
            n = moments.updates[g]
            move(
                policies.W1[g].ravel(), gradient.W1[g].ravel(), first.W1[g].ravel(), second.W1[g].ravel(),
                share, rate, keep, n, adam,
            )  # fmt: skip
            move(
                policies.W2[g].ravel(), gradient.W2[g].ravel(), first.W2[g].ravel(), second.W2[g].ravel(),
                share, rate, keep, n, adam,
            )  # fmt: skip
            move(policies.b1[g], gradient.b1[g], first.b1[g], second.b1[g], share, rate, 1.0, n, adam)
            move(policies.b2[g], gradient.b2[g], first.b2[g], second.b2[g], share, rate, 1.0, n, adam)
