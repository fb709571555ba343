"""Draw a sample of people from a table that is not in memory, in proportion from each stratum.

A row's place in the draw is computed from its row number and the seed, by arithmetic that every engine has.
So the same seed draws the same people, whatever the engine and its number of threads. Only rows with low
places are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Floats
from evenhand.auditing.people import PAIR_COLUMNS, neighbour_pairs, with_rows
from evenhand.auditing.predictions import at_threshold
from evenhand.auditing.table import MetricTable
from evenhand.auditing.twin_result import Twins
from evenhand.auditing.twins import Settings, compared_groups, find_twins
from evenhand.frames import as_pandas
from evenhand.metrics.answers import Answers
from evenhand.metrics.dyads import Strata
from evenhand.metrics.engine import PEOPLE, ROW, Engine
from evenhand.metrics.gower import gower_neighbours
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.wording import as_plain

PRIME = 2**31 - 1  # squares of smaller numbers fit into every engine's integers
LEAST = 10  # the fewest people to draw from a stratum; smaller strata are put together
_PLACE = "place in evenhand's draw"
NO_ROWS = (
    "The engine has no row numbers to draw people by, so consistency, neighbours, AUC and calibration were "
    "left out. To get them, audit a sample of the rows in memory."
)
_NAMES = {"consistency": "consistency and neighbours", "auc": "AUC", "calibration_error": "calibration"}


class Drawn(NamedTuple):
    """The people drawn: their columns, their rows in the table, and the counted rows that they belong to.

    `strata` is None if everybody was drawn, or if people have equal weights within each group.
    """

    frame: pd.DataFrame
    rows: Codes
    at: Codes
    strata: Strata | None = None


@dataclass(frozen=True)
class Draw:
    """A table to draw people from.

    `keys` are the expressions that people were counted by, and `rows` has their values and the numbers of
    people. `names` are the columns to load for the people drawn.
    """

    engine: Engine
    keys: dict[str, Any]
    rows: pd.DataFrame
    names: list[str]
    seed: int

    def in_proportion(self, n: int) -> Drawn | None:
        """Draw `n` people, in proportion from each group, label and decision; everybody if there are fewer.

        Return None if the engine has no row numbers.
        """
        people = self.rows[PEOPLE].to_numpy()
        if people.sum() <= n:
            return self._drawn([(None, 1.0)], np.zeros_like(people), people.sum(keepdims=True))
        cell = self.rows.groupby(list(self.keys), dropna=False, observed=True).ngroup().to_numpy()
        stratum = put_together(np.bincount(cell, people), n)[cell]
        sizes = np.bincount(stratum, people).astype(np.int64)
        wanted = in_proportion(sizes, n)
        found = self._drawn([(None, float(_rates(wanted, sizes).max()))], stratum, wanted)
        return None if found is None else found._replace(strata=Strata(stratum[found.at], sizes))

    def of_groups(self, own: Codes, n_sensitive: int, chosen: Codes, n: int) -> Drawn | None:
        """Draw at most `n` people, the same number from each chosen group; all people of a smaller group."""
        sizes = np.bincount(own, self.rows[PEOPLE]).astype(np.int64)
        wanted = np.zeros_like(sizes)
        wanted[chosen] = np.minimum(sizes[chosen], n // len(chosen))
        parts, sensitive = [], list(self.keys.items())[:n_sensitive]
        for code, rate in zip(chosen, _rates(wanted, sizes)[chosen], strict=True):
            one = self.rows.iloc[int(np.flatnonzero(own == code)[0])]
            member = [key == as_plain(one[name]) for name, key in sensitive]
            parts.append((nw.all_horizontal(*member, ignore_nulls=False), float(rate)))
        return self._drawn(parts, own, wanted)

    def _drawn(self, parts: list[tuple[Any, float]], stratum: Codes, wanted: Codes) -> Drawn | None:
        """Load a share of the people in each part, and keep the first `wanted` people of each stratum."""
        frame, keys = self.engine.numbered(), {f"evenhand {name}": key for name, key in self.keys.items()}
        if frame is None:
            return None
        counted = self.rows[list(self.keys)].set_axis(list(keys), axis=1)
        counted = counted.assign(at=np.arange(len(counted))).drop_duplicates(list(keys))
        while True:
            first = [(nw.col(_PLACE) < rate * PRIME, part) for part, rate in parts]
            here = [low if part is None else low & part for low, part in first]
            some = _placed(frame, self.seed).filter(nw.any_horizontal(*here, ignore_nulls=False))
            some = some.select(*self.names, ROW, _PLACE, **keys)
            found = as_pandas(some).merge(counted, on=list(keys)).sort_values([_PLACE, ROW])
            of = stratum[found["at"].to_numpy()]
            chosen = pd.Series(of).groupby(of).cumcount().to_numpy() < wanted[of]
            if chosen.sum() == wanted.sum() or all(rate >= 1 for _, rate in parts):
                break
            parts = [(part, min(1.0, 2 * rate)) for part, rate in parts]
        kept = found[chosen].sort_values(ROW, ignore_index=True)
        rows, at = (kept[name].to_numpy(dtype=np.int64) for name in (ROW, "at"))
        return Drawn(kept[self.names], rows, at)


def _placed(frame: Any, seed: int) -> Any:
    """Return a frame with each row's place in the draw, a pseudorandom number below PRIME."""
    place, row = nw.col(_PLACE), nw.col(ROW).cast(nw.Int64)
    # Spark's row numbers start at a multiple of 2³³ in each partition, which PRIME nearly divides.
    first = row % PRIME * 48271 + row // PRIME * 1588635695 + seed
    frame = frame.with_columns((first % PRIME).alias(_PLACE))
    for more in (12345, seed):
        frame = frame.with_columns(((place * place + more) % PRIME).alias(_PLACE))
    return frame


