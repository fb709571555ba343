"""What a deployed model decides about the rows of a table."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Flags, Floats
from evenhand.metrics.answers import Answers
from evenhand.tables.matching import Reasons
from evenhand.wording import listed, people

ANY = "any"  # the mean of all policies, which decides about people of unknown group
OWN = "own policy"
_EXAMPLES = 5  # values that a note names per column


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """A model's decisions about the rows of a table; `to_frame` returns them as columns."""

    answers: Answers  # of the scored rows
    reasons: Reasons  # why each row of the table can't be scored; '' if it was
    unseen: dict[str, dict[str, int]]  # per column, the number of people with each unseen category
    index: pd.Index[Any]  # the index of the scored rows in the table
    by: Array | None = None  # what decided about each scored person: their own policy, or a rule

    def without_group(self, rule: str) -> Decisions:
        """Return the same decisions, with people of unknown group (-1) decided by a rule.

        The mean of all policies is added as one more policy, named `ANY`. It causes no additional flips:
        where all policies agree, their mean agrees too.
        """
        answers, said = self.answers, np.asarray(self.answers.probabilities_by_group)
        lost = answers.own < 0
        own = np.where(lost, len(answers.groups), answers.own)
        every = np.concatenate([said, said.mean(axis=1, keepdims=True)], axis=1)
        found = replace(answers, groups=[*answers.groups, ANY], own=own, probabilities_by_group=every)
        by = np.where(lost, f"all policies: {rule}", OWN)
        if rule == "mean":
            return replace(self, answers=found, by=by)
        kept, reasons = ~(lost & np.asarray(found.flips)), self.reasons.copy()
        reasons[np.flatnonzero(self.scored)[~kept]] = "unknown group, and the groups' policies disagree"
        some = replace(found, own=own[kept], probabilities_by_group=every[kept])
        return Decisions(some, reasons, self.unseen, self.index[kept], by[kept])

    @property
    def scored(self) -> Flags:
        """Whether each row of the table was scored."""
        return np.asarray(self.reasons == "")

    @property
    def decision(self) -> Array:
        """The label decided for each scored person."""
        return self.answers.decisions

    @property
    def probability(self) -> Floats:
        """The probability, in each person's own group, of the positive label (of the decision if none is)."""
        return self.answers.probability

    @property
    def by_group(self) -> Floats:
        """The same probability in every group: (people, groups)."""
        return self.answers.probability_by_group

    @property
    def would_flip(self) -> Flags:
        """Whether each person would get a different decision in another group."""
        return np.asarray(self.answers.flips)

    def to_frame(self, prefix: str = "") -> pd.DataFrame:
        """Return one row per scored person, as `evenhand predict` writes it; `prefix` starts all names.

        The columns are decision, probability, probability_of_LABEL for each label if there are more than two,
        probability_as_GROUP for each group, would_flip, and decided_by if a rule decides about people of
        unknown group.
        """
        labels, scores, by_group = self.answers.labels, np.asarray(self.answers.scores), self.by_group
        columns: dict[str, Any] = {"decision": self.decision, "probability": self.probability.round(6)}
        if len(labels) > 2:
            columns |= {f"probability_of_{name}": scores[:, at].round(6) for at, name in enumerate(labels)}
        for at, name in enumerate(self.answers.groups):
            columns[f"probability_as_{name}"] = by_group[:, at].round(6)
        columns["would_flip"] = self.would_flip
        if self.by is not None:
            columns["decided_by"] = self.by
        return pd.DataFrame(columns, index=self.index).add_prefix(prefix)

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        lost = int((~self.scored).sum())
        refused = f"; {so_many_rows(lost)} could not be scored" if lost else ""
        return (
            f"Decisions about {people(len(self))}, {int(self.would_flip.sum()):,} of whom would get a "
            f"different decision in another group{refused}\n{self.to_frame()}"
        )

    def _repr_html_(self) -> str:
        shown: str = self.to_frame().to_html(max_rows=20, escape=True)
        return f"<p>{html.escape(repr(self).partition(chr(10))[0])}</p>{shown}"


def so_many_rows(count: int) -> str:
    """Return a number of rows in words.

    >>> so_many_rows(1), so_many_rows(2_000)
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {'row' if count == 1 else 'rows'}"


class Unseen(NamedTuple):
    """Categories that training did not see, over all chunks, in constant memory.

    >>> strange = Unseen({}, {})
    >>> strange.add({"job": {"cook": 2, "clerk": 1}})
    >>> strange.people
    {'job': 3}
    """

    people: dict[str, int]  # per column
    examples: dict[str, list[str]]  # per column, the first few values

    def add(self, found: dict[str, dict[str, int]]) -> None:
        """Add the people of a chunk; `found` holds the number of people with each value, per column."""
        for column, values in found.items():
            self.people[column] = self.people.get(column, 0) + sum(values.values())
            known = self.examples.setdefault(column, [])
            known += [value for value in values if value not in known][: _EXAMPLES - len(known)]

    def notes(self) -> list[str]:
        """Return one sentence per column."""
        return [
            f"{people(count)} with a value of {column!r} that was never seen in training, such as "
            f"{listed(self.examples[column])}: it counts as none of the known values, or as a rare one."
            for column, count in self.people.items()
        ]
