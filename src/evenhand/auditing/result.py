"""The result of an audit: an object, a dict, a table, JSON and plain words."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.people import told
from evenhand.auditing.sentences import describe, groups_here


@dataclass(frozen=True, repr=False)
class Audit:
    """What was measured.

    Attributes
    ----------
    metrics : DataFrame
        One row a metric, over everybody (`group` is None) or for one group: value, interval (low, high) and
        how many people it was measured on. NaN where it can't be measured; `notes` say why.
    people : DataFrame
        The people who flip, then others, by gap: group, label, decision, whether it flips, the gap, what
        every group's policy says, and their features. Indexed by position in X, from 0.
    neighbours : DataFrame
        The most similar pairs of people who got different decisions, and in what they differ; `person` and
        `neighbour` are positions in X, from 0.
    subgroups : DataFrame
        The subgroups within which two groups are treated most differently, none with few people. The
        intervals hold for all examined subgroups at once.
    notes : list of str
        What was left out, sampled or can't be known.
    about : dict
        Settings and counts.
    """

    metrics: pd.DataFrame
    people: pd.DataFrame
    neighbours: pd.DataFrame
    subgroups: pd.DataFrame
    notes: list[str]
    about: dict[str, Any]

    def value(self, metric: str, group: Any = None) -> float:
        """Return one metric's value, over everybody or for a group."""
        return float(self.row(metric, group)["value"])

    def row(self, metric: str, group: Any = None) -> pd.Series[Any]:
        """Return one metric with its interval and count."""
        of_metric = self.metrics[self.metrics["metric"] == metric]
        chosen = of_metric[[found == group for found in of_metric["group"]]]
        if chosen.empty:
            known = ", ".join(dict.fromkeys(self.metrics["metric"]))
            raise KeyError(f"Got metric {metric!r} of group {group!r}, but measured were {known}.")
        return chosen.iloc[0]

    def summary(self) -> str:
        """Return the findings in plain words: what was measured, never a verdict."""
        return describe(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics as a table."""
        return self.metrics.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain Python, NaN as None: what JSON and the report are made of.

        People are numbered from 1 here, as the rows of a table are by those who read it.
        """
        people = self.people.set_axis(self.people.index + 1)
        pairs = self.neighbours.assign(
            person=self.neighbours["person"] + 1, neighbour=self.neighbours["neighbour"] + 1
        )
        return {
            "about": _plain(self.about),
            "summary": self.summary(),
            "notes": list(self.notes),
            "metrics": _records(self.metrics),
            "people": _records(people.reset_index(names="person")),
            "neighbours": _records(pairs),
            "subgroups": _records(self.subgroups),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the findings as JSON, and write them to a file if a path is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_html(self, path: str | Path, *, name: str = "this model", label: str = "label") -> Path:
        """Write the findings as one page that opens offline; return its path.

        `name` and `label` say what was audited and what it decides, in the page's title.
        """
        # The report stands above the audit and is needed only here.
        from evenhand.report.from_audit import write_audit

        return write_audit(self, path, name=name, label=label)

    def __repr__(self) -> str:
        n_people, n_groups = self.about["people"], len(groups_here(self))
        return f"<Audit of {n_people:,} people in {n_groups} group{'s' * (n_groups != 1)}>\n{self.summary()}"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if pd.isna(value) else told(value)
