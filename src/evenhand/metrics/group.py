"""Metrics of decisions, over everybody and between groups.

All have the signature `metric(y_true, y_pred, *, sensitive_features, pos_label=None)`. They take any labels,
any number of groups, and sensitive features of any form (several columns are combined). The positive label is
the second of two in sorted order unless `pos_label` names it. With more than two labels and no `pos_label`, a
difference is the largest over the labels. A group without a defined rate (nobody in it has that label) is
left out of the comparison; the difference is NaN if fewer than two of several groups are left.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.arrays import Array
from evenhand.groups import encode_groups
from evenhand.metrics import rates
from evenhand.metrics.counts import count, encode_labels
from evenhand.metrics.of_table import columns_of
from evenhand.metrics.weights import check_weights
from evenhand.wording import listed

Metric = Callable[..., float]


def accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    data: Any = None,
) -> float:
    """Return the share of correct decisions.

    Parameters
    ----------
    y_true, y_pred : array, or the name of a column of `data`
        The true labels and the decisions.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of `data`
        Each person's group.
    pos_label : label
        The positive label; by default the second of two.
    sample_weight : array, or the name of a column of `data`
        The number of people that each person stands for; 1 by default.
    data : frame
        A table from pandas, Polars, Arrow or any other library that narwhals supports. A table that is not in
        memory (a lazy Polars, Dask or Spark frame, a DuckDB relation, an Arrow data set) is counted where it
        is.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.accuracy(counts))


def balanced_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    data: Any = None,
) -> float:
    """Return the mean over the labels in y_true of the share of correct decisions.

    The parameters are those of `accuracy`.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.balanced_accuracy(counts))


def positive_rates(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> dict[Any, float]:  # fmt: skip
    """Return P(ŷ = positive | group) for each group; more than two labels need a `pos_label`.

    The parameters are those of `accuracy`.

    Examples
    --------
    >>> positive_rates([0, 1, 1, 0], [1, 1, 0, 0], sensitive_features=["f", "f", "f", "m"])
    {'f': 0.6666666666666666, 'm': 0.0}
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    if counts.positive is None:
        raise ValueError(
            f"Got {len(counts.labels)} labels and no pos_label, but expected the positive one's name."
        )
    shares = rates.divide(*rates.decided(counts))[:, 0]
    return dict(zip(counts.groups, shares.tolist(), strict=True))


