"""The forward and backward pass of one person through one group's network, without any allocation.

Functions take the stacked policies and a group number `g`. Numba counts references to every slice, such as
W1[g], at every step, which would take longer than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.bandits.kernels.simd import LANES, load, read, store, summed, where_positive, zeros
from evenhand.jit import jit

# Sums may be reordered, so that loops over hidden units are vectorised; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


@jit(inline="always")
def forward(
    W1: Any, b1: Any, W2: Any, b2: Any, g: int, values: Any, indices: Any, at: int, index_at: int, count: int,
    hidden: Any, logits: Any,
) -> None:  # fmt: skip
    """Fill hidden[g] and logits[g] for the row of `count` values that starts at `at`."""
    n_features, width = W1.shape[1], b1.shape[1]
    n_actions = W2.shape[1]
    start, j = g * n_features * width, 0
    while j + 3 * LANES <= width:  # three vectors at a time: all hidden units of the default
        low, middle, high = j, j + LANES, j + 2 * LANES
        one, two, three = load(b1, g * width + low), load(b1, g * width + middle), load(b1, g * width + high)
        for q in range(count):  # in the row's order, so that dense and sparse rows give identical sums
            value, place = read(values, at + q), start + read(indices, index_at + q) * width
            one = one + value * load(W1, place + low)
            two = two + value * load(W1, place + middle)
            three = three + value * load(W1, place + high)
        store(hidden, g * width + low, where_positive(one, one))
        store(hidden, g * width + middle, where_positive(two, two))
        store(hidden, g * width + high, where_positive(three, three))
        j += 3 * LANES
    while j < width:
        one = load(b1, g * width + j)
        for q in range(count):
            one = one + read(values, at + q) * load(W1, start + j + read(indices, index_at + q) * width)
        store(hidden, g * width + j, where_positive(one, one))
        j += LANES
    for k in range(n_actions):
        sums = zeros(hidden)
        for j in range(0, width, LANES):
            sums = sums + load(hidden, g * width + j) * load(W2, (g * n_actions + k) * width + j)
        logits[g, k] = summed(sums) + b2[g, k]


@jit(inline="always")
def add_gradient(
    W1: Any, b1: Any, W2: Any, b2: Any, from_W2: Any, g: int,
    values: Any, indices: Any, at: int, index_at: int, count: int,
    hidden: Any, logit_gradient: Any, scale: float, scratch: Any,
) -> None:  # fmt: skip
    """Add scale · the gradient of the policy with output weights from_W2[g] to (W1, b1, W2, b2)[g].

    With plain SGD, the target is the policy itself; with batches or Adam, it is the batch's gradient.
    """
    n_features, width = W1.shape[1], b1.shape[1]
    n_actions, kind = W2.shape[1], b1.dtype.type
    for k in range(n_actions):
        b2[g, k] += kind(scale * logit_gradient[k])
    for j in range(0, width, LANES):
        said, back = load(hidden, g * width + j), zeros(hidden)
        for k in range(n_actions):
            step, place = kind(scale * logit_gradient[k]), (g * n_actions + k) * width + j
            back = back + step * load(from_W2, place)
            store(W2, place, load(W2, place) + step * said)
        back = where_positive(said, back)
        store(scratch, j, back)
        store(b1, g * width + j, load(b1, g * width + j) + back)
    start, j = g * n_features * width, 0
    while j + 3 * LANES <= width:
        one, two, three = load(scratch, j), load(scratch, j + LANES), load(scratch, j + 2 * LANES)
        for q in range(count):
            value, low = read(values, at + q), start + j + read(indices, index_at + q) * width
            middle, high = low + LANES, low + 2 * LANES
            store(W1, low, load(W1, low) + value * one)
            store(W1, middle, load(W1, middle) + value * two)
            store(W1, high, load(W1, high) + value * three)
        j += 3 * LANES
    while j < width:
        one = load(scratch, j)
        for q in range(count):
            value, low = read(values, at + q), start + j + read(indices, index_at + q) * width
            store(W1, low, load(W1, low) + value * one)
        j += LANES


@jit(inline="always")
def softmax(logits: Any, g: int, logs: Any, policies: Any) -> None:
    """Fill the log-probabilities and probabilities of group g, always in double precision."""
    n_actions = logits.shape[1]
    if n_actions == 2:  # the same numbers, without an unpredictable branch
        first, second = np.float64(logits[g, 0]), np.float64(logits[g, 1])
        apart = abs(first - second)
        less = np.exp(-apart)
        total = 1.0 + less
        log_total = np.log(total)
        logs[g, 0] = (0.0 if first >= second else -apart) - log_total
        logs[g, 1] = (0.0 if second >= first else -apart) - log_total
        policies[g, 0] = (1.0 if first >= second else less) / total
        policies[g, 1] = (1.0 if second >= first else less) / total
        return
    top = np.float64(logits[g, 0])
    for k in range(1, n_actions):
        top = max(top, np.float64(logits[g, k]))
    total = 0.0
    for k in range(n_actions):
        logs[g, k] = np.float64(logits[g, k]) - top
        policies[g, k] = 1.0 if logs[g, k] == 0.0 else np.exp(logs[g, k])
        total += policies[g, k]
    log_total = np.log(total)
    for k in range(n_actions):
        logs[g, k] -= log_total
        policies[g, k] /= total


@jit()
def probabilities(W1: Any, b1: Any, W2: Any, b2: Any, rows: Any, out: Any) -> None:
    """Fill out[person, group, action] with every policy's probabilities."""
    n_groups, n_actions = W2.shape[:2]
    values, indices, starts = rows.values, rows.indices, rows.starts
    hidden = np.zeros(b1.shape, b1.dtype)
    logits = np.zeros((n_groups, n_actions), b1.dtype)
    logs, policies = np.zeros((n_groups, n_actions)), np.zeros((n_groups, n_actions))
    for person in range(out.shape[0]):
        at, count = starts[person], starts[person + 1] - starts[person]
        index_at = at if rows.sparse else 0
        for g in range(n_groups):
            forward(W1, b1, W2, b2, g, values, indices, at, index_at, count, hidden, logits)
            softmax(logits, g, logs, policies)
            for k in range(n_actions):
                out[person, g, k] = policies[g, k]
