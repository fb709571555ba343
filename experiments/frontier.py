"""The trade-off that evenhand exists for, measured: ours against fairlearn, OxonFair and the paper's baselines.

    python experiments/frontier.py                       # 10 splits (Health: 3), about two hours on a core
    python experiments/frontier.py --datasets german compas --seeds 3

All methods see the same random 70/15/15 splits. Grid points are chosen on the validation part; the test part is
only measured. Results go to results/frontier/ (a store that a killed run goes on from, tables as Markdown and
CSV). Grids of ours are judged once, after training: scoring every checkpoint of a small validation part chooses
noise. For every method alike, a constant classifier is chosen only where there is nothing else. fairlearn's
decisions are drawn from its mixture. The paper's baselines have the paper's whole grids. `others.py` has what stands
beside them: a blind network with a parity term, and boosted trees. Ours has networks for policies where nothing else is
said; with boosted trees, and with the mean of both, it has the networks' grid.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import others
import pandas as pd
from measured import MeasuredSweep
from others import BlindNetwork, Trees
from scipy.sparse import csr_array

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    Likelihood,
    LogRatio,
    Parity,
)
from evenhand.baselines import OxonFairClassifier
from evenhand.code_version import code_version
from evenhand.datasets import Dataset, load
from evenhand.metrics.selection import HighestDelta, Scores
from evenhand.progress import to_stderr
from evenhand.protocol import compare
from evenhand.protocol.grids import Method, grid, make_lr, paper_methods
from evenhand.protocol.store import Store
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.trial import SPLITS

DATASETS = ("adult", "compas", "german", "health")
# 'trees' are scikit-learn's boosted trees, 'thresholds' fairlearn's ThresholdOptimizer, 'fairlearn' its
# ExponentiatedGradient; without 'trees', fairlearn and OxonFair have logistic regression inside.
COMPETITORS = (
    "blind network + parity", "fairlearn", "fairlearn trees", "thresholds", "thresholds trees", "OxonFair",
    "OxonFair trees", "LFR", "ALFR", "Rawlsian",
)  # fmt: skip
UNAWARE = ("LR unaware", "trees unaware")
DRAWN = ("fairlearn", "fairlearn trees", "thresholds", "thresholds trees")
MAX_DISCRIMINATION, MAX_FLIP = 0.01, 0.005
# Fewer splits where a fit takes long: of Health for all, and of the larger tables for a game around trees.
FEWEST = {"health": 3}
FEWER = {"fairlearn trees": {"adult": 3, "health": 1}}
# New splits of the same people: splits 0 to 19 were looked at while the methods were made. The grids were fixed, on
# tables of other people (elsewhere.py), before anybody looked at these.
FIRST_SEED = 1000
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


@cache
def people_of(name: str) -> Dataset:
    """The data set, read once: the rows that the paper used, or with '-all' everybody, gaps and all."""
    if name.endswith("-all"):
        return replace(load(name.removesuffix("-all")), name=name)
    return load(name, rows="published")


def make_ours(
    seed: int,
    divergence_weight: float,
    bound: float | None = None,
    weight_decay: float = 0.0,
    kind: str = "networks",
) -> Any:
    """Ours with all defaults, but for a parity term, and a decay of the networks where there is one."""
    reward = Likelihood() + LogRatio()
    if bound is not None:
        reward = reward + Parity(bound=bound)
    networks = CooperativeBandits(weight_decay=weight_decay, standardize=False, checkpoint_every=10**9)
    trees = CooperativeBoosting(checkpoint_every=10**9)
    made = {
        "networks": networks,
        "trees": trees,
        "ensemble": CooperativeEnsemble(bandits=networks, boosting=trees),
    }[kind]
    return made.set_params(divergence_weight=divergence_weight, reward=reward, random_state=seed)


def version_of(*sources: Any) -> str:
    """Part of a result's key: a change of what is made here makes its trials anew, as a change of evenhand does."""
    return hashlib.sha256("".join(map(inspect.getsource, sources)).encode()).hexdigest()[:12]


