"""The pages' tables about audits: certificates, searches for flips and proxies; publish.py writes them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
from pages import markdown, read
from scipy import stats


def certificates(file: str = "certificates", options: str = "") -> str:
    """What was found and proven, in percentage points; a bound is rounded up."""
    table = read(f"certificates/{file}")
    shown = pd.DataFrame(
        {
            "dataset": table["dataset"],
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


def certificates_z3() -> str:
    """A certificate's seconds beside Z3's, for those decided differently."""
    table = read("certificates/z3")
    shown = pd.DataFrame(
        {
            "dataset": table["dataset"],
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


def proven(bound: float, closed: bool) -> str:
    return f"{math.ceil(1e4 * bound) / 100:.2f}" + ("" if closed else " (open)")


def search_strategies() -> str:
    """People found per prediction and per second, means over seeds with 95 % limits."""
    runs = read("search_strategies/runs")
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


def planted_proxies() -> str:
    table = read("planted_proxies/tables")
    found = table.groupby(["asked", "people", "strength"], sort=False)[["found", "recall", "alarm"]].mean()
    found.loc[found.index.get_level_values("strength") == 0, "recall"] = float("nan")  # nothing was planted
    text = found.map(lambda value: "–" if pd.isna(value) else f"{100 * value:.0f} %").reset_index()
    text = text.rename(
        columns={"strength": "shift of the proxies", "recall": "proxies named", "alarm": "false alarms"}
    )
    command = f"python experiments/planted_proxies.py --seeds {table['seed'].nunique()}"
    return f"{markdown(text)}\n\nMeans over {table['seed'].nunique()} tables each. Command: `{command}`."


PAGES: dict[str, Callable[[], str]] = {
    "certificates": certificates,
    "certificates-boosted": lambda: certificates("boosted", " --policies both trees"),
    "certificates-z3": certificates_z3,
    "search-strategies": search_strategies,
    "planted-proxies": planted_proxies,
}
