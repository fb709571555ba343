"""What the trade-off's tables say, in plain words. Every number and every claim is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from frontier_tables import MAX_DISCRIMINATION, MAX_FLIP

from evenhand.metrics.measures import SHOWN
from evenhand.protocol.compare import interval

OURS = "ours"
# For the user more is better (1) or less is (−1).
DIRECTIONS = {"accuracy": 1, "discrimination": -1, "flip_rate": -1, "balanced_accuracy": 1, "auc": 1}

Choices = Mapping[str, pd.DataFrame]  # by method: what it chooses on each split, a row a seed


def measured(values: pd.Series, metric: str) -> dict[str, float | None]:
    """Mean and 95 % interval over the splits, cut to what is possible."""
    value, low, high = (None if number != number else number for number in interval(values.tolist()))
    highest = None if metric == "gap" else 1.0
    return {
        "value": value,
        "low": None if low is None else max(0.0, low),
        "high": high if high is None or highest is None else min(highest, high),
    }


def ahead(choices: Choices, other: str, metric: str) -> tuple[float, float, float]:
    """How much better ours is than another method, with its interval: paired, on the splits that both have."""
    both = choices[OURS][metric].to_frame("ours").join(choices[other][metric].rename("other"), how="inner")
    return interval((DIRECTIONS.get(metric, 1) * (both.ours - both.other)).tolist())


def ranked(choices: Choices) -> list[str]:
    return sorted(choices, key=lambda name: -choices[name].delta.mean())


def headline(choices: Choices) -> str:
    first, second = ranked(choices)[:2]
    if first == OURS:
        text = f"Ours has the highest delta of {len(choices)} methods: {spread(choices[OURS].delta)}; next is {second} with {spread(choices[second].delta)}."
        return f"{text} {verdict(choices, second)}"
    place = ranked(choices).index(OURS) + 1
    text = f"{first} has the highest delta of {len(choices)} methods: {spread(choices[first].delta)}; ours is number {place} with {spread(choices[OURS].delta)}."
    return f"{text} {verdict(choices, first)}"


def verdict(choices: Choices, other: str) -> str:
    mean, low, high = ahead(choices, other, "delta")
    between = f"On the same splits, ours less {other} is {signed(mean)}"
    if low != low:
        return f"{between}: one split tells nothing about chance."
    told = "chance does not explain it" if low > 0 or high < 0 else "this may be chance"
    return f"{between} ({signed(low)} to {signed(high)}): {told}."


def against_each(choices: Choices) -> str:
    """Delta against every other method, on the same splits."""
    said: dict[str, list[str]] = {"above": [], "not to be told from": [], "below": []}
    for other in choices:
        if other != OURS:
            mean, low, high = ahead(choices, other, "delta")
            kind = "above" if low > 0 else "below" if high < 0 else "not to be told from"
            said[kind].append(f"{other} ({signed(mean)}, {signed(low)} to {signed(high)})")
    parts = [f"{kind} {listed(names)}" for kind, names in said.items() if names]
    return f"Delta, split by split, 95 % intervals of the difference: ours is {'; '.join(parts)}."


def beside_the_paper(choices: Choices, published: float) -> str:
    _, low, high = interval(choices[OURS].delta.tolist())
    where = "above" if published < low else "below" if published > high else "around"
    return f"The paper's CCB has a delta of {published:.4f} on its own single split; the interval of ours lies {where} it."


def beside_a_constant(choices: Choices, positives: pd.Series) -> str:
    """What deciding everybody alike would reach: the least that a method must beat. `positives`: of the labels, by seed."""
    constant = positives if positives.mean() > 0.5 else 1 - positives
    beat = [
        name
        for name in ranked(choices)
        if interval((choices[name].delta - constant).dropna().tolist())[1] > 0
    ]
    who = (
        f"By more than chance above it: {listed(beat)}."
        if beat
        else "No method is above it by more than chance."
    )
    rates = f"Ours decides {percent(choices[OURS].positive_rate.mean())} positively; {percent(positives.mean())} of the labels are."
    return (
        f"Deciding everybody alike has a delta of {constant.mean():.4f} on the same test parts. {who} {rates}"
    )


def where_others_do_better(choices: Choices) -> str:
    """The methods whose choice is better than ours in another measure, by more than chance."""
    parts = []
    for metric in DIRECTIONS:
        others = [name for name in choices if name != OURS and ahead(choices, name, metric)[2] < 0]
        if others:
            mean = {name: show(choices[name][metric].mean(), metric) for name in (*others, OURS)}
            names = listed([f"{name} {mean[name]}" for name in others])
            parts.append(f"{SHOWN[metric][0]}: {names} (ours {mean[OURS]})")
    if not parts:
        return "In no other measure of the table is another method's choice better than ours by more than chance."
    return f"Better than ours by more than chance, at what each chooses for delta. {'. '.join(sentence(part) for part in parts)}."


def costs(rows: pd.DataFrame) -> str:
    """What each kind of fairness costs, and whether what was asked for on validation came on test."""
    rows = rows.set_index("kind").map(
        lambda cell: mean_of(cell) if isinstance(cell, str) and "±" in cell else cell
    )
    free = next((kind for kind in rows.index if kind.startswith("no fairness")), None)
    if free is None:
        return ""
    told = f"Of ours, without fairness: accuracy {rows.accuracy[free]:.4f}, discrimination {rows.discrimination[free]:.4f}, flip rate {percent(rows.flip_rate[free])}."
    asked = {
        "individual": {"flip_rate": MAX_FLIP},
        "both": {"discrimination": MAX_DISCRIMINATION, "flip_rate": MAX_FLIP},
    }
    for kind, limits in asked.items():
        if kind not in rows.index:
            continue
        row = rows.loc[kind]
        kept = []
        for name, limit in limits.items():
            holds = "within" if row[name] <= limit else "not within"
            kept.append(
                f"{SHOWN[name][0]} {show(row[name], name)}, {holds} the {show(limit, name)} asked for on validation"
            )
        change = row.accuracy - rows.accuracy[free]
        title = {"individual": "Individual fairness", "both": "Both kinds"}[kind]
        told += f" {title}: accuracy {signed(change)}; on test {'; '.join(kept)}."
    return told


def areas(rows: pd.DataFrame, dataset: str) -> str:
    """Who has the largest area, for both ways to take the points."""
    parts = []
    for kind, group in rows.dropna(subset=[dataset]).groupby("points", sort=False):
        cells = group.set_index("method")[dataset]
        best = cells.map(mean_of).sort_values(ascending=False).index
        other = best[1] if best[0] == OURS else OURS
        parts.append(f"{kind}, {best[0]} ({cells[best[0]]}; {other} {cells[other]})")
    return (
        f"Largest mean area between front and corner, percent of the unit square: {'; '.join(parts)}."
        if parts
        else ""
    )


def bounds(rows: pd.DataFrame) -> str:
    """Whether what a user asks for on validation holds on test."""
    parts, blurred = [], []
    for on, group in rows.groupby("bound on", sort=False):
        cases = []
        for row in group.to_dict("records"):
            over = (
                ""
                if mean_of(row["on test"]) <= row["bound"]
                else f" (its mean there, {mean_of(row['on test']):.4f}, is above it)"
            )
            cases.append(f"{row['bound']:g} on {row['met']} splits{over}")
            if float(row["sampling error"]) > row["bound"]:
                blurred.append(f"{row['bound']:g} on {on}")
        parts.append(f"{on} at most {listed(cases)}")
    told = f"Asked for on validation, kept on test within sampling error: {'; '.join(parts)}."
    if blurred:
        told += f" The sampling error is larger than the bound for {listed(blurred)}: there a test part of this size can't tell."
    return told


def over_all(found: Mapping[str, Choices]) -> str:
    """One sentence for all data sets."""
    first = [name for name, choices in found.items() if ranked(choices)[0] == OURS]
    clear = [
        name
        for name, choices in found.items()
        if all(ahead(choices, other, "delta")[1] > 0 for other in choices if other != OURS)
    ]
    worse = [
        f"{other} on {name}"
        for name, choices in found.items()
        for other in choices
        if other != OURS and ahead(choices, other, "delta")[2] < 0
    ]
    text = f"By accuracy less discrimination (delta), ours has the highest mean on {count(first, found)}"
    text += f", and is above every other method by more than chance on {count(clear, found)}."
    return text + (
        f" By more than chance below: {listed(worse)}."
        if worse
        else " No other method is above ours by more than chance."
    )


def count(some: Sequence[str], of: Mapping[str, Any]) -> str:
    if len(some) == len(of):
        return f"all of the {len(of)} data sets"
    return (
        f"{len(some)} of {len(of)} data sets ({listed(list(some))})"
        if some
        else f"none of the {len(of)} data sets"
    )


def mean_of(cell: str) -> float:
    """The mean of a cell such as '0.8805 ± 0.0021'."""
    return float(cell.split(" ± ")[0])


def spread(values: pd.Series) -> str:
    mean, low, high = interval(values.tolist())
    return f"{mean:.4f}" if low != low else f"{mean:.4f} ({low:.4f}–{high:.4f})"


def show(value: float, metric: str) -> str:
    return percent(value) if metric == "flip_rate" else f"{value:.4f}"


def percent(value: float) -> str:
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