def methods() -> list[Method]:
    ours: dict[str, Any] = {"make": make_ours, "version": version_of(make_ours), "weight": 8}
    # What a table chooses from has few points: on a small validation part the best of many is the luckiest.
    even, accurate = {**ours, "budget": decay(4_000)}, {**ours, "budget": decay(1_000)}
    return [
        Method("CCB parity", grid=grid(divergence_weight=[0.3, 1.0], bound=[0.0]), **even),
        Method("CCB both", grid=grid(divergence_weight=[20.0, 300.0], bound=[0.0]), **even),
        Method("CCB individual", grid=grid(divergence_weight=[20.0, 100.0]), **accurate),
        Method("CCB free", grid=grid(divergence_weight=[0.0]), **accurate),
        *(
            Method(
                f"CCB trade-off, decay {prior:,}",
                grid=grid(divergence_weight=[0.3, 1.0, 20.0], bound=[0.0, 0.02, 0.05, 0.1, None]),
                **ours,
                budget=decay(prior),
            )
            for prior in (0, 1_000, 4_000, 16_000)
        ),
        *with_trees(),
        Method("LR unaware", make_lr, grid(C=[0.3, 0.6, 1.0], aware=[False])),
        Method(
            "trees unaware", make_trees, grid(max_leaf_nodes=[15, 31]), version=version_of(Trees), weight=4
        ),
        Method(
            "blind network + parity",
            make_blind,
            grid(bound=[0.0, 0.02]),
            budget=decay(4_000),
            version=version_of(BlindNetwork),
            weight=20,
        ),
        *around(),
        *(method for method in paper_methods(full=True) if method.name in COMPETITORS),
    ]


def with_trees() -> list[Method]:
    """Return our methods with boosted trees for policies, and with both kinds: the grids of the networks, nothing tuned."""
    behind, found = code_version("evenhand.boosting.ensemble")[:12], []
    for kind, weight in (("trees", 10), ("ensemble", 18)):
        shared: dict[str, Any] = {
            "make": make_ours,
            "version": version_of(make_ours) + behind,
            "weight": weight,
        }
        if kind == "ensemble":
            shared["budget"] = decay(4_000)  # of its networks
        for goal, weights in (("parity", [0.3, 1.0]), ("both", [20.0, 300.0])):
            points = grid(divergence_weight=weights, bound=[0.0], kind=[kind])
            found.append(Method(f"{kind} {goal}", grid=points, **shared))
    return found


def around() -> list[Method]:
    """Return fairlearn's and OxonFair's methods around logistic regression and around boosted trees."""
    drawn, loose = version_of(others), [0.0, 0.01, 0.02, 0.05, 0.1]
    # A game around trees takes minutes on the larger tables: two bounds, and 20 rounds instead of 50.
    inside = {"": (False, [0.005, 0.02, 0.05, 0.1], 50, 40), " trees": (True, [0.005, 0.05], 20, 150)}
    found = []
    for name, (trees, bounds, rounds, weight) in inside.items():
        game = grid(trees=[trees], difference_bound=bounds, max_iter=[rounds])
        after = grid(trees=[trees], difference_bound=loose)
        found += [
            Method(f"fairlearn{name}", make_fairlearn, game, version=drawn, weight=weight),
            Method(f"thresholds{name}", make_thresholds, after, version=drawn, weight=4),
            Method(f"OxonFair{name}", make_oxonfair, after, version=drawn, weight=4),
        ]
    return found


def decay(prior: float) -> Callable[[int], dict[str, float]]:
    """A weight decay that matters less the more people there are (70 % train), as a prior does."""
    return lambda people: {"weight_decay": round(prior / (0.7 * people), 4)}


def make_trees(seed: int, **point: Any) -> Trees:
    return Trees(random_state=seed, **point)


