"""Sets of real people, and the cost of being near one of them.

If two people both have p columns, the mean of their differences (Gower's distance) is at most the radius if
the sum over the columns of (difference / radius − 1) / p is at most 0. These terms are the costs of values
near a real person. A column that either person lacks costs nothing. Near any of several people, a number
costs at least what it costs near the range of their numbers, and a category at least what it costs near
somebody who has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.domain import Domain
from evenhand.tables.columns import CATEGORY

CLOSE = 1e-9  # costs this little above 0 count as 0
_WIDE = 4.0  # times the radius: sets of people who differ more are split first


class Hulls(NamedTuple):
    """For sets of people: the ranges of their numbers, their categories, and the columns that any lacks."""

    low: Floats  # (sets, columns)
    high: Floats
    has: Flags  # (sets, options)
    lacks: Flags  # (sets, columns)


@dataclass
class People:
    """Distinct real people in sets: the first set is everybody, and sets are split where people differ most.

    Sets are made when they are needed.
    """

    rows: Codes  # (people,): their positions in the table
    numbers: Floats  # (people, columns); NaN if the value is not a number
    option: Codes  # (people, columns): their options; -1 if the value isn't possible
    lacking: Flags  # (people, columns): whether the value is missing
    missing: Flags  # (options,): whether the option is a missing value
    amounts: Flags  # (columns,): whether the column has numbers
    rate: Floats  # (columns,): the cost of a difference of 1; 0 for categories
    radius: float
    members: list[Codes] = field(init=False)
    _hulls: list[Hulls] = field(init=False)
    _widths: list[float] = field(default_factory=list)
    _halves: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.members = [np.arange(len(self.option))]
        self._hulls = [self._hull(self.members[0])]

    def _hull(self, who: Codes) -> Hulls:
        known = self.numbers[who]
        has = np.zeros(len(self.missing) + 1, dtype=np.bool_)  # the last one is for impossible values
        has[self.option[who]] = True
        low, high = (np.where(np.isnan(known), end, known) for end in (np.inf, -np.inf))
        low, high, lacks = low.min(0), high.max(0), np.asarray(self.lacking[who].any(0))
        differ = (self.option[who] != self.option[who[0]]).any(0)
        apart = np.where(
            self.amounts, self.rate * np.maximum(high - low, 0), differ / self.radius / len(self.rate)
        )
        self._widths.append(float(apart.sum()))
        return Hulls(low, high, has[:-1], lacks)

    def hulls(self, sets: Codes) -> Hulls:
        """Return what is known about sets of people."""
        return Hulls(*map(np.stack, zip(*(self._hulls[at] for at in sets.tolist()), strict=True)))

    def halves(self, sets: Codes) -> Codes:
        """Return the halves of each set, (sets, 2); a set of one person is both of its halves."""
        for at in np.unique(sets).tolist():
            who = self.members[at]
            if at not in self._halves and len(who) > 1:
                below = self._below(who)
                for half in (who[below], who[~below]):
                    self.members.append(half)
                    self._hulls.append(self._hull(half))
                self._halves[at] = len(self.members) - 2, len(self.members) - 1
        return np.array([self._halves.get(at, (at, at)) for at in sets.tolist()])

    def several(self, sets: Codes) -> Flags:
        """Return which sets have more than one person."""
        return np.array([len(self.members[at]) > 1 for at in sets.tolist()])

    def wide(self, sets: Codes) -> Flags:
        """Return which sets have people who differ by much more than the radius."""
        return np.array([self._widths[at] > _WIDE for at in sets.tolist()])

    def _below(self, who: Codes) -> Flags:
        """Split people by the column in which two of them differ most on average."""
        most, split = -1.0, np.arange(len(who)) < len(who) // 2
        for column, rate in enumerate(self.rate):
            numbers, codes = self.numbers[who, column], self.option[who, column]
            if rate > 0 and not np.isnan(numbers).any():
                apart = rate * self.radius * len(self.rate) * numbers.std()
                middle = np.median(numbers)
                below = numbers <= middle if middle < numbers.max() else numbers < middle
            else:
                values, counts = np.unique(codes, return_counts=True)
                apart = 1 - float(((counts / len(who)) ** 2).sum())
                below = codes == values[counts.argmax()]
            if apart > most and 0 < below.sum() < len(who):
                most, split = apart, below
        return np.asarray(split)

    def costs(self, who: Codes, column: int, option: int, numbers: Floats) -> Floats:
        """Return the cost of an option, or of a number, near each of these people."""
        share = 1 / len(self.rate)
        if self.amounts[column]:
            apart = self.rate[column] * np.abs(numbers - self.numbers[who, column])
        else:
            apart = share / self.radius * (self.option[who, column] != option)
        return np.where(self.lacking[who, column] | self.missing[option], 0.0, apart - share)

    def nearest(self, who: Codes, options: Codes, numbers: Floats) -> tuple[int, float]:
        """Return which of these people somebody is nearest to, and the cost."""
        costs = np.zeros(len(who))
        for column, option in enumerate(options.tolist()):
            costs += self.costs(who, column, option, np.full(len(who), numbers[option]))
        at = int(costs.argmin())
        return int(who[at]), float(costs[at])


def real_people(domain: Domain, contexts: pd.DataFrame, radius: float) -> People:
    """Return the people of a table, for possible people to be near."""
    rows = np.flatnonzero(~contexts[list(domain.columns)].duplicated())
    frame = contexts.iloc[rows]
    shape = len(frame), len(domain.columns)
    option, numbers = np.full(shape, -1), np.full(shape, np.nan)
    lacking, rate = np.zeros(shape, dtype=np.bool_), np.zeros(shape[1])
    for column, (name, begin) in enumerate(zip(domain.columns, domain.first, strict=False)):
        options, values = domain.columns[name], frame[name]
        if domain.kinds[name] == CATEGORY:
            at = {each.value: place for place, each in enumerate(options, begin)}
            option[:, column] = [at.get(value, -1) for value in values.tolist()]
            lacking[:, column] = values == "missing"
            continue
        known = numbers[:, column] = values.to_numpy(dtype=np.float64)
        absent = lacking[:, column] = np.isnan(known)
        within = (options[0].low <= known) & (known <= options[0].high)
        last = begin + len(options) - 1 if np.isnan(options[-1].value) else -1
        option[:, column] = np.where(absent, last, np.where(within, begin, -1))
        span = 0.0 if absent.all() else np.ptp(known[~absent])
        rate[column] = 1 / (span * radius * shape[1]) if span > 0 else 0.0
    missing = np.array([pd.isna(each.value) or each.value == "missing" for each in domain.options])
    amounts = np.array([domain.kinds[name] != CATEGORY for name in domain.columns])
    return People(rows, numbers, option, lacking, missing, amounts, rate, radius)
