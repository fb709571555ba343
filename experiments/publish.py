"""Turn results into the pages' numbers: docs/generated/*.md, and the marked blocks of README.md and docs/*.md.

    python experiments/frontier.py && python experiments/defaults.py && python experiments/tried.py
    python experiments/frontier.py --datasets german compas --seeds 20 --out results/frontier/small
    python experiments/elsewhere.py && python experiments/published_ends.py && python experiments/authors_files.py
    python experiments/table2_explained.py && python experiments/figure_convergence.py && python experiments/part_way.py
    python experiments/tiny_groups.py && python experiments/selective_labels.py && python experiments/strangers.py && python experiments/boosted_choices.py
    python experiments/planted_proxies.py
    python benchmarks/training.py --json results/benchmarks/training.json
    python benchmarks/defaults.py --json results/benchmarks/defaults.json
    python benchmarks/learning.py --json results/benchmarks/learning.json
    python benchmarks/serving.py --json results/benchmarks/serving.json
    python benchmarks/gpu.py --splits 100 --json results/benchmarks/gpu.json    # on a machine with a GPU, as the next
    python benchmarks/gower_gpu.py --json results/benchmarks/gower-gpu.json
    pytest -rA -m device > results/benchmarks/gpu-tests.txt
    python experiments/boosted.py && python experiments/boosted_elsewhere.py
    python experiments/fairgbm_peer.py --python … && python benchmarks/boosting.py --json results/benchmarks/boosting.json
    python experiments/certificates.py --time-limit 300
    python experiments/certificates.py --policies both trees --time-limit 300
    python experiments/search_strategies.py
    evenhand reproduce
    evenhand reproduce --full --seeds 100 --out results/hundred …    # the command that reproduction-100.md names
    evenhand reproduce --full --seeds 100 --out results/hundred-control …    # and reproduction-100-control.md
    python experiments/publish.py
    python experiments/publish.py --blocks    # only copies docs/generated/*.md into the blocks; this needs no results

A block begins with `<!-- generated: NAME -->` and ends with `<!-- end -->`; it holds docs/generated/NAME.md. No number is
typed. What has no results is left as it is, and said. Some scripts write to docs/generated themselves; run the last command
after them.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[1]
RESULTS, GENERATED = ROOT / "results", ROOT / "docs" / "generated"
BLOCK = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->\n(?P<held>.*?)<!-- end -->", re.DOTALL)
FRONTIER = "experiments/frontier.py"
SMALL = "--datasets german compas --seeds 20 --out results/frontier/small"
ELSEWHERE = "Means over tables. Command: `python experiments/elsewhere.py`."
TITLES = {"adult": "Adult", "compas": "COMPAS", "german": "German", "health": "Health"}


def delta(folder: str = "frontier", command: str = FRONTIER) -> str:
    table = pd.read_csv(RESULTS / folder / "delta.csv", keep_default_na=False)
    # Bold: the highest mean, and what its splits do not tell apart from it. One split tells nothing apart.
    bold = (table["best"].astype(str) == "True") & table["delta"].str.contains("±")
    table["delta"] = table["delta"].where(~bold, "**" + table["delta"] + "**")
    text = table.pivot(index="method", columns="dataset", values="delta").loc[table.method.unique()]
    text = text.rename(columns=TITLES).rename_axis(index="delta = accuracy − discrimination", columns=None)
    return sourced(markdown(text.reset_index()), folder, command)


def paired() -> str:
    table = pd.read_csv(RESULTS / "frontier" / "paired.csv")
    table["dataset"] = table["dataset"].map(TITLES)
    return sourced(markdown(table.sort_values("dataset", kind="stable")), "frontier", FRONTIER)


def delta_details() -> str:
    table = pd.read_csv(RESULTS / "frontier" / "delta.csv", keep_default_na=False).drop(
        columns=["mean", "best"]
    )
    table["dataset"] = table["dataset"].map(TITLES)
    return sourced(markdown(table.sort_values("dataset", kind="stable")), "frontier", FRONTIER)


def cost(folder: str = "frontier", command: str = FRONTIER) -> str:
    table = pd.read_csv(RESULTS / folder / "cost.csv")
    table["dataset"] = table["dataset"].map(TITLES)
    table.columns = [name.replace("_", " ") for name in table.columns]
    return sourced(markdown(table.sort_values("dataset", kind="stable")), folder, command)


def both() -> str:
    """One row a data set: no fairness beside both kinds at once, without intervals."""
    table = pd.read_csv(RESULTS / "frontier" / "cost.csv").set_index(["kind", "dataset"])
    rows = []
    for name, title in TITLES.items():
        row = {"no fairness → both kinds": title}
        for column in ("accuracy", "discrimination", "flip_rate", "positive_rate"):
            ends = (table.loc[(kind, name), column].split(" ")[0] for kind in ("no fairness (λ = 0)", "both"))
            row[column.replace("_", " ")] = " → ".join(f"{float(end):.3f}" for end in ends)
        rows.append(row)
    return sourced(markdown(pd.DataFrame(rows)), "frontier", FRONTIER, what="Means")


def floor() -> str:
    table = pd.read_csv(RESULTS / "frontier" / "floor.csv", dtype=str)
    table["dataset"] = table["dataset"].map(TITLES)
    return f"{markdown(table)}\n\nFrom the groups' sizes and the share of positive decisions. Command: `python {FRONTIER}`."


def plain(folder: str, name: str, command: str) -> Callable[[], str]:
    def make() -> str:
        table = pd.read_csv(RESULTS / folder / f"{name}.csv")
        others = [column for column in table if column not in TITLES]
        table = table[others + [column for column in TITLES if column in table]].rename(columns=TITLES)
        if "dataset" in table:
            table["dataset"] = table["dataset"].map(TITLES)
        return sourced(markdown(table), folder, command)

    return make


def defaults() -> str:
    table = pd.read_csv(RESULTS / "defaults" / "defaults.csv")
    numbers = (
        table.drop(columns="seed")
        .groupby(["dataset", "method"], sort=False)
        .mean()
        .map("{:.4f}".format)
        .reset_index()
    )
    numbers["dataset"] = numbers["dataset"].map(TITLES)
    numbers.columns = [name.replace("_", " ") for name in numbers.columns]
    seeds = table.seed.nunique()
    found = json.loads((RESULTS / "defaults" / "found.json").read_text())
    gone = {TITLES[name]: count for name, count in found["collapsed"].items() if count}
    seconds = " and ".join(f"{name} in {took:.1f} s" for name, took in found["seconds_on_adult"].items())
    return (
        f"{markdown(numbers)}\n\nMeans over {seeds} random splits, test part. Splits on which the defaults collapsed: "
        f"{', '.join(f'{count} on {name}' for name, count in gone.items()) or 'none'}. The largest flip rate on any split: "
        f"{', '.join(f'{TITLES[name]} {rate:.2%}' for name, rate in found['worst_flip_rate'].items())}. "
        f"One fit on Adult: {seconds}. Command: `python experiments/defaults.py`."
    )


def tried() -> str:
    table = pd.read_csv(RESULTS / "tried" / "tried.csv")
    parts = []
    for dataset, rows in table.groupby("dataset", sort=False):
        numbers = rows.groupby("change", sort=False)[
            ["accuracy", "discrimination", "flip_rate", "positive_rate", "auc", "delta"]
        ].mean()
        numbers.columns = [name.replace("_", " ") for name in numbers.columns]
        shown = markdown(numbers.map("{:.4f}".format).reset_index())
        parts.append(f"**{TITLES[str(dataset)]}**\n\n{shown}")
    seeds = table.seed.nunique()
    parts.append(
        f"Means over {seeds} random splits, validation part. Command: `python experiments/tried.py`."
    )
    return "\n\n".join(parts)


def elsewhere() -> str:
    """Nine other tables: each method's mean delta and area, and on how many tables it is the best."""
    table = pd.read_csv(RESULTS / "elsewhere" / "compared.csv")
    rows = []
    for people, some in table.groupby("people", sort=False):
        means = some.groupby(["method", "table"], sort=False)[["delta", "area"]].mean()
        row = {"people who train": f"{people:,}"}
        best = {of: means[of].groupby("table").idxmax().str[0].value_counts() for of in means}
        for method in some["method"].unique():
            shown = {"method": method}
            for of, digits in (("delta", 4), ("area", 2)):
                shown[f"mean {of}"] = f"{means.loc[method, of].mean():.{digits}f}"
                shown[f"best {of}"] = f"{best[of].get(method, 0)} of {some['table'].nunique()}"
            rows.append(row | shown)
    return f"{markdown(pd.DataFrame(rows))}\n\n{ELSEWHERE}"


