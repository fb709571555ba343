"""LFR's objective and its exact gradient: prototypes, soft assignments and the three losses.

No array of shape (people, features) is ever created. With P = XVᵀ and the prototypes' Gram matrix G = VVᵀ,

    ‖x − Σ_k m_k v_k‖² = ‖x‖² − 2 m·p + mᵀGm,

and in d(x, v) = Σ_i α_i (x_i − v_i)² the part Σ_i α_i x_i² is the same for every prototype, so the softmax
does not need it. An evaluation costs one product with X and one with its transpose; both are cheap if X is
sparse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from evenhand.arrays import Codes, Floats
from evenhand.jit import jit

EPSILON = float(np.finfo(np.float64).eps)


class Prototypes(NamedTuple):
    """LFR's parameters, or their gradient: w (prototypes), v (prototypes, features), α (groups, features)."""

    label: Floats
    place: Floats
    scale: Floats


class Losses(NamedTuple):
    """L_x, L_y and L_z, without their weights."""

    reconstruction: float
    classifier: float
    parity: float


class People(NamedTuple):
    """The training people by group: for each group, its rows, their squared lengths, and its labels."""

    rows: list[Any]
    lengths: list[Floats]
    labels: list[Floats]

    @classmethod
    def gather(cls, X: Any, labels: Codes, codes: Codes) -> People:
        """Split people by group. Rows with few nonzeros become sparse, which makes products faster."""
        if not sparse.issparse(X) and np.count_nonzero(X) < X.size / 3:
            X = sparse.csr_array(X)
        own = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
        rows = [X[people] for people in own]
        of_group = [labels[people].astype(np.float64) for people in own]
        return cls(rows, [squared_lengths(part) for part in rows], of_group)


def assign(X: Any, place: Floats, scale: Floats | None) -> Floats:
    """Return M, (people, prototypes): the softmax of minus the distance.

    `scale` is one group's α in Σ α(x − v)²; None means the Euclidean distance, not squared.

    >>> assign(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]), np.array([1.0])).round(2)
    array([[0.73, 0.27],
           [0.27, 0.73]])
    """
    lengths = squared_lengths(X) if scale is None else None
    return _assign(X, lengths, place, scale).M


def objective(
    parameters: Prototypes, people: People, weights: Losses, *, weighted: bool, smoothing: float = 0.0
) -> tuple[float, Prototypes, Losses]:
    """Return the weighted sum of the losses, its gradient, and the losses.

    If `weighted`, distances are those of Zemel et al., squared with one α per group; otherwise they are
    Euclidean, and α is not used. `smoothing` rounds the corner of L_z: |u| becomes √(u² + smoothing²) −
    smoothing.
    """
    label, place, scale = parameters
    gradient = Prototypes(np.zeros_like(label), np.zeros_like(place), np.zeros_like(scale))
    n_people, k = sum(len(labels) for labels in people.labels), len(label)
    assigned = [
        _assign(rows, lengths, place, scale[code] if weighted else None)
        for code, (rows, lengths) in enumerate(zip(people.rows, people.lengths, strict=True))
    ]
    parity, parity_slopes = _parity(np.array([M.mean(axis=0) for M, _, _ in assigned]), smoothing)
    gram = place @ place.T
    squared_error = cross_entropy = 0.0
    for code, (M, products, halved) in enumerate(assigned):
        labels = people.labels[code]
        residuals = M @ gram
        residuals -= products[:, :k]
        squared_error += people.lengths[code].sum() + np.vdot(M, residuals) - np.vdot(M, products[:, :k])
        guesses = M @ label
        clipped = np.clip(guesses, EPSILON, 1 - EPSILON)
        cross_entropy -= np.log(np.where(labels > 0, clipped, 1 - clipped)).sum()
        slopes = (clipped - labels) / (clipped * (1 - clipped)) * (guesses == clipped)
        slopes *= weights.classifier / n_people
        gradient.label[:] += slopes @ M

        norms = np.zeros(k)
        _pull(
            M, residuals, slopes, label, weights.parity / len(labels) * parity_slopes[code],
            weights.reconstruction / n_people, halved, products, norms,
        )  # fmt: skip
        pulled = (people.rows[code].T @ products).T
        gradient.place[:] += pulled[:k]
        if weighted:
            scaled = pulled[k:] + norms[:, None] * place
            gradient.scale[code] = (place * scaled).sum(axis=0)
            gradient.place[:] += scale[code] * (scaled + norms[:, None] * place)
        else:
            gradient.place[:] += 2 * norms[:, None] * place
        gradient.place[:] += 2 * weights.reconstruction / n_people * (M.T @ M) @ place
    losses = Losses(float(squared_error / n_people), float(cross_entropy / n_people), parity)
    return sum(weight * loss for weight, loss in zip(weights, losses, strict=True)), gradient, losses


