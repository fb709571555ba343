"""The pages' tables about the paper: what `evenhand reproduce` wrote, and where its numbers come from; publish.py writes them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pandas as pd
from pages import RESULTS, ROOT, TITLES, figures, markdown, read

from evenhand.protocol.compare import published


def reproduction(folder: str = ".") -> str:
    """The tables that `evenhand reproduce` wrote, one heading deeper."""
    text = (RESULTS / folder / "tables.md").read_text().strip()
    made = figures(f"{folder}/summary")["made"]
    return text.replace("## ", "### ") + f"\n\nCommand: `{made['command']}`."


def authors_files() -> str:
    table = read("authors/files")
    german = table.set_index("dataset").loc["German"]
    for column in ("people", "test_people", "bytes_left_over"):
        table[column] = table[column].map("{:,}".format)
    titles = {"dataset": "", "people": "people", "test_people": "in the test part", "columns": "columns",
              "bytes_left_over": "bytes left over", "our_columns": "our columns",
              "fit_test_people": "published accuracies possible with this test part",
              "fit_15_percent": "with 15 % of the people"}  # fmt: skip
    shown = table[list(titles)].astype(str).rename(columns=titles)
    german_row = shown[""] == "German"
    shown.loc[german_row, "our columns"] += f" ({german.with_personal_status:.0f} with the personal status)"
    return (
        f"{markdown(shown)}\n\nOn German a published constant scores {german.constant_published:.4f}; on the file's last 200 it "
        f"would score {german.constant_last_200:.4f}. Command: `python experiments/authors_files.py`."
    )


def ends() -> str:
    """Where the published reward ends on Adult, by how it ascends."""
    table = read("ends/ends")
    rows = [
        {
            "the published reward on Adult": way,
            "constant at the end": f"{runs.constant.sum()} of {len(runs)}",
            "constant by group": f"{runs.constant_by_group.sum()} of {len(runs)}",
            "checkpoints that are constant": f"{runs.constant_checkpoints.sum() / runs.checkpoints.sum():.0%}",
            "of these, no longer at the next": f"{runs.left.sum() / max(runs.left.sum() + runs.stayed.sum(), 1):.0%}",
            "accuracy at the end": f"{runs.accuracy.min():.3f} to {runs.accuracy.max():.3f}",
            "flip rate at the end": f"{runs.flip_rate.min():.3f} to {runs.flip_rate.max():.3f}",
        }
        for way, runs in table.groupby("way", sort=False)
    ]
    weights = ", ".join(map(str, table["lambda"].unique()))
    return (
        f"{markdown(pd.DataFrame(rows))}\n\nλ of {weights}, 20 epochs, 40 hidden units, a checkpoint every 10,000 steps. "
        "Constant: at most 1 % of the test part get the rarer answer; by group: of each group. Command: `python experiments/published_ends.py`."
    )


def table2() -> str:
    """What the checkpoints behind Table 2 say, with λ·KL and with a constant in its place; the figure beside it."""
    found = figures("table2/found")
    shutil.copy(RESULTS / "table2" / "table2.svg", ROOT / "docs" / "images" / "table2.svg")
    paper = published()
    paper = paper[(paper.table == "table2_delta") & (paper.method == "CCB")].set_index("dataset")
    columns, flips = {}, []
    for name, rewards in found.items():
        for reward, one in rewards.items():
            columns[f"{TITLES[name]}: {reward}"] = table2_column(one)
            rates = ", ".join(f"{rate:.1%} at {weight}" for weight, rate in one["flips by weight"].items())
            flips.append(f"{TITLES[name]}, {reward}: {rates}")
    theirs = "; ".join(
        f"{TITLES[name]} {paper.accuracy[name]:.4f}, {paper.discrimination[name]:.4f}" for name in found
    )
    table = pd.DataFrame(columns).rename_axis("").reset_index()
    return (
        f"{markdown(table)}\n\nPublished (accuracy, discrimination): {theirs}. The reward is 1[a = y] minus what the column names. "
        f"Mean flip rate over all checkpoints, by λ or the constant: {'; '.join(flips)}. "
        "Command: `python experiments/table2_explained.py`."
    )


def table2_column(one: dict[str, Any]) -> dict[str, str]:
    """The lines of one data set and one reward; of several splits, the smallest and the largest."""

    def span(name: str, shown: str) -> str:
        low, high = (format(end(one["chosen"][name]), shown) for end in (min, max))
        return low if low == high else f"{low} to {high}"

    best = one["best"]
    return {
        "splits": str(len(one["chosen"]["step"])),
        "checkpoints": f"{one['checkpoints']:,}",
        "with a high validation delta": f"{one['share above']:.2%} above {one['high']:.2f}",
        "all checkpoints: mean discrimination on validation": f"{one['all']['discrimination']:.3f}",
        "the best fifty: discrimination on validation": f"{best['discrimination on validation']:.3f}",
        "one checkpoint before and after": f"{best['one checkpoint before and after']:.3f}",
        "on test": f"{best['on test']:.3f}",
        "their flip rate on test": f"{best['flip rate']:.1%}",
        "the chosen one of each split: accuracy on test": span("test_accuracy", ".4f"),
        "its discrimination": span("test_discrimination", ".4f"),
        "its flip rate": span("test_flip_rate", ".1%"),
    }


def convergence() -> str:
    """On how much of the way the accumulated reward rises, by λ and by the number of outputs."""
    table = read("convergence/convergence")
    shutil.copy(RESULTS / "convergence" / "convergence.svg", ROOT / "docs" / "images" / "convergence.svg")
    table["lambda"] = table["lambda"].map("λ = {:g}".format)
    shown = table.pivot(index=["outputs", "dataset"], columns="lambda", values="rises_on")
    shown = shown[table["lambda"].unique()].map("{:.0%}".format).reset_index()
    shown = shown.sort_values("outputs", ascending=False, kind="stable")
    shown.columns = ["outputs", "share of the steps on which the sum rises", *shown.columns[2:]]
    return f"{markdown(shown)}\n\nAdam at 0.0001, two epochs. Command: `python experiments/figure_convergence.py`."


PAGES: dict[str, Callable[[], str]] = {
    "reproduction": reproduction,
    "authors-files": authors_files,
    "ends": ends,
    "table2": table2,
    "convergence": convergence,
}
