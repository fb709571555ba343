"""The result of a search: the people found, as tables, plain Python or words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing.people import as_records, beside_features, differences, in_full, plain, with_rows
from evenhand.auditing.searching.members import Members, different, gap_between
from evenhand.wording import as_plain, group_called, listed, people


@dataclass(frozen=True, repr=False)
class FlipSearch:
    """People found whose decision changes when only the group changes. Nothing is proven about others.

    Attributes
    ----------
    people : DataFrame
        The people found, largest gap first, at most one for each person in X that they were made from. The
        columns are `person`, that person's position in X; `changed`, how they differ from that person; `gap`,
        how far apart the groups' probabilities are (total variation; 1 if the model gives no probabilities);
        the decision and the probability of `label` as a member of every group; and their features.
    farthest : DataFrame
        One row: the person found whose probabilities are farthest apart, whatever the decisions.
    n_found : int
        The number of different people found whose decision changes.
    n_predictions : int
        The number of predictions: one for each person and group.
    seconds : float
        The time it took.
    groups : list
        The groups.
    label : object
        The label whose probabilities are given.
    note : str
        What could not be changed, or why there was nothing to search.
    column : str
        The name of the sensitive column; 'group' if it has none, or if there are several.
    """

    people: pd.DataFrame
    farthest: pd.DataFrame
    n_found: int
    n_predictions: int
    seconds: float
    groups: list[Any]
    label: Any
    note: str
    column: str = "group"

    def summary(self) -> str:
        """Return what was found, in plain words."""
        note = [f"Note: {self.note}"] if self.note else []
        if not self.n_predictions:
            return "\n".join(["There was nothing to search.", *note])
        asked = self.n_predictions // len(self.groups)
        lines = [
            f"The model was asked about {people(asked)}, real and made up, as members of every group: "
            f"{self.n_found:,} get different decisions."
        ]
        if len(self.people):
            lines.append(
                f"Of those found, the groups' probabilities differ most for {self._told(self.people)}"
            )
        if self.gap > (self.people["gap"].max() if len(self.people) else 0.0):
            lines.append(f"Whatever is decided, they differ most for {self._told(self.farthest)}")
        return "\n".join(
            [*lines, "Found by a search: nothing is proven about people it did not find.", *note]
        )

    @property
    def gap(self) -> float:
        """The largest gap found, whatever the decisions."""
        return float(self.farthest["gap"].max()) if len(self.farthest) else 0.0

    def _told(self, table: pd.DataFrame) -> str:
        row = table.iloc[0]
        values = ", ".join(f"{name} {in_full(row[name])}" for name in _features(table, self))
        said = ", ".join(
            f"{as_plain(row[f'decided as {group}'])!r}"
            + (f" ({row[name]:.3f})" if (name := f"P({self.label}) as {group}") in row else "")
            + f" as {group_called(group, self.column)}"
            for group in self.groups
        )
        return f"{values}: {said}."

    def shown(self) -> pd.DataFrame:
        """Return the people as a report lists them, numbered from 1, with changes instead of features."""
        told = self.people.drop(columns=_features(self.people, self))
        return told.assign(person=told["person"] + 1).rename(columns={"person": "made from person"})

    def numbered(self, rows: Codes) -> FlipSearch:
        """Return the same findings with people numbered by their rows in a file, from 0."""
        people, farthest = (with_rows(table, ["person"], rows) for table in (self.people, self.farthest))
        return replace(self, people=people, farthest=farthest)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, with people numbered from 1."""
        told = {
            name: plain(value) for name, value in vars(self).items() if name not in ("people", "farthest")
        }
        tables = {
            name: as_records(table.assign(person=table["person"] + 1) if len(table) else table)
            for name, table in (("people", self.people), ("farthest", self.farthest))
        }
        return {**told, "summary": self.summary(), **tables}

    def __repr__(self) -> str:
        return f"<FlipSearch among {listed(self.groups, most=5)}>\n{self.summary()}"


def people_table(members: Members, codes: Codes, start: Codes, label: Any) -> pd.DataFrame:
    """Return people with the model's predictions, made again; `flips` is whether decisions differ."""
    if not len(codes):
        return pd.DataFrame({"flips": np.empty(0, dtype=bool)})
    rows = members.possible.rows(codes)
    (decided, scores), names = members.said(rows), members.asked.groups.names.tolist()
    flips = different(decided)
    found: dict[str, Any] = {"flips": flips, "person": start, "changed": "", "gap": flips.astype(float)}
    found |= {f"decided as {name}": decided[:, group] for group, name in enumerate(names)}
    if scores is not None:
        found["gap"], at = gap_between(scores), members.labels.index(label)
        found |= {f"P({label}) as {name}": scores[:, group, at] for group, name in enumerate(names)}
    real = members.asked.frame[list(rows.columns)].iloc[start].astype(object)
    found["changed"] = [
        differences(real.iloc[at], row) for at, (_, row) in enumerate(rows.astype(object).iterrows())
    ]
    told = beside_features(pd.DataFrame(found), rows)
    return told.sort_values("gap", ascending=False, kind="stable")


def _features(table: pd.DataFrame, found: FlipSearch) -> list[Any]:
    """Return the columns of a person's features, which come last."""
    per_group = 2 if f"P({found.label}) as {found.groups[0]}" in table else 1
    return list(table.columns[list(table.columns).index("gap") + 1 + per_group * len(found.groups) :])
