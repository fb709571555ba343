"""Model-steps per second on a GPU: Algorithm 1 and this library's defaults, by hidden units and number of models.

    python benchmarks/gpu.py --json results/benchmarks/gpu.json      # needs: pip install 'evenhand[cuda]', and a device
    python benchmarks/gpu.py --splits 100 …                          # the paper's grid of CCB on so many splits, too
    python benchmarks/gpu.py --splits 100 --store results/hundred/trials.sqlite …      # and its results are kept

Rows shaped like one-hot Adult, as in benchmarks/training.py. One launch takes all models so many steps; the best of
several counts. Compiling, sending people over and fetching models are not in it; a whole `fit_many` is timed besides,
and the paper's own job: 40 models of CCB on every split of four data sets, scored every 1,000 steps, the chosen tested.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import options
from training import ROWS, adult_shaped

from evenhand import CooperativeBandits, fit_many
from evenhand.bandits.base import Later
from evenhand.bandits.cuda import fleet
from evenhand.bandits.cuda.waves import Plan
from evenhand.bandits.scaling import on_one_scale
from evenhand.progress import Progress
from evenhand.protocol.grids import paper_methods
from evenhand.protocol.reproduce import DATASETS, load_public
from evenhand.protocol.sweep import Sweep

MODELS = (1, 132, 924, 1848, 3696, 7392)
SHORT, LONG = 2_000, 20_000
SIDE_BY_SIDE = 924  # models of 40 units that an H200 has room for
PUBLIC = [name for name in DATASETS if name != "education"]


def algorithm_1(hidden: int) -> CooperativeBandits:
    return CooperativeBandits.published(hidden=hidden, steps=10**9, checkpoint_every=10**9)


def defaults(hidden: int, **changes) -> CooperativeBandits:
    return CooperativeBandits(
        hidden=hidden, steps=10**9, checkpoint_every=10**9, standardize=False, **changes
    )


SETTINGS = {
    "Algorithm 1, 10 units": (algorithm_1(10), MODELS),
    "Algorithm 1, 20 units": (algorithm_1(20), MODELS),
    "Algorithm 1, 40 units": (algorithm_1(40), MODELS),
    "defaults, 20 units": (defaults(20), MODELS[:-1]),
    "defaults with parity, 20 units": (defaults(20, reward="likelihood + log_ratio + parity"), MODELS[2:4]),
    "the authors' settings (Adam, batches of one), 40 units": (
        CooperativeBandits.published(variant="authors", hidden=40, steps=10**9, checkpoint_every=10**9),
        MODELS[2:4],
    ),
}


def runs_of(model: CooperativeBandits, n_models: int, X, y, s):
    later = Later()
    model.fit(X, y, sensitive_features=s, callback=later)
    contexts, people = later.told
    _, rows = on_one_scale(contexts, False)
    for seed in range(n_models):
        model.set_params(random_state=seed, divergence_weight=10 * seed / n_models + 6)
        model._begin(model.n_features_in_, len(model.groups_))
        yield model._ready_to_run(rows, people, decays=True)


def steps_per_second(model: CooperativeBandits, n_models: int, X, y, s, rounds: int) -> dict[str, float]:
    cp = fleet.cupy()
    ((squad,),) = Plan(list(runs_of(model, n_models, X, y, s))).waves()
    squad.advance(squad.steps + SHORT)
    cp.cuda.Device().synchronize()
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        squad.advance(squad.steps + LONG)
        squad.stream.synchronize()
        best = min(best, time.perf_counter() - start)
    kernel = fleet.compiled("train", squad.spec)
    return {
        "models": n_models, "steps_per_second": n_models * LONG / best, "registers": kernel.num_regs,
        "spilled_bytes": kernel.local_size_bytes, "shared_bytes": squad._shared, "placed": squad.spec.PLACED,
        "units_a_lane": squad.spec.U, "parts": squad.spec.S,
    }  # fmt: skip


def by_columns(rounds: int) -> dict[str, float]:
    """Where the time of a step goes: nanoseconds of a model's step by the columns that a row fills."""
    found = {}
    for filled in (1, 5, 9, 13):
        one = steps_per_second(algorithm_1(40), SIDE_BY_SIDE, *adult_shaped(filled=filled), rounds)
        found[str(filled)] = 1e9 * SIDE_BY_SIDE / one["steps_per_second"]
    return found


def whole(n_models: int, X, y, s) -> dict[str, float]:
    """Seconds of a whole fit_many with this library's defaults, and of one model on one core of the same machine."""
    grid, plain = {"random_state": list(range(n_models))}, CooperativeBandits(steps=100_000)
    found = {"models": n_models}
    for name, engine, points in (("cuda", "cuda", grid), ("one_on_the_cpu", "cpu", {"random_state": [0]})):
        fit_many(plain, {"random_state": [0]}, X, y, sensitive_features=s, engine=engine)  # compiles
        start = time.perf_counter()
        fit_many(plain, points, X, y, sensitive_features=s, engine=engine)
        found[name] = time.perf_counter() - start
    return found


class Stages(Progress):
    """The seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def start(self, what: str, total: int | None = None, work: float | None = None) -> None:
        self.what, self.began = what, time.perf_counter()

    def done(self, label: str, work: float | None = None, pieces: int = 1) -> None:
        self.seconds[self.what] = time.perf_counter() - self.began


def paper_grid(splits: int, store: str = "") -> dict[str, Any]:
    """Seconds of the paper's whole grid of CCB on its four data sets; `evenhand reproduce` can go on from the store."""
    (ccb,) = (method for method in paper_methods(full=True) if method.name == "CCB")
    stages = Stages()
    datasets = [load_public(name, stages) for name in PUBLIC]
    sweep = Sweep([ccb], datasets, splits, store=store or None)
    stages.seconds.clear()
    start = time.perf_counter()
    table = sweep.run(engine="cuda", progress=stages)
    seconds = time.perf_counter() - start
    assert sweep.failures().empty
    return {
        "models": len(sweep.trials),
        "splits": splits,
        "people": {dataset.name: len(dataset) for dataset in datasets},
        "rows": len(table),
        "seconds": seconds,
        **stages.seconds,
    }


def main() -> None:
    arguments = options.asked(__doc__, json=True, rounds=3, splits=0, store="")
    cp = options.need_device()
    if arguments.splits:
        paper_grid(1)  # compiles, and tells at once if a data set is not there
    named = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    figures: dict = {"device": named, "rows": ROWS, "throughput": {}}
    people = adult_shaped()
    for name, (model, counts) in SETTINGS.items():
        figures["throughput"][name] = []
        for n_models in counts:
            found = steps_per_second(model, n_models, *people, arguments.rounds)
            figures["throughput"][name].append(found)
            print(
                f"{name:60}{n_models:>6} models {found['steps_per_second']:.3g} a second  {found}", flush=True
            )
    figures["by_columns"] = by_columns(arguments.rounds)
    print(figures["by_columns"], flush=True)
    figures["fit_many"] = whole(1000, *people)
    print(figures["fit_many"], flush=True)
    if arguments.splits:
        figures["paper_grid"] = paper_grid(arguments.splits, arguments.store)
        print(figures["paper_grid"], flush=True)
    options.write(figures, arguments.json)


if __name__ == "__main__":
    main()
