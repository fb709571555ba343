"""A model's predictions about people, as members of their own group and of every other group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags, Floats
from evenhand.checks import MIN_GROUP
from evenhand.groups import large_enough
from evenhand.metrics.counts import Counts, count, positive_label
from evenhand.metrics.individual import person_gaps
from evenhand.metrics.of_table import Repeats
from evenhand.metrics.rates import divide


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's predictions about people, as members of every group.

    Parameters
    ----------
    labels : list
        The names of the actions, in the order of the last axis of the probabilities.
    groups : list
        The names of the groups, in the order of the groups' axis.
    own : array of int, (people,)
        The position of each person's own group.
    probabilities_by_group : array, (people, groups, actions)
        Each person's probabilities under each group's policy. None if the model gives no probabilities, or
        could not predict for other groups.
    y : array, (people,)
        The true labels, if they are known.
    pos_label : label
        The positive label. With two labels, None means the second; with more, that no label is positive.
    decided : array of int, (people, groups) or (people,)
        The positions of the decisions, if these are not simply the most probable actions. The shape is
        (people,) if only the decisions in people's own groups are known.
    own_scores : array, (people, actions) or (people,)
        The scores of people as they are, if these are not in `probabilities_by_group`. One number per person
        is a score of the positive label.
    how : str
        How the predictions were made; a key of `evenhand.metrics.asking.HOW`.
    columns : list
        The columns of X that were set to other groups' values.
    note : str
        Which columns reveal the group, or may reveal it, and were not changed.
    threshold : float, optional
        With two labels, the lowest probability or score of the positive label that gives a positive decision,
        in every group. None: the decision is the most probable action.
    weights : array, (people,)
        The number of people that each person stands for; None if each stands for one.
    min_group : int
        When groups are compared, a smaller group is filled up to this number of people (see `rates.filled`).
    repeats : Repeats, optional
        If a row stands for several identical people, the number of people in each row.

    Examples
    --------
    >>> answers = Answers(
    ...     ["no", "yes"], ["f", "m"], np.array([0, 1]),
    ...     np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]]),
    ... )
    >>> answers.decisions.tolist(), answers.flips.tolist(), answers.probability.tolist()
    (['no', 'yes'], [True, False], [0.1, 0.8])
    """

    labels: list[Any]
    groups: list[Any]
    own: Codes
    probabilities_by_group: Floats | None = None
    y: Array | None = None
    pos_label: Any = None
    decided: Codes | None = None
    own_scores: Array | None = None
    how: str = "policies"
    columns: list[Any] = field(default_factory=list)
    note: str = ""
    threshold: float | None = None
    min_group: int = MIN_GROUP
    weights: Floats | None = None
    repeats: Repeats | None = None

    def __len__(self) -> int:
        return len(self.own)

    def people_by(self, codes: Codes, n: int) -> Codes:
        """Return the number of people with each of `n` codes, given one code per row."""
        people = None if self.repeats is None else self.repeats.people
        return np.bincount(codes, people, n).astype(np.int64)

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self) if self.repeats is None else int(self.repeats.people.sum())

    def with_answers(
        self, probabilities_by_group: Floats | None = None, decided: Codes | None = None
    ) -> Answers:
        """Return other predictions about the same people."""
        other = Answers(
            self.labels, self.groups, self.own, probabilities_by_group, self.y, self.pos_label, decided,
            threshold=self.threshold, min_group=self.min_group, weights=self.weights,
        )  # fmt: skip
        # Computed once and shared by thousands of checkpoints.
        other.__dict__["positive"] = self.positive
        if self.y is not None:
            other.__dict__["truth"] = self.truth
        return other

    @cached_property
    def positive(self) -> int | None:
        """The position of the positive label."""
        return positive_label(self.labels, self.pos_label)

    @cached_property
    def truth(self) -> Codes:
        """The positions of the true labels; labels that the model does not know come after the known ones."""
        if self.y is None:
            raise ValueError("Got no true labels (y=None), but this measure compares decisions with them.")
        return positions(self.y, self.labels)

    @cached_property
    def decided_by_group(self) -> Codes | None:
        """The positions of the decisions in every group, (people, groups); None if they are unknown."""
        if self.decided is not None:
            return self.decided if self.decided.ndim == 2 else None
        if self.probabilities_by_group is None:
            return None
        return decided_at(self.threshold, self.probabilities_by_group, self.positive)

    @cached_property
    def decided_own(self) -> Codes:
        """The positions of the decisions in people's own groups."""
        if self.decided is not None and self.decided.ndim == 1:
            return self.decided
        if self.decided_by_group is None:
            raise ValueError("Got no decisions about these people, but expected one for each.")
        return self.decided_by_group[np.arange(len(self)), self.own]

    @property
    def sizes(self) -> Codes:
        """The number of people in each group."""
        return self.people_by(self.own, len(self.groups))

    @property
    def compared(self) -> Flags:
        """Which groups are compared as they are; smaller ones are filled up to `min_group`."""
        return large_enough(self.evidence, self.min_group)

    @cached_property
    def evidence(self) -> Floats:
        """The number of people in each group; with weights the effective one, (Σw)² / Σw²."""
        found = self.sizes.astype(np.float64)
        if self.weights is not None:
            joint = self.counts.of_people()
            total, over = joint.sums.sum(axis=(1, 2)), joint.over.sum(axis=(1, 2))
            here = [self.groups.index(name) for name in self.counts.groups]
            # Rounding must not make a group of equal weights smaller than it is.
            found[here] = np.nan_to_num(divide(total**2, over)).round(9)
        return found

    @cached_property
    def positives(self) -> Flags:
        """Whether each person's decision, in their own group, is positive."""
        return np.asarray(self.decided_own == self.positive)

    @property
    def decisions(self) -> Array:
        """Each person's decision, as a label."""
        return self._named(self.decided_own)

    @property
    def decisions_by_group(self) -> Array | None:
        """Each person's decision in every group, as labels: (people, groups)."""
        return None if self.decided_by_group is None else self._named(self.decided_by_group)

    @cached_property
    def scores(self) -> Array | None:
        """The scores of people as members of their own group: (people, actions) or (people,)."""
        if self.own_scores is not None or self.probabilities_by_group is None:
            return self.own_scores
        return self.probabilities_by_group[np.arange(len(self)), self.own]

    @property
    def probability_by_group(self) -> Floats:
        """The probability, in every group, of the positive label, or of the decision if no label is."""
        if self.probabilities_by_group is None:
            raise ValueError("Got no probabilities by group.")
        label = self.decided_own if self.positive is None else self.positive
        return self.probabilities_by_group[np.arange(len(self)), :, label]

    @property
    def probability(self) -> Floats:
        """The probability, in the person's own group, of the positive label, or of the decision."""
        return self.probability_by_group[np.arange(len(self)), self.own]

    @cached_property
    def flips(self) -> Flags | None:
        """Whether each person would get a different decision in some other group; None if unknown."""
        if self.decided_by_group is None:
            return None
        return np.asarray((self.decided_by_group != self.decided_own[:, None]).any(axis=1))

    def gaps(self, divergence: str = "kl") -> Floats | None:
        """Return each person's gap (see `person_gaps`); None if there are no probabilities by group."""
        if self.probabilities_by_group is None:
            return None
        return person_gaps(self.probabilities_by_group, self.own, divergence=divergence)

    @cached_property
    def counts(self) -> Counts:
        """People counted by group, true label and decision; without true labels, decisions stand in."""
        at = self.positive
        pos_label = self.pos_label if at is None or at >= len(self.labels) else self.labels[at]
        decisions = self.decisions
        truth = decisions if self.y is None else self.y
        counts = count(truth, decisions, self.own, pos_label, self.weights, self.repeats)
        return counts._replace(groups=[self.groups[code] for code in counts.groups], min_group=self.min_group)

    def _named(self, positions: Codes) -> Array:
        return as_array(self.labels)[positions]


