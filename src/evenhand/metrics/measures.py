"""The measures that every report shows, each with its interval over people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from evenhand.arrays import Array
from evenhand.metrics.answers import Answers
from evenhand.metrics.bootstrap import Interval, bootstrap_interval, mean_interval, rate_interval
from evenhand.metrics.dyads import consistency_interval
from evenhand.metrics.group import FROM_COUNTS
from evenhand.metrics.individual import disagreement
from evenhand.metrics.rates import filled
from evenhand.metrics.scores import auc, rank_auc


class Measure(TypedDict):
    """A value with its interval; unknown numbers are None, so it can be written as JSON."""

    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]


class GroupRow(TypedDict):
    """A group: its number of people, the number labelled positive, and rates with intervals."""

    group: str
    people: int
    positives: NotRequired[int]
    base_rate: NotRequired[Measure]
    positive_rate: NotRequired[Measure]
    true_positive_rate: NotRequired[Measure]
    false_positive_rate: NotRequired[Measure]
    accuracy: NotRequired[Measure]
    flip_rate: NotRequired[Measure]
    decided: NotRequired[dict[str, Measure]]  # the share of each label, if no label is positive


# What a report shows, in this order: the name in a summary, the name on the page, and what it means.
SHOWN: dict[str, tuple[str, str]] = {
    "accuracy": ("accuracy", "share of decisions that equal the true label"),
    "discrimination": (
        "discrimination",
        "largest difference between groups in the share of positive decisions",
    ),
    "delta": ("delta", "accuracy minus discrimination"),
    "flip_rate": ("flip rate", "share of people who would get a different decision in another group"),
    "positive_rate": ("positive rate", "share of positive decisions; 0 or 1 is a constant classifier"),
    "consistency": ("consistency", "agreement with the five most similar people"),
    "balanced_accuracy": (
        "balanced accuracy",
        "mean over the labels of the share of decisions that equal the true label",
    ),
    "auc": ("AUC", "chance that someone labelled positive is scored above someone with another label"),
    "gap": ("gap", "mean divergence between the person's own policy and the farthest other"),
}
SHARES = ("flip_rate", "positive_rate")  # shown in percent

_RATES = {metric.__name__: rate for metric, rate in FROM_COUNTS.items()}


def measure(
    answers: Answers,
    names: Sequence[str] | None = None,
    *,
    intervals: bool = True,
    neighbours: Array | None = None,
    n: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> dict[str, Measure]:
    """Return measures of a model's predictions, with intervals over people if wanted.

    Parameters
    ----------
    answers : Answers
        The model's predictions.
    names : list of str
        The measures: names in `SHOWN`, 'impact_ratio', 'equal_opportunity_difference' or
        'equalized_odds_difference'. By default, all in `SHOWN` that are possible: the positive rate needs a
        positive label, consistency needs neighbours, and AUC needs people with each label. With more than two
        labels and none positive, differences between groups are the largest over the labels.
    intervals : bool
        Whether to compute intervals. Shares and their differences need no resampling; for other measures see
        `bootstrap_interval`.
    neighbours : array, (people, k)
        Each person's nearest neighbours, for consistency.
    n : int
        The number of resamples.
    confidence : float
        The share of samples of people in which an interval should contain the true value.
    random_state : int or Generator
        With a number, each measure's resampling starts from the same seed; a generator continues.

    Returns
    -------
    dict
        A `Measure` for each name: {'value', 'low', 'high'}.

    Examples
    --------
    >>> probabilities = np.array([[[0.9, 0.1], [0.9, 0.1]], [[0.4, 0.6], [0.6, 0.4]]] * 10)
    >>> answers = Answers(["no", "yes"], ["f", "m"], np.array([0, 1] * 10), probabilities,
    ...     y=np.array(["no", "yes"] * 10))
    >>> found = measure(answers, intervals=False)
    >>> found["accuracy"]["value"], found["flip_rate"]["value"]
    (0.5, 0.5)
    """
    resampling = {"n": n, "confidence": confidence, "random_state": random_state} if intervals else None
    wanted = _known(answers, neighbours) if names is None else names
    return {name: as_measure(_measured(name, answers, neighbours, resampling)) for name in wanted}


def _measured(
    name: str, answers: Answers, neighbours: Array | None, resampling: dict[str, Any] | None
) -> Interval:
    if name == "consistency":
        return _consistency(answers, neighbours, resampling)
    if name in _PER_PERSON:
        values = _PER_PERSON[name](answers)
        if values is None:
            return Interval(math.nan, math.nan, math.nan)
        if resampling is None:
            return Interval(float(np.average(values, weights=answers.weights)), math.nan, math.nan)
        every = answers.probabilities_by_group
        if name == "flip_rate" and every is not None and bool((every == every[:, :1]).all()):
            return Interval(0.0, 0.0, 0.0)  # identical policies can't disagree about anybody
        return mean_interval(values, sample_weight=answers.weights, **resampling)
    if resampling is None or (name == "auc" and len(answers.labels) != 2):  # too slow with more labels
        quick = name == "auc" or (name in _VALUES and answers.weights is None)
        value = _VALUES[name](answers) if quick else _RATES[name](answers.counts)
        return Interval(float(value), math.nan, math.nan)
    if name == "auc":
        scores = None if answers.scores is None else answers.scores[:, answers.positive]
        about = {"pos_label": answers.pos_label, "labels": answers.labels, "sample_weight": answers.weights}
        return bootstrap_interval(auc, answers.y, scores, **about, **resampling)
    return rate_interval(_RATES[name], answers.counts, **resampling)


def _known(answers: Answers, neighbours: Array | None) -> list[str]:
    """Return the measures that are possible, in the order in which they are shown."""
    labelled = answers.y is not None
    known = {
        "accuracy": labelled,
        "discrimination": True,
        "delta": labelled,
        "flip_rate": answers.flips is not None,
        "positive_rate": answers.positive is not None,
        "consistency": neighbours is not None,
        "balanced_accuracy": labelled,
        "auc": labelled
        and answers.scores is not None
        and np.array_equal(np.unique(answers.truth), np.arange(len(answers.labels))),
        "gap": answers.probabilities_by_group is not None,
    }
    return [name for name in SHOWN if known[name]]


def _accuracy(answers: Answers) -> float:
    return float((answers.decided_own == answers.truth).mean())


def _discrimination(answers: Answers) -> float:
    """Return the same as `rates.discrimination` in less time: it is computed for every checkpoint."""
    if answers.positive is None:
        return float(_RATES["discrimination"](answers.counts))
    own, n_groups = answers.own, len(answers.groups)
    people = np.bincount(own, minlength=n_groups)
    chosen = np.bincount(own[answers.positives], minlength=n_groups)
    here = people > 0
    hits, size = filled(chosen[here, None], people[here, None], answers.min_group)
    shares = hits / size
    return float(shares.max() - shares.min())


def _balanced_accuracy(answers: Answers) -> float:
    right = answers.decided_own == answers.truth
    return float(np.mean([right[answers.truth == label].mean() for label in np.unique(answers.truth)]))


def _consistency(answers: Answers, neighbours: Array | None, resampling: dict[str, Any] | None) -> Interval:
    if neighbours is None:
        raise ValueError("Got neighbours=None, but consistency needs each person's neighbours.")
    decided = answers.decided_own
    apart = disagreement(decided, neighbours)
    if resampling is None:
        return Interval(float(1 - np.average(apart, weights=answers.weights)), math.nan, math.nan)
    return consistency_interval(
        decided[neighbours] != decided[:, None], neighbours, np.arange(len(decided)),
        weights=answers.weights, confidence=resampling["confidence"],
    )  # fmt: skip


def _auc(answers: Answers) -> float:
    if answers.scores is None:
        return float("nan")
    if answers.positive is None:
        return auc(answers.y, answers.scores, labels=answers.labels, sample_weight=answers.weights)
    positive, scores = answers.truth == answers.positive, answers.scores[:, answers.positive]
    return rank_auc(positive, scores, answers.weights)


_VALUES: dict[str, Callable[[Answers], float]] = {
    "accuracy": _accuracy,
    "discrimination": _discrimination,
    "delta": lambda answers: _accuracy(answers) - _discrimination(answers),
    "balanced_accuracy": _balanced_accuracy,
    "auc": _auc,
}
_PER_PERSON: dict[str, Callable[[Answers], Array | None]] = {  # measures that are means over people
    "flip_rate": lambda answers: answers.flips,
    "positive_rate": lambda answers: answers.positives,
    "gap": lambda answers: answers.gaps(),
}


def value_of(found: dict[str, Measure], name: str) -> float:
    """Return a measure's value, NaN if it is unknown."""
    value = found[name]["value"]
    return float("nan") if value is None else value


def as_measure(interval: Interval) -> Measure:
    """Return an interval as plain data; numbers that are not finite become None.

    >>> as_measure(Interval(0.5, float("nan"), float("nan")))
    {'value': 0.5, 'low': None, 'high': None}
    """
    value, low, high = (float(number) if math.isfinite(number) else None for number in interval)
    return {"value": value, "low": low, "high": high}