def decays() -> str:
    table = pd.read_csv(RESULTS / "elsewhere" / "decays.csv", keep_default_na=False)
    table["people"] = table["people"].map("{:,}".format)
    for column in ("accuracy", "discrimination", "delta", "positive_rate"):
        table[column] = table[column].map("{:.4f}".format)
    table.columns = ["people who train", *(name.replace("_", " ") for name in table.columns[1:])]
    return f"{markdown(table)}\n\n{ELSEWHERE}"


def reproduction(folder: str = "") -> str:
    """The tables that `evenhand reproduce` wrote, one heading deeper."""
    text = (RESULTS / folder / "tables.md").read_text().strip()
    made = json.loads((RESULTS / folder / "summary.json").read_text())["made"]
    return text.replace("## ", "### ") + f"\n\nCommand: `{made['command']}`."


def authors_files() -> str:
    table = pd.read_csv(RESULTS / "authors" / "files.csv")
    table["dataset"] = table["dataset"].map(TITLES)
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


def sceptic() -> str:
    """Ours beside a blind network, boosted trees and what is built around them: with draws that differ and seconds."""
    table = pd.read_csv(RESULTS / "frontier" / "delta.csv", keep_default_na=False)
    if "seconds" not in table:
        raise FileNotFoundError(2, "no column 'seconds'", str(RESULTS / "frontier" / "delta.csv"))
    shown = table[~table["method"].isin(["LFR", "ALFR", "Rawlsian", "published CCB"])].sort_values(
        "dataset", kind="stable"
    )
    shown = shown.assign(dataset=shown["dataset"].map(TITLES)).drop(columns=["mean", "best"])
    for column in ("delta", "accuracy", "discrimination", "flip rate", "positive rate", "AUC"):
        shown[column] = shown[column].str.split(" ").str[0]
    text = sourced(markdown(shown), "frontier", FRONTIER, what="Means")
    return text.replace(", test part", ", test part, chosen by delta on validation")


