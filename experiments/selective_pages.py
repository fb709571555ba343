"""The table and the picture of selective_labels.py; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pages import ROOT, TITLES, markdown, read
from scipy import stats

NAMES = {"made up": "Made up", **TITLES}
COLUMNS = {
    "utility": ("utility", 3, 1.0),
    "discrimination": ("discrimination", 3, 1.0),
    "flip_rate": ("flips, %", 1, 100.0),
    "explored": ("not its first choice, %", 1, 100.0),
    "exploration_cost": ("exploration cost", 4, 1.0),
    "earned": ("earned on the way", 3, 1.0),
}
DRAWN = ("utility", "discrimination", "flip_rate", "exploration_cost")


def half_width(values: pd.Series[float]) -> float:
    """Half of the 95 % interval of a mean over seeds."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.sem()) if len(values) > 1 else float("nan")


def at_the_end(trials: pd.DataFrame) -> pd.DataFrame:
    last = trials.groupby(["dataset", "method", "seed"])["people"].transform("max")
    return trials[trials["people"] == last]


def selective_labels() -> str:
    trials = read("selective_labels/trials", titled=False)
    draw(trials)
    rows = []
    for (dataset, method), some in at_the_end(trials).groupby(["dataset", "method"], sort=False):
        row = {"stream": NAMES[str(dataset)], "policy": method}
        for column, (title, digits, unit) in COLUMNS.items():
            values = unit * some[column]
            row[title] = f"{values.mean():.{digits}f} ± {half_width(values):.{digits}f}"
        rows.append(row)
    order = list(NAMES.values())
    table = pd.DataFrame(rows).sort_values("stream", key=lambda names: names.map(order.index), kind="stable")
    seeds = trials["seed"].nunique()
    return (
        f"{markdown(table)}\n\nAfter the last batch, per person. Utility, discrimination, flips and the share of decisions that are "
        "not the policy's first choice are measured on people outside the stream, exploration cost and "
        f"earnings on the stream. Mean ± 95 % interval over {seeds} streams of each. Command: `python experiments/selective_labels.py`."
    )


def draw(trials: pd.DataFrame) -> None:
    """How each policy does over time, as docs/images/selective_labels.svg."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "selective labels", "svg.fonttype": "none"})
    from matplotlib import pyplot

    names = [name for name in NAMES if name in set(trials["dataset"])]
    size = (3.3 * len(names), 2.6 * len(DRAWN))
    figure, axes = pyplot.subplots(len(DRAWN), len(names), figsize=size, sharex="col", squeeze=False)
    for at, name in enumerate(names):
        for row, column in enumerate(DRAWN):
            title, _, unit = COLUMNS[column]
            some = trials[trials["dataset"] == name]
            for method, of in some.groupby("method", sort=False):
                line = unit * of.groupby("people")[column].agg(["mean", half_width])
                style = "--" if method in ("deterministic", "oracle") else "-"
                axes[row, at].plot(line.index, line["mean"], style, label=method)
                low, high = line["mean"] - line["half_width"], line["mean"] + line["half_width"]
                axes[row, at].fill_between(line.index, low, high, alpha=0.12, linewidth=0)
            axes[row, at].set_title(f"{NAMES[name]}: {title}", fontsize=10)
        axes[-1, at].set_xlabel("people met")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(ROOT / "docs" / "images" / "selective_labels.svg", metadata={"Date": None})
    pyplot.close(figure)


PAGES: dict[str, Callable[[], str]] = {"selective-labels": selective_labels}
