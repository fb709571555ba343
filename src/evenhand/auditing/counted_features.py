"""The subgroup search in a table that is not in memory: the same parts, counted by the table's engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.auditing import subgroups
from evenhand.auditing.about import copies_note
from evenhand.auditing.near_copies import is_near_copy
from evenhand.metrics.answers import Answers
from evenhand.metrics.engine import MOST_VALUES, PEOPLE, Engine
from evenhand.metrics.group_columns import reveals
from evenhand.wording import listed

TOGETHER = 2  # columns per bundle; one count by two bundles covers all pairs of their columns


class Met(NamedTuple):
    """A feature's values or bins, with the rows of the answers where they occur, and numbers of people."""

    value: pd.Series[Any]
    at: Codes
    people: Codes


class Cut(NamedTuple):
    """A feature cut into parts: their names, each value's part, and the part as an expression."""

    names: list[str]
    codes: Codes
    code: Any


@dataclass(frozen=True)
class Features:
    """The features of a table, and the expressions to count its groups and outcomes by.

    `rows` has the keys of the answers' rows. The first `groups` of its columns are the sensitive columns.
    """

    engine: Engine
    answers: Answers
    keys: dict[str, Any]
    rows: pd.DataFrame
    groups: int
    outcome: Array
    hit: Any

    def search(self, names: list[str], search: subgroups.Search) -> tuple[pd.DataFrame, int, list[str]]:
        """Return the subgroups, the number examined, and notes on near copies and on columns left out."""
        first = self.engine.first(names) if names else pd.DataFrame()
        parts: dict[str, Cut] = {}
        single: dict[str, subgroups.Cells] = {}
        copies, left_out = [], []
        for name in names:
            met, ends = self._met(name, first[name])
            if met is None:
                left_out.append(name)
                continue
            if reveals(met.value, self.answers.own[met.at], met.people, len(names) + self.groups):
                continue
            if is_near_copy(met.value, self.answers.decided_own[met.at], met.people):
                copies.append(name)
            parts[name] = self._cut(name, met, ends)
            single[name] = self._cells(parts[name], met, ends)
        told = {name: part.names for name, part in parts.items()}

        def crossed(chosen: list[str]) -> Iterator[subgroups.Cells]:
            return self._crossed({name: parts[name] for name in chosen})

        found, examined = subgroups.search_cells(told, single, crossed, self.answers.groups, search)
        notes = copies_note(copies)
        if left_out:
            notes.append(
                f"Subgroups by {listed(left_out)} were left out: only numbers, and columns of not too many "
                "values, are counted."
            )
        return found, examined, notes

    def _met(self, name: str, first: pd.Series[Any]) -> tuple[Met | None, tuple[float, float] | None]:
        """Count a feature's values, or its bins if there are many values; None if it can't be counted."""
        kind, column = self.engine.schema[name], self.engine.column(name)
        if kind.is_temporal() or kind.is_nested():
            return None, None
        if first.nunique() <= MOST_VALUES:
            most = (MOST_VALUES + 1) * len(self.rows)
            table = self.engine.count({"value": column, **self.keys}, most=most)
            if table["value"].nunique() <= MOST_VALUES:
                return self._matched(table, name), None
        ends = self.engine.ends(name) if kind.is_numeric() else (np.nan, np.nan)
        if not np.isfinite(ends).all():
            return None, None
        table = self.engine.count({"value": self.engine.bin_of(name, *ends), **self.keys})
        return self._matched(table, name), ends

    def _matched(self, table: pd.DataFrame, name: str) -> Met:
        keys = list(self.keys)
        found = table.merge(self.rows.assign(at=np.arange(len(self.rows))).drop_duplicates(keys), on=keys)
        return Met(found["value"].rename(name), found["at"].to_numpy(), found[PEOPLE].to_numpy())

    def _cut(self, name: str, met: Met, ends: tuple[float, float] | None) -> Cut:
        """Cut a feature into the same parts as `subgroups.cut`."""
        column, present = self.engine.column(name), met.value.notna().to_numpy()
        counts = pd.Series(met.people[present]).groupby(met.value[present].to_numpy()).sum().sort_index()
        if self.engine.schema[name].is_numeric() and (ends is not None or len(counts) > subgroups.PARTS):
            if ends is None:
                until, values = counts.cumsum().to_numpy(), counts.index.to_numpy(dtype=float)
                edges = quarters(lambda rank: values[np.searchsorted(until, rank, side="right")], until[-1])
            else:
                binned = counts.rename_axis("bin").reset_index(name=PEOPLE)
                value_at = self.engine.in_order(name, binned, *ends)
                edges = quarters(value_at, int(counts.sum()))
            above = [(column.cast(nw.Float64) > edge).cast(nw.Int64) for edge in edges.tolist()]
            code: Any = nw.when(~column.is_null()).then(sum(above[1:], start=above[0]))
            codes = np.searchsorted(edges, met.value.to_numpy(dtype=float, na_value=np.nan), side="left")
            names = subgroups.bands(name, [subgroups.in_digits(edge) for edge in edges])
        else:
            common = [counts.index[at] for at in subgroups.commonest(counts.index, counts.to_numpy())]
            code = nw.lit(len(common))
            for place, value in reversed(list(enumerate(common))):
                same = column == (value.item() if isinstance(value, np.generic) else value)
                code = nw.when(same).then(nw.lit(place)).otherwise(code)
            code = nw.when(~column.is_null()).then(code)
            found = met.value.map({value: place for place, value in enumerate(common)})
            codes = found.fillna(len(common)).to_numpy(dtype=np.int64)
            names = subgroups.categories(name, common)
        return Cut(names, np.where(present, codes, len(names) - 1), code)

    def _cells(self, part: Cut, met: Met, ends: tuple[float, float] | None) -> subgroups.Cells:
        if ends is None:
            return self._table(part.codes, len(part.names), met.at, met.people)
        table = self.engine.count({"part": part.code, **self.keys})
        codes = _filled(table["part"], part)
        found = self._matched(table.assign(value=codes), "part")
        return self._table(found.value.to_numpy(), len(part.names), found.at, found.people)

    def _table(self, codes: Codes, n_parts: int, at: Codes, people: Codes) -> subgroups.Cells:
        return _added(
            codes, n_parts, self.answers.own[at], len(self.answers.groups), self.outcome[at], people
        )

    def _crossed(self, parts: dict[str, Cut]) -> Iterator[subgroups.Cells]:
        """Count people in the parts of each pair of features, for several pairs at once."""
        names = list(parts)
        bundles = [names[at : at + TOGETHER] for at in range(0, len(names), TOGETHER)]
        blocks = [one + other for one, other in itertools.combinations(bundles, 2)] or bundles
        sensitive = dict(list(self.keys.items())[: self.groups])
        own = self.rows[list(sensitive)].assign(own=self.answers.own).drop_duplicates()
        tables: dict[frozenset[str], pd.DataFrame] = {}
        for block in blocks:
            codes = {f"part{names.index(name)}": parts[name].code for name in block}
            table = self.engine.count({**codes, **sensitive, "hit": self.hit}).merge(own, on=list(sensitive))
            for pair in itertools.combinations(block, 2):
                tables[frozenset(pair)] = table
        for one, other in itertools.combinations(names, 2):
            table = tables[frozenset((one, other))]
            left, right = (_filled(table[f"part{names.index(name)}"], parts[name]) for name in (one, other))
            width = len(parts[other].names)
            yield _added(
                left * width + right, len(parts[one].names) * width, table["own"].to_numpy(),
                len(self.answers.groups), table["hit"].to_numpy(dtype=bool), table[PEOPLE].to_numpy(),
            )  # fmt: skip


def _filled(codes: pd.Series[Any], part: Cut) -> Codes:
    """Return codes of parts; a missing code becomes the part of missing values."""
    return codes.fillna(len(part.names) - 1).to_numpy(dtype=np.int64)


def _added(
    codes: Codes, n_parts: int, own: Codes, n_groups: int, hit: Array, people: Codes
) -> subgroups.Cells:
    cell = codes * n_groups + own
    sums = (np.bincount(cell, people * counts, n_parts * n_groups) for counts in (hit, 1))
    return subgroups.Cells(*(of.astype(np.int64).reshape(-1, n_groups) for of in sums))


def quarters(value_at: Callable[[int], float], n: int) -> Floats:
    """Return the quartiles of `n` numbers as np.quantile does, given a function for the value at a rank.

    >>> quarters([1.0, 2.0, 4.0, 8.0].__getitem__, 4).tolist()
    [1.75, 3.0, 5.0]
    """
    ends = []
    for quarter in subgroups.QUARTERS:
        place = quarter * (n - 1)
        near = [value_at(rank) for rank in (int(place), min(int(place) + 1, n - 1))]
        ends.append(np.quantile(near, place - int(place)))
    return np.unique(ends)
