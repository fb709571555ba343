"""The results of a reproduction: tables beside the published ones, curves and words, as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd
from scipy import stats

from evenhand.atomic import write_text
from evenhand.protocol.grids import CLOSE, CONTROL
from evenhand.protocol.measuring import METRICS, PUBLISHED_METRICS
from evenhand.tables.dataset import Dataset

TEST_TO_TRAIN = 0.15 / 0.70
COLUMNS = ("dataset", "method", "metric", "ours", "low", "high", "published", "difference", "seeds")
_BEST = ("dataset", "method", "criterion", "seed", *METRICS)
_FAILURES = ("dataset", "seed", "method", "parameters", "error")
TITLES = {
    "table1_discrimination": "Table 1: chosen by lowest discrimination",
    "table2_delta": "Table 2: chosen by highest accuracy − discrimination",
    "table_bounded": "Not in the paper: highest accuracy with discrimination at most 0.05 on validation",
    "table3_submodels": "Table 3: submodels of CCB, chosen by lowest discrimination",
    "table5_education_gender": "Table 5: education by gender (simulated students)",
    "table6_education_race": "Table 6: education by race (simulated students)",
}


# Methods that are compared with a published one of another name.
THEIRS = {f"{name} (authors)": name for name in ("Rawlsian", "LFR", "ALFR")} | {CLOSE: "CCB", CONTROL: "CCB"}


@cache
def published() -> pd.DataFrame:
    """Return the paper's tables as numbers: table, method, dataset, accuracy, discrimination, consistency.

    >>> paper = published()
    >>> paper[paper["method"] == "CCB"]["accuracy"].iloc[0]
    np.float64(0.7544)
    """
    with resources.files("evenhand.protocol").joinpath("published_results.csv").open() as file:
        return pd.read_csv(file)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of one value per seed and its 95 % interval; no interval for one seed.

    It is Student's t, with the variance of Nadeau and Bengio (2003) for repeated splits of the same people.
    Splits overlap, so they tell less than the same number of independent samples.

    >>> tuple(round(float(value), 3) for value in interval([0.80, 0.82, 0.84]))
    (0.82, 0.756, 0.884)
    """
    known = np.asarray([value for value in values if np.isfinite(value)], dtype=float)
    if not len(known):
        return (float("nan"),) * 3
    mean = float(known.mean())
    if len(known) < 2:
        return mean, float("nan"), float("nan")
    error = known.std(ddof=1) * np.sqrt(1 / len(known) + TEST_TO_TRAIN)
    half = float(stats.t.ppf(0.975, len(known) - 1) * error)
    return mean, mean - half, mean + half


def beside(
    found: pd.DataFrame,
    table: str,
    *,
    metrics: Iterable[str] = METRICS,
    comparable: Sequence[str] | None = None,
    one_test_part: Sequence[str] = (),
) -> pd.DataFrame:
    """Return one line per data set, method and metric, with `COLUMNS`; `found` has one row per seed.

    Data sets that are not `comparable`, and tables that the paper does not have, get no published number.
    Data sets with `one_test_part` for every seed get no interval: their seeds change the training people
    only, and can't show how much another test part would change.
    """
    paper = published()
    paper = paper[paper["table"] == table]
    theirs = {(row["dataset"], row["method"]): row for row in paper.to_dict("records")}
    lines = []
    for (dataset, method), rows in found.groupby(["dataset", "method"], sort=False):
        for metric in metrics:
            mean, low, high = interval(rows[metric].tolist())
            if dataset in one_test_part:
                low = high = float("nan")
            known = metric in PUBLISHED_METRICS and (comparable is None or dataset in comparable)
            row = theirs.get((dataset, THEIRS.get(str(method), method)), {}) if known else {}
            their = float(row.get(metric, np.nan))
            lines.append((dataset, method, metric, mean, low, high, their, mean - their, len(rows)))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def by_major(found: pd.DataFrame) -> pd.DataFrame:
    """Return the education results as in the paper: the mean over the courses of each major."""
    major = found["dataset"].str.extract(r"^simulated-([A-Z]+)-")[0]
    keys = ["dataset", "method", "seed"]
    return found.assign(dataset=major).groupby(keys, sort=False)[list(METRICS)].mean().reset_index()


def markdown(table: pd.DataFrame, metrics: Sequence[str] = METRICS) -> str:
    """Return one line per data set and method, with cells such as ours [low, high] (published, difference).

    >>> line = dict(dataset="adult", method="LR", metric="accuracy", ours=0.8475, low=0.84, high=0.85,
    ...             published=0.8387, difference=0.0088, seeds=2)
    >>> print(markdown(pd.DataFrame([line]), ["accuracy"]))
    | data set | method | accuracy |
    |---|---|---|
    | adult | LR | 0.8475 [0.8400, 0.8500] (0.8387, +0.0088) |
    """
    shown = [name for name in metrics if name in set(table["metric"])]
    lines = ["| data set | method | " + " | ".join(name.replace("_", " ") for name in shown) + " |"]
    lines.append("|" + "---|" * (2 + len(shown)))
    for (dataset, method), cells in table.groupby(["dataset", "method"], sort=False):
        by_metric = {cell["metric"]: cell for cell in cells.to_dict("records")}
        texts = [_cell(by_metric[name]) for name in shown]
        lines.append(f"| {dataset} | {method} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _cell(cell: dict[Any, Any]) -> str:
    if not np.isfinite(cell["ours"]):
        return "–"
    text = f"{cell['ours']:.4f}"
    if np.isfinite(cell["low"]):
        text += f" [{cell['low']:.4f}, {cell['high']:.4f}]"
    if np.isfinite(cell["published"]):
        text += f" ({cell['published']:.4f}, {cell['difference']:+.4f})"
    return text


class RewardCurve(TypedDict):
    """The accumulated reward of one training run, by step."""

    dataset: str
    method: str
    step: list[float]
    reward: list[float]


class GradientCurve(TypedDict):
    """The smallest and the mean squared gradient norm so far, by step, with their slopes."""

    dataset: str
    method: str
    step: list[float]
    smallest: list[float]
    mean: list[float]
    slope_of_smallest: float
    slope_of_mean: float


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a reproduction."""

    command: str  # the command that gives the same results
    seeds: int  # the number of splits
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
