"""The softmax policy in plain NumPy: probabilities and score gradient.

This file is the definition. Tests compare the training loop in `kernels` with it, step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.network import Array, Network, backward, forward, softmax


def probabilities(network: Network, contexts: Any) -> Array:
    """Return π(a|x) for each row x and action a.

    >>> net = Network(np.eye(2), np.zeros(2), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    >>> probabilities(net, np.array([[1.0, 1.0], [3.0, 0.0]])).round(3)
    array([[0.5  , 0.5  ],
           [0.953, 0.047]])
    """
    return softmax(forward(network, contexts)[1])


def log_probabilities(network: Network, contexts: Any) -> Array:
    """Return log π(a|x), which is finite even where π underflows."""
    logits = forward(network, contexts)[1]
    centred = logits - logits.max(axis=-1, keepdims=True)
    logs: Array = centred - np.log(np.exp(centred).sum(axis=-1, keepdims=True))
    return logs


def score_gradient(network: Network, context: Array, action: int) -> Network:
    """Return ∇ log π(a|x) with respect to every parameter, for one context and one action."""
    direction = -probabilities(network, context[None])[0]
    direction[action] += 1
    return along_logits(network, context, direction)


def along_logits(network: Network, context: Array, logit_gradient: Array) -> Network:
    """Return the gradient with respect to the parameters, given that with respect to the logits."""
    row = context[None]
    hidden, _ = forward(network, row)
    return backward(network, row, hidden, logit_gradient[None])


def expected_logit_gradient(policy: Array, rewards: Array) -> Array:
    """Return Σ_a π(a)·r(a)·∇log π(a) with respect to the logits: π(k)·(r(k) − Σ_a π(a)·r(a)).

    A reward that is the same for every action cancels out. This is why the published divergence term has no
    gradient.

    >>> expected_logit_gradient(np.array([0.25, 0.75]), np.array([3.0, 3.0]))
    array([0., 0.])
    """
    gradient: Array = policy * (rewards - policy @ rewards)
    return gradient
