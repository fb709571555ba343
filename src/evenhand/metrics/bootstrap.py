"""Intervals: how much a metric would change if other people had been sampled.

Shares of correct decisions and differences between groups have limits of their own (`shares`). All others get
the percentile bootstrap. Metrics that need only counts are resampled as counts: drawing as many people with
replacement is drawing one multinomial table, so that a million people take no longer than a hundred. Scores
and per-person values are counted in fine cells first. Any other metric is computed again on resampled people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from evenhand.arrays import Array, Codes
from evenhand.checks import integer, number
from evenhand.groups import group_values
from evenhand.metrics.counts import Counts, count
from evenhand.metrics.group import FROM_COUNTS
from evenhand.metrics.rates import Rate, divide
from evenhand.metrics.scores import auc, bin_of, calibration_error, claims, rank_auc, read_scores
from evenhand.metrics.shares import LIMITS, share_limits

CELLS = 1024


class Interval(NamedTuple):
    """A metric's value on the people at hand, and the interval around it."""

    estimate: float
    low: float
    high: float


def bootstrap_interval(
    metric: Callable[..., float],
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any = None,
    pos_label: Any = None,
    n: int = 1000,
    confidence: float = 0.95,
    random_state: Any = None,
    **arguments: Any,
) -> Interval:
    """Return the metric with its interval over people, by the bootstrap unless the notes say otherwise.

    Parameters
    ----------
    metric : callable
        Any of `evenhand.metrics` of the shape `metric(y_true, y_pred, *, sensitive_features, pos_label)`, or
        your own.
    y_true, y_pred, sensitive_features, pos_label
        What the metric takes.
    n : int
        How many resamples.
    confidence : float
        How often, over samples of people, the interval is to contain the truth.
    random_state : int, RandomState, Generator or None
        The same seed gives the same interval.
    **arguments
        More of what the metric takes.

    Notes
    -----
    Accuracy, discrimination, delta and the differences of opportunity and odds need no resampling: their
    intervals come from limits of shares (`evenhand.metrics.shares`), hold for any number of groups of any
    size, and are too wide rather than too narrow. Those of differences hold for all pairs of groups at
    once; delta's joins those of accuracy and discrimination, each at half the risk. Resamples on which a
    metric is NaN are left out. Resampled scores are known to a thousandth of their range of ranks.

    Examples
    --------
    >>> from evenhand.metrics.group import discrimination
    >>> sex, decision = ["f"] * 50 + ["m"] * 50, [0] * 30 + [1] * 20 + [0] * 10 + [1] * 40
    >>> interval = bootstrap_interval(
    ...     discrimination, decision, decision, sensitive_features=sex, random_state=0
    ... )
    >>> [round(value, 2) for value in interval]
    [0.4, 0.2, 0.57]
    """
    integer("n", n)
    number("confidence", confidence, low=0, high=1, open_low=True)
    rng = generator(random_state)
    shape: dict[str, Any] = {"n": n, "confidence": confidence, "random_state": rng}
    if metric in FROM_COUNTS:
        counts = count(y_true, y_pred, sensitive_features, pos_label)
        return rate_interval(FROM_COUNTS[metric], counts, **shape)
    if metric is auc:
        truth, scores, positive = read_scores(y_true, y_pred, pos_label, arguments.get("labels"))
        if scores.ndim == 1:
            return _auc_interval(truth == positive, scores, **shape)
    if metric is calibration_error:
        outcome, scores = claims(y_true, y_pred, pos_label, arguments.get("labels"))
        return _calibration_interval(outcome, scores, arguments.get("bins", 10), **shape)
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    groups = group_values(sensitive_features, len(truth))

    def on(people: Any) -> float:
        known = {"sensitive_features": groups[people], "pos_label": pos_label, **arguments}
        return metric(truth[people], predicted[people], **known)

    values = np.array([on(rng.integers(len(truth), size=len(truth))) for _ in range(n)])
    return percentiles(values, on(slice(None)), confidence)


