"""Counts of people by group, label and decision: everything that the group metrics need.

After counting once, the metrics are arithmetic on a small table, and the bootstrap draws such tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.checks import did_you_mean
from evenhand.groups import encode_groups, sorted_unique
from evenhand.metrics.of_table import Repeats, columns_of
from evenhand.metrics.weights import check_weights
from evenhand.wording import listed

MOST_LABELS = 1000


class Joint(NamedTuple):
    """By group, label and decision: the number of people, and the sums of their weights and squared weights.

    People with a weight of 0 are not counted.
    """

    people: Codes
    weights: Floats | None = None
    squares: Floats | None = None

    @property
    def sums(self) -> Array:
        """The weights; without weights, the people."""
        return self.people if self.weights is None else self.weights

    @property
    def over(self) -> Array:
        """The squared weights. Where `sums` are w, w² / `over` is the effective number of people."""
        return self.people if self.squares is None else self.squares


class Counts(NamedTuple):
    """People counted by group, label and decision.

    `table` is (..., groups, labels, decisions); leading axes are resamples. `positive` is the position of the
    positive label; None if there are more than two labels and none was named. A group of fewer than
    `min_group` people is filled up when groups are compared (see `rates.filled`). With weights, the table
    sums to the effective number of people (see `weights`); each group's part, times its `evidence`, sums to
    the group's effective number. `joint` has the counts and weights unscaled.
    """

    table: Array
    groups: list[Any]
    labels: list[Any]
    positive: int | None
    min_group: int = 1
    evidence: Array | None = None
    joint: Joint | None = None

    def of_people(self) -> Joint:
        """Return the counts and weights unscaled, which resampled counts don't have."""
        if self.joint is None:
            raise ValueError("Got resampled counts, but expected those of people.")
        return self.joint


def count(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    repeats: Repeats | None = None,
    data: Any = None,
) -> Counts:
    """Count people by group, label and decision, and check the arguments.

    With `repeats`, each row stands for several people and the sum of their weights. With `data`, a table, the
    other arguments are names of its columns.

    >>> counts = count(["no", "yes", "no"], ["no", "yes", "yes"], ["f", "m", "m"])
    >>> counts.groups, counts.labels, counts.positive
    (['f', 'm'], ['no', 'yes'], 1)
    >>> counts.table.tolist()
    [[[1, 0], [0, 0]], [[0, 1], [0, 1]]]
    """
    if data is not None:
        given = columns_of(data, y_true, y_pred, sensitive_features, sample_weight)
        y_true, y_pred, sensitive_features, sample_weight, repeats = given
    truth, decisions, labels = encode_labels(y_true, y_pred)
    groups = encode_groups(sensitive_features, len(truth))
    if len(labels) > MOST_LABELS:
        raise ValueError(f"Got {len(labels)} distinct labels, but expected decisions, not scores.")
    width = max(2, len(labels))  # room for a positive label that never occurs
    shape = (len(groups.names), width, width)
    cell = np.ravel_multi_index((groups.codes, truth, decisions), shape)

    def summed(values: Any) -> Array:
        return np.bincount(cell, values, int(np.prod(shape))).reshape(shape)

    about = (groups.names.tolist(), labels, positive_label(labels, pos_label))
    if sample_weight is None:
        table = summed(None if repeats is None else repeats.people).astype(np.int64)
        return Counts(table, *about, joint=Joint(table))
    weights = check_weights(sample_weight, len(truth))
    people, squares = (1, None) if repeats is None else repeats
    joint = Joint(
        summed(people * (weights > 0)).astype(np.int64),
        summed(weights),
        summed(weights**2 if squares is None else squares),
    )
    # Sum the weights before scaling them: sums of whole numbers don't depend on the order of people.
    size, over = (np.asarray(sums).sum(axis=(1, 2)) for sums in (joint.weights, joint.squares))
    scale = size.sum() / over.sum()
    evidence = size / (np.where(over > 0, over, 1) * scale)
    return Counts(summed(weights) * scale, *about, evidence=evidence, joint=joint)


def encode_labels(
    y_true: Any, y_pred: Any, names: tuple[str, str] = ("y_true", "y_pred")
) -> tuple[Array, Array, list[Any]]:
    """Return labels and decisions as positions in the sorted list of all labels, and that list.

    Errors call the two by these names.
    """
    (of_labels, of_decisions), (true_names, truth) = names, _distinct(y_true, names[0])
    pred_names, decisions = _distinct(y_pred, of_decisions)
    if len(truth) != len(decisions):
        raise ValueError(
            f"Got {len(truth)} labels in {of_labels} and {len(decisions)} in {of_decisions}; expected equal "
            "numbers."
        )
    if {isinstance(name, str) for name in true_names} != {isinstance(name, str) for name in pred_names}:
        raise ValueError(
            f"Got labels like {true_names[0]!r} in {of_labels} and {pred_names[0]!r} in {of_decisions}; "
            "expected one kind."
        )
    both = np.empty(len(true_names) + len(pred_names), dtype=object)
    both[:] = true_names + pred_names
    every, at = sorted_unique(both)
    return at[: len(true_names)][truth], at[len(true_names) :][decisions], every.tolist()


def positive_label(labels: list[Any], pos_label: Any) -> int | None:
    """Return the position of the positive label: the second of two unless it is named.

    A single label counts as the negative one, so the position is 1, unless the label is 1 or True.
    """
    if pos_label is None:
        if len(labels) == 1:
            return 0 if labels[0] == 1 else 1
        return 1 if len(labels) == 2 else None
    if pos_label in labels:
        return labels.index(pos_label)
    if len(labels) == 1:
        return 1
    hint = did_you_mean(pos_label, labels)
    raise ValueError(f"Got pos_label={pos_label!r}, but the labels are {listed(labels)}.{hint}")


def _distinct(values: Any, name: str) -> tuple[list[Any], Array]:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"Got {name} of shape {array.shape}, but expected one label per person.")
    missing = int(pd.isna(array).sum())
    if missing:
        raise ValueError(f"Got {missing} missing labels in {name}, but expected one per person.")
    names, codes = sorted_unique(array)
    return [label.item() if isinstance(label, np.generic) else label for label in names], codes
