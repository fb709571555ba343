"""Which columns (carriers) explain a difference between people and counterparts: Shapley values and steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.counterparts import Direction, Found, chance, sample, share_interval
from evenhand.auditing.hybrids import Ask, Carriers, Pairs, Surrogate, asked
from evenhand.metrics.answers import as_array

_RANKED = ["group", "counterpart_group", "share", "low", "high", "column", "row", "carrier"]


def shapley(ask: Ask, carriers: Carriers, pairs: Pairs, *, n_orders: int, rng: np.random.Generator) -> Floats:
    """Return the share of each pair's different decision that each carrier explains, (pairs, carriers).

    Start with the counterpart, and replace one carrier after another by the person's. A carrier gains one
    when the counterpart's decision is lost, and loses one when it comes back. Its share is the mean over
    random orders, each also used in reverse. A pair's shares add up to one; carriers that do not differ
    within the pair get 0.
    """
    n, k = len(pairs), len(carriers.names)
    differ = carriers.differ(pairs)
    keys = rng.random((n, -(-n_orders // 2), k))
    keys = np.concatenate([keys, 1 - keys], axis=1)
    keys[np.repeat(~differ[:, None], keys.shape[1], axis=1)] = 2  # last
    rank = keys.argsort(axis=2).argsort(axis=2)
    steps = differ.sum(axis=1)
    inner = (np.arange(1, k + 1) < steps[:, None])[:, None].repeat(keys.shape[1], axis=1)
    who, order, step = np.nonzero(inner)
    step += 1  # the number of carriers that are the person's own
    decided, _ = asked(ask, carriers, pairs, who, rank[who, order] >= step[:, None])
    kept = np.zeros((n, keys.shape[1], k + 1))  # whether the decision is still the counterpart's
    kept[:, :, 0] = 1
    kept[who, order, step] = decided == pairs.reached[who]
    lost = kept[:, :, :-1] - kept[:, :, 1:]
    found = np.take_along_axis(lost, rank, axis=2).mean(axis=1)
    return np.where(differ, found, 0.0)


def agreeing(ask: Ask, carriers: Carriers, pairs: Pairs) -> tuple[Flags, Floats | None, Floats | None]:
    """Return which pairs the model, or surrogate, gets right, and its scores for people and counterparts.

    In such a pair, it gives the counterpart's decision to the counterpart and not to the person.
    """
    everybody = np.arange(len(pairs))
    ends = np.zeros((2, len(pairs), len(carriers.names)), dtype=bool)
    ends[1] = True
    mine, of_mine = asked(ask, carriers, pairs, everybody, ends[0])
    theirs, of_theirs = asked(ask, carriers, pairs, everybody, ends[1])
    return (mine != pairs.reached) & (theirs == pairs.reached), of_mine, of_theirs


class Search(NamedTuple):
    """Everything that is needed to find which columns explain the flips."""

    ask: Ask
    carriers: Carriers
    found: Found
    labels: list[Any]
    groups: list[Any]
    positive: int | None
    rng: np.random.Generator

    def tables(
        self, clear: Codes, *, n_pairs: int, n_orders: int, n_listed: int, n: int, confidence: float
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return the ranked columns, some pairs, and the pairs' steps, for the directions beyond chance."""
        columns, people, steps = [], [], []
        points = np.zeros((len(clear), len(self.carriers.names)))
        for row, at in enumerate(clear.tolist()):
            direction = self.found.directions[at]
            pairs = sample(self.found.world, direction, self.positive, n_pairs, self.rng)
            agree, mine, theirs = agreeing(self.ask, self.carriers, pairs)
            pairs = pairs.take(np.flatnonzero(agree))
            if not len(pairs):
                continue
            values = shapley(self.ask, self.carriers, pairs, n_orders=n_orders, rng=self.rng)
            points[row] = self.found.shares[at] * values.mean(axis=0)
            ends = [None if said is None else said[agree] for said in (mine, theirs)]
            order = np.argsort(-values.mean(axis=0), kind="stable")
            columns.append(self._ranked(direction, row, values, n=n, confidence=confidence))
            one, path = self._listed(direction, pairs, ends, order, n_listed)
            people.append(one)
            steps.append(path)
        table = pd.concat(columns, ignore_index=True) if columns else pd.DataFrame(columns=_RANKED)
        null = self._null(clear)
        probability = chance(points.ravel(), null.reshape(len(null), -1)).reshape(points.shape)
        # A surrogate makes errors, in which it relies on columns that only correlate with the right ones.
        floor = 1 - self.ask.fidelity if isinstance(self.ask, Surrogate) else -np.inf
        at = table["row"].to_numpy(dtype=int), table["carrier"].to_numpy(dtype=int)
        table = table.assign(
            points=points[at], by_chance=null.mean(axis=0)[at], p_value=probability[at],
            clear=(probability[at] <= 1 - confidence + 1e-9) & (table["low"] > floor),
        ).drop(columns=["row", "carrier"])  # fmt: skip
        return table, _stacked(people), _stacked(steps)

    def _null(self, clear: Codes) -> Floats:
        """Return each carrier's points when groups are assigned at random: (draws, directions, carriers)."""
        draws, k = len(self.found.samples), len(self.carriers.names)
        parts = [of_draw[at] for of_draw in self.found.samples for at in clear.tolist()]
        cell = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        means = np.zeros((len(parts), k))
        if len(cell):
            pairs = Pairs.joined(parts)
            agree = np.flatnonzero(agreeing(self.ask, self.carriers, pairs)[0])
            values = shapley(self.ask, self.carriers, pairs.take(agree), n_orders=2, rng=self.rng)
            counts = np.maximum(1, np.bincount(cell[agree], minlength=len(parts)))
            for carrier in range(k):
                means[:, carrier] = np.bincount(cell[agree], values[:, carrier], len(parts)) / counts
        return means.reshape(draws, len(clear), k) * self.found.null[:, clear, None]

    def _ranked(self, direction: Direction, row: int, values: Floats, **resampling: Any) -> pd.DataFrame:
        intervals = [share_interval(one, random_state=self.rng, **resampling) for one in values.T]
        table = pd.DataFrame(intervals, columns=["share", "low", "high"])
        a, b = (self.groups[code] for code in direction)
        table = table.assign(
            group=[a] * len(table), counterpart_group=[b] * len(table), column=self.carriers.names, row=row,
            carrier=np.arange(len(intervals)),
        )  # fmt: skip
        return table[_RANKED].sort_values("share", ascending=False, kind="stable")

    def _listed(
        self, direction: Direction, pairs: Pairs, ends: list[Floats | None], order: Codes, most: int
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the pairs with the largest difference in probability, and their steps."""
        a, b = (self.groups[code] for code in direction)
        label = pairs.reached if self.positive is None else np.full(len(pairs), self.positive)
        mine, theirs = (_probability(said, label) for said in ends)
        chosen = np.argsort(-np.nan_to_num(theirs - mine), kind="stable")[:most]
        kept = pairs.take(chosen)
        names = as_array(self.labels)
        people = pd.DataFrame(
            {
                "person": kept.people,
                "counterpart": kept.counterparts,
                "group": [a] * len(kept),
                "counterpart_group": [b] * len(kept),
                "decision": names[self.found.world.decided[kept.people]],
                "counterpart_decision": names[kept.reached],
                "probability": mine[chosen],
                "counterpart_probability": theirs[chosen],
            }
        )
        return people, self._steps(kept, order, b)

    def _steps(self, pairs: Pairs, order: Codes, counterpart_group: Any) -> pd.DataFrame:
        """Return each person's decision as one carrier after another is taken from the counterpart.

        Carriers in which the two differ come first, in this order, then the rest.
        """
        differ = self.carriers.differ(pairs)[:, order]
        rank = np.argsort(~differ, axis=1, kind="stable")
        who, step = np.divmod(np.arange(len(pairs) * len(order)), len(order))
        at = rank[who, step]
        taken = np.zeros((len(who), len(order)), dtype=bool)
        place = rank.argsort(axis=1)
        taken[:, order] = place[who] <= step[:, None]
        decided, scores = asked(self.ask, self.carriers, pairs, who, taken)
        label = pairs.reached[who] if self.positive is None else np.full(len(who), self.positive)
        columns = [self.carriers.names[carrier] for carrier in order[at]]
        both = [
            [
                self._value(carrier, frame.iloc[pair], own[pair])
                for pair, carrier in zip(who, order[at], strict=True)
            ]
            for frame, own in ((pairs.mine, pairs.own), (pairs.theirs, pairs.other))
        ]
        return pd.DataFrame(
            {
                "person": pairs.people[who],
                "counterpart": pairs.counterparts[who],
                "counterpart_group": [counterpart_group] * len(who),
                "column": columns,
                "value": pd.Series(both[0], dtype=object),
                "counterpart_value": pd.Series(both[1], dtype=object),
                "changed": differ[who, at],
                "decision": as_array(self.labels)[decided],
                "probability": _probability(scores, label),
            }
        )

    def _value(self, carrier: int, row: pd.Series[Any], group: int) -> Any:
        columns = self.carriers.columns[carrier]
        if carrier == self.carriers.group:
            return self.groups[group]
        if len(columns) == 1:
            return row[columns[0]]
        ones = [str(name) for name in columns if row[name] == 1]
        return ones[0] if len(ones) == 1 else ", ".join(str(row[name]) for name in columns)


def _probability(said: Floats | None, label: Codes) -> Floats:
    """Return each person's probability of a label; NaN if there are no probabilities."""
    return np.full(len(label), np.nan) if said is None else said[np.arange(len(label)), label]


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
