"""All possible people: each column's range or categories, and what they add to the hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.policies import TwoPolicies, two_policies
from evenhand.auditing.ranges import ends_of, finite, some_of
from evenhand.checks import check_columns
from evenhand.network import Network
from evenhand.tables.columns import CATEGORY

Encode = Callable[[pd.DataFrame], Floats]
COMBINED = (
    "Got a model whose preprocessing combines columns, but a certificate needs one that treats each by "
    "itself, such as that of evenhand.tabular."
)
_TRIED, _CLOSE = 64, 1e-3  # the number of people for whom we check that columns add up, and the tolerance


@dataclass(frozen=True)
class Option:
    """One value of a column, or the numbers from `low` to `high`."""

    value: Any
    low: float = 0.0
    high: float = 0.0
    whole: bool = False  # whole numbers only
    amount: bool = False


@dataclass(frozen=True)
class Domain:
    """Possible people: each has exactly one option for each column."""

    columns: dict[str, list[Option]]
    kinds: dict[str, str]

    @property
    def options(self) -> list[Option]:
        """The options of all columns, one after another."""
        return [option for options in self.columns.values() for option in options]

    @property
    def first(self) -> Codes:
        """The index of each column's first option, and the total number of options."""
        return np.cumsum([0, *map(len, self.columns.values())])

    def ends(self) -> tuple[Floats, Floats, Flags]:
        """Return each option's lowest and highest number, and whether only whole numbers are possible."""
        low, high, whole = ([getattr(each, end) for each in self.options] for end in ("low", "high", "whole"))
        return np.array(low), np.array(high), np.array(whole)

    def rows(self, chosen: Flags, numbers: Floats) -> pd.DataFrame:
        """Return people as rows of a table, given their options and numbers."""
        values: dict[str, Any] = {}
        for (name, options), begin in zip(self.columns.items(), self.first, strict=False):
            picked = chosen[:, begin : begin + len(options)].argmax(1)
            values[name] = [
                numbers[row, begin + at] if options[at].high > options[at].low else options[at].value
                for row, at in enumerate(picked.tolist())
            ]
        frame = pd.DataFrame(values)
        return frame.astype({name: float for name in frame.columns if self.kinds[name] != CATEGORY})

    def people(self, frame: pd.DataFrame) -> tuple[Flags, Floats]:
        """Return rows of a table as options and numbers; impossible values are replaced by possible ones."""
        shape = len(frame), len(self.options)
        chosen, numbers = np.zeros(shape, dtype=np.bool_), np.zeros(shape)
        for (name, options), begin in zip(self.columns.items(), self.first, strict=False):
            amounts = [option for option in options if option.amount]
            if amounts:
                missing = frame[name].isna().to_numpy()
                values = np.where(missing, amounts[0].low, frame[name].to_numpy(dtype=np.float64))
                low, high = np.array([(option.low, option.high) for option in amounts]).T
                at = np.searchsorted(high[:-1], values)
                numbers[np.arange(len(frame)), begin + at] = np.clip(values, low[at], high[at])
                if len(options) > len(amounts):  # the last option is a missing value
                    at[missing] = len(options) - 1
            else:
                known = {option.value: place for place, option in enumerate(options)}
                at = np.array([known.get(value, 0) for value in frame[name].tolist()], dtype=np.int64)
            chosen[np.arange(len(frame)), begin + at] = True
        return chosen, numbers

    def in_words(self) -> dict[str, Any]:
        """Return each column's range, [low, high], or its categories."""
        words: dict[str, Any] = {}
        for name, options in self.columns.items():
            amounts = [option for option in options if option.amount]
            values = [option.value for option in options]
            words[name] = [amounts[0].low, amounts[-1].high] if amounts else values
        return words

    def one_by_one(self, encode: Encode, end: str) -> Floats:
        """Return the features of one person per option, at its 'low' or 'high' `end`.

        In the other columns, this person has the first option.
        """
        low, tried = (np.array([getattr(option, name) for option in self.options]) for name in ("low", end))
        reference = np.zeros(len(low), dtype=np.bool_)
        reference[self.first[:-1]] = True
        column = np.repeat(np.arange(len(self.columns)), np.diff(self.first))
        alone = np.eye(len(low), dtype=np.bool_)
        chosen = np.where(column[:, None] == column, alone, reference)
        return encode(self.rows(chosen, np.where(alone, tried, low)))

    def cut(self, after: Mapping[str, Floats]) -> Domain:
        """Return the same people with each column's range cut into pieces that end at these numbers."""
        columns = {}
        for name, (option, *others) in self.columns.items():
            pieces = [option]
            for end in after.get(name, ()):
                last, begin = pieces[-1], end + 1 if option.whole else np.nextafter(end, np.inf)
                pieces[-1:] = [replace(last, high=float(end)), replace(last, value=begin, low=float(begin))]
            columns[name] = [*pieces, *others]
        return Domain(columns, self.kinds)

    def two(self, encode: Encode, policies: Network, one: int, other: int) -> TwoPolicies:
        """Return two groups' policies, with what each option adds to their hidden layers."""
        first_layer = np.concatenate([policies.W1[one], policies.W1[other]], axis=1).astype(np.float64)
        at_low, at_high = (self.one_by_one(encode, end) @ first_layer for end in ("low", "high"))
        low, high, _ = self.ends()
        start = at_low[0]  # the first option of every column
        slope = (at_high - at_low) / np.where(high > low, high - low, 1)[:, None]
        base = at_low - start - slope * low[:, None]
        biases = np.concatenate([policies.b1[one], policies.b1[other]])
        output = (policies.W2[:, 1] - policies.W2[:, 0]).astype(np.float64)
        ranges = (high > low) & (policies.b1.size > 0)  # for trees, all numbers in a range are the same
        return two_policies(
            self.first, ranges, base, slope, start + biases, np.concatenate([output[one], output[other]]),
            (policies.b2[:, 1] - policies.b2[:, 0]).astype(np.float64)[[one, other]],
        )  # fmt: skip


