"""Intervals: how much a metric would change if other people had been sampled.

Accuracy, delta, and differences and ratios between groups have limits of their own (`shares`). All others get
the bootstrap, mostly its percentiles. Metrics that need only counts resample the counts: one multinomial
table replaces a draw of people with replacement, so a million people take no longer than a hundred. Scores
and per-person values are first counted in fine cells. Any other metric is computed again on resampled people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from evenhand.arrays import Array, Codes, Flags
from evenhand.checks import integer, number
from evenhand.groups import group_values
from evenhand.metrics.auc_limits import auc_with_limits
from evenhand.metrics.counts import Counts, count
from evenhand.metrics.group import FROM_COUNTS
from evenhand.metrics.of_table import columns_of
from evenhand.metrics.rates import Rate, divide
from evenhand.metrics.scores import auc, bin_of, calibration_error, claims, read_scores
from evenhand.metrics.shares import LIMITS, share_limits
from evenhand.metrics.weights import check_weights, effective

CELLS = 1024


class Interval(NamedTuple):
    """A metric's value on the given people, and the interval around it."""

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
    sample_weight: Any = None,
    n: int = 1000,
    confidence: float = 0.95,
    random_state: Any = None,
    data: Any = None,
    **arguments: Any,
) -> Interval:
    """Return a metric with its interval over people: the bootstrap, unless the notes say otherwise.

    Parameters
    ----------
    metric : callable
        Your own, or any in `evenhand.metrics` with the signature
        `metric(y_true, y_pred, *, sensitive_features, pos_label)`.
    y_true, y_pred, sensitive_features, pos_label, sample_weight
        The metric's arguments.
    n : int
        The number of resamples.
    confidence : float
        The share of samples of people in which the interval should contain the true value.
    random_state : int, RandomState, Generator or None
        The same seed gives the same interval.
    data : frame
        A table; the other arguments are then names of its columns. If the table is not in memory, metrics of
        decisions such as `accuracy` are counted where it is; for others, these columns are loaded.
    **arguments
        Further arguments of the metric.

    Notes
    -----
    Accuracy, discrimination, impact ratio, delta and the differences of opportunity and odds need no
    resampling: their intervals come from limits of shares (see `evenhand.metrics.shares`). These work for any
    number of groups of any size, and tend to be too wide rather than too narrow. The low end of a difference,
    and the high end of the impact ratio, hold for all pairs of groups at once. Delta combines the limits of
    accuracy and discrimination, each at half the risk. Resamples on which a metric is NaN are left out.
    Scores and per-person values are grouped into about a thousand cells before they are resampled. The
    interval of `calibration_error` allows for its bias, and for bins in which all outcomes are the same.

    With weights, an interval uses the effective number of people, (Σw)² / Σw² (Kish 1965), overall or in a
    group: the number of people with equal weights that gives the same certainty. Your own metric is computed
    again on resampled people with their weights.

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
        counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
        return rate_interval(FROM_COUNTS[metric], counts, **shape)
    if data is not None:
        given = columns_of(data, y_true, y_pred, sensitive_features, sample_weight, count=False)
        y_true, y_pred, sensitive_features, sample_weight, _ = given
    if metric is auc:
        truth, scores, positive = read_scores(y_true, y_pred, pos_label, arguments.get("labels"))
        if scores.ndim == 1:
            weights = effective(sample_weight, len(truth))
            return Interval(*auc_with_limits(truth == positive, scores, weights, confidence))
    if metric is calibration_error:
        outcome, scores = claims(y_true, y_pred, pos_label, arguments.get("labels"))
        weights = effective(sample_weight, len(outcome))
        return _calibration_interval(outcome, scores, weights, arguments.get("bins", 10), **shape)
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    groups = group_values(sensitive_features, len(truth))
    each = None if sample_weight is None else check_weights(sample_weight, len(truth))

    def on(people: Any) -> float:
        known = {"sensitive_features": groups[people], "pos_label": pos_label, **arguments}
        known |= {} if each is None else {"sample_weight": each[people]}
        return metric(truth[people], predicted[people], **known)

    values = np.array([on(rng.integers(len(truth), size=len(truth))) for _ in range(n)])
    return percentiles(values, on(slice(None)), confidence)


def mean_interval(
    values: Any, *, sample_weight: Any = None, n: int = 1000, confidence: float = 0.95,
    random_state: Any = None,
) -> Interval:  # fmt: skip
    """Return the mean of one value per person with its interval.

    Parameters
    ----------
    values : array
        Numbers get the bootstrap. True and False get Clopper–Pearson limits: if nobody is True, no resample
        has anybody who is, and with one person among hundreds the bootstrap is hardly better.
    sample_weight, n, confidence, random_state
        As in `bootstrap_interval`.

    Examples
    --------
    >>> low, high = mean_interval([0.0] * 80 + [1.0] * 20, random_state=0)[1:]
    >>> round(low, 2), round(high, 2)
    (0.13, 0.28)
    >>> round(mean_interval([False] * 100).high, 3)
    0.036
    """
    given, weights = np.asarray(values), effective(sample_weight, len(values))
    if weights is not None:
        given, weights = given[weights > 0], weights[weights > 0]
    values = given.astype(float)
    if given.dtype == np.bool_ and len(given):
        size = len(given) if weights is None else weights.sum()
        low, high = share_limits(given.sum() if weights is None else weights @ given, size, confidence)
        return Interval(float(np.average(given, weights=weights)), float(low), float(high))
    cell, n_cells = cells_of(values)
    counts = np.bincount(cell, weights, n_cells)
    means = np.bincount(cell, values if weights is None else weights * values, n_cells) / counts

    def mean(tables: Array) -> Array:
        return np.asarray(tables @ means / tables.sum(axis=-1))

    return interval_from_counts(
        counts, mean, np.average(values, weights=weights), n, confidence, random_state
    )


def rate_interval(rate: Rate, counts: Counts, *, n: int, confidence: float, random_state: Any) -> Interval:
    """Return a metric of decisions with its interval, from counts."""
    estimate = float(rate(counts))
    if rate in LIMITS:
        return Interval(estimate, *LIMITS[rate](counts, confidence))

    def resampled(tables: Array) -> Array:
        return rate(counts._replace(table=tables))

    return interval_from_counts(counts.table, resampled, estimate, n, confidence, random_state)


def share_interval(
    counts: Counts, groups: Any, hit: Flags, among: Flags, confidence: float
) -> tuple[Interval, int]:
    """Return the share of some pairs of label and decision in some groups, and the number of people.

    >>> counts = count([0, 1, 1, 1], [0, 1, 1, 0])
    >>> right = np.eye(2, dtype=bool)
    >>> interval, people = share_interval(counts, slice(None), right, right | True, 0.95)
    >>> interval.estimate, people
    (0.75, 4)
    """
    joint = counts.of_people()
    people = int(joint.people[groups][:, among].sum())
    if not people:
        return Interval(float("nan"), float("nan"), float("nan")), 0
    hits, size = (joint.sums[groups][:, mask].sum() for mask in (hit, among))
    scale = size / joint.over[groups][:, among].sum()
    low, high = share_limits(hits * scale, size * scale, confidence)
    return Interval(float(hits / size), float(low), float(high)), people


def interval_from_counts(
    table: Array,
    statistic: Callable[[Array], Array],
    estimate: Any,
    n: int,
    confidence: float,
    random_state: Any,
) -> Interval:
    """Return the interval of a statistic of counts; it must accept leading axes of resampled tables."""
    return percentiles(statistic(_resampled(table, n, random_state)), float(estimate), confidence)


def _resampled(table: Array, n: int, random_state: Any) -> Array:
    """Return n tables of as many people, drawn from these with replacement."""
    total = table.sum()
    drawn = generator(random_state).multinomial(max(round(total), 1), table.ravel() / total, size=n)
    return drawn.reshape(n, *table.shape)


def percentiles(values: Array, estimate: float, confidence: float) -> Interval:
    """Return the interval that contains the middle `confidence` of the resampled values."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(float(estimate), float("nan"), float("nan"))
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(float(estimate), float(low), float(high))


