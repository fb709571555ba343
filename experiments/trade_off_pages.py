"""The pages' tables about the trade-off, from the results of frontier.py, elsewhere.py and part_way.py; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pages import RESULTS, TITLES, markdown, read

FRONTIER = "experiments/frontier.py"
SMALL = "--datasets german compas --seeds 20 --out results/frontier/small"
ELSEWHERE = "Means over tables. Command: `python experiments/elsewhere.py`."


def delta(folder: str = "frontier", command: str = FRONTIER) -> str:
    table = read(f"{folder}/delta", keep_default_na=False)
    # Bold: the highest mean, and what its splits do not tell apart from it. One split tells nothing apart.
    bold = (table["best"].astype(str) == "True") & table["delta"].str.contains("±")
    table["delta"] = table["delta"].where(~bold, "**" + table["delta"] + "**")
    text = table.pivot(index="method", columns="dataset", values="delta").loc[table.method.unique()]
    text = text.rename_axis(index="delta = accuracy − discrimination", columns=None)
    return sourced(markdown(text.reset_index()), folder, command)


def paired() -> str:
    table = read("frontier/paired")
    return sourced(markdown(table.sort_values("dataset", kind="stable")), "frontier", FRONTIER)


def delta_details() -> str:
    table = read("frontier/delta", keep_default_na=False).drop(columns=["mean", "best"])
    return sourced(markdown(table.sort_values("dataset", kind="stable")), "frontier", FRONTIER)


def cost(folder: str = "frontier", command: str = FRONTIER) -> str:
    table = read(f"{folder}/cost")
    table.columns = [name.replace("_", " ") for name in table.columns]
    return sourced(markdown(table.sort_values("dataset", kind="stable")), folder, command)


def both() -> str:
    """One row a data set: no fairness beside both kinds at once, without intervals."""
    table = read("frontier/cost").set_index(["kind", "dataset"])
    rows = []
    for title in TITLES.values():
        if ("both", title) not in table.index:
            continue
        row = {"no fairness → both kinds": title}
        for column in ("accuracy", "discrimination", "flip_rate", "positive_rate"):
            ends = (
                table.loc[(kind, title), column].split(" ")[0] for kind in ("no fairness (λ = 0)", "both")
            )
            row[column.replace("_", " ")] = " → ".join(f"{float(end):.3f}" for end in ends)
        rows.append(row)
    return sourced(markdown(pd.DataFrame(rows)), "frontier", FRONTIER, what="Means")


def floor() -> str:
    table = read("frontier/floor", dtype=str)
    return f"{markdown(table)}\n\nFrom the groups' sizes and the share of positive decisions. Command: `python {FRONTIER}`."


def plain(folder: str, name: str, command: str) -> Callable[[], str]:
    def make() -> str:
        table = read(f"{folder}/{name}")
        others = [column for column in table if column not in TITLES]
        table = table[others + [column for column in TITLES if column in table]].rename(columns=TITLES)
        return sourced(markdown(table), folder, command)

    return make


def sceptic() -> str:
    """Ours beside a blind network, boosted trees and what is built around them: with draws that differ and seconds."""
    table = read("frontier/delta", keep_default_na=False)
    if "seconds" not in table:
        raise FileNotFoundError(2, "no column 'seconds'", str(RESULTS / "frontier" / "delta.csv"))
    shown = table[~table["method"].isin(["LFR", "ALFR", "Rawlsian", "published CCB"])].sort_values(
        "dataset", kind="stable"
    )
    shown = shown.drop(columns=["mean", "best"])
    for column in ("delta", "accuracy", "discrimination", "flip rate", "positive rate", "AUC"):
        shown[column] = shown[column].str.split(" ").str[0]
    text = sourced(markdown(shown), "frontier", FRONTIER, what="Means")
    return text.replace(", test part", ", test part, chosen by delta on validation")


def elsewhere() -> str:
    """Nine other tables: each method's mean delta and area, and on how many tables it is the best."""
    table = read("elsewhere/compared")
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
    table = read("elsewhere/decays", keep_default_na=False)
    table["people"] = table["people"].map("{:,}".format)
    for column in ("accuracy", "discrimination", "delta", "positive_rate"):
        table[column] = table[column].map("{:.4f}".format)
    table.columns = ["people who train", *(name.replace("_", " ") for name in table.columns[1:])]
    return f"{markdown(table)}\n\n{ELSEWHERE}"


def part_way() -> str:
    """Cooperating policies beside a blind network with thresholds by group, by how many people may flip."""
    table = read("part_way/compared")
    rows = []
    for row in table.to_dict("records"):
        shown = {"dataset": row["dataset"], "flips on validation": f"at most {row['most_flips']:.0%}"}
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


def sourced(text: str, folder: str, command: str, what: str = "Mean ± 95 % interval") -> str:
    """Return a table with what its numbers are, and how many splits: of its own methods where one has fewer."""
    cells = {cell.strip(" *") for cell in text.replace("\n", "|").split("|")}
    trials = read(f"{folder}/trials", usecols=["dataset", "method", "seed"])
    splits = trials.groupby("dataset").seed.nunique()
    fewer = [f"{name}: {count}" for name, count in splits.items() if count < splits.max()]
    for (method, name), count in trials.groupby(["method", "dataset"]).seed.nunique().items():
        if count < splits[name] and method in cells:
            fewer.append(f"{method} on {name}: {count}")
    told = f" ({'; '.join(fewer)})" if fewer else ""
    note = f"{what} over {splits.max()} random splits{told}, test part. Command: `python {command}`."
    return f"{text}\n\n{note}"


PAGES: dict[str, Callable[[], str]] = {
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
    "sceptic": sceptic,
    "elsewhere": elsewhere,
    "decays": decays,
    "part-way": part_way,
}
