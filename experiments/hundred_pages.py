"""The tables of a hundred splits; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pages import TITLES, markdown, read
from reproduction_pages import reproduction

from evenhand.protocol.compare import published
from evenhand.protocol.measuring import PUBLISHED_METRICS
from evenhand.protocol.reproduce import CRITERION_TABLES

HUNDRED = {"discrimination": "Table 1: lowest discrimination", "delta": "Table 2: highest delta"}


def spread() -> str:
    """Where the middle 95 % of the splits lie, beside the published number."""
    best, paper = read("hundred/best", titled=False), published()
    rows = []
    for criterion, title in HUNDRED.items():
        for dataset in best["dataset"].unique():
            ours = best[
                (best["dataset"] == dataset) & (best["criterion"] == criterion) & (best["method"] == "CCB")
            ]
            chosen = (paper["table"] == CRITERION_TABLES[criterion]) & (paper["method"] == "CCB")
            theirs = paper[chosen & (paper["dataset"] == dataset)].iloc[0]
            row = {"CCB": title, "data set": TITLES[dataset]}
            for metric in PUBLISHED_METRICS:
                low, high = ours[metric].quantile([0.025, 0.975])
                inside = round(low, 4) <= theirs[metric] <= round(high, 4)
                said = f"{theirs[metric]:.4f}, {'inside' if inside else 'outside'}"
                row[metric] = f"{ours[metric].median():.4f} [{low:.4f}, {high:.4f}] ({said})"
            rows.append(row)
    told = (
        f"Each cell: the median of {best['seed'].nunique()} splits [the middle 95 % of them] (published, and whether it lies "
        "inside). The splits draw the training and validation parts anew, and the test part, too, except Adult's. From the runs of "
        "the next tables."
    )
    return f"{markdown(pd.DataFrame(rows))}\n\n{told}"


PAGES: dict[str, Callable[[], str]] = {
    "reproduction-100": lambda: reproduction("hundred"),
    "reproduction-100-control": lambda: reproduction("hundred-control"),
    "spread-100": spread,
}