def cells_of(values: Array) -> tuple[Codes, int]:
    """Return each value's cell: one per distinct value or, if there are too many, CELLS of equal size."""
    distinct, cell = np.unique(values, return_inverse=True)
    if len(distinct) <= CELLS:
        return cell, len(distinct)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CELLS + 1)[1:-1]))
    _, cell = np.unique(np.searchsorted(edges, values), return_inverse=True)
    return cell, int(cell.max()) + 1


def generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy Generator from one, or from anything that scikit-learn takes as `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def _by_side(positive: Array, cell: Codes, weights: Array | None, n_cells: int) -> Array:
    """Count the people without and with the label in each cell."""
    sides = (positive == side for side in (False, True))
    return np.stack(
        [np.bincount(cell[at], None if weights is None else weights[at], n_cells) for at in sides]
    )


def _calibration_interval(
    outcome: Array, scores: Array, weights: Array | None, bins: int,
    *, n: int, confidence: float, random_state: Any,
) -> Interval:  # fmt: skip
    integer("bins", bins)
    whole = bin_of(scores, bins)
    fine = np.clip((scores * bins - whole) * 100, 0, 99).astype(np.int64)
    used, cell = np.unique(whole * 100 + fine, return_inverse=True)
    table = _by_side(outcome, cell, weights, len(used))
    means = divide(np.bincount(cell, scores if weights is None else weights * scores), table.sum(axis=0))
    member = (used // 100)[:, None] == np.arange(bins)

    negatives, positives = table @ member
    rng, most = generator(random_state), (1 + confidence) / 2

    def off(people: Array, share: Array) -> Array:
        """Return mean score − share of positives in each bin, times the bin's share of people."""
        hoped = (people * np.nan_to_num(means)) @ member - (people @ member) * share
        return np.asarray(hoped / people.sum(axis=-1, keepdims=True))

    known = off(table.sum(axis=0), np.nan_to_num(divide(positives, negatives + positives)))
    # With Jeffreys' prior, a bin in which nobody is positive may still have a share above 0.
    share = rng.beta(positives + 0.5, negatives + 0.5, (n, bins))
    drawn = off(_resampled(table.sum(axis=0), n, rng), share)
    # A mean of absolute values is biased upwards, in the draws twice: their percentiles would leave out the
    # truth. But the estimate exceeds it by at most Σ|error|. At the high end, the bias only adds width.
    estimate = float(np.abs(known).sum())
    over, high = (np.quantile(np.abs(by).sum(axis=-1), most) for by in (drawn - known, drawn))
    return Interval(estimate, max(estimate - float(over), 0.0), min(max(estimate, float(high)), 1.0))
