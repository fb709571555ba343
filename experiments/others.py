"""What a sceptic would compare with: a blind network with a parity term, boosted trees, and randomised decisions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from evenhand.baselines import ExponentiatedGradientClassifier, ThresholdOptimizerClassifier
from evenhand.baselines._adversarial import Adam
from evenhand.baselines._base import Baseline, dense
from evenhand.network import Network, backward, forward, softmax, start
from evenhand.rewards.rates import ascended


class Trees(HistGradientBoostingClassifier):
    """scikit-learn's boosted trees, which take no sparse rows; they never see the group."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return super().fit(dense(X), y, sample_weight)

    def predict(self, X: Any) -> Any:
        return super().predict(dense(X))

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(dense(X))


class Drawn:
    """Decisions drawn from the chances of a randomised classifier, as it is meant to be used.

    `history_` holds the share of those who train whose decision would differ between two draws.
    """

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Any = None) -> Self:
        super().fit(X, y, sensitive_features=sensitive_features)
        codes = np.searchsorted(self.groups_, sensitive_features)
        chance = super()._probabilities(X, codes)[:, 1]
        self.history_ = {"step": [self.n_steps_], "draws_differ": [float(np.mean(2 * chance * (1 - chance)))]}
        if callback is not None:
            callback(self.n_steps_, self)
        return self

    def _probabilities(self, X: Any, codes: Any) -> Any:
        chance = super()._probabilities(X, codes)[:, 1]
        drawn = np.random.default_rng(0).random(len(chance)) < chance
        return np.eye(2)[drawn.astype(int)]


class DrawnGradient(Drawn, ExponentiatedGradientClassifier):
    """fairlearn's ExponentiatedGradient."""


class DrawnThresholds(Drawn, ThresholdOptimizerClassifier):
    """fairlearn's ThresholdOptimizer. Everybody keeps their draw in the other group: only the chances differ."""


class BlindNetwork(Baseline):
    """One network for everybody that never sees the group, with a price on positive decisions for each group.

    Maximum likelihood by Adam, a rate that falls to 0, weight decay as the bandits have it; the prices are those of
    `Parity`: running rates of decisions, dual ascent by `ascended`, an immediate pull. Written apart from the bandits'
    loop, to be compared with λ → ∞.
    """

    def __init__(
        self, bound: float = 0.0, hidden: int = 20, weight_decay: float = 0.0, seed: int = 0
    ) -> None:
        self.bound, self.hidden, self.weight_decay, self.seed = bound, hidden, weight_decay, seed

    @property
    def _uses_group(self) -> bool:
        return False

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Any = None) -> Self:
        X, labels, codes = self._admit(X, y, sensitive_features)
        rng = np.random.default_rng(self.seed)
        n_people, n_groups = X.shape[0], len(self.groups_)
        met = min(max(20 * n_people, 20_000), max(400_000, n_people))
        rate, step = 0.01 / np.sqrt(X.shape[1]), 0.001 * max(1.0, 100_000 / met)
        adam = Adam((start(X.shape[1], self.hidden, 2, rng),), rate)
        dual, rates = np.zeros(n_groups), np.full(n_groups, 0.5)
        weight = n_people / (n_groups * np.bincount(codes))
        order = np.concatenate([rng.permutation(n_people) for _ in range(-(-met // n_people))])[:met]
        for at in range(0, met, 32):
            people = order[at : at + 32]
            share = 1 - at / met
            rows, of = dense(X[people]).astype(np.float32), codes[people]
            (network,) = adam.networks
            seen, logits = forward(network, rows)
            said = softmax(logits)
            for group in range(n_groups):
                positive = (logits[of == group, 1] > logits[of == group, 0]).astype(float)
                keep = (1 - 2e-3) ** len(positive)
                rates[group] = (
                    keep * rates[group] + (1 - keep) * positive.mean() if len(positive) else rates[group]
                )
            apart = rates - (rates.min() + rates.max()) / 2
            dual = ascended(dual, apart, len(people) * share * step, self.bound)
            excess = apart - np.clip(apart, -self.bound / 2, self.bound / 2)
            price = (weight * (dual - dual.mean() + excess))[of]
            steep = price * said[:, 0] * said[:, 1]
            loss = said - np.eye(2, dtype=np.float32)[labels[people]] + np.c_[-steep, steep]
            gradient = backward(network, rows, seen, (loss / len(people)).astype(np.float32))
            adam.learning_rate = rate * share
            adam.step(gradient)
            if self.weight_decay:
                adam.flat *= 1 - rate * share * self.weight_decay
        self.network_ = Network(*(part.astype(np.float64) for part in adam.networks[0]))
        self.n_steps_ = met
        return self

    def _probabilities(self, X: Any, codes: Any) -> Any:
        return softmax(forward(self.network_, X)[1])