def part_way() -> str:
    """Cooperating policies beside a blind network with thresholds by group, by how many people may flip."""
    table = pd.read_csv(RESULTS / "part_way" / "compared.csv")
    rows = []
    for row in table.to_dict("records"):
        shown = {"dataset": TITLES[row["dataset"]], "flips on validation": f"at most {row['most_flips']:.0%}"}
        for title, name in (("ours", "ours"), ("blind", "blind network part-way, thresholds by group")):
            delta, flips = row[f"{name}: delta"], row[f"{name}: flip_rate"]
            shown[f"{title}: delta"], shown[f"{title}: flips"] = f"{delta:.4f}", f"{flips:.1%}"
        shown["ours − blind, delta"] = f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
        rows.append(shown)
    seeds = ", ".join(map(str, sorted(table["splits"].unique())))
    return (
        f"{markdown(pd.DataFrame(rows))}\n\nMeans over {seeds} new random splits, test part, with the 95 % interval of the "
        "difference. Command: `python experiments/part_way.py`."
    )


def ends() -> str:
    """Where the published reward ends on Adult, by how it ascends."""
    table = pd.read_csv(RESULTS / "ends" / "ends.csv")
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
    found = json.loads((RESULTS / "table2" / "found.json").read_text())
    shutil.copy(RESULTS / "table2" / "table2.svg", ROOT / "docs" / "images" / "table2.svg")
    paper = pd.read_csv(ROOT / "src/evenhand/protocol/published_results.csv")
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
    table = pd.read_csv(RESULTS / "convergence" / "convergence.csv")
    shutil.copy(RESULTS / "convergence" / "convergence.svg", ROOT / "docs" / "images" / "convergence.svg")
    table["lambda"] = table["lambda"].map("λ = {:g}".format)
    shown = table.pivot(index=["outputs", "dataset"], columns="lambda", values="rises_on")
    shown = shown[table["lambda"].unique()].map("{:.0%}".format).reset_index()
    shown["dataset"] = shown["dataset"].map(TITLES)
    shown = shown.sort_values("outputs", ascending=False, kind="stable")
    shown.columns = ["outputs", "share of the steps on which the sum rises", *shown.columns[2:]]
    return f"{markdown(shown)}\n\nAdam at 0.0001, two epochs. Command: `python experiments/figure_convergence.py`."


def speed() -> str:
    figures = json.loads((RESULTS / "benchmarks" / "training.json").read_text())
    rates = figures["updates_per_second"]
    rows = [
        {
            "Algorithm 1, one thread": name,
            "updates per second": f"{rate:,.0f}",
            "evenhand is": "" if name == "evenhand" else f"{rates['evenhand'] / rate:,.0f} × faster",
        }
        for name, rate in rates.items()
    ]
    threads = f"Two models in two threads: {figures['two_threads']:.2f} × the speed of one."
    return f"{markdown(pd.DataFrame(rows))}\n\n{threads} Command: `python benchmarks/training.py`, one run."


