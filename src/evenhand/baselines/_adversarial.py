"""ALFR's four networks, their losses and gradients, and the alternating update on a batch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes
from evenhand.jit import jit
from evenhand.network import Array, Network, backward, forward, input_gradient, softmax, start


class Weights(NamedTuple):
    """The weights of the encoder's loss: classifier · L_y + reconstruction · L_x − adversary · L_s."""

    classifier: float
    reconstruction: float
    adversary: float


class Batch(NamedTuple):
    """The rows of some people, with their labels and groups one-hot."""

    rows: Array
    labels: Array
    groups: Array


class Players(NamedTuple):
    """The four networks, or the gradient with respect to their parameters."""

    encoder: Network
    classifier: Network
    decoder: Network
    adversary: Network


def start_players(
    n_features: int,
    n_representation: int,
    n_hidden: int,
    n_labels: int,
    n_groups: int,
    rng: np.random.Generator,
) -> Players:
    """Draw the networks. The decoder also sees the group, so the representation need not contain it."""
    return Players(
        start(n_features, n_hidden, n_representation, rng),
        start(n_representation, n_hidden, n_labels, rng),
        start(n_representation + n_groups, n_hidden, n_features, rng),
        start(n_representation, n_hidden, n_groups, rng),
    )


def represent(encoder: Network, rows: Any, *, bounded: bool = True) -> tuple[Array, Array]:
    """Return the encoder's hidden layer and the representation, the tanh of its output.

    If not `bounded`, the representation is the output itself, and can grow without limit: the larger it is,
    the more the adversary loses when it is wrong.
    """
    hidden, output = forward(encoder, rows)
    return hidden, np.tanh(output) if bounded else output


def adversary_gradient(adversary: Network, representation: Array, groups: Array) -> tuple[float, Network]:
    """Return L_s, the mean cross-entropy of the predicted groups, and its gradient for the adversary."""
    hidden, logits = forward(adversary, representation)
    loss, logits_gradient = cross_entropy(logits, groups)
    return loss, backward(adversary, representation, hidden, logits_gradient)


def encoder_gradient(
    players: Players,
    batch: Batch,
    weights: Weights,
    hidden: Array,
    representation: Array,
    *,
    bounded: bool = True,
) -> tuple[float, Players]:
    """Return the loss that the encoder, classifier and decoder minimise, and its gradient for each of them.

    The decoder's gradient is empty without reconstruction. That of the adversary, their opponent, always is.
    """
    encoder, classifier, decoder, adversary = players
    classifier_hidden, logits = forward(classifier, representation)
    loss, logits_gradient = cross_entropy(logits, batch.labels, weights.classifier)
    by_classifier = backward(classifier, representation, classifier_hidden, logits_gradient)
    by_representation = input_gradient(classifier, classifier_hidden, logits_gradient)
    if weights.adversary:
        adversary_hidden, logits = forward(adversary, representation)
        gain, logits_gradient = cross_entropy(logits, batch.groups, -weights.adversary)
        loss += gain
        by_representation += input_gradient(adversary, adversary_hidden, logits_gradient)
    by_decoder = EMPTY
    if weights.reconstruction:
        seen = np.hstack([representation, batch.groups])
        decoder_hidden, rebuilt = forward(decoder, seen)
        errors = rebuilt - batch.rows
        factor = weights.reconstruction / errors.size
        loss += factor * float(np.vdot(errors, errors))
        errors *= 2 * factor
        by_decoder = backward(decoder, seen, decoder_hidden, errors)
        by_representation += input_gradient(decoder, decoder_hidden, errors)[:, : representation.shape[1]]
    if bounded:
        by_representation *= 1 - representation * representation
    by_encoder = backward(encoder, batch.rows, hidden, by_representation)
    return loss, Players(by_encoder, by_classifier, by_decoder, EMPTY)


