"""The pages' tables about defaults: what they do to a stranger's table, and what else was tried; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

from pages import TITLES, figures, markdown, read


def defaults() -> str:
    table = read("defaults/defaults")
    numbers = (
        table.drop(columns="seed")
        .groupby(["dataset", "method"], sort=False)
        .mean()
        .map("{:.4f}".format)
        .reset_index()
    )
    numbers.columns = [name.replace("_", " ") for name in numbers.columns]
    seeds = table.seed.nunique()
    found = figures("defaults/found")
    gone = {TITLES[name]: count for name, count in found["collapsed"].items() if count}
    seconds = " and ".join(f"{name} in {took:.1f} s" for name, took in found["seconds_on_adult"].items())
    return (
        f"{markdown(numbers)}\n\nMeans over {seeds} random splits, test part. Splits on which the defaults collapsed: "
        f"{', '.join(f'{count} on {name}' for name, count in gone.items()) or 'none'}. The largest flip rate on any split: "
        f"{', '.join(f'{TITLES[name]} {rate:.2%}' for name, rate in found['worst_flip_rate'].items())}. "
        f"One fit on Adult: {seconds}. Command: `python experiments/defaults.py`."
    )


def tried() -> str:
    table = read("tried/tried")
    parts = []
    for dataset, rows in table.groupby("dataset", sort=False):
        numbers = rows.groupby("change", sort=False)[
            ["accuracy", "discrimination", "flip_rate", "positive_rate", "auc", "delta"]
        ].mean()
        numbers.columns = [name.replace("_", " ") for name in numbers.columns]
        shown = markdown(numbers.map("{:.4f}".format).reset_index())
        parts.append(f"**{dataset}**\n\n{shown}")
    seeds = table.seed.nunique()
    parts.append(
        f"Means over {seeds} random splits, validation part. Command: `python experiments/tried.py`."
    )
    return "\n\n".join(parts)


def tiny_groups() -> str:
    table = read("tiny_groups/choices")
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
    table = read("strangers/aims")
    splits = read("strangers/measured").seed.nunique()
    note = f"Means over {splits} splits, groups of at least 30 people. Command: `python experiments/strangers.py`."
    return f"{markdown(table)}\n\n{note}"


PAGES: dict[str, Callable[[], str]] = {
    "defaults": defaults,
    "tried": tried,
    "tiny_groups": tiny_groups,
    "strangers": strangers,
}
