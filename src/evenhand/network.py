"""One hidden ReLU layer, forward and backward, in plain NumPy: the only kind of network in evenhand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]


class Network(NamedTuple):
    """The parameters of output = W2 · relu(x · W1 + b1) + b2, or their gradient.

    W1 is (features, hidden), so that a sparse row touches one contiguous stretch per nonzero;
    W2 is (outputs, hidden).
    """

    W1: Array
    b1: Array
    W2: Array
    b2: Array


def start(n_inputs: int, n_hidden: int, n_outputs: int, rng: np.random.Generator) -> Network:
    """Draw parameters uniformly within 1/√fan-in, as most libraries do for a linear layer."""
    first, second = 1 / np.sqrt(n_inputs), 1 / np.sqrt(n_hidden)
    return Network(
        rng.uniform(-first, first, (n_inputs, n_hidden)),
        rng.uniform(-first, first, n_hidden),
        rng.uniform(-second, second, (n_outputs, n_hidden)),
        rng.uniform(-second, second, n_outputs),
    )


def forward(network: Network, x: Any) -> tuple[Array, Array]:
    """Return the hidden layer and the output for rows x, dense or sparse.

    >>> net = Network(np.eye(2), np.zeros(2), np.array([[1.0, 2.0]]), np.zeros(1))
    >>> forward(net, np.array([[3.0, -1.0]]))
    (array([[3., 0.]]), array([[3.]]))
    """
    hidden = np.maximum(x @ network.W1 + network.b1, 0)
    return hidden, hidden @ network.W2.T + network.b2


def backward(network: Network, x: Any, hidden: Array, output_gradient: Array) -> Network:
    """Return the gradient of Σ output · output_gradient with respect to the parameters, summed over rows."""
    hidden_gradient = (output_gradient @ network.W2) * (hidden > 0)
    return Network(
        x.T @ hidden_gradient, hidden_gradient.sum(0), output_gradient.T @ hidden, output_gradient.sum(0)
    )


def input_gradient(network: Network, hidden: Array, output_gradient: Array) -> Array:
    """Return the gradient of Σ output · output_gradient with respect to the rows x."""
    gradient: Array = ((output_gradient @ network.W2) * (hidden > 0)) @ network.W1.T
    return gradient


def softmax(logits: Array) -> Array:
    """Return probabilities along the last axis, without overflow.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    if logits.shape[-1] == 2:  # NumPy is slow at reducing a short axis
        powers: Array = np.exp(logits - np.maximum(logits[..., :1], logits[..., 1:]))
        powers /= powers[..., :1] + powers[..., 1:]
        return powers
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers
