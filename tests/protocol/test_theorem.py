from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand import CooperativeBandits
from evenhand.bandits.policy import expected_logit_gradient, log_probabilities, probabilities
from evenhand.metrics import Answers
from evenhand.metrics.selection import CRITERIA
from evenhand.network import Network
from evenhand.protocol.theorem import (
    GradientWatch,
    against_steps,
    expected_gradient,
    published_reward,
    squared_norms,
    theorem_methods,
)
from evenhand.protocol.trial import make_ready, train_and_select
from factories import make_arrays


def people(groups: int) -> tuple[Any, Any, Any]:
    X, y, s = make_arrays(60, 3, groups=range(groups), labels=(0, 1))
    return X.astype(np.float32), y, s


def fitted(reward: str, cooperation: str, groups: int) -> tuple[CooperativeBandits, tuple[Any, Any, Any]]:
    X, y, s = people(groups)
    model = CooperativeBandits(
        0.7, reward=reward, cooperation=cooperation, shared_start=False, hidden=4, steps=20, random_state=0
    )
    return model.fit(X, y, sensitive_features=s), (X, y, s)


def objective(policies: Network, weight: float, likelihood: bool, X: Any, y: Any, s: Any) -> float:
    """Return the mean over people of the expected reward, as a function of all policies: the obvious loop."""
    n_groups, total = len(policies.b2), 0.0
    for person, (context, label, group) in enumerate(zip(X, y, s, strict=True)):
        nets = [Network(*(part[g] for part in policies)) for g in range(n_groups)]
        said = [probabilities(net, context[None])[0] for net in nets]
        logs = [log_probabilities(net, context[None])[0] for net in nets]
        total += logs[group][label] if likelihood else said[group][label]
        others = [g for g in range(n_groups) if g != group]
        for other in others:
            total -= weight * float(said[group] @ (logs[group] - logs[other])) / len(others)
        assert person < len(X)
    return total / len(X)


def numeric(policies: Network, *arguments: Any) -> Network:
    """Differentiate the objective by small steps, parameter by parameter."""
    exact = Network(*(part.astype(np.float64) for part in policies))
    gradients = []
    for part in exact:
        gradient = np.zeros_like(part)
        for at in np.ndindex(part.shape):
            kept, sides = part[at], []
            for step in (1e-5, -1e-5):
                part[at] = kept + step
                sides.append(objective(exact, *arguments))
            part[at] = kept
            gradient[at] = (sides[0] - sides[1]) / 2e-5
        gradients.append(gradient)
    return Network(*gradients)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("reward", ["correctness + log_ratio", "likelihood + log_ratio"])
def test_mutual_cooperation_climbs_the_objective_s_own_gradient(reward: str, groups: int) -> None:
    model, (X, y, s) = fitted(reward, "mutual", groups)
    found = expected_gradient(model, X, y, s)
    expected = numeric(model.policies_, 0.7, reward.startswith("likelihood"), X, y, s)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_the_published_divergence_adds_nothing_to_the_gradient() -> None:
    model, (X, y, s) = fitted("correctness + kl", "acting", 2)
    with_divergence = expected_gradient(model, X, y, s)
    without = numeric(model.policies_, 0.0, False, X, y, s)
    for ours, theirs in zip(with_divergence, without, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_one_group_has_no_other_to_part_from() -> None:
    model, (X, y, s) = fitted("correctness + log_ratio", "mutual", 1)
    expected = numeric(model.policies_, 0.0, False, X, y, s)
    for ours, theirs in zip(expected_gradient(model, X, y, s), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_squared_norms_are_per_group() -> None:
    gradient = Network(
        *(np.stack([np.ones(shape), 2 * np.ones(shape)]) for shape in [(2, 3), (3,), (2, 3), (2,)])
    )
    assert squared_norms(gradient).tolist() == [17.0, 68.0]


def test_terms_without_a_known_gradient_are_refused() -> None:
    X, y, s = people(2)
    model = CooperativeBandits(reward="correctness + parity", steps=5, random_state=0)
    model.fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="Got the reward term 'parity', but expected only correctness"):
        expected_gradient(model, X, y, s)


def test_smallest_and_mean_so_far_with_slopes() -> None:
    study = against_steps([10, 20, 30], [4.0, 2.0, 3.0])
    assert study["smallest"] == [4.0, 2.0, 2.0]
    assert study["mean"] == [4.0, 3.0, 3.0]
    steps = np.arange(1, 50)
    assert against_steps(steps, steps**-0.5)["slope_of_smallest"] == pytest.approx(-0.5)
    assert np.isnan(against_steps([1, 2], [0.0, 0.0])["slope_of_mean"])


def test_watching_changes_nothing_and_is_kept_in_the_trial(dataset: Any) -> None:
    prepared = make_ready(dataset, 0, "random")
    plain = CooperativeBandits.published(10.0, random_state=0, steps=300, checkpoint_every=50)
    plain.fit(prepared.X, prepared.y, sensitive_features=prepared.s)
    watched = GradientWatch(
        CooperativeBandits.published(10.0, random_state=0, steps=300, checkpoint_every=50)
    )
    watched.fit(prepared.X, prepared.y, sensitive_features=prepared.s, callback=lambda step, model: None)
    for ours, theirs in zip(watched.bandits.policies_, plain.policies_, strict=True):
        np.testing.assert_array_equal(ours, theirs)

    (published, _) = theorem_methods(full=False)
    (point,) = published.points(len(dataset))
    curve = train_and_select(prepared, published, point, 0, CRITERIA)["curve"]
    assert len(curve["step"]) == len(curve["squared_gradient"]) >= 50
    assert min(curve["squared_gradient"]) > 0


def test_the_published_push_is_zero_and_the_cure_is_the_gradient_of_the_divergence() -> None:
    rng = np.random.default_rng(0)
    said, own = rng.dirichlet(np.ones(3), size=(50, 2)), rng.integers(2, size=50)
    found = published_reward(Answers(list("abc"), [0, 1], own, said))
    assert found["published_push"] < 1e-15
    pushes, noises = [], []
    for person, group in enumerate(own):
        mine, other = said[person, group], said[person, 1 - group]
        ratio = np.log(mine / other)
        pushes.append(np.linalg.norm(expected_logit_gradient(mine, ratio)))
        kl = mine @ ratio
        steps = [np.sum((kl * (np.eye(3)[a] - mine)) ** 2) for a in range(3)]
        noises.append(np.sqrt(mine @ steps))
    assert found["log_ratio_push"] == pytest.approx(np.mean(pushes))
    assert found["published_noise"] == pytest.approx(np.mean(noises))
