"""Who would flip in a table that `evenhand predict` wrote, counted and ranked without loading it.

No model is needed: next to each decision, `predict` wrote what every group's policy says about the person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand.auditing import Audit
from evenhand.auditing.people import beside_features
from evenhand.frames import as_pandas
from evenhand.groups import encode_groups
from evenhand.metrics.bootstrap import share_interval
from evenhand.metrics.counts import count
from evenhand.metrics.engine import MOST_CELLS, PEOPLE, ROW, Engine
from evenhand.metrics.of_table import Repeats
from evenhand.tables.dataset import Dataset
from evenhand.workflow.prediction_column import added_by_predict
from evenhand.workflow.table import with_dates

_GAP = "gap in evenhand's table"


@dataclass(frozen=True)
class PredictedFlips:
    """The columns that `evenhand predict` added, under a prefix, to a frame with row numbers."""

    engine: Engine
    prefix: str
    sensitive: list[str]
    label: str | None
    weight: str | None
    features: list[str]

    def added_to(self, found: Audit, n_listed: int) -> Audit:
        """Add to an audit the share of people who flip, and a list of those who do or come nearest to it.

        The list is exact: of all people, those who flip come first, then those whose probability differs most
        between their own and another group (total variation). Nothing is added if columns are missing or,
        with a note, if there are not two labels, if probabilities are not numbers, or if decisions contradict
        them: then somebody changed them, and `would_flip` is not about them.
        """
        groups, positive = found.about["groups"], found.about["positive"]
        as_group = {name: f"{self.prefix}probability_as_{name}" for name in groups}
        wanted = {*as_group.values(), self._name("probability"), self._name("would_flip")}
        if not wanted <= set(self.engine.schema):
            return found
        if positive is None or len(found.about["labels"]) != 2:
            return found.with_notes(
                "What `evenhand predict` wrote about other groups is used for two labels only. Audit with "
                "the model (--model) to learn whose decision depends on their group."
            )
        if self.engine.schema[self._name("would_flip")] != nw.Boolean:
            return found
        probabilities = [self._name("probability"), *as_group.values()]
        if odd := [name for name in probabilities if not self.engine.schema[name].is_numeric()]:
            return found.with_notes(
                f"Got values that are not numbers in {', '.join(map(repr, odd))}; expected the probabilities "
                "that `evenhand predict` wrote. What it wrote about other groups was not used."
            )
        labels = found.about["labels"]
        of = {label: self._ends(label) for label in sorted(labels, key=lambda label: label != positive)}
        likely = next((label for label, (low, high) in of.items() if low <= high), None)
        if likely is None:
            return found.with_notes(
                f"The decisions in {self._name('decision')!r} contradict the probabilities beside them: some "
                "were changed after `evenhand predict`. What it wrote about other groups was not used."
            )
        rates = self._rates(list(groups), found.about["confidence"])
        return replace(
            found,
            metrics=pd.concat([found.metrics, rates], ignore_index=True),
            people=self._listed(as_group, labels, likely, of[likely], n_listed),
            about={**found.about, "how": "written", "divergence": "total_variation"},
        )

    def _name(self, column: str) -> str:
        return self.prefix + column

    def _rates(self, groups: list[Any], confidence: float) -> pd.DataFrame:
        keys = {f"key{at}": self.engine.column(name) for at, name in enumerate(self.sensitive)}
        rows = self.engine.people(keys | {"flips": nw.col(self._name("would_flip"))}, self.weight, MOST_CELLS)
        flips = rows["flips"].fillna(False).to_numpy(dtype=bool)
        weights, squares = (rows.get(name) for name in ("weight", "squares"))
        sensitive = rows[list(keys)].set_axis(self.sensitive, axis=1)
        repeats = Repeats(rows[PEOPLE].to_numpy(), None if squares is None else squares.to_numpy())
        counts = count(flips, flips, sensitive, True, weights, repeats)
        everybody = np.ones(counts.table.shape[1:], dtype=bool)
        hit = np.indices(everybody.shape)[1] == counts.positive
        found = []
        for name in [None, *groups]:
            at: Any = slice(None) if name is None else [group == name for group in counts.groups]
            (value, low, high), people = share_interval(counts, at, hit, everybody, confidence)
            found.append(("flip_rate", name, value, low, high, people))
        rates = pd.DataFrame(found, columns=["metric", "group", "value", "low", "high", "people"])
        return rates.assign(group=pd.Series([None, *groups], dtype=object))

    def _ends(self, label: Any) -> tuple[float, float]:
        """Return the largest probability with another decision than this, and the smallest one with it."""
        own, yes = nw.col(self._name("probability")), nw.col(self._name("decision")) == label
        ends = self.engine.frame.select(low=nw.when(~yes).then(own).max(), high=nw.when(yes).then(own).min())
        low, high = as_pandas(ends).astype(float).iloc[0].fillna({"low": 0.0, "high": np.inf})
        return float(low), float(high)

    def _listed(
        self, as_group: dict[Any, str], labels: list[Any], likely: Any, ends: tuple[float, float], n: int
    ) -> pd.DataFrame:
        """List people; the probabilities are those of the label `likely`."""
        frame, own = self.engine.frame, nw.col(self._name("probability"))
        flips, decision, (low, high) = self._name("would_flip"), self._name("decision"), ends
        bar = 0.5 if low < 0.5 <= high else high  # the decisions' threshold: 0.5, unless they contradict it
        gap = nw.max_horizontal(*((own - nw.col(name)).abs() for name in as_group.values()))
        far = frame.with_columns(gap.alias(_GAP)).filter(nw.col(flips) | (nw.col(_GAP) > 0))
        far = far.sort(flips, _GAP, ROW, descending=[True, True, False]).head(n)
        some = pd.DataFrame(as_pandas(far))
        by_name = encode_groups(some[self.sensitive], len(some)) if len(some) else None
        listed: dict[str, Any] = {
            "group": [] if by_name is None else by_name.names[by_name.codes],
            "label": None if self.label is None else some[self.label].to_numpy(),
            "decision": some[decision].to_numpy(),
            "flips": some[flips].to_numpy(dtype=bool),
            "gap": some[_GAP].to_numpy(dtype=float),
        }
        other = next(label for label in labels if label != likely)
        for name, column in as_group.items():
            decided = np.where(some[column] >= bar, likely, other)
            listed[f"decided as {name}"] = np.where(listed["flips"], decided, listed["decision"])
            listed[f"P({likely}) as {name}"] = some[column].to_numpy(dtype=float)
        found = pd.DataFrame(listed, index=some[ROW].to_numpy(dtype=np.int64))
        return beside_features(found, some[self.features].set_axis(found.index, axis=0))


def in_memory(found: Audit, people: pd.DataFrame, decision: str, dataset: Dataset, n_listed: int) -> Audit:
    """Return an audit of people in memory with what `evenhand predict` wrote beside their decisions.

    `people` are the file's rows of the data set's people, in its order.
    """
    prefix, weighted = decision.removesuffix("decision"), dataset.weights is not None
    group, label, weight = (f"{what} in evenhand's table" for what in ("group", "label", "weight"))
    written = people[added_by_predict(people)]
    flips = people[f"{prefix}would_flip"].astype(str).str.lower()
    if flips.isin(["true", "false"]).all():  # a file of text has these words
        written = written.assign(**{f"{prefix}would_flip": flips == "true"})
    probabilities = [name for name in written.columns if name.startswith(f"{prefix}probability")]
    written = written.assign(**{name: _as_numbers(written[name]) for name in probabilities})
    held = with_dates(dataset.contexts, dataset.dates).reset_index(drop=True)
    held = pd.concat([held, written.reset_index(drop=True)], axis=1)
    held[group], held[label] = dataset.sensitive_features.to_numpy(), dataset.label.to_numpy()
    held[ROW] = dataset.row_numbers
    if dataset.weights is not None:
        held[weight] = dataset.weights.to_numpy()
    names = [group], label if found.about["labelled"] else None, weight if weighted else None
    engine = Engine(nw.from_native(held).lazy())
    return PredictedFlips(engine, prefix, *names, list(dataset.contexts.columns)).added_to(found, n_listed)


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of numbers in text as numbers, and any other column unchanged."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return column if (numbers.isna() & column.notna()).any() else numbers.astype(float)
