"""Counterparts by a causal graph: the same person, but with the columns changed that the group affects.

Each column downstream of the group follows a structural equation that is fitted to the data: a function of
the column's parents and of the person's own part. For numbers, the own part is the residual or, if the group
is a parent, the residual's rank within the group. For categories, the counterpart keeps the person's category
if its probability does not fall. Otherwise the counterpart loses it as often as the fall demands, to
categories that became more probable.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.auditing.counterparts import Matcher, World
from evenhand.auditing.hybrids import Ask, as_numbers, categories_of
from evenhand.auditing.transport import Matched
from evenhand.checks import did_you_mean
from evenhand.wording import listed

GROUP = "group"  # a name for the group that every graph may use
ITERATIONS = 50  # the number of boosted trees in a structural equation


def read_graph(edges: Sequence[str], columns: Sequence[Any], group: Sequence[str]) -> dict[Any, list[Any]]:
    """Return the parents of each column that the group affects; columns come after their parents.

    `group` are the names of the group; among the parents it is called GROUP.

    >>> read_graph(["sex->job", "age -> job", "job->pay"], ["age", "job", "pay"], ["sex"])
    {'job': ['group', 'age'], 'pay': ['job']}
    """
    known = {str(name): name for name in columns if str(name) not in group}
    parents: dict[Any, list[Any]] = {}
    for edge in edges:
        ends = [end.strip() for end in str(edge).split("->")]
        if len(ends) != 2 or not all(ends):
            raise ValueError(f"Got the edge {edge!r}, but expected one like 'sex->hours'.")
        for end in ends:
            if end not in known and end not in (*group, GROUP):
                near = did_you_mean(end, [*known, *group])
                raise ValueError(f"Got {end!r} in the edge {edge!r}, but X has no such column.{near}")
        start, end = (known.get(end, GROUP) for end in ends)
        if end == GROUP:
            raise ValueError(f"Got the edge {edge!r}, but nothing can be a cause of the group here.")
        parents.setdefault(end, []).append(start)
    try:
        order = list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"Got edges that form a cycle ({circle}), but expected none.") from None
    affected = {GROUP}
    for name in order:
        if affected & set(parents.get(name, ())):
            affected.add(name)
    if len(affected) == 1:
        raise ValueError(
            f"Got no edge from the group ({listed([*group, GROUP])}), but expected at least one."
        )
    return {
        name: list(dict.fromkeys(parents[name])) for name in order if name in affected and name in parents
    }


def by_graph(
    frame: pd.DataFrame, own: Codes, groups: Codes, edges: Sequence[str], *, sensitive: list[Any],
    group: Sequence[str], ask: Ask, weights: Floats | None = None,
) -> Matcher:  # fmt: skip
    """Return a matcher that makes everybody's counterparts by a graph and predicts their decisions."""
    parents = read_graph(edges, [name for name in frame.columns if name not in sensitive], group)
    decided = ask(frame, own, np.arange(len(frame)))[0]

    def match(codes: Codes, rng: np.random.Generator) -> World:
        as_they_are = np.array_equal(codes, own)
        equations = Equations(frame, codes, parents)
        frames, told, matched, start = [frame], [own], {}, len(frame)
        for a, b in itertools.permutations(groups.tolist(), 2):
            people = np.flatnonzero(codes == a)
            made = equations.moved(people, b, rng)
            if as_they_are:  # with random groups, only the columns downstream change
                one = np.full(len(people), np.flatnonzero(own == b)[0])
                made = made.assign(**{name: frame[name].iloc[one].set_axis(made.index) for name in sensitive})
            frames.append(made)
            told.append(np.full(len(people), b) if as_they_are else own[people])
            matched[a, b] = Matched(people, start + np.arange(len(people)), np.ones(len(people)))
            start += len(people)
        new, of = pd.concat(frames[1:], ignore_index=True), [found.people for found in matched.values()]
        said = ask(new, np.concatenate(told[1:]), np.concatenate(of))[0]
        return World(
            pd.concat([frame, new], ignore_index=True), np.concatenate(told), np.concatenate([decided, said]),
            matched, len(frame), weights,
        )  # fmt: skip

    return match


