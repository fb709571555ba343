"""Networks, trees and both together, on new splits: beside what is blind, and beside other people's fair methods.

    python experiments/boosted.py                            # writes results/boosted/; an hour or two on two cores
    python experiments/boosted.py --datasets german compas

By frontier.py's ways: the same random 70/15/15 splits for all, points chosen on validation, the test part only
measured, a killed run goes on. The splits are new, seeds 3000 to 3009; grids were fixed before anything ran on them.
Individual fairness alone has no grid: it is what the defaults give. Methods that take minutes have fewer splits on the
larger tables (SPLITS_OF); a table says how many. Seconds are those of one thread, not of the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from asking import asked
from choosing import DELTA, DRAWN, Bounded, NotConstant, chosen, gaps, interval, people_of
from frontier import (
    compiled_before_anything_is_timed,
    decay,
    make_blind,
    make_fairlearn,
    make_ours,
    make_oxonfair,
    make_thresholds,
    make_trees,
    trials,
    version_of,
)  # fmt: skip
from lightgbm import LGBMClassifier
from measured import MeasuredSweep
from others import BlindNetwork, Trees

from evenhand.code_version import code_version
from evenhand.progress import to_stderr
from evenhand.protocol import compare
from evenhand.protocol.grids import Method, grid, make_lr, paper_methods
from evenhand.protocol.store import Store

FIRST_SEED = 3000
KINDS = ("networks", "trees", "ensemble")
BLIND = ("blind LR", "blind trees", "blind LightGBM")
SLOW = ("blind network + parity", "fairlearn", "Rawlsian", "LFR", "ALFR")
SLOWEST = ("fairlearn trees",)
# How many splits the fast, the slow and the slowest methods have.
SPLITS_OF = {
    "german": (10, 10, 3),
    "compas": (10, 10, 3),
    "adult": (10, 3, 2),
    "adult-all": (5, 3, 1),
    "health": (3, 1, 1),
}
BOTH = Bounded(max_discrimination=0.012, max_flip=0.005, name="both")
CRITERIA = (DELTA, NotConstant(Bounded(1.0, 1.0), "accuracy"), NotConstant(BOTH, "both"))


def make_lightgbm(seed: int) -> LGBMClassifier:
    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


def methods() -> list[Method]:
    behind = code_version("evenhand.boosting.ensemble")[:12]
    found = []
    for kind, weight in zip(KINDS, (8, 10, 18), strict=True):
        ours: dict[str, Any] = {
            "make": make_ours,
            "version": version_of(make_ours) + behind,
            "weight": weight,
        }
        # The decay of frontier.py's networks with parity, which was fixed on tables of other people.
        even = ours if kind == "trees" else {**ours, "budget": decay(4_000)}
        individual = grid(kind=[kind], divergence_weight=[20.0])
        both = grid(kind=[kind], divergence_weight=[20.0], bound=[0.0, 0.01])
        parity = grid(kind=[kind], divergence_weight=[0.3, 1.0], bound=[0.0])
        found += [
            Method(f"{kind}, individual", grid=individual, **ours),
            Method(f"{kind}, both", grid=both, **even),
            Method(f"{kind}, parity", grid=parity, **even),
        ]
    paper = [method for method in paper_methods(full=False) if method.name in SLOW]
    return [*found, *blind(), *around(), *paper]


def blind() -> list[Method]:
    """Methods that never see the group when they decide; all but the last never see it at all."""
    seen = version_of(BlindNetwork)
    return [
        Method("blind LR", make_lr, grid(C=[1.0], aware=[False])),
        Method("blind trees", make_trees, version=version_of(Trees), weight=4),
        Method("blind LightGBM", make_lightgbm, version=version_of(make_lightgbm), weight=2),
        Method("blind network + parity", make_blind, grid(bound=[0.0]), budget=decay(4_000), version=seen, weight=20),
    ]  # fmt: skip


def around() -> list[Method]:
    """fairlearn's and OxonFair's methods around logistic regression and around boosted trees: two bounds each."""
    found = []
    for name, trees, rounds in (("", False, 50), (" trees", True, 20)):
        after = grid(trees=[trees], difference_bound=[0.0, 0.02])
        game = grid(trees=[trees], difference_bound=[0.005, 0.05], max_iter=[rounds])
        found += [
            Method(f"fairlearn{name}", make_fairlearn, game, weight=150 if trees else 40),
            Method(f"thresholds{name}", make_thresholds, after, weight=4),
            Method(f"OxonFair{name}", make_oxonfair, after, weight=4),
        ]
    return found


def run(datasets: Sequence[str], out: Path, most: int) -> None:
    """Do the trials that are not done yet, the fast methods of every data set first; trials.csv grows with each stage."""
    store = Store(out / "trials.sqlite")
    compiled_before_anything_is_timed()
    done: list[pd.DataFrame] = []
    for stage, some in enumerate(stages()):
        for name in datasets:
            seeds = range(FIRST_SEED, FIRST_SEED + min(SPLITS_OF[name][stage], most))
            for seed in seeds:  # one at a time: a run that is stopped has whole splits
                sweep = MeasuredSweep(some, [people_of(name)], [seed], CRITERIA, "random", store)
                sweep.run(progress=to_stderr())
                for failure in sweep.failures().itertuples():
                    print(f"failed: {failure.method} on {name}, {seed}: {failure.error.splitlines()[-1]}")
                done.append(trials(sweep, store))
                pd.concat(done).to_csv(out / "trials.csv", index=False)


def stages() -> list[list[Method]]:
    """The fast methods, the slow ones, and the slowest."""
    every = methods()
    slow = [[method for method in every if method.name in names] for names in (SLOW, SLOWEST)]
    return [[method for method in every if method.name not in (*SLOW, *SLOWEST)], *slow]


def picked(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What each method's own criterion chooses on validation: one row a data set and split."""
    found = {}
    for name in dict.fromkeys(method.name for method in methods()):
        criterion = (
            "both"
            if name.endswith("both")
            else "accuracy"
            if name in BLIND or "individual" in name
            else "delta"
        )
        rank = {one.name: one.rank for one in CRITERIA}[criterion]
        some = table[(table.criterion == criterion) & (table.method == name)]
        if len(some):
            found[name] = chosen(some, [name], rank)
    return found


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set and method: means over the splits it has."""
    rows = []
    for name, best in picked(table).items():
        for dataset, some in best.groupby("dataset", sort=False):
            means = some.mean(numeric_only=True)
            rows.append({
                "dataset": dataset, "method": name, "splits": len(some), "accuracy": means.accuracy,
                "discrimination": means.discrimination, "delta": means.delta, "flip rate": means.flip_rate,
                "AUC": np.nan if name in DRAWN else means.auc, "calibration error": means.get("calibration_error", np.nan),
                "draws that differ": means.draws_differ if name in DRAWN else np.nan, "seconds": some.seconds.median(),
            })  # fmt: skip
    return pd.DataFrame(rows)


def paired(table: pd.DataFrame) -> pd.DataFrame:
    """Delta of the ensemble, and of trees, with parity, less every other method's on the splits that both have."""
    found = picked(table)
    rows = []
    for ours in ("ensemble, parity", "trees, parity"):
        for name, theirs in found.items():
            if name.startswith(KINDS):
                continue
            for dataset, gap in gaps(found[ours], theirs):
                _, low, high = compare.interval(gap.tolist())
                seen = "ahead" if low > 0 else "behind" if high < 0 else "not told apart"
                rows.append({"delta of": ours, "less that of": name, "dataset": dataset, "difference": interval(gap),
                             "splits": len(gap), "ours is": seen})  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    arguments = asked(
        __doc__,
        "results/boosted",
        datasets=list(SPLITS_OF),
        seeds={"default": 10, "help": "at most so many splits"},
        tables={"default": False, "help": "only make the tables again, from trials.csv"},
    )
    if not arguments.tables:
        run(arguments.datasets, arguments.out, arguments.seeds)
    table = pd.read_csv(arguments.out / "trials.csv")
    for name, made in {"summary": summary(table), "paired": paired(table)}.items():
        made.to_csv(arguments.out / f"{name}.csv", index=False)
        print(f"\n## {name}\n\n{made.round(4).to_string(index=False)}")


if __name__ == "__main__":
    main()