def make_blind(seed: int, **point: Any) -> BlindNetwork:
    return BlindNetwork(seed=seed, **point)


def make_fairlearn(seed: int, trees: bool, **point: Any) -> others.DrawnGradient:
    return others.DrawnGradient(inside(seed, trees), **point)


def make_thresholds(seed: int, trees: bool, **point: Any) -> others.DrawnThresholds:
    return others.DrawnThresholds(inside(seed, trees), **point)


def make_oxonfair(seed: int, trees: bool, **point: Any) -> OxonFairClassifier:
    return OxonFairClassifier(inside(seed, trees), **point)


def inside(seed: int, trees: bool) -> Trees | None:
    return Trees(random_state=seed) if trees else None


@dataclass(frozen=True)
class Bounded:
    """Best accuracy among those within both bounds on validation; if none is, the least excess."""

    max_discrimination: float
    max_flip: float
    name: str = ""

    def rank(self, scores: Scores) -> tuple[float, ...]:
        excess = max(scores.discrimination - self.max_discrimination, 0) + max(
            scores.flip_rate - self.max_flip, 0
        )
        return (-excess, scores.accuracy)


@dataclass(frozen=True)
class NotConstant:
    """Another criterion, with constant classifiers last: nothing passes by deciding everybody alike."""

    among: Any
    name: str

    def rank(self, scores: Scores) -> tuple[float, ...]:
        return (float(0.001 < scores.positive_rate < 0.999), *self.among.rank(scores))


DELTA = NotConstant(HighestDelta(), "delta")
CRITERIA = (DELTA, NotConstant(Bounded(1.0, 1.0), "accuracy"))


