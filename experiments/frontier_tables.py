"""The trade-off's tables, from the trials that frontier.py wrote to trials.csv."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from choosing import (
    COMPETITORS,
    DELTA,
    DRAWN,
    UNAWARE,
    Bounded,
    NotConstant,
    chosen,
    gaps,
    interval,
    people_of,
)

from evenhand.protocol import compare
from evenhand.protocol.trial import SPLITS

MAX_DISCRIMINATION, MAX_FLIP = 0.01, 0.005
ALIKE = "everybody alike"
# Rows of ours, by what is chosen from: policies that are networks, boosted trees, or the mean of both.
OURS = {
    "ours": "CCB parity",
    "ours, large λ": "CCB both",
    "ours, trees": "trees parity",
    "ours, trees, large λ": "trees both",
    "ours, ensemble": "ensemble parity",
    "ours, ensemble, large λ": "ensemble both",
}


def by_delta(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What the delta criterion chooses on validation for each method: one row a data set and split."""
    at_delta = table[table.criterion == "delta"]
    names = OURS | {name: name for name in (*COMPETITORS, *UNAWARE)}
    found = {
        name: chosen(at_delta, [method], DELTA.rank)
        for name, method in names.items()
        if (at_delta.method == method).any()
    }
    return {**found, ALIKE: decided_alike(found["ours"])}


def decided_alike(like: pd.DataFrame) -> pd.DataFrame:
    """What a constant reaches on the same splits: everybody gets the label that is commoner among those who train."""
    rows = []
    for dataset, seed in zip(like.dataset, like.seed, strict=True):
        people = people_of(dataset)
        positive = (people.label == people.pos_label).to_numpy()
        parts = SPLITS["random"](people, int(seed))
        decided = bool(positive[parts.train].mean() > 0.5)
        accuracy = float((positive[parts.test] == decided).mean())
        rows.append({"dataset": dataset, "seed": seed, "accuracy": accuracy, "discrimination": 0.0, "delta": accuracy,
                     "flip_rate": 0.0, "positive_rate": float(decided), "auc": 0.5})  # fmt: skip
    return pd.DataFrame(rows)


