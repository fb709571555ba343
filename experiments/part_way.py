"""Between the ends: cooperating policies, or a blind network part-way to parity with thresholds by group?

    python experiments/part_way.py                     # writes results/part_way/; some minutes

Both have a dial between one rule for all and rules that bring the groups' rates together. Ours is λ, with `Parity`. The
other is a network that never sees the group, trained part of the way to parity; thresholds by group, set on the people who
train, go some or all of the rest. Of each, the point with the highest delta among those that flip at most so many people on
the validation part is tested. New splits: nothing was chosen on them before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from asking import asked
from choosing import people_of
from frontier import decay, make_ours
from others import BlindNetwork

from evenhand.protocol.compare import interval
from evenhand.tables.preprocessing import Part, Parts, prepare
from evenhand.tables.splits import split

FIRST_SEED = 2000
LAMBDAS, BOUNDS = (0.1, 0.3, 1.0, 3.0, 20.0, 300.0), (0.0, 0.02, 0.05, 0.1)
BLIND_BOUNDS, SHARES = (0.0, 0.05, 0.1, 0.15, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_FLIPS = (0.01, 0.05, 0.1, 0.2)
OURS, BLIND = "ours", "blind network part-way, thresholds by group"


def thresholds(chance: np.ndarray, own: np.ndarray, share: float) -> np.ndarray:
    """Return a threshold for each group that moves its rate so far towards everybody's; with share 0, one half.

    >>> thresholds(np.array([0.1, 0.2, 0.6, 0.7, 0.8, 0.9]), np.array([0, 0, 0, 1, 1, 1]), 1.0).round(2)
    array([0.17, 0.77])
    """
    if share == 0:
        return np.array([0.5, 0.5])
    common = (chance > 0.5).mean()
    rates = [(chance[own == group] > 0.5).mean() for group in (0, 1)]
    return np.array(
        [
            np.quantile(chance[own == group], 1 - (rates[group] + share * (common - rates[group])))
            for group in (0, 1)
        ]
    )


def scores(decided: np.ndarray, positive: np.ndarray, own: np.ndarray) -> dict[str, float]:
    """Return the measures of decisions as a member of each group, (people, 2)."""
    mine = decided[np.arange(len(own)), own]
    accuracy = float((mine == positive).mean())
    unequal = float(abs(mine[own == 0].mean() - mine[own == 1].mean()))
    flips = float((decided[:, 0] != decided[:, 1]).mean())
    return {"accuracy": accuracy, "discrimination": unequal, "delta": accuracy - unequal, "flip_rate": flips}


def points(parts: Parts, seed: int, weight_decay: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Train both, and give every point of both dials with its scores on validation and on test."""
    train = parts.train
    groups = np.unique(train.s)

    def row(name: str, decide: Any) -> tuple[str, dict[str, Any]]:
        found = {}
        for part, people in (("validation", parts.validation), ("test", parts.test)):
            own = np.searchsorted(groups, people.s)
            for key, value in scores(decide(people), people.y == parts.pos_label, own).items():
                found[f"{part}_{key}"] = value
        return name, found

    for weight in LAMBDAS:
        for bound in BOUNDS:
            model = make_ours(seed, weight, bound, weight_decay).fit(
                train.X, train.y, sensitive_features=train.s
            )
            column = list(model.classes_).index(parts.pos_label)
            yield row(OURS, lambda p, m=model, c=column: m.probabilities_by_group(p.X)[:, :, c] > 0.5)
    for bound in BLIND_BOUNDS:
        blind = BlindNetwork(bound, weight_decay=weight_decay, seed=seed)
        blind.fit(train.X, train.y, sensitive_features=train.s)
        column = list(blind.classes_).index(parts.pos_label)

        def chance(people: Part, model: BlindNetwork = blind, column: int = column) -> np.ndarray:
            return model.predict_proba(people.X)[:, column]

        for share in SHARES:
            cuts = thresholds(chance(train), np.searchsorted(groups, train.s), share)
            yield row(BLIND, lambda p, c=chance, t=cuts: c(p)[:, None] > t[None])


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Return, for each data set and limit on flips, what both reach on test, and ours minus the other split by split."""
    rows = []
    for dataset, some in table.groupby("dataset", sort=False):
        for most in MOST_FLIPS:
            within = some[some["validation_flip_rate"] <= most]
            best = within.loc[within.groupby(["method", "seed"])["validation_delta"].idxmax()].set_index(
                ["method", "seed"]
            )
            gap = (best.loc[OURS, "test_delta"] - best.loc[BLIND, "test_delta"]).dropna()
            mean, low, high = interval(gap.tolist())
            row: dict[str, Any] = {"dataset": dataset, "most_flips": most, "splits": len(gap)}
            for name in (OURS, BLIND):
                means = best.loc[name].mean(numeric_only=True)
                row |= {f"{name}: {key}": means[f"test_{key}"] for key in ("delta", "accuracy", "flip_rate")}
            rows.append(row | {"difference": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def main() -> None:
    arguments = asked(__doc__, "results/part_way", datasets=["adult", "compas"], seeds=5)
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.datasets:
        people = people_of(name)
        for seed in range(FIRST_SEED, FIRST_SEED + arguments.seeds):
            parts = prepare(people, split(people, seed=seed))
            found = points(parts, seed, decay(4_000)(len(people))["weight_decay"])
            rows += [{"dataset": name, "seed": seed, "method": method, **point} for method, point in found]
            print(name, seed, flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(arguments.out / "points.csv", index=False)
    compared(table).to_csv(arguments.out / "compared.csv", index=False)
    print(compared(table).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