class Equations:
    """The structural equations of the columns that the group affects, fitted to people."""

    def __init__(self, frame: pd.DataFrame, codes: Codes, parents: dict[Any, list[Any]]) -> None:
        self._frame, self._codes, self._parents = frame, codes, parents
        self._known = {name: categories_of(frame[name]) for name in frame.columns}
        self._fitted = {name: self._fit(name) for name in parents}

    def moved(self, people: Codes, to: int, rng: np.random.Generator) -> pd.DataFrame:
        """Return these people as if they were members of another group."""
        before = self._frame.iloc[people].reset_index(drop=True)
        after = before.copy()
        there = np.full(len(people), to)
        for name in self._parents:
            column, values = self._frame[name], as_numbers(before[name], self._known[name])
            have = np.flatnonzero(~np.isnan(values))  # missing values stay missing
            if not len(have):
                continue
            new = self._table(name, after, there)[have]
            if self._known[name] is None:
                moved = self._number(name, people[have], new, to)
            else:
                old = self._table(name, before, self._codes[people])[have]
                moved = self._category(name, values[have], old, new, rng)
            after.loc[have, name] = pd.Series(moved, index=have).astype(column.dtype)
        return after

    def _fit(self, name: Any) -> tuple[Any, Array]:
        """Return the fitted function of the parents, with the residuals for a column of numbers."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        table, column = self._table(name, self._frame, self._codes), self._frame[name]
        values = as_numbers(column, self._known[name])
        have = ~np.isnan(values)
        of_category = [parent == GROUP or self._known[parent] is not None for parent in self._parents[name]]
        settings: dict[str, Any] = {
            "categorical_features": of_category, "max_iter": ITERATIONS, "random_state": 0,
            "early_stopping": False,
        }  # fmt: skip
        kind = HistGradientBoostingRegressor if self._known[name] is None else HistGradientBoostingClassifier
        fitted = kind(**settings).fit(table[have], values[have])
        if self._known[name] is not None:
            return fitted, values
        return fitted, np.where(have, values - fitted.predict(table), np.nan)

    def _table(self, name: Any, rows: pd.DataFrame, codes: Codes) -> Floats:
        return np.column_stack(
            [
                codes.astype(float) if parent == GROUP else as_numbers(rows[parent], self._known[parent])
                for parent in self._parents[name]
            ]
        )

    def _number(self, name: Any, people: Codes, parents: Floats, to: int) -> Array:
        fitted, residuals = self._fitted[name]
        own, column = residuals[people], self._frame[name]
        if GROUP in self._parents[name]:
            mine = np.sort(residuals[(self._codes == self._codes[people[0]]) & ~np.isnan(residuals)])
            theirs = residuals[(self._codes == to) & ~np.isnan(residuals)]
            rank = (np.searchsorted(mine, own, "left") + np.searchsorted(mine, own, "right")) / 2 / len(mine)
            own = np.quantile(theirs, rank, method="hazen")  # unchanged if both groups are the same
        known = as_numbers(column, None)
        values = np.clip(fitted.predict(parents) + own, np.nanmin(known), np.nanmax(known))
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            return np.asarray(pd.Timestamp(0) + pd.to_timedelta(values.round(), "D"))
        return np.round(values) if (known[~np.isnan(known)] % 1 == 0).all() else np.asarray(values)

    def _category(
        self, name: Any, here: Floats, before: Floats, after: Floats, rng: np.random.Generator
    ) -> Array:
        fitted, known = self._fitted[name][0], self._known[name]
        assert known is not None
        at, rows = np.searchsorted(fitted.classes_, here), np.arange(len(here))
        old, new = fitted.predict_proba(before), fitted.predict_proba(after)
        kept = rng.random(len(at)) * old[rows, at] <= new[rows, at]
        gained = np.cumsum(np.maximum(new - old, 0), axis=1)
        drawn = (gained < rng.random((len(at), 1)) * gained[:, -1:]).sum(axis=1)
        return np.asarray(known.to_numpy()[fitted.classes_[np.where(kept, at, drawn)].astype(int)])
