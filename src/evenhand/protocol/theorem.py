"""The empirical side of the paper's theorem: the squared gradient norm of the objective by step.

The theorem bounds the smallest and the mean of ‖∇J(θ_s)‖² over T steps by a constant divided by T: a slope
of −1 in logarithms. The gradient here is exact. At each checkpoint, it is the expectation over the policies'
actions and the mean over everybody in the training part.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from evenhand.arrays import Floats
from evenhand.bandits import CooperativeBandits
from evenhand.groups import codes_of
from evenhand.metrics.answers import Answers
from evenhand.metrics.divergence import kl
from evenhand.network import Network, backward, forward, softmax
from evenhand.protocol.grids import Method, Point
from evenhand.rewards import Likelihood, LogRatio, as_reward, pack_terms
from evenhand.rewards.registry import BY_NAME, listening, rewards
from evenhand.rewards.term import Seen

KNOWN = tuple(name for name, term in BY_NAME.items() if term.settled)
CHECKPOINTS = 60
PUBLISHED, CURED = "gradient of CCB", "gradient of CCB cured"


def expected_gradient(model: CooperativeBandits, X: Any, y: Any, s: Any) -> Network:
    """Return the mean over people of the expected step, stacked over the groups' policies.

    Every term of the reward must depend only on the person and the policies' answers about them.

    >>> rng = np.random.default_rng(0)
    >>> X, y, s = rng.normal(size=(50, 2)), np.arange(50) % 2, np.arange(50) // 25
    >>> model = CooperativeBandits(steps=10, random_state=0).fit(X, y, sensitive_features=s)
    >>> expected_gradient(model, X, y, s).W2.shape
    (2, 2, 20)
    """
    reward = as_reward(Likelihood() + LogRatio() if model.reward is None else model.reward)
    strange = [name for name in reward.names if name not in KNOWN]
    if strange:
        raise ValueError(f"Got the reward term {strange[0]!r}, but expected only {', '.join(KNOWN)}.")
    terms = pack_terms(reward, model.divergence_weight, len(model.classes_))
    labels = np.searchsorted(model.classes_, y)
    groups = codes_of(s, len(labels), model.groups_)
    policies = [Network(*(part[g] for part in model.policies_)) for g in range(len(model.groups_))]
    layers = [forward(policy, X) for policy in policies]
    said: Floats = np.stack([softmax(logits.astype(np.float64)) for _, logits in layers], axis=1)
    logs = np.log(np.maximum(said, np.finfo(np.float64).tiny))
    seen = Seen(labels, groups, said, logs, labels, np.zeros(said.shape[:2], np.int64), True, None)

    own, earned = seen.own, rewards(terms, seen)
    directions = listening(terms, seen) if model.cooperation == "mutual" else np.zeros_like(said)
    directions[np.arange(len(own)), groups] = own * (earned - (own * earned).sum(1, keepdims=True))
    gradients = [
        backward(policies[g], X, hidden, (directions[:, g] / len(labels)).astype(np.float32))
        for g, (hidden, _) in enumerate(layers)
    ]
    return Network(*(np.stack(parts) for parts in zip(*gradients, strict=True)))


def squared_norms(gradient: Network) -> Floats:
    """Return ‖∇J(θ_s)‖² for each group s."""
    squares = [(part.reshape(len(part), -1).astype(np.float64) ** 2).sum(1) for part in gradient]
    return np.asarray(np.sum(squares, axis=0))


class GradientWatch:
    """Bandits that record their squared gradient norm at each checkpoint, in `history_` beside the reward."""

    def __init__(self, bandits: CooperativeBandits) -> None:
        self.bandits = bandits

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, callback: Any) -> Self:
        """Fit the bandits and record the squared gradient norms."""
        norms: list[float] = []

        def watch(step: int, model: CooperativeBandits) -> bool | None:
            norms.append(float(squared_norms(expected_gradient(model, X, y, sensitive_features)).sum()))
            stop: bool | None = callback(step, model)
            return stop

        self.bandits.fit(X, y, sensitive_features=sensitive_features, callback=watch)
        self.n_steps_ = self.bandits.n_steps_
        self.history_ = {**self.bandits.history_, "squared_gradient": np.array(norms)}
        return self


def against_steps(steps: Any, squared: Any) -> dict[str, Any]:
    """Return the smallest and the mean squared norm so far, by step, each with its slope in logarithms.

    >>> study = against_steps([1, 2, 4, 8], [1.0, 0.5, 0.25, 0.125])
    >>> round(study["slope_of_smallest"], 3)
    -1.0
    """
    steps, squared = np.asarray(steps, dtype=float), np.asarray(squared, dtype=float)
    smallest = np.minimum.accumulate(squared)
    mean = np.cumsum(squared) / np.arange(1, len(squared) + 1)

    def slope(values: Floats) -> float:
        known = values > 0
        if known.sum() < 2:
            return float("nan")
        return float(np.polyfit(np.log(steps[known]), np.log(values[known]), 1)[0])

    return {
        "step": steps.tolist(),
        "smallest": smallest.tolist(),
        "mean": mean.tolist(),
        "slope_of_smallest": slope(smallest),
        "slope_of_mean": slope(mean),
    }


def theorem_methods(*, full: bool) -> list[Method]:
    """Return Algorithm 1, published and cured, with recorded gradients: plain ascent, sampled actions."""
    budget = partial(_budget, most=200_000 if full else 100_000)
    return [
        Method(PUBLISHED, make_published, budget=budget, weight=15 if full else 8),
        Method(CURED, make_cured, budget=budget, weight=15 if full else 8),
    ]


def make_published(seed: int, **point: Any) -> GradientWatch:
    """Make Algorithm 1 with λ = 10 and recorded gradients."""
    return GradientWatch(CooperativeBandits.published(10.0, random_state=seed, **point))


def make_cured(seed: int, **point: Any) -> GradientWatch:
    """Make Algorithm 1 with the cured reward, λ = 1, mutual cooperation and recorded gradients."""
    return GradientWatch(
        CooperativeBandits.published(
            1.0, reward="correctness + log_ratio", cooperation="mutual", random_state=seed, **point
        )
    )


def _budget(people: int, most: int) -> Point:
    """Return 20 steps per person of the data set, up to a limit, with 60 checkpoints."""
    steps = min(20 * people, most)
    return {"steps": steps, "checkpoint_every": max(1, steps // CHECKPOINTS)}


def published_reward(answers: Answers) -> dict[str, float]:
    """Measure how far the divergence term pushes the logits of a model's own policies, per unit of λ.

    The expected push of the published term, Σ_a π(a)·KL·∇log π(a), is zero for everybody. What remains is the
    noise of sampling an action. The expected push of the log-ratio is the gradient of the divergence itself.

    >>> answers = Answers(["no", "yes"], ["f", "m"], np.array([0]), np.array([[[0.5, 0.5], [0.9, 0.1]]]))
    >>> {name: round(value, 3) for name, value in published_reward(answers).items()}
    {'divergence': 0.511, 'published_push': 0.0, 'published_noise': 0.361, 'log_ratio_push': 0.777}
    """
    said, own = answers.probabilities_by_group, answers.own
    if said is None:
        raise ValueError("Got no probabilities by group, but expected those of every group's policy.")
    mine = np.clip(said[np.arange(len(said)), own], 1e-12, 1)
    others, n_others = range(said.shape[1]), max(1, said.shape[1] - 1)
    gap = sum(np.where(own == g, 0.0, kl(mine, said[:, g])) for g in others) / n_others
    ratio = (
        sum(np.where((own == g)[:, None], 0.0, np.log(mine / np.clip(said[:, g], 1e-12, 1))) for g in others)
        / n_others
    )
    published = mine * (gap[:, None] - (mine * gap[:, None]).sum(1, keepdims=True))
    cured = mine * (ratio - (mine * ratio).sum(1, keepdims=True))
    # E_a ‖KL·(e_a − π)‖² = KL²·(1 − ‖π‖²): the size of a sampled step whose mean is zero.
    noise = gap * np.sqrt(np.clip(1 - (mine**2).sum(1), 0, None))
    return {
        "divergence": float(np.mean(gap)),
        "published_push": float(np.linalg.norm(published, axis=1).mean()),
        "published_noise": float(noise.mean()),
        "log_ratio_push": float(np.linalg.norm(cured, axis=1).mean()),
    }