def speed_of_defaults() -> str:
    figures = json.loads((RESULTS / "benchmarks" / "defaults.json").read_text())
    met, seconds = figures["people_per_second"], figures["seconds_of_a_fit"]
    rates = pd.DataFrame(
        [(name, f"{rate:,.0f}", f"{met['evenhand'] / rate:.1f} ×") for name, rate in met.items()],
        columns=[
            "training with default settings, one thread",
            "people per second",
            "time relative to evenhand",
        ],
    )
    fits = pd.DataFrame(
        [(name, f"{value:.2f}", f"{value / seconds['evenhand']:.1f} ×") for name, value in seconds.items()],
        columns=["a whole fit on Adult, one thread", "seconds", "time relative to evenhand"],
    )
    return f"{markdown(rates)}\n\n{markdown(fits)}\n\nCommand: `python benchmarks/defaults.py`, one run."


def growth() -> str:
    figures = json.loads((RESULTS / "benchmarks" / "training.json").read_text())
    steps = pd.DataFrame(figures["growth"]).rename(columns={"ns_per_step": "ns per step"})
    steps["ns per step"] = steps["ns per step"].map("{:,.0f}".format)
    ways = pd.DataFrame(figures["sparse_or_dense"])
    ways["share"] = ways["share"].map("{:.0%}".format)
    for name in ("sparse", "dense"):
        ways[name] = ways[name].map("{:,.0f}".format)
    ways.columns = ["columns filled", "sparse rows, ns per step", "dense rows, ns per step"]
    return f"{markdown(steps)}\n\n{markdown(ways)}\n\nCommand: `python benchmarks/training.py`."


def sourced(text: str, folder: str, command: str, what: str = "Mean ± 95 % interval") -> str:
    """Return a table with what its numbers are, and how many splits: of its own methods where one has fewer."""
    cells = {cell.strip(" *") for cell in text.replace("\n", "|").split("|")}
    trials = pd.read_csv(RESULTS / folder / "trials.csv", usecols=["dataset", "method", "seed"])
    splits = trials.groupby("dataset").seed.nunique()
    fewer = [f"{TITLES[name]}: {count}" for name, count in splits.items() if count < splits.max()]
    for (method, name), count in trials.groupby(["method", "dataset"]).seed.nunique().items():
        if count < splits[name] and method in cells:
            fewer.append(f"{method} on {TITLES[name]}: {count}")
    told = f" ({'; '.join(fewer)})" if fewer else ""
    note = f"{what} over {splits.max()} random splits{told}, test part. Command: `python {command}`."
    return f"{text}\n\n{note}"


def markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def tiny_groups() -> str:
    table = pd.read_csv(RESULTS / "tiny_groups" / "choices.csv")
    found = table.groupby(["rule", "criterion"], sort=False)["regret"].agg(["mean", "sem"])
    text = (found["mean"].map("{:.4f}".format) + " ± " + found["sem"].map("{:.4f}".format)).unstack(
        sort=False
    )
    text = text.rename_axis(index="how groups are compared", columns=None).reset_index()
    runs = table[["table", "seed"]].drop_duplicates()
    return (
        f"{markdown(text)}\n\nMean regret and its standard error over {len(runs)} runs on "
        f"{table['table'].nunique()} tables. Command: `python experiments/tiny_groups.py --seeds {table['seed'].nunique()}`."
    )


def strangers() -> str:
    table = pd.read_csv(RESULTS / "strangers" / "aims.csv")
    splits = pd.read_csv(RESULTS / "strangers" / "measured.csv").seed.nunique()
    note = f"Means over {splits} splits, groups of at least 30 people. Command: `python experiments/strangers.py`."
    return f"{markdown(table)}\n\n{note}"


def planted_proxies() -> str:
    table = pd.read_csv(RESULTS / "planted_proxies" / "tables.csv")
    found = table.groupby(["asked", "people", "strength"], sort=False)[["found", "recall", "alarm"]].mean()
    found.loc[found.index.get_level_values("strength") == 0, "recall"] = float("nan")  # nothing was planted
    text = found.map(lambda value: "–" if pd.isna(value) else f"{100 * value:.0f} %").reset_index()
    text = text.rename(
        columns={"strength": "shift of the proxies", "recall": "proxies named", "alarm": "false alarms"}
    )
    command = f"python experiments/planted_proxies.py --seeds {table['seed'].nunique()}"
    return f"{markdown(text)}\n\nMeans over {table['seed'].nunique()} tables each. Command: `{command}`."