def cross_entropy(logits: Array, wanted: Array, weight: float = 1.0) -> tuple[float, Array]:
    """Return weight · the mean cross-entropy of rows, and its gradient with respect to the logits.

    >>> cross_entropy(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]))
    (0.6931471805599453, array([[-0.5,  0.5]]))
    """
    probabilities = softmax(logits)
    likelihood = np.einsum("ij,ij->i", probabilities, wanted)
    factor = weight / len(logits)
    loss = -factor * float(np.log(np.maximum(likelihood, np.finfo(logits.dtype).tiny)).sum())
    probabilities -= wanted
    probabilities *= factor
    return loss, probabilities


EMPTY = Network(*(np.zeros(0, dtype=np.float32),) * 4)


class Adam:
    """Networks with all parameters in one flat float32 vector, which Adam updates in one pass."""

    def __init__(self, networks: tuple[Network, ...], learning_rate: float) -> None:
        self.flat = np.concatenate([part.ravel() for net in networks for part in net]).astype(np.float32)
        self.gradient = np.empty_like(self.flat)
        self.first, self.second = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self.learning_rate = learning_rate
        self.n_steps = 0
        self.networks: list[Network] = []
        at = 0
        for net in networks:
            parts = []
            for part in net:
                parts.append(self.flat[at : at + part.size].reshape(part.shape))
                at += part.size
            self.networks.append(Network(*parts))

    def step(self, *gradients: Network) -> None:
        """Update the networks in place, against their gradients."""
        np.concatenate([part.ravel() for net in gradients for part in net], out=self.gradient)
        self.n_steps += 1
        rate = self.learning_rate * math.sqrt(1 - 0.999**self.n_steps) / (1 - 0.9**self.n_steps)
        _adam(self.flat, self.gradient, self.first, self.second, np.float32(rate))


@jit(error_model="python")
def _adam(flat: Any, gradient: Any, first: Any, second: Any, rate: np.float32) -> None:
    keep, keep_square = np.float32(0.9), np.float32(0.999)
    lose, lose_square, tiny = np.float32(0.1), np.float32(0.001), np.float32(1e-8)
    for i in range(len(flat)):
        first[i] = keep * first[i] + lose * gradient[i]
        second[i] = keep_square * second[i] + lose_square * gradient[i] * gradient[i]
        flat[i] -= rate * first[i] / (np.sqrt(second[i]) + tiny)


class Game:
    """The alternating training: the adversary learns from every batch, the others from every n-th batch."""

    def __init__(
        self,
        players: Players,
        weights: Weights,
        learning_rate: float,
        adversary_steps: int,
        *,
        bounded: bool = True,
        adversary_last: bool = False,
    ) -> None:
        self.bounded, self.adversary_last = bounded, adversary_last
        self.weights = weights
        self.adversary_steps = adversary_steps
        self.n_batches = 0
        plays = players.encoder, players.classifier, players.decoder if weights.reconstruction else EMPTY
        self.makers = Adam(plays, learning_rate)
        self.breaker = Adam((players.adversary,), learning_rate)
        self.players = Players(*self.makers.networks, *self.breaker.networks)

    def play(self, batch: Batch) -> None:
        """Update the adversary, and the other networks if it is their turn."""
        self.n_batches += 1
        others_turn = not self.weights.adversary or self.n_batches % self.adversary_steps == 0
        hidden, representation = represent(self.players.encoder, batch.rows, bounded=self.bounded)
        if self.adversary_last and others_turn:
            self._move_others(batch, hidden, representation)
            hidden, representation = represent(self.players.encoder, batch.rows, bounded=self.bounded)
        if self.weights.adversary:
            self.breaker.step(adversary_gradient(self.players.adversary, representation, batch.groups)[1])
        if others_turn and not self.adversary_last:
            self._move_others(batch, hidden, representation)

    def _move_others(self, batch: Batch, hidden: Array, representation: Array) -> None:
        _, gradient = encoder_gradient(
            self.players, batch, self.weights, hidden, representation, bounded=self.bounded
        )
        self.makers.step(gradient.encoder, gradient.classifier, gradient.decoder)


def one_hot(codes: Codes, n_columns: int) -> Array:
    """Return codes as one-hot rows."""
    return np.eye(n_columns, dtype=np.float32)[codes]