def possible_people(
    contexts: pd.DataFrame | None,
    kinds: dict[str, str],
    categories: dict[str, list[Any]],
    gaps: set[str],
    ranges: Mapping[str, Any],
    sides: int = 1,
) -> Domain:
    """Return the possible people: given by `ranges`, else by the contexts' numbers and known categories.

    `gaps` are the columns of numbers in which values may be missing. Each range of numbers is an option
    `sides` times: 2 if numbers below and above real people's are distinguished.
    """
    check_columns("ranges", ranges, kinds)
    columns = {}
    for name, kind in kinds.items():
        if kind == CATEGORY:
            columns[name] = [
                Option(value) for value in some_of(name, ranges.get(name, categories[name]), categories[name])
            ]
            continue
        known = np.empty(0) if contexts is None else contexts[name].dropna().to_numpy(dtype=np.float64)
        low, high = _ends(name, known, ranges)
        whole = len(known) > 0 and bool((known == np.round(known)).all()) and low == round(low)
        high = float(np.floor(high)) if whole else high
        columns[name] = [Option(low, low, high, whole, True)] * (sides if high > low else 1)
        columns[name] += [Option(float("nan"))] if name in gaps else []
    return Domain(columns, kinds)


def _ends(name: str, known: Floats, ranges: Mapping[str, Any]) -> tuple[float, float]:
    if name in ranges:
        return ends_of(name, ranges[name], finite)
    if not len(known):
        raise ValueError(
            f"Got no range for {name!r}, but a certificate needs one: give X, whose lowest and highest "
            f"values are then used, or ranges={{{name!r}: (low, high)}}."
        )
    return float(known.min()), float(known.max())


def check_sums(
    domain: Domain, encode: Encode, two: TwoPolicies, people: tuple[Flags, Floats], W1: Any
) -> None:
    """Raise unless the columns' separate contributions add up to what the policies see of people."""
    chosen, numbers = people[0][:_TRIED], people[1][:_TRIED]
    n = W1.shape[1]
    seen = encode(domain.rows(chosen, numbers)) @ W1
    summed = chosen @ two.base[:, :n] + (chosen * numbers) @ two.slope[:, :n]
    seen, summed = seen - seen[:1], summed - summed[:1]
    if not np.allclose(seen, summed, rtol=_CLOSE, atol=_CLOSE * max(1.0, float(np.abs(seen).max()))):
        raise ValueError(COMBINED)
