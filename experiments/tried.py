"""What was tried to get there, and what it did: one change at a time, on the validation part only.

    python experiments/tried.py               # writes results/tried/tried.csv; minutes on two cores

The base is `CooperativeBandits()` as it is; below it, changes that were kept in mind and rejected, and the parity
reward with its own. Failures are shown too.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from asking import asked
from joblib import Parallel, delayed

from evenhand import (
    Agreement,
    CooperativeBandits,
    Correctness,
    Likelihood,
    LogRatio,
    Parity,
    TrainingDivergedError,
)
from evenhand.datasets import load
from evenhand.metrics.scores import rank_auc
from evenhand.protocol.trial import make_ready

SGD: dict[str, Any] = {"optimizer": "sgd", "batch_size": 1, "learning_rate": 0.005}
PARITY = Likelihood() + LogRatio() + Parity()
CHANGES: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "divergence weight 0: no cooperation": {"divergence_weight": 0},
    "divergence weight 1": {"divergence_weight": 1},
    "divergence weight 5": {"divergence_weight": 5},
    "divergence weight 100": {"divergence_weight": 100},
    "each policy with an Adam of its own": {"optimizer": "adam"},
    "the same, rate 0.003": {"optimizer": "adam", "learning_rate": 0.003},
    "rate 0.0003 for all data sets": {"learning_rate": 0.0003},
    "rate 0.001 for all data sets": {"learning_rate": 0.001},
    "rate 0.003 for all data sets": {"learning_rate": 0.003},
    "only the acting policy moves, as published": {"cooperation": "acting"},
    "policies start apart": {"shared_start": False},
    "sampled actions instead of expected gradients": {"estimator": "sampled"},
    "correctness instead of likelihood": {"reward": Correctness() + LogRatio()},
    "agreement instead of log-ratio": {"reward": Likelihood() + Agreement()},
    "plain SGD, one person a step": SGD,
    "plain SGD, four times the rate": {**SGD, "learning_rate": 0.02},
    "5 hidden units": {"hidden": 5},
    "40 hidden units": {"hidden": 40},
    "a quarter of the epochs": {"epochs": 5},
    "three times the epochs": {"epochs": 60},
    "no decay of the rate": {"schedule": "constant"},
    "weight decay 1": {"weight_decay": 1.0},
    "the published algorithm, λ = 10": {"published": True},
    "with parity": {"reward": PARITY},
    "with parity, divergence weight 0.3": {"reward": PARITY, "divergence_weight": 0.3},
    "with parity, divergence weight 1": {"reward": PARITY, "divergence_weight": 1},
    "with parity, divergence weight 300": {"reward": PARITY, "divergence_weight": 300},
    "with parity, each policy with an Adam of its own": {"reward": PARITY, "optimizer": "adam"},
    "with parity, divergence weight 1, weight decay 1": {"reward": PARITY, "divergence_weight": 1, "weight_decay": 1.0},
    "with parity on probabilities, weight 1": {
        "reward": Likelihood() + LogRatio() + Parity(measure="probabilities"),
        "divergence_weight": 1,
    },
    "with parity, ten times the dual step, weight 1": {
        "reward": Likelihood() + LogRatio() + Parity(dual_step=1e-2),
        "divergence_weight": 1,
    },
    "with parity, a tenth of the dual step, weight 1": {
        "reward": Likelihood() + LogRatio() + Parity(dual_step=1e-4),
        "divergence_weight": 1,
    },
    "with parity and correctness, weight 1": {"reward": Correctness() + LogRatio() + Parity(), "divergence_weight": 1},
}  # fmt: skip


def one(name: str, seed: int) -> list[dict[str, Any]]:
    ready = make_ready(load(name, rows="published"), seed, "random")
    rows = []
    for change, options in CHANGES.items():
        if options.get("published"):
            model = CooperativeBandits.published(random_state=seed)
        else:
            model = CooperativeBandits(standardize=False, random_state=seed).set_params(**options)
        row: dict[str, Any] = {"dataset": name, "seed": seed, "change": change}
        try:
            scores = ready.validation.scores(model.fit(ready.X, ready.y, sensitive_features=ready.s))
            people = ready.validation
            said = model.predict_proba(people.X, sensitive_features=people.groups[people.s])
            auc = rank_auc(people.y == people.positive, said[:, people.positive])
            row |= {**scores._asdict(), "delta": scores.delta, "auc": auc}
        except TrainingDivergedError:
            row["diverged"] = 1
        rows.append(row)
    return rows


def main() -> None:
    arguments = asked(__doc__, "results/tried", datasets=["adult", "compas", "german", "health"], seeds=5)
    jobs = [delayed(one)(name, seed) for name in arguments.datasets for seed in range(arguments.seeds)]
    table = pd.DataFrame([row for rows in Parallel(n_jobs=2, prefer="threads")(jobs) for row in rows])
    table.to_csv(arguments.out / "tried.csv", index=False)
    numbers = ["accuracy", "discrimination", "flip_rate", "positive_rate", "auc", "delta"]
    print(table.groupby(["dataset", "change"], sort=False)[numbers].mean().round(4).to_string())


if __name__ == "__main__":
    main()
