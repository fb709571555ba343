from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import value_and_grad
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evenhand.baselines._prototypes import Losses, People, Prototypes, assign, objective

WEIGHTS = Losses(0.3, 1.2, 0.7)


def make(seed, n_groups=2, n_people=50, n_features=5, k=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_people, n_features)) * (rng.random((n_people, n_features)) < 0.6)
    labels, codes = rng.integers(0, 2, n_people), rng.permutation(np.arange(n_people) % n_groups)
    parameters = Prototypes(
        rng.uniform(0.05, 0.95, k), rng.normal(size=(k, n_features)), rng.random((n_groups, n_features))
    )
    return X, labels, codes, parameters


def obvious_losses(X, labels, codes, parameters, weighted):
    """Person by person, prototype by prototype, as Zemel et al. write it."""
    w, v, alpha = parameters
    n, k, n_groups = len(X), len(w), codes.max() + 1
    M = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            square = sum(
                (alpha[codes[i], f] if weighted else 1) * (X[i, f] - v[j, f]) ** 2 for f in range(X.shape[1])
            )
            M[i, j] = np.exp(-square if weighted else -np.sqrt(square))
        M[i] /= M[i].sum()
    reconstruction = np.mean([((X[i] - M[i] @ v) ** 2).sum() for i in range(n)])
    cross_entropy = -np.mean([np.log(M[i] @ w if labels[i] else 1 - M[i] @ w) for i in range(n)])
    pairs = [(a, b) for a in range(n_groups) for b in range(a)]
    gaps = [sum(abs(M[codes == a, j].mean() - M[codes == b, j].mean()) for j in range(k)) for a, b in pairs]
    return M, Losses(reconstruction, cross_entropy, float(np.mean(gaps)) if gaps else 0.0)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_losses_equal_the_obvious_ones(n_groups, weighted):
    X, labels, codes, parameters = make(n_groups, n_groups)
    M, wanted = obvious_losses(X, labels, codes, parameters, weighted)
    total, _, losses = objective(parameters, People.gather(X, labels, codes), WEIGHTS, weighted=weighted)
    assert losses == pytest.approx(wanted)
    assert total == pytest.approx(sum(a * b for a, b in zip(WEIGHTS, wanted, strict=True)))
    for code in range(n_groups):
        scale = parameters.scale[code] if weighted else None
        assert np.allclose(assign(X[codes == code], parameters.place, scale), M[codes == code])


def differentiable(parameters, X, labels, codes, weighted, smoothing):
    w, v, alpha = parameters
    means, total = [], 0.0
    for code in range(codes.max() + 1):
        rows, own = X[codes == code], labels[codes == code]
        squares = (rows[:, None] - v[None]) ** 2
        distances = anp.sum(alpha[code] * squares, 2) if weighted else anp.sqrt(anp.sum(squares, 2))
        powers = anp.exp(-distances)
        M = powers / anp.sum(powers, 1, keepdims=True)
        guess = anp.dot(M, w)
        total = total + WEIGHTS.reconstruction * anp.sum((rows - anp.dot(M, v)) ** 2)
        total = total - WEIGHTS.classifier * anp.sum(anp.log(anp.where(own, guess, 1 - guess)))
        means.append(anp.mean(M, 0))
    gaps = [
        anp.sum(anp.sqrt((means[a] - means[b]) ** 2 + smoothing**2) - smoothing)
        for a in range(len(means))
        for b in range(a)
    ]
    return total / len(X) + WEIGHTS.parity * sum(gaps) / max(len(gaps), 1)


@given(seed=st.integers(0, 10_000), n_groups=st.integers(1, 3), smoothing=st.sampled_from([0.0, 0.1]))
@pytest.mark.parametrize("weighted", [True, False])
@settings(max_examples=15)
def test_gradient_equals_automatic_differentiation(weighted, seed, n_groups, smoothing):
    X, labels, codes, parameters = make(seed, n_groups)
    wanted, wanted_gradient = value_and_grad(differentiable)(
        tuple(parameters), X, labels, codes, weighted, smoothing
    )
    for rows in (X, sparse.csr_array(X)):
        people = People.gather(rows, labels, codes)
        value, gradient, _ = objective(parameters, people, WEIGHTS, weighted=weighted, smoothing=smoothing)
        assert value == pytest.approx(wanted)
        for part, wanted_part in zip(gradient, wanted_gradient, strict=True):
            assert np.allclose(part, wanted_part, atol=1e-12)


def test_people_at_a_prototype_have_a_finite_euclidean_gradient():
    X = np.array([[0.0, 1.0], [2.0, 0.0]])
    parameters = Prototypes(np.array([0.2, 0.8]), X.copy(), np.ones((2, 2)))
    people = People.gather(X, np.array([0, 1]), np.array([0, 1]))
    value, gradient, _ = objective(parameters, people, WEIGHTS, weighted=False)
    assert np.isfinite(value)
    assert all(np.isfinite(part).all() for part in gradient)


def test_sure_guesses_are_finite():
    X, labels, codes, parameters = make(0)
    sure = parameters._replace(label=np.zeros(4))
    value, gradient, losses = objective(sure, People.gather(X, labels, codes), WEIGHTS, weighted=True)
    assert losses.classifier == pytest.approx(labels.mean() * -np.log(np.finfo(float).eps))
    assert np.isfinite(value)
    assert (gradient.label == 0).all()


def test_rows_of_mostly_zeros_become_sparse():
    codes, labels = np.array([0, 1, 0]), np.array([0, 1, 1])
    assert sparse.issparse(People.gather(np.eye(3, 9), labels, codes).rows[0])
    assert not sparse.issparse(People.gather(np.ones((3, 9)), labels, codes).rows[0])