def proven(bound: float, closed: bool) -> str:
    return f"{math.ceil(1e4 * bound) / 100:.2f}" + ("" if closed else " (open)")


def certificates_z3() -> str:
    """A certificate's seconds beside Z3's, for those decided differently."""
    table = pd.read_csv(RESULTS / "certificates" / "z3.csv")
    shown = pd.DataFrame(
        {
            "dataset": table["dataset"].map(TITLES),
            "hidden units": table["hidden"],
            "found": (100 * table["flip_found"]).map("{:.2f}".format),
            "bound": [
                proven(*pair) for pair in zip(table["flip_bound"], table["flip_certified"], strict=True)
            ],
            "seconds": table["processor_seconds"].map("{:.1f}".format),
            "Z3: anybody?": table["anybody"],
            "seconds ": table["anybody_processor_seconds"].map("{:.1f}".format),
            "Z3: beyond the bound?": table["beyond"],
            "seconds  ": table["beyond_processor_seconds"].map("{:.1f}".format),
        }
    )
    limit, version = table[["time_limit", "z3"]].iloc[0]
    return (
        f"{markdown(shown)}\n\nOf people decided differently at λ = 20: the largest difference of probabilities found and proven, in "
        "percentage points; whether Z3 finds anybody; and whether it finds anybody beyond the "
        f"bound. Processor seconds, at most {limit:g} by the clock each. Command: "
        f"`python experiments/certificates_z3.py --time-limit {limit:g}`, Z3 {version}."
    )


def certificates(file: str = "certificates", options: str = "") -> str:
    """What was found and proven, in percentage points; a bound is rounded up."""
    table = pd.read_csv(RESULTS / "certificates" / f"{file}.csv")
    shown = pd.DataFrame(
        {
            "dataset": table["dataset"].map(TITLES),
            **({"policies": table["policies"]} if options else {}),
            "λ": table["lambda"].map("{:g}".format),
            "hidden units": table["hidden"],
            "test people": (100 * table["largest_of_test"]).map("{:.2f}".format),
            "found": (100 * table["found"]).map("{:.2f}".format),
            "bound": [proven(*pair) for pair in zip(table["bound"], table["certified"], strict=True)],
            "decided differently: found": (100 * table["flip_found"]).map("{:.2f}".format),
            "bound ": [
                proven(*pair) for pair in zip(table["flip_bound"], table["flip_certified"], strict=True)
            ],
            "seconds": table["seconds"].map("{:.0f}".format),
            "processor seconds": table["processor_seconds"].map("{:.0f}".format),
        }
    )
    limit = table["time_limit"].iloc[0]
    return (
        f"{markdown(shown)}\n\nThe largest difference of two policies' probabilities, in percentage points. Open: not certified "
        f"within the time limit. Command: `python experiments/certificates.py{options} --time-limit {limit:g}`, two cores shared with others."
    )


def search_strategies() -> str:
    """People found per prediction and per second, means over seeds with 95 % limits."""
    runs = pd.read_csv(RESULTS / "search_strategies" / "runs.csv")
    runs["dataset"] = runs["dataset"].map(TITLES)
    runs = runs.sort_values(["dataset", "model"], kind="stable")  # they come as they are done
    runs["found per 1,000 predictions"] = 1000 * runs["found"] / runs["predictions"]
    runs["per second"] = runs["found"] / runs["seconds"]
    runs["largest gap"] = 100 * runs["largest_gap"]
    runs["spread"] = 100 * runs["spread"]
    digits = {"found per 1,000 predictions": 0, "per second": 0, "largest gap": 1, "spread": 0}
    by = runs.groupby(["dataset", "model", "strategy"], sort=False)[list(digits)]
    n = runs["seed"].nunique()
    wide = by.sem() * stats.t.ppf(0.975, n - 1)
    text = pd.DataFrame(
        {
            name: [
                f"{mean:,.{d}f} ± {half:,.{d}f}"
                for mean, half in zip(by.mean()[name], wide[name], strict=True)
            ]
            for name, d in digits.items()
        },
        index=wide.index,
    )
    most = int(runs["predictions"].max())
    note = (
        f"Means over {n} seeds with 95 % limits (t); {most:,} predictions each; seconds of one processor, for models and strategy "
        "together. The largest gap is in percentage points, the spread in per cent. Command: "
        f"`python experiments/search_strategies.py --seeds {n} --predictions {most}`."
    )
    return f"{markdown(text.reset_index())}\n\n{note}"