def discrimination(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> float:  # fmt: skip
    """Return the largest difference between groups of P(ŷ = positive | group).

    Also called demographic parity difference. y_true is only used to find the labels.
    The parameters are those of `accuracy`.

    Examples
    --------
    >>> discrimination([0, 1, 1, 0], [1, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    1.0
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.discrimination(counts))


def impact_ratio(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> float:  # fmt: skip
    """Return the lowest P(ŷ = positive | group) divided by the highest: 1 if all groups have the same rate.

    Also called demographic parity ratio, or disparate impact. With more than two labels and no `pos_label`,
    it is the smallest ratio over the labels. NaN if nobody got the positive decision. The parameters are
    those of `accuracy`.

    Examples
    --------
    >>> impact_ratio([0, 1, 1, 0], [1, 1, 1, 0], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.impact_ratio(counts))


def impact_ratios(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    reference: Any = None, data: Any = None,
) -> dict[Any, float]:  # fmt: skip
    """Return each group's P(ŷ = positive | group) divided by the reference group's, or by the highest.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, pos_label, sample_weight, data
        As in `accuracy`.
    reference : group
        The group to compare the others with; by default the one with the highest rate.

    Examples
    --------
    >>> impact_ratios([0, 1, 1, 0], [1, 1, 1, 0], sensitive_features=["f", "f", "m", "m"])
    {'f': 1.0, 'm': 0.5}
    """
    given = {"sensitive_features": sensitive_features, "pos_label": pos_label}
    given |= {"sample_weight": sample_weight, "data": data}
    found, of = _to_reference(positive_rates(y_true, y_pred, **given), reference)
    return {name: rate / of if of else float("nan") for name, rate in found.items()}


def parity_differences(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    reference: Any = None, data: Any = None,
) -> dict[Any, float]:  # fmt: skip
    """Return each group's P(ŷ = positive | group) minus the reference group's, or minus the highest.

    With two groups, also called statistical parity difference. The parameters are those of `impact_ratios`.

    Examples
    --------
    >>> parity_differences([0, 1, 1, 0], [1, 1, 1, 0], sensitive_features=["f", "f", "m", "m"], reference="m")
    {'f': 0.5, 'm': 0.0}
    """
    given = {"sensitive_features": sensitive_features, "pos_label": pos_label}
    given |= {"sample_weight": sample_weight, "data": data}
    found, of = _to_reference(positive_rates(y_true, y_pred, **given), reference)
    return {name: rate - of for name, rate in found.items()}


def _to_reference(found: dict[Any, float], reference: Any) -> tuple[dict[Any, float], float]:
    if reference is not None and reference not in found:
        raise ValueError(f"Got reference={reference!r}, but the groups are {listed(found)}.")
    return found, max(found.values()) if reference is None else found[reference]


def delta(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> float:  # fmt: skip
    """Return accuracy minus discrimination, the paper's second criterion.

    The parameters are those of `accuracy`.

    Examples
    --------
    >>> delta([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    0.25
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.delta(counts))


def equal_opportunity_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> float:  # fmt: skip
    """Return the largest difference between groups of P(ŷ = positive | y = positive, group).

    The parameters are those of `accuracy`.

    Examples
    --------
    >>> equal_opportunity_difference([1, 1, 1, 0], [1, 0, 1, 0], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.equal_opportunity_difference(counts))


def equalized_odds_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None, sample_weight: Any = None,
    data: Any = None,
) -> float:  # fmt: skip
    """Return the largest difference between groups of P(ŷ = positive | y, group), over all labels y.

    The parameters are those of `accuracy`.

    Examples
    --------
    >>> equalized_odds_difference([1, 1, 0, 0], [1, 1, 1, 0], sensitive_features=["f", "m", "f", "m"])
    1.0
    """
    counts = count(y_true, y_pred, sensitive_features, pos_label, sample_weight, data=data)
    return float(rates.equalized_odds_difference(counts))


def by_group(
    metric: Metric,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = None,
    sample_weight: Any = None,
    data: Any = None,
) -> dict[Any, float]:
    """Return a metric for each group separately.

    Parameters
    ----------
    metric : callable
        A metric that needs no groups, such as `accuracy`. It is called as
        `metric(y_true, y_pred, pos_label=...)` on each group, with `sample_weight` if that is given.
    y_true, y_pred, sensitive_features, pos_label, sample_weight, data
        As in `accuracy`.

    Examples
    --------
    >>> by_group(accuracy, [0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    {'f': 1.0, 'm': 0.5}
    """
    if data is not None:
        found = columns_of(data, y_true, y_pred, sensitive_features, sample_weight)
        y_true, y_pred, sensitive_features, sample_weight, repeats = found
        if repeats is not None and sample_weight is None:
            sample_weight = repeats.people
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    groups = encode_groups(sensitive_features, len(truth))
    if pos_label is None:
        # A group may have only one label: choose the positive label once, for all groups.
        _, _, labels = encode_labels(truth, truth)
        pos_label = labels[1] if len(labels) == 2 else None
    weights = None if sample_weight is None else check_weights(sample_weight, len(truth))
    several = predicted.ndim == 2 and "labels" in inspect.signature(metric).parameters  # a group may lack one
    of_all = {"labels": np.unique(truth)} if several else {}

    def of(here: Array) -> float:
        given = of_all if weights is None else {**of_all, "sample_weight": weights[here]}
        return metric(truth[here], predicted[here], pos_label=pos_label, **given)

    return {name: of(groups.codes == code) for code, name in enumerate(groups.names)}


FROM_COUNTS: dict[Metric, rates.Rate] = {
    accuracy: rates.accuracy,
    balanced_accuracy: rates.balanced_accuracy,
    discrimination: rates.discrimination,
    impact_ratio: rates.impact_ratio,
    delta: rates.delta,
    equal_opportunity_difference: rates.equal_opportunity_difference,
    equalized_odds_difference: rates.equalized_odds_difference,
}
