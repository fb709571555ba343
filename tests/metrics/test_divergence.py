from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from evenhand.metrics.divergence import (
    DIVERGENCES,
    divergence,
    hellinger,
    jensen_shannon,
    kl,
    total_variation,
)


def draw(seed: int, actions: int, sure: bool = False) -> tuple[np.ndarray, np.ndarray]:
    concentration = np.full(actions, 0.02 if sure else 1.0)
    p, q = np.random.default_rng(seed).dirichlet(concentration, size=(2, 7))
    return p, q


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(2, 6))
def test_against_scipy_and_plain_loops(seed: int, actions: int) -> None:
    p, q = draw(seed, actions)
    np.testing.assert_allclose(kl(p, q), entropy(p, q, axis=-1), atol=1e-9)
    np.testing.assert_allclose(jensen_shannon(p, q), jensenshannon(p, q, axis=-1) ** 2, atol=1e-9)
    for i in range(len(p)):
        by_event = max(
            abs(sum(p[i, a] - q[i, a] for a in range(actions) if event >> a & 1))
            for event in range(2**actions)
        )
        assert total_variation(p[i], q[i]) == pytest.approx(by_event)
        overlap = sum(math.sqrt(p[i, a] * q[i, a]) for a in range(actions))
        assert hellinger(p[i], q[i]) ** 2 == pytest.approx(1 - overlap, abs=1e-12)


@given(seeds, st.integers(2, 6), st.booleans(), st.sampled_from(sorted(DIVERGENCES)))
def test_zero_on_itself_and_never_negative_infinite_or_nan(
    seed: int, actions: int, sure: bool, name: str
) -> None:
    p, q = draw(seed, actions, sure)
    q[0] = np.eye(actions)[0]
    p[0] = np.eye(actions)[1]
    apart = divergence(name)(p, q)
    assert apart.shape == (7,)
    assert np.isfinite(apart).all()
    assert (apart >= 0).all()
    assert apart[0] > 0.6
    np.testing.assert_allclose(divergence(name)(p, p), 0, atol=1e-12)


@given(seeds)
def test_bounds_and_symmetry(seed: int) -> None:
    p, q = draw(seed, 3, sure=True)
    assert (jensen_shannon(p, q) <= math.log(2) + 1e-12).all()
    for distance in (total_variation, hellinger):
        assert (distance(p, q) <= 1 + 1e-12).all()
    for symmetric in (jensen_shannon, total_variation, hellinger):
        np.testing.assert_allclose(symmetric(p, q), symmetric(q, p))
    # Pinsker's inequality ties two definitions together.
    assert (total_variation(p, q) <= np.sqrt(kl(p, q) / 2) + 1e-9).all()


def test_broadcasts_over_the_leading_axes() -> None:
    by_group = np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 4))
    apart = kl(by_group[:, :, None], by_group[:, None, :])
    assert apart.shape == (5, 4, 4)
    assert apart[2, 1, 3] == kl(by_group[2, 1], by_group[2, 3])


def test_unknown_names_and_different_actions_are_errors() -> None:
    with pytest.raises(ValueError, match="Did you mean 'hellinger'"):
        divergence("helinger")
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        kl([0.5, 0.5], [0.2, 0.3, 0.5])
