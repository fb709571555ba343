"""The result of an audit: as an object, dict, table, JSON or plain words."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing.certificate import Certificate
from evenhand.auditing.people import as_records, plain, with_rows
from evenhand.auditing.searching.result import FlipSearch
from evenhand.auditing.sentences import describe, groups_here
from evenhand.auditing.statutory import SMALL, Statutory, fill
from evenhand.auditing.tally import Tally
from evenhand.auditing.twin_result import Twins
from evenhand.wording import people


class Counted(TypedDict):
    """The people of an audit, and how they were predicted."""

    people: int
    labelled: bool
    groups: dict[Any, int]  # the number of people in each group
    evidence: dict[Any, float]  # the same with weights: the effective number
    compared: list[Any]  # the groups that are large enough to be compared as they are
    decisions: dict[Any, int]  # the number of people with each decision
    labels: list[Any]
    positive: Any
    threshold: float | None  # the lowest score that gives a positive decision, if there is one
    widest: dict[str, Any] | None  # the label whose share differs most, and the groups with least and most
    trained_on: NotRequired[int]  # the number of these people that the model was trained on
    label_rate: float | None  # the share of people with the positive label
    how: str  # a key of `evenhand.metrics.asking.HOW`
    sensitive_columns: list[Any]


class Settings(TypedDict):
    """The settings of an audit."""

    epsilon: float
    divergence: str
    k: int
    confidence: float
    n_bootstrap: int
    min_group: int
    min_count: int


class About(Counted, Settings):
    """The people of an audit, and its settings."""

    subgroups_examined: int


@dataclass(frozen=True, repr=False)
class Audit:
    """The findings of an audit.

    Attributes
    ----------
    metrics : DataFrame
        One row per metric, over everybody (`group` is None) or for one group: the value, its interval (low,
        high), and the number of people measured. NaN if it can't be measured; `notes` say why.
    people : DataFrame
        The people whose decision flips, then others, both by gap: group, label, decision, whether it flips,
        the gap, each group's decision and probabilities, and features. Indexed by position in X, from 0.
    neighbours : DataFrame
        The most similar pairs of people with different decisions, and how they differ; `person` and
        `neighbour` are positions in X, from 0.
    subgroups : DataFrame
        The subgroups within which two groups are treated most differently, without very small ones and those
        of at least 95 % of the people. The intervals hold for all subgroups at once.
    notes : list of str
        What was left out, what was sampled, and what can't be known.
    about : About
        Settings and counts.
    thresholds : DataFrame
        For scores: measures at other thresholds for a positive decision.
    tally : Tally
        People counted by their sensitive values and decisions, for `statutory`.
    twins : Twins
        People and their counterparts in other groups; None if not requested.
    worst : Certificate
        The worst possible person, and the bound proven for everybody; None if not requested.
    search : FlipSearch
        Possible people found whose decision changes with the group; None if not requested.
    label : str
        The name of the label: that of y, else the one that the model knows; None if neither has one.
    """

    metrics: pd.DataFrame
    people: pd.DataFrame
    neighbours: pd.DataFrame
    subgroups: pd.DataFrame
    notes: list[str]
    about: About
    thresholds: pd.DataFrame = field(default_factory=pd.DataFrame)
    tally: Tally | None = None
    twins: Twins | None = None
    worst: Certificate | None = None
    search: FlipSearch | None = None
    label: str | None = None

    def value(self, metric: str, group: Any = None) -> float:
        """Return one metric's value, over everybody or for a group.

        Parameters
        ----------
        metric : str
            The metric's name in `metrics`.
        group : group
            None for everybody.

        Raises
        ------
        KeyError
            If the metric was not measured; the error lists those that were.
        """
        return float(self.row(metric, group)["value"])

    def row(self, metric: str, group: Any = None) -> pd.Series[Any]:
        """Return one metric with its interval and count, as a row of `metrics`; see `value`."""
        of_metric = self.metrics[self.metrics["metric"] == metric]
        chosen = of_metric[[found == group for found in of_metric["group"]]]
        if chosen.empty:
            known = ", ".join(dict.fromkeys(self.metrics["metric"]))
            raise KeyError(f"Got metric {metric!r} of group {group!r}, but measured were {known}.")
        return chosen.iloc[0]

    def with_notes(self, *notes: str) -> Audit:
        """Return the same findings with more notes."""
        return replace(self, notes=[*self.notes, *notes])

    def numbered(self, rows: Codes) -> Audit:
        """Return the same findings with people numbered by their rows in a file, from 0."""
        neighbours = with_rows(self.neighbours, ("person", "neighbour"), rows)
        people = self.people.set_axis(rows[self.people.index.to_numpy(dtype=np.int64)])
        twins = None if self.twins is None else self.twins.numbered(rows)
        search = None if self.search is None else self.search.numbered(rows)
        return replace(self, people=people, neighbours=neighbours, twins=twins, search=search)

    def summary(self) -> str:
        """Return the findings in plain words, without a verdict."""
        return describe(self)

    def statutory(
        self, preset: str, *, sex: str | None = None, race: str | None = None, rate: str = "selection",
        selected: Any = None, small: float = SMALL,
    ) -> Statutory:  # fmt: skip
        """Return the tables of a regulation, filled with this audit's counts.

        Parameters
        ----------
        preset : {'nyc-ll144', 'four-fifths'}
            The bias audit of New York City's Local Law 144, or the four-fifths rule of the Uniform Guidelines
            with tests and exact intervals.
        sex, race : str, optional
            For 'nyc-ll144': the sensitive columns with the sex and the race/ethnicity. Common names are
            recognised.
        rate : {'selection', 'scoring'}
            For 'nyc-ll144': whether to count people who were selected, or who scored above the median.
        selected : label, optional
            The decision that counts as selected; by default the positive one. A tool that classifies people
            needs the tables once for each class.
        small : float
            Categories with a smaller share of the people are shown, but not compared.

        Returns
        -------
        Statutory
            The tables, and notes on how they were made.

        Raises
        ------
        ValueError
            If the audit lacks what the tables need: for 'nyc-ll144', the sensitive columns sex and race or,
            with rate='scoring', scores.

        Examples
        --------
        >>> from evenhand import audit
        >>> people = pd.DataFrame({"sex": ["f", "m"] * 50, "race": ["a"] * 40 + ["b"] * 60})
        >>> found = audit([1, 1, 0, 1] * 25, None, None, sensitive_features=people)
        >>> found.statutory("nyc-ll144").tables["Sex Categories"]["Impact Ratio"].to_dict()
        {'f': 0.5, 'm': 1.0}
        """
        return fill(self, preset, sex=sex, race=race, rate=rate, selected=selected, small=small)

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics as a table."""
        return self.metrics.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain Python objects, with None for NaN, for JSON and the report.

        People are numbered from 1 here, as readers number the rows of a table.
        """
        people = self.people.set_axis(self.people.index + 1)
        pairs = self.neighbours.assign(
            person=self.neighbours["person"] + 1, neighbour=self.neighbours["neighbour"] + 1
        )
        more = {"twins": self.twins, "worst": self.worst, "search": self.search}
        return {
            "about": plain(dict(self.about)),
            "summary": self.summary(),
            "notes": list(self.notes),
            "metrics": as_records(self.metrics),
            "people": as_records(people.reset_index(names="person")),
            "neighbours": as_records(pairs),
            "subgroups": as_records(self.subgroups),
            "thresholds": as_records(self.thresholds),
            **{name: found and found.to_dict() for name, found in more.items()},
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the findings as JSON, and write them to `path` if it is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_html(
        self, path: str | Path, *, name: str = "this model", label: str | None = None,
        filled: Statutory | None = None,
    ) -> Path:  # fmt: skip
        """Write the findings as one HTML page that opens offline.

        Parameters
        ----------
        path : path
            Where to write the page.
        name : str
            The name of the audited model, for the title.
        label : str
            The label that it predicts, for the title; by default the name of y, or the model's label.
        filled : Statutory, optional
            The tables of a regulation, for a section that prints on one sheet.

        Returns
        -------
        Path
            The page.
        """
        # The report imports the audit, and is needed only here.
        from evenhand.report.from_audit import write_audit

        return write_audit(self, path, name=name, label=label, filled=filled)

    def _repr_html_(self) -> str:
        words = "".join(f"<li>{escape(line)}</li>" for line in self.summary().splitlines())
        overall = self.metrics[[group is None for group in self.metrics["group"]]].drop(columns="group")
        return f"<ul>{words}</ul>{overall.round(4).to_html(index=False)}"

    def __repr__(self) -> str:
        n_groups = len(groups_here(self))
        groups = f"{n_groups} group{'s' * (n_groups != 1)}"
        return f"<Audit of {people(self.about['people'])} in {groups}>\n{self.summary()}"