def _rates(wanted: Codes, sizes: Codes) -> Floats:
    """Return the shares of strata to load; they have too few people only once in millions of draws."""
    enough = wanted + 6 * np.sqrt(wanted) + 12
    return np.where(wanted > 0, np.minimum(enough / np.maximum(sizes, 1), 1), 0.0)


def put_together(sizes: Any, n: int) -> Codes:
    """Return the stratum of each cell: its own, or a joint one for cells with fewer than LEAST people drawn.

    >>> put_together(np.array([900.0, 3, 90, 7]), 100).tolist()
    [1, 0, 0, 0]
    """
    order = np.argsort(sizes, kind="stable")
    expected = np.cumsum(sizes[order]) * n / sizes.sum()
    few = int((sizes * n < LEAST * sizes.sum()).sum())
    together = max(few, int(np.searchsorted(expected, LEAST)) + 1) if few else 0
    stratum = np.empty(len(sizes), dtype=np.int64)
    stratum[order] = np.maximum(np.arange(len(sizes)) - max(together - 1, 0), 0)
    return stratum


def in_proportion(sizes: Any, n: int) -> Codes:
    """Return how many of `n` people to draw from each stratum: its share, rounded so that the sum is `n`.

    >>> in_proportion(np.array([500.0, 300, 201]), 10).tolist()
    [5, 3, 2]
    """
    shares = sizes * n / sizes.sum()
    wanted: Codes = np.floor(shares).astype(np.int64)
    wanted[np.argsort(wanted - shares, kind="stable")[: n - wanted.sum()]] += 1
    return wanted


@dataclass(frozen=True)
class OfDrawn:
    """Measures a sample of a table; `answers` are the counted decisions of the whole table.

    `score` and `weight` are columns, or None; `near` are options of `gower_neighbours`.
    """

    draw: Draw
    answers: Answers
    sensitive: list[str]
    features: list[str]
    score: str | None
    weight: str | None
    near: Mapping[str, Any]

    def measured(
        self, n: int, n_listed: int, resampling: Mapping[str, Any]
    ) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """Return metrics of `n` people, the most similar pairs with different decisions, and notes."""
        pairs = pd.DataFrame(columns=PAIR_COLUMNS)
        if not self.features and self.score is None:
            return pd.DataFrame(), pairs, []
        drawn = self.draw.in_proportion(n)
        if drawn is None:
            return pd.DataFrame(), pairs, [NO_ROWS]
        answers = self._answers(drawn)
        table = MetricTable(answers, **resampling)
        notes = table.scores() if self.score is not None else []
        others = self._others(drawn, answers)
        if others.shape[1] and len(others) > self.near["k"]:
            everybody = np.arange(len(others))
            found = gower_neighbours(others, **self.near)
            table.consistency(found.indices, everybody, drawn.strata)
            pairs = neighbour_pairs(others, answers, everybody, found, n_listed)
            pairs = with_rows(pairs, ("person", "neighbour"), drawn.rows)
        metrics = table.frame()
        if drawn.strata is not None and len(metrics):
            told = ", ".join(_NAMES[name] for name in metrics["metric"])
            notes.append(
                f"Measured on {len(others):,} people, drawn from every group, label and decision in "
                f"proportion, each compared with the others drawn: {told}. Intervals include the error "
                "of the draw."
            )
        return metrics, pairs, notes

    def twins(self, n: int, how: Settings, rng: np.random.Generator) -> Twins:
        """Find twins among at most `n` people, in equal numbers from each group compared if possible."""
        sizes = self.answers.people_by(self.answers.own, len(self.answers.groups))
        chosen, notes = compared_groups(sizes, self.answers.groups, how.min_group)
        if sizes.sum() <= n:
            drawn = self.draw.in_proportion(n)
        else:
            drawn = self.draw.of_groups(self.answers.own, len(self.sensitive), chosen, n)
        if drawn is None:
            raise ValueError(f"Got twins, but expected X in memory. {NO_ROWS}")
        given: Any = drawn.frame[self.sensitive]
        given = given if len(self.sensitive) > 1 else given.iloc[:, 0]
        frame = drawn.frame[[*self.features, *self.sensitive]]
        found = find_twins(None, frame, self._answers(drawn), given, how, rng).numbered(drawn.rows)
        if len(frame) == sizes.sum():
            return found
        told = (
            f"These are twins among {len(frame):,} people drawn at random, about as many from each group. "
            "Intervals include the error of the draw."
        )
        return replace(found, notes=[*notes, *found.notes, told])

    def _answers(self, drawn: Drawn) -> Answers:
        """Return the decisions about the people drawn; each person stands for others in their stratum."""
        of, weights = self.answers, None if drawn.strata is None else drawn.strata.weights
        if self.weight is not None:
            own = drawn.frame[self.weight].to_numpy(dtype=float)
            weights = own if weights is None else own * weights
        answers = replace(
            of, own=of.own[drawn.at], decided=of.decided_own[drawn.at], weights=weights, repeats=None,
            y=None if of.y is None else of.y[drawn.at],
        )  # fmt: skip
        if self.score is None:
            return answers
        scores = drawn.frame[self.score].to_numpy(dtype=float)
        return replace(answers, own_scores=at_threshold(scores, of.labels, of.pos_label, of.threshold)[1])

    def _others(self, drawn: Drawn, answers: Answers) -> pd.DataFrame:
        """Return the features that do not stand in for the group."""
        frame = drawn.frame[[*self.features, *self.sensitive]]
        found = frame.drop(columns=sensitive_columns(frame, frame[self.sensitive], answers.own))
        return pd.DataFrame(found.infer_objects())
