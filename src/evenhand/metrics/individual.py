"""Metrics of individuals: whether similar people, or one person in different groups, get the same decision.

A person's *gap* is the largest divergence between their own group's policy and any other group's. Metric-free
individual fairness asks that the divergence be below ε for every other group, so the largest one counts.
Likewise, a decision *flips* if it would be different in any other group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Array, Codes, Flags, Floats
from evenhand.checks import number
from evenhand.groups import sorted_unique
from evenhand.metrics.divergence import divergence as divergence_named
from evenhand.metrics.gower import Neighbours, gower_neighbours
from evenhand.metrics.weights import check_weights

NEARLY, SLACK = 1e-4, 1e-9  # how much probabilities may differ from one in sum, and be below zero


class Gap(NamedTuple):
    """The metric-free gap over all people: mean, 95th percentile, maximum, and the share at ε or above."""

    mean: float
    p95: float
    maximum: float
    share: float


def consistency(
    y_pred: Any,
    *,
    X: Any = None,
    neighbours: Neighbours | Array | None = None,
    k: int = 5,
    weights: Any = None,
    categorical: Any = None,
    engine: str = "cpu",
) -> float:
    """Return one minus the mean share of a person's k nearest neighbours who got a different decision.

    For decisions 0 and 1, this is 1 − mean |ŷ − mean ŷ of the neighbours|.

    Parameters
    ----------
    y_pred : array
        One decision per person.
    X : table of people
        The original features, from which the nearest neighbours are found by Gower's similarity.
    neighbours : Neighbours, or array of (people, k)
        Neighbours that are already known, instead of X.
    k, weights, categorical, engine
        As in `gower_neighbours`.

    Notes
    -----
    AIF360's consistency is different: it uses Euclidean distance on encoded columns, and counts people among
    their own neighbours.

    Examples
    --------
    >>> X = [[1.0], [1.1], [1.2], [5.0], [5.1], [5.2]]
    >>> consistency([0, 0, 0, 1, 1, 0], X=X, k=2)
    0.6666666666666667
    """
    if (X is None) == (neighbours is None):
        raise ValueError("Got both or neither of X and neighbours, but expected one of them.")
    decisions = np.asarray(y_pred)
    if decisions.ndim != 1:
        raise ValueError(f"Got y_pred of shape {decisions.shape}, but expected one decision per person.")
    if neighbours is None:
        neighbours = gower_neighbours(X, k, weights=weights, categorical=categorical, engine=engine)
    indices = neighbours.indices if isinstance(neighbours, Neighbours) else np.asarray(neighbours)
    if indices.ndim != 2 or len(indices) != len(decisions):
        raise ValueError(
            f"Got {len(decisions)} decisions and neighbours of shape {indices.shape}; expected one row each."
        )
    _, codes = sorted_unique(decisions)
    return float(consistency_from_neighbours(codes, indices))


def consistency_from_neighbours(codes: Array, indices: Array, people: Array | None = None) -> Any:
    """Return the consistency of decisions given as numbers, for many checkpoints at once, without checks.

    `codes` is (..., people); leading axes are checkpoints. `people` are the people that the rows of `indices`
    belong to; everybody by default.

    Examples
    --------
    >>> checkpoints = np.array([[0, 0, 1], [1, 1, 1]])
    >>> consistency_from_neighbours(checkpoints, np.array([[1], [0], [0]])).round(3).tolist()
    [0.667, 1.0]
    """
    return 1 - disagreement(codes, indices, people).mean(axis=-1)


def disagreement(codes: Array, indices: Array, people: Array | None = None) -> Array:
    """Return, for each person, the share of their neighbours who got a different decision."""
    own = codes if people is None else codes[..., people]
    return np.asarray((codes[..., indices] != own[..., None]).mean(axis=-1))


def metric_free_gap(
    probabilities_by_group: Any, own: Any, *, divergence: str = "kl", epsilon: float = 0.05
) -> Gap:
    """Return how far apart the groups' policies are on the same people.

    Parameters
    ----------
    probabilities_by_group : array, (people, groups, actions)
        Each person's probabilities under each group's policy.
    own : array of int, (people,)
        The position of each person's own group.
    divergence : {'kl', 'jensen_shannon', 'total_variation', 'hellinger'}
        The divergence D(own ‖ other).
    epsilon : float
        A gap of at least this much counts towards `share`.

    Examples
    --------
    >>> by_group = [[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.6, 0.4]]]
    >>> metric_free_gap(by_group, [0, 1], divergence="total_variation")
    Gap(mean=0.15, p95=0.285, maximum=0.3, share=0.5)
    """
    epsilon = number("epsilon", epsilon, low=0)
    gaps = person_gaps(probabilities_by_group, own, divergence=divergence)
    # Round off floating-point errors, so that 0.9 - 0.6 reaches an epsilon of 0.3.
    gaps = gaps.round(12)
    return Gap(
        float(gaps.mean()), float(np.quantile(gaps, 0.95)), float(gaps.max()), float((gaps >= epsilon).mean())
    )


def person_gaps(probabilities_by_group: Any, own: Any, *, divergence: str = "kl") -> Floats:
    """Return each person's gap: the largest divergence from their own policy to another group's.

    The parameters are those of `metric_free_gap`.

    Examples
    --------
    >>> by_group = [[[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]]
    >>> person_gaps(by_group, [1], divergence="total_variation").round(3).tolist()
    [0.3]
    """
    measure = divergence_named(divergence)
    said = check_distributions(probabilities_by_group, "probabilities_by_group", 3)
    codes = _own_groups(own, said.shape[:2])
    mine = said[np.arange(len(said)), codes]
    gaps = np.zeros(len(said))
    for group in range(said.shape[1]):
        # The divergence from the own group's policy is zero and never changes the maximum.
        np.maximum(gaps, measure(mine, said[:, group]), out=gaps)
    return gaps


def flip_rate(decisions_by_group: Any, own: Any, *, sample_weight: Any = None) -> float:
    """Return the share of people who would get a different decision in another group.

    Parameters
    ----------
    decisions_by_group : array, (people, groups)
        Each person's decision in every group.
    own : array of int, (people,)
        The position of each person's own group.
    sample_weight : array
        The number of people that each person stands for; 1 by default.

    Examples
    --------
    >>> flip_rate([["no", "yes"], ["no", "no"], ["yes", "yes"], ["no", "yes"]], [0, 0, 1, 1])
    0.5
    """
    flips = person_flips(decisions_by_group, own)
    weights = None if sample_weight is None else check_weights(sample_weight, len(flips))
    return float(np.average(flips, weights=weights))


def person_flips(decisions_by_group: Any, own: Any) -> Flags:
    """Return whether each person would get a different decision in any other group; see `flip_rate`."""
    decided = np.asarray(decisions_by_group)
    if decided.ndim != 2 or decided.size == 0:
        raise ValueError(f"Got decisions_by_group of shape {decided.shape}, but expected (people, groups).")
    codes = _own_groups(own, decided.shape)
    mine = decided[np.arange(len(decided)), codes]
    return np.asarray((decided != mine[:, None]).any(axis=1))


def check_distributions(values: Any, name: str, n_axes: int) -> Floats:
    """Return probabilities as floats in [0, 1]; raise unless they sum to one over the last axis, to 1e-4."""
    array = np.asarray(values, dtype=float)
    if array.ndim != n_axes or array.size == 0:
        wanted = "(people, groups, actions)" if n_axes == 3 else "(people, actions)"
        raise ValueError(f"Got {name} of shape {array.shape}, but expected {wanted}.")
    totals = array.sum(axis=-1)
    wrong = ~(np.abs(totals - 1) <= NEARLY) | ~((array >= -SLACK) & (array <= 1 + NEARLY)).all(axis=-1)
    if wrong.any():
        where = tuple(int(at[0]) for at in np.nonzero(wrong))
        raise ValueError(f"Got {name}[{where}] = {array[where]}, but expected probabilities that sum to one.")
    return np.asarray(np.clip(array, 0.0, 1.0))


def _own_groups(own: Any, shape: tuple[int, ...]) -> Codes:
    codes = np.asarray(own)
    n_people, n_groups = shape
    if codes.shape != (n_people,) or codes.dtype.kind not in "iu":
        raise ValueError(
            f"Got own of shape {codes.shape} and type {codes.dtype}, "
            f"but expected the position of the group of each of {n_people} people."
        )
    if codes.min() < 0 or codes.max() >= n_groups:
        raise ValueError(
            f"Got groups {codes.min()} to {codes.max()} in own, but expected 0 to {n_groups - 1}."
        )
    return codes.astype(np.int64)
