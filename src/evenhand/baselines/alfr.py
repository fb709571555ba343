"""ALFR: adversarially learned fair representations (Edwards and Storkey 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from evenhand.arrays import Codes, Floats
from evenhand.baselines._adversarial import Batch, Game, Players, Weights, one_hot, represent, start_players
from evenhand.baselines._base import VARIANTS, Baseline, Callback, dense, wants_to_stop
from evenhand.checks import integer, number, one_of
from evenhand.metrics.bootstrap import generator
from evenhand.network import Network, forward, softmax


class ALFR(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Baseline):  # type: ignore[misc]
    """A classifier on a representation from which an adversary can't predict the group.

    An encoder computes the representation. From it, a classifier predicts the label, an adversary predicts
    the group, and a decoder, which also sees the group, predicts the features. On each batch, the adversary
    takes a step of Adam that lowers L_s. Then the other networks take a step that lowers
    classifier_weight · L_y + reconstruction_weight · L_x − adversary_weight · L_s. L_y and L_s are mean
    cross-entropies, and L_x is the mean squared error. Every network has one hidden layer.

    The representation is the tanh of the encoder's output. The encoder doesn't see the group, so given the
    features, the decision does not depend on it.

    Parameters
    ----------
    n_representation, n_hidden : int
        The width of the representation, and of every network's hidden layer.
    classifier_weight, reconstruction_weight, adversary_weight : float
        The weights of the three losses. With reconstruction_weight 0, as in the paper, the decoder is unused.
    variant : {'literature', 'authors'}
        'authors' follows the code of Hu and Rangwala (2020): the representation is the encoder's output
        without the tanh; the adversary moves after the other networks and sees their new representation; and
        batches follow the order of the rows.
    adversary_steps : int
        The number of batches that the adversary learns from for each batch of the others. One, as published,
        is often too few: the adversary can't keep up, and the representation still reveals the group to
        another adversary that is trained afterwards. Three to five, with a larger adversary_weight, remove
        far more.
    epochs, batch_size : int
        The number of passes over the training data, and of people per batch. A batch is a step.
    learning_rate : float
        Adam's learning rate.
    checkpoint_every : int
        The number of batches between two calls of the callback.
    random_state : int, RandomState or None
        Draws the initial parameters and the order of people.

    Attributes
    ----------
    encoder_, classifier_ : Network
        The networks that predict.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y, s = np.where(X[:, 0] > 0, "yes", "no"), np.where(X[:, 1] > 0, "m", "f")
    >>> model = ALFR(random_state=0).fit(X, y, sensitive_features=s)
    >>> model.predict([[1.0, 0.5], [-1.0, 0.5]])
    array(['yes', 'no'], dtype='<U3')
    >>> model.transform([[1.0, 0.5]]).shape
    (1, 20)
    """

    def __init__(
        self,
        n_representation: int = 20,
        *,
        n_hidden: int = 20,
        classifier_weight: float = 1.0,
        reconstruction_weight: float = 0.0,
        adversary_weight: float = 1.0,
        variant: str = "literature",
        adversary_steps: int = 1,
        epochs: int = 20,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        checkpoint_every: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.n_representation = n_representation
        self.n_hidden = n_hidden
        self.classifier_weight = classifier_weight
        self.reconstruction_weight = reconstruction_weight
        self.adversary_weight = adversary_weight
        self.variant = variant
        self.adversary_steps = adversary_steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state

    @property
    def _uses_group(self) -> bool:
        return False

    @property
    def _n_features_out(self) -> int:
        return len(self.encoder_.b2)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Train the networks; see `Baseline.fit`."""
        widths = integer("n_representation", self.n_representation), integer("n_hidden", self.n_hidden)
        weights = Weights(
            number("classifier_weight", self.classifier_weight, low=0),
            number("reconstruction_weight", self.reconstruction_weight, low=0),
            number("adversary_weight", self.adversary_weight, low=0),
        )
        rate = number("learning_rate", self.learning_rate, low=0, open_low=True)
        every = integer("checkpoint_every", self.checkpoint_every)
        authors = one_of("variant", self.variant, VARIANTS) == "authors"
        integer("epochs", self.epochs)
        integer("batch_size", self.batch_size)
        X, labels, codes = self._admit(X, y, sensitive_features)
        n_labels, n_groups = len(self.classes_), len(self.groups_)
        if n_groups == 1:
            weights = weights._replace(adversary=0.0)
        rng = generator(self.random_state)
        players = start_players(X.shape[1], *widths, n_labels, n_groups, rng)
        steps = integer("adversary_steps", self.adversary_steps)
        game = Game(players, weights, rate, steps, bounded=not authors, adversary_last=authors)

        everybody = Batch(X.astype(np.float32), one_hot(labels, n_labels), one_hot(codes, n_groups))
        self.n_steps_ = 0
        for batch in self._batches(everybody, rng):
            game.play(batch)
            self.n_steps_ += 1
            if callback is not None and self.n_steps_ % every == 0:
                self._keep(game.players)
                if wants_to_stop(callback, self.n_steps_, self):
                    break
        self._keep(game.players)
        if self.n_steps_ % every != 0:
            wants_to_stop(callback, self.n_steps_, self)
        if not all(np.isfinite(part).all() for part in self.encoder_):
            raise ValueError(
                f"Training diverged: the encoder is no longer finite after {self.n_steps_} steps. "
                f"Lower learning_rate (now {rate:g}) or adversary_weight (now {self.adversary_weight:g}), "
                "and scale the features to mean 0 and standard deviation 1."
            )
        self._warn_if_collapsed(self._probabilities(X, codes), "adversary_weight")
        return self

    def transform(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the representation, (people, n_representation); `sensitive_features` is ignored."""
        return self._represent(self._rows(X))

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Floats:
        """Fit, and return the representation of the same people."""
        return self.fit(X, y, sensitive_features=sensitive_features).transform(X)

    def _represent(self, X: Any) -> Floats:
        return np.asarray(represent(self.encoder_, X, bounded=self.variant != "authors")[1])

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        return np.asarray(softmax(forward(self.classifier_, self._represent(X))[1]), dtype=np.float64)

    def _batches(self, everybody: Batch, rng: np.random.Generator) -> Iterator[Batch]:
        n_people = len(everybody.labels)
        for _ in range(self.epochs):
            order = np.arange(n_people) if self.variant == "authors" else rng.permutation(n_people)
            shuffled = Batch(*(part[order] for part in everybody))
            for at in range(0, n_people, self.batch_size):
                rows, labels, groups = (part[at : at + self.batch_size] for part in shuffled)
                yield Batch(dense(rows), labels, groups)

    def _keep(self, players: Players) -> None:
        """Copy the networks that predict, in double precision, so that training doesn't change them."""
        self.encoder_ = Network(*(part.astype(np.float64) for part in players.encoder))
        self.classifier_ = Network(*(part.astype(np.float64) for part in players.classifier))
