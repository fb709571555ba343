"""One person's row through one group's network, forward and backward, in place and without allocation.

Functions take whole stacks of policies and a group number `g`: a slice such as W1[g] would be counted in
and out at every step, which costs more than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.bandits.kernels.simd import LANES, load, read, store, summed, where_positive, zeros
from evenhand.jit import jit

# Sums may be reordered, so that loops over hidden units vectorise; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


@jit(inline="always")
def forward(
    W1: Any, b1: Any, W2: Any, b2: Any, g: int, values: Any, indices: Any, at: int, index_at: int, count: int,
    hidden: Any, logits: Any,
) -> None:  # fmt: skip
    """Fill hidden[g] and logits[g] for the row of `count` values that starts at `at`."""
    n_features, width = W1.shape[1], b1.shape[1]
    n_actions = W2.shape[1]
    for j in range(g * width, (g + 1) * width, LANES):
        first = g * (n_features - 1) * width + j
        sums = load(b1, j)
        for q in range(count):  # in the row's order, so that zeros left out of a sparse row change no digit
            sums = sums + read(values, at + q) * load(W1, first + read(indices, index_at + q) * width)
        store(hidden, j, where_positive(sums, sums))
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
    """Target (W1, b1, W2, b2)[g] += scale · gradient of the policy whose output weights are from_W2[g].

    With plain SGD the target is the policy itself; with batches or Adam it is the batch's gradient.
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
    for q in range(count):
        value, place = read(values, at + q), (g * n_features + read(indices, index_at + q)) * width
        for j in range(0, width, LANES):
            store(W1, place + j, load(W1, place + j) + value * load(scratch, j))


@jit(inline="always")
def softmax(logits: Any, g: int, logs: Any, policies: Any) -> None:
    """Fill log-probabilities and probabilities of group g, in double precision whatever the logits are."""
    n_actions = logits.shape[1]
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
    """Fill out[person, group, action] with what each group's policy says."""
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
