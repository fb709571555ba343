"""One person's row through one group's network, forward and backward, in place and without allocation.

Functions take whole stacks of policies and a group number `g`: a slice such as W1[g] would be counted in
and out at every step, which costs more than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.jit import jit

# Sums may be reordered, so that loops over hidden units vectorise; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


@jit(fastmath=FAST, inline="always")
def forward(
    W1: Any, b1: Any, W2: Any, b2: Any, g: int, values: Any, indices: Any, at: int, index_at: int, count: int,
    hidden: Any, logits: Any,
) -> None:  # fmt: skip
    """Fill hidden[g] and logits[g] for the row of `count` values that starts at `at`."""
    n_hidden = b1.shape[1]
    zero = b1.dtype.type(0)
    for j in range(n_hidden):
        hidden[g, j] = b1[g, j]
    for q in range(count):
        value, feature = values[at + q], indices[index_at + q]
        for j in range(n_hidden):
            hidden[g, j] += value * W1[g, feature, j]
    for j in range(n_hidden):
        hidden[g, j] = hidden[g, j] if hidden[g, j] > zero else zero
    for k in range(b2.shape[1]):
        total = zero
        for j in range(n_hidden):
            total += hidden[g, j] * W2[g, k, j]
        logits[g, k] = total + b2[g, k]


@jit(fastmath=FAST, inline="always")
def add_gradient(
    W1: Any, b1: Any, W2: Any, b2: Any, from_W2: Any, g: int,
    values: Any, indices: Any, at: int, index_at: int, count: int,
    hidden: Any, logit_gradient: Any, scale: float, scratch: Any,
) -> None:  # fmt: skip
    """Target (W1, b1, W2, b2)[g] += scale · gradient of the policy whose output weights are from_W2[g].

    With plain SGD the target is the policy itself; with batches or Adam it is the batch's gradient.
    """
    n_hidden, n_actions = b1.shape[1], b2.shape[1]
    kind = b1.dtype.type
    zero = kind(0)
    for j in range(n_hidden):
        scratch[j] = zero
    for k in range(n_actions):
        step = kind(scale * logit_gradient[k])
        for j in range(n_hidden):
            scratch[j] += step * from_W2[g, k, j]
    for j in range(n_hidden):
        scratch[j] = scratch[j] if hidden[g, j] > zero else zero
    for j in range(n_hidden):
        b1[g, j] += scratch[j]
    for k in range(n_actions):
        step = kind(scale * logit_gradient[k])
        b2[g, k] += step
        for j in range(n_hidden):
            W2[g, k, j] += step * hidden[g, j]
    for q in range(count):
        value, feature = values[at + q], indices[index_at + q]
        for j in range(n_hidden):
            W1[g, feature, j] += value * scratch[j]


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
    n_groups, n_actions = b2.shape
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