def squared_lengths(X: Any) -> Floats:
    """Return ‖x‖² for every row, dense or sparse."""
    squares = X * X if isinstance(X, np.ndarray) else X.multiply(X)
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


class _Assigned(NamedTuple):
    """M; the products of rows with v and, if weighted, with αv; and 1 / 2d for Euclidean distances."""

    M: Floats
    products: Floats
    halved: Floats


def _assign(X: Any, lengths: Floats | None, place: Floats, scale: Floats | None) -> _Assigned:
    if scale is not None:
        products = X @ np.vstack([place, scale * place]).T
        logits = 2 * products[:, len(place) :]
        logits -= (place * place) @ scale
        return _Assigned(_softmax(logits), products, logits[:0])
    assert lengths is not None
    products = X @ place.T
    logits = -2 * products
    logits += (place * place).sum(axis=1)
    logits += lengths[:, None]
    np.sqrt(np.maximum(logits, 0, out=logits), out=logits)
    halved = np.divide(0.5, logits, out=np.zeros_like(logits), where=logits > 0)
    return _Assigned(_softmax(np.negative(logits, out=logits)), products, halved)


def _parity(means: Floats, smoothing: float) -> tuple[float, Floats]:
    """Return L_z, the mean over pairs of groups, from each group's mean assignment, and its derivative."""
    n_groups = len(means)
    pairs = max(n_groups * (n_groups - 1) // 2, 1)
    differences = means[:, None] - means[None]
    rounded = np.sqrt(differences**2 + smoothing**2)
    slopes = np.divide(differences, rounded, out=np.zeros_like(rounded), where=rounded > 0)
    return float((rounded - smoothing).sum() / 2 / pairs), slopes.sum(axis=1) / pairs


def _softmax(logits: Floats) -> Floats:
    """Turn logits into probabilities in place. On narrow rows, it is several times faster than `softmax`."""
    _subtract_largest(logits)
    np.exp(logits, out=logits)
    _divide_by_sum(logits)
    return logits


@jit(error_model="python")
def _subtract_largest(rows: Floats) -> None:
    for n in range(len(rows)):
        row = rows[n]
        largest = row[0]
        for k in range(len(row)):
            largest = max(largest, row[k])
        for k in range(len(row)):
            row[k] -= largest


@jit(error_model="python")
def _divide_by_sum(rows: Floats) -> None:
    for n in range(len(rows)):
        row = rows[n]
        total = 0.0
        for k in range(len(row)):
            total += row[k]
        for k in range(len(row)):
            row[k] /= total


@jit(error_model="python")
def _pull(
    M: Floats, residuals: Floats, slopes: Floats, label: Floats, parity: Floats, reconstruction: float,
    halved: Floats, out: Floats, norms: Floats,
) -> None:  # fmt: skip
    """Write the gradient for the products to `out`; add that for the prototypes' squared lengths to `norms`.

    The part through the reconstruction comes first in `out`, the part through the softmax last. If `out` has
    room for only one part, it gets their sum.
    """
    n_people, k_all = M.shape
    pull = np.empty(k_all)
    one_half = out.shape[1] == k_all
    for n in range(n_people):
        m, residual, slope = M[n], residuals[n], slopes[n]
        first, last = out[n, :k_all], out[n, -k_all:]
        mean = 0.0
        for k in range(k_all):
            pull[k] = 2 * reconstruction * residual[k] + slope * label[k] + parity[k]
            mean += m[k] * pull[k]
        for k in range(k_all):
            pull[k] = m[k] * (pull[k] - mean)
            first[k] = -2 * reconstruction * m[k]
        if len(halved) > 0:
            for k in range(k_all):
                pull[k] *= halved[n, k]
        for k in range(k_all):
            norms[k] -= pull[k]
            last[k] = 2 * pull[k] + (first[k] if one_half else 0.0)
