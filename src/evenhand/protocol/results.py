"""What a reproduction comes to: tables, curves and words, in memory and as CSV and Markdown files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from evenhand.atomic import write_text
from evenhand.protocol.compare import TITLES, markdown
from evenhand.protocol.trial import METRICS
from evenhand.tables.dataset import Dataset

_BEST = ("dataset", "method", "criterion", "seed", *METRICS)
_FAILURES = ("dataset", "seed", "method", "parameters", "error")


class RewardCurve(TypedDict):
    """The accumulated reward of one training run against steps."""

    dataset: str
    method: str
    step: list[float]
    reward: list[float]


class GradientCurve(TypedDict):
    """The smallest and the mean squared gradient norm so far against steps, with their slopes."""

    dataset: str
    method: str
    step: list[float]
    smallest: list[float]
    mean: list[float]
    slope_of_smallest: float
    slope_of_mean: float


@dataclass(frozen=True, eq=False)
class Results:
    """What came out of a reproduction."""

    command: str  # what makes the same from a command line
    seeds: int  # how many splits
    out: Path  # the folder with the store
    datasets: Sequence[Dataset] = ()  # the public ones
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)  # see `compare.beside`
    best: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_BEST)))  # see `Sweep.run`
    sentences: Sequence[str] = ()  # what the tables say
    curves: Sequence[RewardCurve] = ()
    theorem: Sequence[GradientCurve] = ()
    failures: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_FAILURES)))

    def __str__(self) -> str:
        """Return all tables and sentences as Markdown."""
        parts = [
            "Each cell: ours [95 % interval over seeds] (published, difference). The published consistency "
            "can't be matched exactly: its neighbour lists are off by one for about half of the people.",
            *(f"## {TITLES[name]}\n\n{markdown(table)}" for name, table in self.tables.items()),
        ]
        if self.sentences:
            parts.append("## In words\n\n" + "\n".join(f"- {sentence}" for sentence in self.sentences))
        return "\n\n".join(parts)

    def write_tables(self) -> None:
        """Write `tables.md`, and one CSV per table and for the curves, the theorem and the failures."""
        self.out.mkdir(parents=True, exist_ok=True)
        texts = {f"{name}.csv": table.to_csv(index=False) for name, table in self.tables.items()}
        texts |= {
            "best.csv": self.best.to_csv(index=False),
            "convergence.csv": _long(self.curves, ("reward",)),
            "theorem.csv": _long(self.theorem, ("smallest", "mean")),
            "failures.csv": self.failures.to_csv(index=False),
            "tables.md": str(self) + "\n",
        }
        for name, text in texts.items():
            write_text(self.out / name, text)


def _long(curves: Sequence[Mapping[str, Any]], series: tuple[str, ...]) -> str:
    columns = ["dataset", "method", "step", *series]
    frames = [pd.DataFrame({name: curve[name] for name in columns}) for curve in curves]
    return (pd.concat(frames) if frames else pd.DataFrame(columns=columns)).to_csv(index=False)
