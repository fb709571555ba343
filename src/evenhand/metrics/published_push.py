"""What the divergence term pushes the policies by, as published and as cured."""

from __future__ import annotations

import numpy as np

from evenhand.metrics.answers import Answers
from evenhand.metrics.divergence import kl


def published_reward(answers: Answers) -> dict[str, float]:
    """Measure, on this model's own policies, what the divergence term pushes the logits by, per unit of λ.

    The expected push of the published term, Σ_a π(a)·KL·∇log π(a), is zero for everybody; what is left of it
    is the noise of a sampled action. The log-ratio's expected push is the divergence's own gradient.

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