def trials(sweep: Sweep, store: Store) -> pd.DataFrame:
    """Every trial as a row: validation scores and test metrics of the trained model."""
    rows = []
    known = store.read(trial.key for trial in sweep.trials)
    for trial in sweep.trials:
        result = known.get(trial.key)
        if result is None or result.trained is None:
            continue
        for criterion, chosen in result.trained["criteria"].items():
            rows.append(
                {
                    "dataset": trial.dataset, "seed": trial.seed, "method": trial.method.name,
                    "parameters": json.dumps(trial.point), "criterion": criterion,
                    **{f"validation_{name}": value for name, value in chosen["validation"].items()},
                    **chosen["test"], "seconds": result.seconds,
                    "draws_differ": (result.trained["curve"] or {}).get("draws_differ", [0.0])[-1],
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def chosen(
    table: pd.DataFrame, of: Sequence[str], rank: Callable[[Scores], tuple[float, ...]]
) -> pd.DataFrame:
    """The best row of each data set and seed among some methods, by a rank of the validation scores."""
    best = []
    for _, rows in table[table.method.isin(of)].groupby(["dataset", "seed"], sort=False):
        scores = [
            Scores(
                row.validation_accuracy,
                row.validation_discrimination,
                row.validation_positive_rate,
                row.validation_flip_rate,
            )
            for row in rows.itertuples()
        ]
        best.append(rows.iloc[max(range(len(rows)), key=lambda at: rank(scores[at]))])
    return pd.DataFrame(best)


def interval(values: pd.Series) -> str:
    """Mean and half-width of the 95 % interval over splits that overlap."""
    mean, low, _ = compare.interval(values.tolist())
    return f"{mean:.4f} ± {mean - low:.4f}" if np.isfinite(low) else f"{mean:.4f}"


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


def gaps(one: pd.DataFrame, other: pd.DataFrame, metric: str = "delta") -> Any:
    """One's metric less the other's on the splits that both have, by data set."""
    first, second = (rows.set_index(["dataset", "seed"])[metric] for rows in (one, other))
    return (first - second).dropna().groupby("dataset", sort=False)


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


def run(datasets: Sequence[str], seeds: Sequence[int], out: Path, only: str | None) -> None:
    """Do the trials that are not done yet, and write them to trials.csv, beside those of other methods or data sets."""
    chosen_methods = [method for method in methods() if method.name.startswith(only or "")]
    store = Store(out / "trials.sqlite")
    compiled_before_anything_is_timed()
    done = []
    for name in datasets:
        for at, seed in enumerate(seeds):  # one at a time: a run that is stopped has whole splits
            some = [method for method in chosen_methods if at < splits_of(method.name, name, len(seeds))]
            if not some:
                break
            sweep = MeasuredSweep(some, [people_of(name)], [seed], CRITERIA, "random", store)
            sweep.run(progress=to_stderr())
            done.append(trials(sweep, store))
            for failure in sweep.failures().itertuples():
                print(f"failed: {failure.method} on {name}, seed {seed}: {failure.error.splitlines()[-1]}")
    table = pd.concat(done)
    if (out / "trials.csv").exists():
        before = pd.read_csv(out / "trials.csv")
        replaced = before.dataset.isin(datasets) & before.method.isin(
            [method.name for method in chosen_methods]
        )
        table = pd.concat([table, before[~replaced]])
    table.to_csv(out / "trials.csv", index=False)


def splits_of(method: str, dataset: str, wanted: int) -> int:
    """How many of the wanted splits a method has on a data set."""
    return min(wanted, FEWEST.get(dataset, wanted), FEWER.get(method, {}).get(dataset, wanted))


def compiled_before_anything_is_timed() -> None:
    X, y = np.random.default_rng(0).normal(size=(64, 4)), np.arange(64) % 2
    for rows in (X, csr_array(X)):
        make_ours(0, 20.0, 0.0).fit(rows, y, sensitive_features=np.arange(64) // 2 % 2)


def check_whole(table: pd.DataFrame, datasets: Sequence[str], seeds: Sequence[int]) -> None:
    """Raise unless the table holds these grids on these splits, no more and no less: nothing old is mixed in."""
    found = {(r.dataset, r.seed, r.method, r.parameters) for r in table.itertuples()}
    wanted = {
        (name, seed, method.name, json.dumps(point))
        for name in datasets
        for method in methods()
        for seed in seeds[: splits_of(method.name, name, len(seeds))]
        for point in method.points(len(people_of(name)))
    }
    if found != wanted:
        missing, strange = sorted(wanted - found), sorted(found - wanted)
        raise SystemExit(
            f"trials.csv lacks {len(missing)} trials of the grids (first: {missing[:1]}) and has {len(strange)} others "
            f"(first: {strange[:1]}); run without --only, or into another --out."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", type=int, default=10, help="how many splits")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="the seed of the first split")
    parser.add_argument("--out", type=Path, default=Path("results/frontier"))
    parser.add_argument("--only", help="run only the methods whose name begins so; keep the others' rows")
    parser.add_argument("--tables", action="store_true", help="only make the tables again, from trials.csv")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    if not arguments.tables:
        run(arguments.datasets, seeds, arguments.out, arguments.only)
    table = pd.read_csv(arguments.out / "trials.csv")
    check_whole(table, arguments.datasets, seeds)
    paper = pd.read_csv(Path(__file__).parents[1] / "src/evenhand/protocol/published_results.csv")
    paper = paper[
        (paper.table == "table2_delta") & (paper.method == "CCB") & paper.dataset.isin(arguments.datasets)
    ]
    tables = {
        "delta": delta_table(table, paper),
        "paired": paired_table(table),
        "cost": cost_table(table),
        "cost_gaps": cost_gaps(table),
        "hypervolume": hypervolume_table(found := areas(table)),
        "hypervolume_gaps": hypervolume_gaps(found),
        "bounds": bounds_table(table),
        "floor": floor_table(table),
    }
    for name, result in tables.items():
        result.to_csv(arguments.out / f"{name}.csv", index=False)
        print(
            f"\n## {name}\n\n{result.drop(columns=['mean', 'best'], errors='ignore').to_string(index=False)}"
        )


if __name__ == "__main__":
    main()
