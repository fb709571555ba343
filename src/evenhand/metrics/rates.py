"""The group metrics as arithmetic on counts (..., groups, labels, decisions); leading axes are resamples.

The rate of an empty set is NaN: for example, a group without positives is left out when true positive rates
are compared. If fewer than two of several groups are left, the difference is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenhand.arrays import Array, Floats
from evenhand.metrics.counts import Counts

Rate = Callable[[Counts], Floats]


class Shares(NamedTuple):
    """The numerator and denominator of a rate: both (..., groups, columns)."""

    hits: Array
    people: Array


def accuracy(counts: Counts) -> Floats:
    """Share of correct decisions."""
    joint = counts.table.sum(axis=-3)
    return divide(np.trace(joint, axis1=-2, axis2=-1), joint.sum(axis=(-2, -1)))


def balanced_accuracy(counts: Counts) -> Floats:
    """Mean, over the labels that occur, of the share of correct decisions."""
    joint = counts.table.sum(axis=-3)
    recall = divide(np.diagonal(joint, axis1=-2, axis2=-1), joint.sum(axis=-1))
    known = ~np.isnan(recall)
    return divide(np.where(known, recall, 0).sum(axis=-1), known.sum(axis=-1))


def decided(counts: Counts) -> Shares:
    """Count, in each group, the people who got the decisions in question."""
    joint = _as_evidence(counts).sum(axis=-2)
    return filled(_in_question(joint, counts), joint.sum(axis=-1, keepdims=True), counts.min_group)


def decided_right(counts: Counts) -> Shares:
    """Count, in each group, the people with the positive label (or each label) who got it as the decision."""
    table = _as_evidence(counts)
    right, people = np.diagonal(table, axis1=-2, axis2=-1), table.sum(axis=-1)
    sizes = people.sum(axis=-1, keepdims=True)
    return filled(_in_question(right, counts), _in_question(people, counts), counts.min_group, sizes)


def decided_by_label(counts: Counts) -> Shares:
    """Count, in each group and for each label, the people who got the decisions in question."""
    table = _as_evidence(counts)
    hits = _in_question(table, counts)
    people = np.broadcast_to(table.sum(axis=-1, keepdims=True), hits.shape)
    shape = (*hits.shape[:-2], -1)
    sizes = table.sum(axis=(-2, -1))[..., None]
    return filled(hits.reshape(shape), people.reshape(shape), counts.min_group, sizes)


def filled(hits: Array, people: Array, least: int, sizes: Array | None = None) -> Shares:
    """Count smaller groups as if they had `least` people, the missing ones with the rate of everybody.

    `sizes` are those of the groups, (..., groups, 1), if `people` are only some of them, such as those with
    one label: then the missing people have that label as often as everybody.

    Otherwise a handful of people could decide the largest difference between groups, and models would be
    chosen by chance. If fewer than two groups have `least` people, all groups stay as they are.
    `experiments/tiny_groups.py` compares this rule with others.

    >>> hits, people = filled(np.array([[50], [30], [0]]), np.array([[100], [100], [5]]), 30)
    >>> divide(hits, people).round(2).ravel().tolist()
    [0.5, 0.3, 0.33]
    """
    if least <= 1:
        return Shares(hits, people)
    hits, people = np.broadcast_arrays(hits, people)
    whole = people if sizes is None else sizes
    several = (whole >= least).sum(axis=-2, keepdims=True) > 1
    lacking = np.where(several & (people > 0), np.maximum(least - whole, 0), 0)
    if sizes is not None:
        lacking = lacking * _everybody(people, sizes)
    return Shares(hits + lacking * _everybody(hits, people), people + lacking)


def _everybody(part: Array, whole: Array) -> Floats:
    """Return the rate of all groups together; 0 if nobody is there."""
    return np.nan_to_num(divide(part.sum(axis=-2, keepdims=True), whole.sum(axis=-2, keepdims=True)))


def discrimination(counts: Counts) -> Floats:
    """Largest difference of P(decision | group) between groups, over the decisions in question."""
    return largest(spread(divide(*decided(counts))))


def impact_ratio(counts: Counts) -> Floats:
    """Smallest ratio of P(decision | group) between groups, over the decisions in question."""
    least, most, enough = _ends(divide(*decided(counts)))
    ratios = np.divide(least, most, out=np.full(most.shape, np.nan), where=enough & (most > 0))
    return -largest(-ratios)


def delta(counts: Counts) -> Floats:
    """Accuracy minus discrimination."""
    return accuracy(counts) - discrimination(counts)


def equal_opportunity_difference(counts: Counts) -> Floats:
    """Largest difference of P(decision = label | label, group), for the positive label or over all labels."""
    return largest(spread(divide(*decided_right(counts))))


def equalized_odds_difference(counts: Counts) -> Floats:
    """Largest difference of P(decision | label, group), over labels and the decisions in question."""
    return largest(spread(divide(*decided_by_label(counts))))


def divide(part: Array, whole: Array) -> Floats:
    """Return part / whole, NaN where the whole is 0."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))


def spread(rates: Floats) -> Floats:
    """Largest difference over groups: (..., groups, columns) to (..., columns)."""
    least, most, enough = _ends(rates)
    return np.asarray(np.subtract(most, least, out=np.full(most.shape, np.nan), where=enough))


def _ends(rates: Floats) -> tuple[Floats, Floats, Array]:
    """Lowest and highest rate over groups, and whether there are enough groups to compare."""
    known = ~np.isnan(rates)
    enough = known.sum(axis=-2) >= min(2, rates.shape[-2])
    return np.where(known, rates, np.inf).min(axis=-2), np.where(known, rates, -np.inf).max(axis=-2), enough


def largest(differences: Floats) -> Floats:
    """Largest known value over the last axis; NaN if none is known."""
    most = np.where(np.isnan(differences), -np.inf, differences).max(axis=-1)
    return np.asarray(np.where(np.isneginf(most), np.nan, most))


def _as_evidence(counts: Counts) -> Array:
    """Return the table scaled so that each group sums to its effective number; rates stay the same."""
    return counts.table if counts.evidence is None else counts.table * counts.evidence[:, None, None]


def _in_question(columns: Array, counts: Counts) -> Array:
    """Keep the positive label's column, or all columns if no label is positive."""
    return columns if counts.positive is None else columns[..., counts.positive : counts.positive + 1]
