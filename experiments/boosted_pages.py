"""The pages' tables about boosted trees, from the results of boosted.py, boosted_elsewhere.py, fairgbm_peer.py and
benchmarks/boosting.py; publish.py writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pages
import pandas as pd
from frontier_tables import standard_error
from pages import TITLES, figures, markdown, read

from evenhand.protocol import compare

KINDS = ("networks", "trees", "ensemble")
BLIND = ("blind LR", "blind trees", "blind LightGBM")


def boosted() -> str:
    """Every method on every data set, with the number of its splits."""
    table = summary()
    names = list(table["method"].unique())
    table = table.sort_values("dataset", key=lambda column: column.map(list(TITLES).index), kind="stable")
    columns = ("accuracy", "discrimination", "delta", "AUC", "calibration error")
    shown = table.assign(
        dataset=table["dataset"].map(TITLES), **{name: table[name].map(number) for name in columns}
    )
    for name in ("flip rate", "draws that differ"):
        shown[name] = table[name].map(lambda rate: "" if pd.isna(rate) else f"{rate:.2%}")
    shown["seconds"] = table["seconds"].map("{:.2f}".format)
    note = (
        "Means over the splits, test part; seconds: the median of one fit, of one thread's own time. "
        f"{len(names)} methods, each chosen on validation. Command: `python experiments/boosted.py`."
    )
    return f"{markdown(shown)}\n\n{note}"


def paired() -> str:
    table = read("boosted/paired")
    note = "On the splits that both have, ± 95 % interval. Command: `python experiments/boosted.py`."
    return f"{markdown(table)}\n\n{note}"


def bounds() -> str:
    """How often parity holds on people not trained on, up to what chance alone shows on a part of their number."""
    table = read("boosted/trials", titled=False)
    table = table[(table.criterion == "accuracy") & table.method.str.endswith(", both")]
    rows = []
    for (name, method, point), some in table.groupby(["dataset", "method", "parameters"], sort=False):
        bound = json.loads(point)["bound"]
        slack = 1.645 * standard_error(name, some["positive_rate"], by_group=True)
        mean, low, _ = compare.interval(some["discrimination"].tolist())
        rows.append({
            "dataset": TITLES[name], "policies": method.removesuffix(", both"), "bound": bound,
            "discrimination on test": f"{mean:.4f} ± {mean - low:.4f}", "sampling error": f"{slack.mean():.4f}",
            "within it": f"{int((some['discrimination'] <= bound + slack).sum())} of {len(some)} splits",
        })  # fmt: skip
    shown = pd.DataFrame(rows).sort_values(["dataset", "bound"], kind="stable")
    note = "λ = 20 with parity, no choice made. Command: `python experiments/boosted.py`."
    return f"{markdown(shown)}\n\n{note}"


def choices() -> str:
    """Log loss with the defaults, with what people set aside choose, and with the best choice in hindsight."""
    table = read("boosted_choices/losses")
    means = table.groupby(["table", "people"], sort=False).mean(numeric_only=True).drop(columns="seed")
    shown = means.map("{:.4f}".format).assign(
        **{"rounds chosen": means["rounds chosen"].map("{:.0f}".format)},
        **{"weight chosen": means["weight chosen"].map("{:.2f}".format)},
    )
    gains = [
        f"choosing the {what} changes it by {(table[f'{what}, chosen'] - table[f'{what}, default']).mean():+.4f}"
        for what in ("rounds", "weight")
    ]
    note = (
        f"Log loss, λ = 20, means over {table.seed.nunique()} splits. Over all: {' and '.join(gains)}. "
        "Command: `python experiments/boosted_choices.py`."
    )
    return f"{markdown(shown.reset_index())}\n\n{note}"


def elsewhere() -> str:
    table = read("boosted_elsewhere/summary", keep_default_na=False)
    splits = read("boosted_elsewhere/trials").seed.nunique()
    rows = []
    for (name, people), some in table.groupby(["table", "people"], sort=False):
        row = {"table": name, "people": f"{people:,}"}
        for one in some.itertuples():
            even = f" / {one.discrimination:.3f}" if one.method == "ensemble, parity" else ""
            flips = "" if one.method.startswith("blind") else f" / {one.flip_rate:.2%}"
            row[one.method] = f"{one.accuracy:.3f} / {one.auc:.3f}{flips}{even}"
        rows.append(row)
    note = (
        f"Accuracy / AUC / flips, with parity discrimination too; means over {splits} splits of 70/30, default "
        "settings. Command: `python experiments/boosted_elsewhere.py`."
    )
    return f"{markdown(pd.DataFrame(rows))}\n\n{note}"


def fairgbm() -> str:
    table = read("fairgbm/trials")
    means = table.groupby(["constraint", "method"], sort=False).mean(numeric_only=True).drop(columns="seed")
    shown = means.map("{:.4f}".format)
    shown["flips"] = means["flips"].map("{:.2%}".format)
    shown["seconds"] = means["seconds"].map("{:.1f}".format)
    note = (
        f"Means over {table.seed.nunique()} splits of Adult, test part, one thread; every setting is shown, none is chosen. "
        "Command: `python experiments/fairgbm_peer.py --python …`."
    )
    return f"{markdown(shown.reset_index().sort_values('constraint', kind='stable'))}\n\n{note}"


def speed() -> str:
    found = figures("benchmarks/boosting")
    seconds, each = found["seconds"], found["nanoseconds_per_person"]
    plain = seconds["LightGBM, plain"]
    fits = [{"a fit on Adult, one thread": name, "seconds": f"{took:.2f}", "× LightGBM": f"{took / plain:.1f}"}
            for name, took in seconds.items()]  # fmt: skip
    ratio = each["LightGBM's predict"] / each["our compiled trees"]
    said = f"Deciding by the same trees: our loop is {ratio:.1f} × as fast as LightGBM's `predict`."
    return f"{markdown(pd.DataFrame(fits))}\n\n{said} Command: `python benchmarks/boosting.py`, one run."


def aims() -> str:
    """Each aim, what was measured, and whether that is enough."""
    rows = [
        {"aim": aim, "measured": measured, "": "met" if met else "missed"}
        for aim, measured, met in every_aim()
    ]
    return f"{markdown(pd.DataFrame(rows))}\n\nFrom the tables on this page."


def every_aim() -> Iterator[tuple[str, str, bool]]:
    table = summary().set_index(["dataset", "method"])
    sets = [name for name in TITLES if name in table.index]
    yield from deltas(table, sets)
    for name, kind in [(name, kind) for name in sets if name.startswith("adult") for kind in KINDS]:
        row = table.loc[(name, f"{kind}, both")]
        met = row.accuracy >= 0.847 and row.discrimination <= 0.012 and row["flip rate"] <= 0.005
        said = f"{row.accuracy:.4f} / {row.discrimination:.4f} / {row['flip rate']:.2%}"
        yield (
            f"2. Both kinds on {TITLES[name]}, {kind}: accuracy ≥ 0.847, discrimination ≤ 0.012, flips ≤ 0.5 %",
            said,
            met,
        )
    yield from individual(table, sets)
    yield from speeds()
    yield from beside_fairgbm()
    yield from calibrated(table, sets)


def deltas(table: pd.DataFrame, sets: list[str]) -> Iterator[tuple[str, str, bool]]:
    """Against every other method on the splits that both have."""
    pairs = read("boosted/paired", titled=False)
    pairs = pairs[pairs["delta of"] == "ensemble, parity"].reset_index(drop=True)
    pairs["lead"] = pairs["difference"].astype(str).str.split(" ").str[0].astype(float)
    for name in sets:
        delta = table.loc[name, "delta"]
        said = ", ".join(f"{kind} {delta[f'{kind}, parity']:.4f}" for kind in KINDS)
        least = pairs.loc[pairs[pairs["dataset"] == name]["lead"].idxmin()]
        yield (
            f"1. Delta on {TITLES[name]}: the highest"
            + (", at least 0.838" if name.startswith("adult") else ""),
            f"{said}; the ensemble's least lead: {least.difference} over {least['less that of']} on {least.splits} splits",
            least.lead > 0 and (not name.startswith("adult") or delta["ensemble, parity"] >= 0.838),
        )


def individual(table: pd.DataFrame, sets: list[str]) -> Iterator[tuple[str, str, bool]]:
    for name in sets:
        rows = table.loc[name]
        ours, best = rows.loc["ensemble, individual"], rows.loc[list(BLIND)].max()
        short, auc_short = best.accuracy - ours.accuracy, best.AUC - ours.AUC
        yield (
            f"3. The default (ensemble) on {TITLES[name]} beside the best blind model: −0.3 points, −0.003 AUC, flips ≤ 0.5 %",
            f"{-100 * short:+.2f} points, {-auc_short:+.4f} AUC, {ours['flip rate']:.2%} flips",
            short <= 0.003 and auc_short <= 0.003 and ours["flip rate"] <= 0.005,
        )
    if (pages.RESULTS / "boosted_elsewhere" / "summary.csv").exists():
        elsewhere = read("boosted_elsewhere/summary", keep_default_na=False)
        for kind in KINDS:
            said = elsewhere[elsewhere["method"] == kind].set_index("table")["aim"]
            met = said == "met"
            but = "; ".join(f"{name}: {text}" for name, text in said[~met].items())
            yield (
                f"3. {kind.capitalize()} on other tables",
                f"{met.sum()} of {len(met)}" + f" ({but})" * bool(but),
                met.all(),
            )


def speeds() -> Iterator[tuple[str, str, bool]]:
    if not (pages.RESULTS / "benchmarks" / "boosting.json").exists():
        return
    seconds = figures("benchmarks/boosting")["seconds"]
    ours = [took for name, took in seconds.items() if name.startswith("Cooperative")]
    slower = [took / seconds["LightGBM, plain"] for took in ours]
    faster = [seconds["ExponentiatedGradient around boosted trees"] / took for took in ours]
    plain, even = (f"{a:.1f} and {b:.0f} times" for a, b in zip(slower, faster, strict=True))
    yield (
        "4. A fit on Adult at most 3 times LightGBM's, at least 20 times faster than ExponentiatedGradient around trees",
        f"{plain} without parity, {even} with it",
        max(slower) <= 3 and min(faster) >= 20,
    )


def beside_fairgbm() -> Iterator[tuple[str, str, bool]]:
    """A front is as good as another if each of the other's points has one that is no worse in either measure."""
    if not (pages.RESULTS / "fairgbm" / "trials.csv").exists():
        return
    for constraint, some in read("fairgbm/trials").groupby("constraint", sort=False):
        means = some.groupby("method", sort=False).mean(numeric_only=True)
        gaps = ["TPR gap"] if constraint == "equal opportunity" else ["TPR gap", "FPR gap"]
        points = pd.DataFrame({"accuracy": means.accuracy, "gap": means[gaps].max(axis=1)})
        ours = points[points.index.str.startswith("ours")]
        theirs = points.drop(ours.index)
        met = all(
            ((ours.accuracy >= row.accuracy) & (ours.gap <= row.gap)).any() for row in theirs.itertuples()
        )
        said = "; ".join(f"{name}: {row.accuracy:.4f} at {row.gap:.4f}" for name, row in points.iterrows())
        yield f"5. Accuracy at the largest gap, {constraint}: as good as FairGBM's", said, met


def calibrated(table: pd.DataFrame, sets: list[str]) -> Iterator[tuple[str, str, bool]]:
    for name in sets:
        error = table.loc[name, "calibration error"]
        ours = {kind: error[f"{kind}, individual"] for kind in KINDS}
        said = ", ".join(f"{kind} {value:.4f}" for kind, value in ours.items())
        yield (
            f"6. Calibration error on {TITLES[name]} at most blind LightGBM's + 0.005",
            f"{said}; blind LightGBM {error['blind LightGBM']:.4f}",
            ours["ensemble"] <= error["blind LightGBM"] + 0.005,
        )


def summary() -> pd.DataFrame:
    return read("boosted/summary", titled=False)


def number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.4f}"


PAGES: dict[str, Callable[[], str]] = {
    "boosted": boosted,
    "boosted-paired": paired,
    "boosted-bounds": bounds,
    "boosted-choices": choices,
    "boosted-elsewhere": elsewhere,
    "boosted-aims": aims,
    "fairgbm": fairgbm,
    "boosting-speed": speed,
}