def mean_interval(
    values: Any, *, n: int = 1000, confidence: float = 0.95, random_state: Any = None
) -> Interval:
    """Return the mean of one value per person, with its interval.

    Parameters
    ----------
    values : array
        Numbers get the bootstrap. True and False get Clopper and Pearson's limits: where nobody is True,
        nobody is in any resample, and one person among hundreds is hardly more certain.
    n, confidence, random_state
        As in `bootstrap_interval`.

    Examples
    --------
    >>> low, high = mean_interval([0.0] * 80 + [1.0] * 20, random_state=0)[1:]
    >>> round(low, 2), round(high, 2)
    (0.13, 0.28)
    >>> round(mean_interval([False] * 100).high, 3)
    0.036
    """
    given = np.asarray(values)
    values = given.astype(float)
    if given.dtype == np.bool_ and len(given):
        low, high = share_limits(given.sum(), len(given), confidence)
        return Interval(float(given.mean()), float(low), float(high))
    cell, n_cells = cells_of(values)
    counts = np.bincount(cell, minlength=n_cells)
    means = np.bincount(cell, weights=values, minlength=n_cells) / counts

    def mean(tables: Array) -> Array:
        return np.asarray(tables @ means / len(values))

    return interval_from_counts(counts, mean, values.mean(), n, confidence, random_state)


def rate_interval(rate: Rate, counts: Counts, *, n: int, confidence: float, random_state: Any) -> Interval:
    """Return a metric of decisions with its interval, from counts."""
    estimate = float(rate(counts))
    if rate in LIMITS:
        return Interval(estimate, *LIMITS[rate](counts, confidence))

    def resampled(tables: Array) -> Array:
        return rate(counts._replace(table=tables))

    return interval_from_counts(counts.table, resampled, estimate, n, confidence, random_state)


def interval_from_counts(
    table: Array,
    statistic: Callable[[Array], Array],
    estimate: Any,
    n: int,
    confidence: float,
    random_state: Any,
) -> Interval:
    """Return the interval of a statistic of counts, which must take leading axes of resampled tables."""
    total = int(table.sum())
    drawn = generator(random_state).multinomial(total, table.ravel() / total, size=n)
    return percentiles(statistic(drawn.reshape(n, *table.shape)), float(estimate), confidence)


def percentiles(values: Array, estimate: float, confidence: float) -> Interval:
    """Return the interval that contains the middle `confidence` of the resampled values."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(float(estimate), float("nan"), float("nan"))
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(float(estimate), float(low), float(high))


def cells_of(values: Array) -> tuple[Codes, int]:
    """Return the cell of each value, in order: one per distinct value, or at most CELLS of equal size."""
    distinct, cell = np.unique(values, return_inverse=True)
    if len(distinct) <= CELLS:
        return cell, len(distinct)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CELLS + 1)[1:-1]))
    _, cell = np.unique(np.searchsorted(edges, values), return_inverse=True)
    return cell, int(cell.max()) + 1


def generator(random_state: Any) -> np.random.Generator:
    """Return NumPy's newer generator from anything scikit-learn takes as `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def _auc_interval(positive: Array, scores: Array, **shape: Any) -> Interval:
    cell, n_cells = cells_of(scores)
    table = np.stack([np.bincount(cell[positive == side], minlength=n_cells) for side in (False, True)])

    def area(tables: Array) -> Array:
        negative, positives = tables[..., 0, :], tables[..., 1, :]
        below = np.cumsum(negative, axis=-1) - negative / 2
        return divide(
            (positives * below).sum(axis=-1), positives.sum(axis=-1) * negative.sum(axis=-1, dtype=float)
        )

    exact = rank_auc(positive, scores)
    # A cell treats nearly equal scores as equal; correct for what that costs on the people at hand.
    shift = exact - area(table)
    return interval_from_counts(table, lambda tables: area(tables) + shift, exact, **shape)


def _calibration_interval(outcome: Array, scores: Array, bins: int, **shape: Any) -> Interval:
    integer("bins", bins)
    whole = bin_of(scores, bins)
    fine = np.clip((scores * bins - whole) * 100, 0, 99).astype(np.int64)
    used, cell = np.unique(whole * 100 + fine, return_inverse=True)
    table = np.stack([np.bincount(cell[outcome == side], minlength=len(used)) for side in (False, True)])
    means = np.bincount(cell, weights=scores) / table.sum(axis=0)
    member = (used // 100)[:, None] == np.arange(bins)

    def error(tables: Array) -> Array:
        off = (tables.sum(axis=-2) * means - tables[..., 1, :]) @ member
        return np.asarray(np.abs(off).sum(axis=-1) / len(scores))

    return interval_from_counts(table, error, error(table), **shape)
