"""Tables beside the published ones: ours with its interval over seeds, the paper's number, the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from evenhand.protocol.trial import METRICS, PUBLISHED_METRICS

TEST_TO_TRAIN = 0.15 / 0.70
COLUMNS = ("dataset", "method", "metric", "ours", "low", "high", "published", "difference", "seeds")
TITLES = {
    "table1_discrimination": "Table 1: chosen by lowest discrimination",
    "table2_delta": "Table 2: chosen by highest accuracy − discrimination",
    "table_bounded": "Not in the paper: highest accuracy with discrimination at most 0.05 on validation",
    "table3_submodels": "Table 3: submodels of CCB, chosen by lowest discrimination",
    "table5_education_gender": "Table 5: education by gender (simulated students)",
    "table6_education_race": "Table 6: education by race (simulated students)",
}


@cache
def published() -> pd.DataFrame:
    """Return the paper's tables as numbers: table, method, dataset, accuracy, discrimination, consistency.

    Examples
    --------
    >>> paper = published()
    >>> paper[paper["method"] == "CCB"]["accuracy"].iloc[0]
    np.float64(0.7544)
    """
    with resources.files("evenhand.protocol").joinpath("published_results.csv").open() as file:
        return pd.read_csv(file)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of one value per seed and its 95 % interval; no interval for one seed.

    Student's t, with the variance that Nadeau and Bengio (2003) give to repeated splits of the same people:
    splits overlap, and more of them tell less than as many independent samples would.

    Examples
    --------
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
    """Return one line per cell of `found`, which has one row per data set, method and seed; see `COLUMNS`.

    Data sets that are not `comparable`, and tables that the paper does not have, get no published number.
    Those with `one_test_part` for every seed have no interval: how much another test part would change can't
    be seen from seeds that only move the training people.
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
            row = theirs.get((dataset, method), {}) if known else {}
            their = float(row.get(metric, np.nan))
            lines.append((dataset, method, metric, mean, low, high, their, mean - their, len(rows)))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def by_major(found: pd.DataFrame) -> pd.DataFrame:
    """Return the education results as the paper has them: for each major, the mean over its courses."""
    major = found["dataset"].str.extract(r"^simulated-([A-Z]+)-")[0]
    keys = ["dataset", "method", "seed"]
    return found.assign(dataset=major).groupby(keys, sort=False)[list(METRICS)].mean().reset_index()


def markdown(table: pd.DataFrame, metrics: Sequence[str] = METRICS) -> str:
    """Return a table for people: one line per data set and method; ours [low, high] (published, difference).

    Examples
    --------
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
