"""Who the trade-off is measured on, which methods it compares, and how a point of each is chosen on validation.

frontier.py trains by it, frontier_tables.py and frontier_page.py read results by it, boosted.py does both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import Dataset, load
from evenhand.metrics.selection import HighestDelta, Scores
from evenhand.protocol import compare

DATASETS = ("adult", "compas", "german", "health")
# 'trees' are scikit-learn's boosted trees, 'thresholds' fairlearn's ThresholdOptimizer, 'fairlearn' its
# ExponentiatedGradient; without 'trees', fairlearn and OxonFair have logistic regression inside.
COMPETITORS = (
    "blind network + parity", "fairlearn", "fairlearn trees", "thresholds", "thresholds trees", "OxonFair",
    "OxonFair trees", "LFR", "ALFR", "Rawlsian",
)  # fmt: skip
UNAWARE = ("LR unaware", "trees unaware")
DRAWN = ("fairlearn", "fairlearn trees", "thresholds", "thresholds trees")


@cache
def people_of(name: str) -> Dataset:
    """The data set, read once: the rows that the paper used, or with '-all' everybody, gaps and all."""
    if name.endswith("-all"):
        return replace(load(name.removesuffix("-all")), name=name)
    return load(name, rows="published")


@dataclass(frozen=True)
class Bounded:
    """Best accuracy among those within both bounds on validation; if none is, the least excess."""

    max_discrimination: float
    max_flip: float
    name: str = ""

    def rank(self, scores: Scores) -> tuple[float, ...]:
        excess = max(scores.discrimination - self.max_discrimination, 0) + max(
            scores.flip_rate - self.max_flip, 0
        )
        return (-excess, scores.accuracy)


@dataclass(frozen=True)
class NotConstant:
    """Another criterion, with constant classifiers last: nothing passes by deciding everybody alike."""

    among: Any
    name: str

    def rank(self, scores: Scores) -> tuple[float, ...]:
        return (float(0.001 < scores.positive_rate < 0.999), *self.among.rank(scores))


DELTA = NotConstant(HighestDelta(), "delta")


def chosen(
    table: pd.DataFrame, of: Sequence[str], rank: Callable[[Scores], tuple[float, ...]]
) -> pd.DataFrame:
    """The best row of each data set and seed among some methods, by a rank of the validation scores."""
    best = []
    for _, rows in table[table.method.isin(of)].groupby(["dataset", "seed"], sort=False):
        scores = [
            Scores(
                row.validation_accuracy,
                row.validation_discrimination,
                row.validation_positive_rate,
                row.validation_flip_rate,
            )
            for row in rows.itertuples()
        ]
        best.append(rows.iloc[max(range(len(rows)), key=lambda at: rank(scores[at]))])
    return pd.DataFrame(best)


def interval(values: pd.Series) -> str:
    """Mean and half-width of the 95 % interval over splits that overlap."""
    mean, low, _ = compare.interval(values.tolist())
    return f"{mean:.4f} ± {mean - low:.4f}" if np.isfinite(low) else f"{mean:.4f}"


def gaps(one: pd.DataFrame, other: pd.DataFrame, metric: str = "delta") -> Any:
    """One's metric less the other's on the splits that both have, by data set."""
    first, second = (rows.set_index(["dataset", "seed"])[metric] for rows in (one, other))
    return (first - second).dropna().groupby("dataset", sort=False)