def learning() -> str:
    rows, clock, worked = [], 0.0, 0.0
    for one in json.loads((RESULTS / "benchmarks" / "learning.json").read_text()):
        row = {"outcomes in the log": f"{one['n']:,}"}
        for name in ("join", "learn", "judge", "status", "again_join", "again_learn", "again_status"):
            took = one.get(f"{name}_processor_seconds")
            row[name.replace("again_", "1,000 more: ")] = "–" if took is None else f"{took:.3g} s"
            clock, worked = clock + one.get(f"{name}_seconds", 0.0), worked + (took or 0.0)
        most = max(value for name, value in one.items() if name.endswith("added_mb"))
        rows.append({**row, "memory added, at most": f"{most:.0f} MB"})
    note = (
        "Processor seconds in one thread; SQLite, 8 columns, two groups, ids in random order. `judge` is `candidate`, `status` "
        f"the first look at `/status`. By the clock it took {clock / worked:.1f} times as long, on two cores that other work "
        "used, too. Command: `python benchmarks/learning.py`."
    )
    return f"{markdown(pd.DataFrame(rows))}\n\n{note}"


PAGES: dict[str, Callable[[], str]] = {
    "learning": learning,
    "certificates": certificates,
    "certificates-boosted": lambda: certificates("boosted", " --policies both trees"),
    "certificates-z3": certificates_z3,
    "search-strategies": search_strategies,
    "planted-proxies": planted_proxies,
    "tiny_groups": tiny_groups,
    "strangers": strangers,
    "delta": delta,
    "delta-details": delta_details,
    "cost": cost,
    "cost-gaps": plain("frontier", "cost_gaps", FRONTIER),
    "cost-gaps-small": plain("frontier/small", "cost_gaps", f"{FRONTIER} {SMALL}"),
    "paired": paired,
    "hypervolume": plain("frontier", "hypervolume", FRONTIER),
    "hypervolume-gaps": plain("frontier", "hypervolume_gaps", FRONTIER),
    "bounds": plain("frontier", "bounds", FRONTIER),
    "both": both,
    "floor": floor,
    "delta-small": lambda: delta("frontier/small", f"{FRONTIER} {SMALL}"),
    "hypervolume-gaps-small": plain("frontier/small", "hypervolume_gaps", f"{FRONTIER} {SMALL}"),
    "elsewhere": elsewhere,
    "decays": decays,
    "defaults": defaults,
    "tried": tried,
    "reproduction": reproduction,
    "ends": ends,
    "part-way": part_way,
    "sceptic": sceptic,
    "table2": table2,
    "convergence": convergence,
    "authors-files": authors_files,
    "speed": speed,
    "speed-of-defaults": speed_of_defaults,
    "growth": growth,
}


def fill_blocks(text: str) -> str:
    """Return a page with what docs/generated holds now in its blocks."""

    def fill(match: re.Match[str]) -> str:
        held = (GENERATED / f"{match['name']}.md").read_text(encoding="utf-8").strip()
        return f"<!-- generated: {match['name']} -->\n\n{held}\n\n<!-- end -->"

    return BLOCK.sub(fill, text)


def fill_pages() -> None:
    """Fill the blocks of README.md and of the documentation."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        filled = fill_blocks(text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: filled")


def write_generated() -> None:
    """Write every page of docs/generated for which there are results."""
    import boosted_pages  # these need this file's functions
    import gpu_pages
    import hundred_pages
    import selective_pages
    import serving_pages

    GENERATED.mkdir(parents=True, exist_ok=True)
    for name, make in {
        **PAGES,
        **boosted_pages.PAGES,
        **gpu_pages.PAGES,
        **hundred_pages.PAGES,
        **selective_pages.PAGES,
        **serving_pages.PAGES,
    }.items():
        try:
            text = make()
        except FileNotFoundError as error:
            print(f"{name}: left as it is, there is no {Path(error.filename).relative_to(ROOT)}")
            continue
        (GENERATED / f"{name}.md").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: written")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", action="store_true", help="only fill the blocks")
    if not parser.parse_args().blocks:
        write_generated()
    fill_pages()


if __name__ == "__main__":
    main()
