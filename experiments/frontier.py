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
from pathlib import Path
from typing import Any

import numpy as np
import others
import pandas as pd
from choosing import COMPETITORS, DATASETS, DELTA, Bounded, NotConstant, people_of
from frontier_tables import every_table
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
from evenhand.progress import to_stderr
from evenhand.protocol.compare import published
from evenhand.protocol.grids import Method, grid, make_lr, paper_methods
from evenhand.protocol.store import Store
from evenhand.protocol.sweep import Sweep

# Fewer splits where a fit takes long: of Health for all, and of the larger tables for a game around trees.
FEWEST = {"health": 3}
FEWER = {"fairlearn trees": {"adult": 3, "health": 1}}
# New splits of the same people: splits 0 to 19 were looked at while the methods were made. The grids were fixed, on
# tables of other people (elsewhere.py), before anybody looked at these.
FIRST_SEED = 1000
CRITERIA = (DELTA, NotConstant(Bounded(1.0, 1.0), "accuracy"))


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
    paper = published()
    paper = paper[
        (paper.table == "table2_delta") & (paper.method == "CCB") & paper.dataset.isin(arguments.datasets)
    ]
    for name, result in every_table(table, paper).items():
        result.to_csv(arguments.out / f"{name}.csv", index=False)
        print(
            f"\n## {name}\n\n{result.drop(columns=['mean', 'best'], errors='ignore').to_string(index=False)}"
        )


if __name__ == "__main__":
    main()