def decided_at(threshold: float | None, probabilities: Floats, positive: int | None) -> Codes:
    """Return the positions of the decisions: the most probable action or, with two labels, by a threshold.

    >>> decided_at(0.1, np.array([[0.95, 0.05], [0.8, 0.2]]), 1).tolist()
    [0, 1]
    """
    if threshold is None or positive is None:
        return np.asarray(probabilities.argmax(axis=-1))
    return np.where(probabilities[..., positive] >= threshold, positive, 1 - positive)


def as_array(names: Sequence[Any]) -> Array:
    """Return names as an array that keeps the type of each name.

    >>> as_array(["no", 1]).tolist(), as_array([0, 1]).dtype.kind
    (['no', 1], 'i')
    """
    array = np.asarray(names)
    if array.ndim == 1 and array.tolist() == list(names):
        return array
    kept = np.empty(len(names), dtype=object)
    kept[:] = list(names)
    return kept


def positions(values: Any, labels: Sequence[Any]) -> Codes:
    """Return each value's position among the labels; unknown values are numbered after them.

    >>> positions(["yes", "no", "perhaps"], ["no", "yes"]).tolist()
    [1, 0, 2]
    """
    codes, found = pd.factorize(np.asarray(values), use_na_sentinel=False)
    at: dict[Any, int] = {label: position for position, label in enumerate(labels)}
    return np.array([at.setdefault(value, len(at)) for value in found.tolist()], dtype=np.int64)[codes]