def delta_table(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Aim 1: test delta of what the delta criterion chooses on validation; `best`: not told apart from the highest mean."""
    found = by_delta(table)
    means = pd.DataFrame({name: rows.groupby("dataset").delta.mean() for name, rows in found.items()})
    rows = []
    for name, best in found.items():
        for dataset, group in best.groupby("dataset", sort=False):
            gap = gaps(found[means.loc[dataset].idxmax()], best).get_group(dataset)
            rows.append({"method": name, "dataset": dataset, "delta": interval(group.delta), "mean": group.delta.mean(),
                         "best": not compare.interval(gap.tolist())[1] > 0,
                         "accuracy": interval(group.accuracy), "discrimination": interval(group.discrimination),
                         "flip rate": interval(group.flip_rate), "positive rate": interval(group.positive_rate),
                         # Drawn decisions have no score to rank by.
                         "AUC": "" if name in DRAWN else interval(group.auc), **costs(name, group)})  # fmt: skip
    for row in published.itertuples():
        rows.append({"method": "published CCB", "dataset": row.dataset, "delta": f"{row.accuracy - row.discrimination:.4f}",
                     "mean": row.accuracy - row.discrimination, "best": False, "accuracy": f"{row.accuracy:.4f}",
                     "discrimination": f"{row.discrimination:.4f}", "flip rate": "", "positive rate": "", "AUC": "",
                     "draws that differ": "", "seconds": ""})  # fmt: skip
    return pd.DataFrame(rows)


def costs(name: str, group: pd.DataFrame) -> dict[str, str]:
    """How often two draws give a person two answers, among those who train, and how long a model takes."""
    drawn = f"{group.draws_differ.mean():.2%}" if name in DRAWN and "draws_differ" in group else ""
    return {
        "draws that differ": drawn,
        "seconds": f"{group.seconds.median():.1f}" if "seconds" in group else "",
    }


def paired_table(table: pd.DataFrame) -> pd.DataFrame:
    """Aim 1 again, split by split: our delta less each other method's on the same split, chosen on validation."""
    found = by_delta(table)
    ours = found.pop("ours")
    rows = []
    for name, theirs in found.items():
        for dataset, gap in gaps(ours, theirs):
            _, low, high = compare.interval(gap.tolist())
            seen = "ahead" if low > 0 else "behind" if high < 0 else "not told apart"
            rows.append({"ours less": name, "dataset": dataset, "difference": interval(gap),
                         "ahead on": f"{int((gap > 0).sum())} of {len(gap)}", "ours is": seen})  # fmt: skip
    return pd.DataFrame(rows)


KINDS = {
    "no fairness (λ = 0)": (["CCB free"], Bounded(1, 1)),
    "LR without the group": (["LR unaware"], Bounded(1, 1)),
    "individual": (["CCB individual"], Bounded(1, MAX_FLIP)),
    "both": (["CCB both"], Bounded(MAX_DISCRIMINATION, MAX_FLIP)),
}


def by_kind(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What each kind of fairness chooses on validation: one row a data set and split."""
    final = table[table.criterion == "accuracy"]
    return {name: chosen(final, of, NotConstant(bounds, "").rank) for name, (of, bounds) in KINDS.items()}


def cost_table(table: pd.DataFrame) -> pd.DataFrame:
    """Aims 2, 3 and 5: what each kind of fairness costs, and what both do."""
    rows = []
    for name, best in by_kind(table).items():
        for dataset, group in best.groupby("dataset", sort=False):
            rows.append({"kind": name, "dataset": dataset} | {
                column: interval(group[column])
                for column in ("accuracy", "discrimination", "flip_rate", "auc", "balanced_accuracy", "positive_rate")
            })  # fmt: skip
    return pd.DataFrame(rows)


def cost_gaps(table: pd.DataFrame) -> pd.DataFrame:
    """Aim 3, split by split: the accuracy of each kind of fairness less that without."""
    found = by_kind(table)
    rows = []
    for kind in ("individual", "both"):
        for without in ("no fairness (λ = 0)", "LR without the group"):
            less = gaps(found[kind], found[without], "accuracy")
            rows.append({"accuracy of": kind, "less": without, **less.agg(interval)})
    return pd.DataFrame(rows)


def front(points: np.ndarray) -> np.ndarray:
    """The points that no other beats in both accuracy and 1 − discrimination, by rising accuracy."""
    ordered = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    kept, best = [], -np.inf
    for accuracy, evenness in ordered:
        if evenness > best:
            kept.append((accuracy, evenness))
            best = evenness
    return np.array(kept[::-1])


def hypervolume(points: np.ndarray) -> float:
    """The share of the unit square that the front dominates: a corner of no method's making, the same for all splits."""
    area, left = 0.0, 0.0
    for accuracy, evenness in front(points):
        area += (accuracy - left) * evenness
        left = accuracy
    return area


def areas(table: pd.DataFrame) -> pd.DataFrame:
    """Aim 4: the area under each method's front on test, in percent: a row for each data set, seed and method.

    Twice: of the points that are on the method's front on validation, which is what a user can choose from; and
    of all points, chosen by the test part itself, which favours whoever has more of them. Methods with
    checkpoints have two points a trial, the checkpoint of the best delta and the most accurate one.
    """
    ours = [name for name in table.method.unique() if name.startswith("CCB")]
    rows = []
    for (dataset, seed), group in table.groupby(["dataset", "seed"], sort=False):
        for name, of in {"ours": ours, **{c: [c] for c in (*COMPETITORS, *UNAWARE)}}.items():
            points = group[group.method.isin(of)]
            if points.empty:
                continue
            seen = np.c_[points.validation_accuracy, 1 - points.validation_discrimination]
            on_front = (seen[:, None] == front(seen)[None]).all(2).any(1)
            for kind, some in (("front of validation", points[on_front]), ("all points", points)):
                area = hypervolume(np.c_[some.accuracy, 1 - some.discrimination])
                rows.append({"points": kind, "method": name, "dataset": dataset, "seed": seed, "area": 100 * area})  # fmt: skip
    return pd.DataFrame(rows)


def hypervolume_table(found: pd.DataFrame) -> pd.DataFrame:
    return (
        found.groupby(["points", "method", "dataset"], sort=False).area.agg(interval).unstack().reset_index()
    )


def hypervolume_gaps(found: pd.DataFrame) -> pd.DataFrame:
    """Our area less each other method's on the same split."""
    cells = found.pivot(index=["points", "dataset", "seed"], columns="method", values="area")
    less = cells.drop(columns="ours").rsub(cells["ours"], axis=0).stack().rename("area")
    table = less.groupby(["points", "method", "dataset"]).agg(interval).unstack()
    order = [
        (kind, name) for kind in found.points.unique() for name in found.method.unique() if name != "ours"
    ]
    return table.loc[order, found.dataset.unique()].rename_axis(["points", "ours less"]).reset_index()


def bounds_table(table: pd.DataFrame) -> pd.DataFrame:
    """Aim 4: how often a user's bound, met on validation, is met on test within sampling error.

    A bound on discrimination chooses among the models trained for it or for a tighter one, a bound on flips
    among those of individual fairness: as a user would, who asks for the bound before training.
    """
    final = table[(table.criterion == "accuracy") & table.method.str.startswith("CCB")]
    # A model trained for no bound has none, or None.
    trained_for = (
        final.parameters.map(lambda text: json.loads(text).get("bound")).astype(float).fillna(np.inf)
    )
    rows = []
    for column, limit in (("discrimination", 0.02), ("discrimination", 0.05), ("discrimination", 0.1),
                          ("flip_rate", 0.005), ("flip_rate", 0.01)):  # fmt: skip
        if column == "discrimination":
            among, bounded = final[trained_for <= limit], Bounded(limit, 1)
        else:
            among, bounded = final[final.method == "CCB individual"], Bounded(1, limit)
        best = chosen(among, among.method.unique(), NotConstant(bounded, "").rank)
        for dataset, group in best.groupby("dataset", sort=False):
            rates = group.positive_rate if column == "discrimination" else limit
            slack = 1.645 * standard_error(dataset, rates, by_group=column == "discrimination")
            met = (group[column] <= limit + slack).sum()
            rows.append({"bound on": column.replace("_", " "), "bound": limit, "dataset": dataset,
                         "on test": interval(group[column]), "accuracy": interval(group.accuracy),
                         "sampling error": f"{np.mean(slack):.4f}", "met": f"{met} of {len(group)}",
                         "met exactly": f"{(group[column] <= limit).sum()} of {len(group)}"})  # fmt: skip
    return pd.DataFrame(rows)


def standard_error(name: str, rate: Any, *, by_group: bool) -> Any:
    """The standard error, on a test part, of a share of this size, or of the difference of two groups' shares."""
    groups = people_of(name).sensitive_features.value_counts() * 0.15
    return np.sqrt(rate * (1 - rate) * ((1 / groups).sum() if by_group else 1 / groups.sum()))


def floor_table(table: pd.DataFrame) -> pd.DataFrame:
    """What chance alone shows: the mean discrimination, on a test part, of decisions that do not know the groups."""
    rows = []
    for method, best in by_delta(table).items():
        if method not in ("ours", "LR unaware"):
            continue
        for dataset, group in best.groupby("dataset", sort=False):
            chance = np.sqrt(2 / np.pi) * standard_error(dataset, group.positive_rate, by_group=True)
            rows.append({"dataset": dataset, "people in a test part": round(0.15 * len(people_of(dataset))),
                         "as many positive decisions as": method, "positive rate": f"{group.positive_rate.mean():.4f}",
                         "discrimination by chance": f"{chance.mean():.4f}"})  # fmt: skip
    return pd.DataFrame(rows).sort_values("dataset", kind="stable")


def every_table(table: pd.DataFrame, published: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All of them, by the names of their files."""
    found = areas(table)
    return {
        "delta": delta_table(table, published),
        "paired": paired_table(table),
        "cost": cost_table(table),
        "cost_gaps": cost_gaps(table),
        "hypervolume": hypervolume_table(found),
        "hypervolume_gaps": hypervolume_gaps(found),
        "bounds": bounds_table(table),
        "floor": floor_table(table),
    }
