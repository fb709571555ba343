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

ANY = "any"  # the policy that is the mean of all, which decides about people of unknown group
OWN = "own policy"
_EXAMPLES = 5  # values named of a column


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """What a model decides about each row of a table; `to_frame` has it as columns."""

    answers: Answers  # of the scored rows
    reasons: Reasons  # why a row of the table can't be scored; '' where it was
    unseen: dict[str, dict[str, int]]  # by column, how many people have each category that training never met
    index: pd.Index[Any]  # the scored rows' names in the table
    by: Array | None = None  # what decided each scored person: their own policy, or a rule of all

    def without_group(self, rule: str) -> Decisions:
        """Return the same decisions, with those whose group is unknown (-1) decided by a rule.

        The mean of all policies is one policy more, that of `ANY`. It makes nobody flip who doesn't flip
        anyway: where all policies agree, so does their mean.
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
        """The probability of the positive label, or of the decision, under each person's own policy."""
        return self.answers.probability

    @property
    def by_group(self) -> Floats:
        """The same under each group's policy: (people, groups)."""
        return self.answers.probability_by_group

    @property
    def would_flip(self) -> Flags:
        """Whether each person would get a different decision in another group."""
        return np.asarray(self.answers.flips)

    def to_frame(self, prefix: str = "") -> pd.DataFrame:
        """Return one row per scored person, as `evenhand predict` writes it; `prefix` begins the names.

        The columns are decision, probability, probability_of_LABEL for each of more than two labels,
        probability_as_GROUP for each group, and would_flip; decided_by where a rule decides those of unknown
        group.
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
        refused = f"; {int((~self.scored).sum()):,} rows could not be scored" if not self.scored.all() else ""
        return (
            f"Decisions about {len(self):,} people, {int(self.would_flip.sum()):,} of whom would get a "
            f"different decision in another group{refused}\n{self.to_frame()}"
        )

    def _repr_html_(self) -> str:
        shown: str = self.to_frame().to_html(max_rows=20, escape=True)
        return f"<p>{html.escape(repr(self).partition(chr(10))[0])}</p>{shown}"


class Unseen(NamedTuple):
    """Categories that training never met, over all chunks, in constant memory.

    >>> strange = Unseen({}, {})
    >>> strange.add({"job": {"cook": 2, "clerk": 1}})
    >>> strange.people
    {'job': 3}
    """

    people: dict[str, int]  # by column
    examples: dict[str, list[str]]  # by column, the first few values

    def add(self, found: dict[str, dict[str, int]]) -> None:
        """Count the people of a chunk; `found` has how many have each value, by column."""
        for column, values in found.items():
            self.people[column] = self.people.get(column, 0) + sum(values.values())
            known = self.examples.setdefault(column, [])
            known += [value for value in values if value not in known][: _EXAMPLES - len(known)]

    def notes(self) -> list[str]:
        """Return a sentence a column."""
        return [
            f"{people(count)} with a value of {column!r} that was never seen in training, such as "
            f"{listed(self.examples[column])}: it counts as none of those that were."
            for column, count in self.people.items()
        ]
