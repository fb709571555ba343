"""Defaults that a stranger can trust: CooperativeBandits() with no tuning, beside scikit-learn's LR, 20 seeds.

    python experiments/defaults.py                # writes results/defaults/; minutes on two cores

Same random 70/15/15 splits; the test part is measured. A model has collapsed when it gives everybody the same
decision although LR does not, or when its AUC is below 0.55, near a coin's. Last, one fit on Adult is timed beside one
fit of fairlearn's ExponentiatedGradient.
"""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
from asking import asked
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from evenhand import CooperativeBandits
from evenhand.baselines import ExponentiatedGradientClassifier
from evenhand.datasets import load
from evenhand.groups import codes_of
from evenhand.metrics import accuracy, auc, calibration_error, discrimination, flip_rate
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

DATASETS = ("adult", "compas", "german", "health")


def one_seed(name: str, seed: int) -> list[dict[str, float | str | int]]:
    dataset = load(name, rows="published")
    parts = prepare(dataset, split(dataset, seed=seed))
    train, test = parts.train, parts.test
    rows = []
    with threadpool_limits(1):
        ours = CooperativeBandits(random_state=seed).fit(train.X, train.y, sensitive_features=train.s)
        theirs = LogisticRegression(max_iter=500).fit(train.X, train.y)
    by_group = ours.probabilities_by_group(test.X)
    for method, model, said, flips in (
        ("CooperativeBandits()", ours, ours.predict_proba(test.X, sensitive_features=test.s), by_group),
        ("LogisticRegression", theirs, theirs.predict_proba(test.X), None),
    ):
        decided = model.classes_[said.argmax(1)]
        score = said[:, list(model.classes_).index(dataset.pos_label)]
        rows.append(
            {
                "dataset": name,
                "seed": seed,
                "method": method,
                "accuracy": accuracy(test.y, decided),
                "auc": auc(test.y, score, pos_label=dataset.pos_label),
                "calibration_error": calibration_error(test.y, score, pos_label=dataset.pos_label),
                "discrimination": discrimination(
                    test.y, decided, sensitive_features=test.s, pos_label=dataset.pos_label
                ),
                "flip_rate": 0.0
                if flips is None
                else flip_rate(flips.argmax(2), codes_of(test.s, len(test.s), ours.groups_)),
                "positive_rate": float(np.mean(decided == dataset.pos_label)),
            }
        )
    return rows


def time_beside_fairlearn() -> dict[str, float]:
    dataset = load("adult", rows="published")
    train = prepare(dataset, split(dataset, seed=0)).train
    seconds = {}
    for name, model in (
        ("CooperativeBandits()", CooperativeBandits(random_state=0)),
        ("fairlearn ExponentiatedGradient", ExponentiatedGradientClassifier()),
    ):
        started = time.perf_counter()
        model.fit(train.X, train.y, sensitive_features=train.s)
        seconds[name] = time.perf_counter() - started
    return seconds


def main() -> None:
    arguments = asked(__doc__, "results/defaults", datasets=list(DATASETS), seeds=20)
    jobs = [delayed(one_seed)(name, seed) for name in arguments.datasets for seed in range(arguments.seeds)]
    table = pd.DataFrame([row for rows in Parallel(n_jobs=2, prefer="threads")(jobs) for row in rows])
    table.to_csv(arguments.out / "defaults.csv", index=False)
    numbers = table.drop(columns="seed").groupby(["dataset", "method"], sort=False).mean()
    print(numbers.round(4).to_string())
    found = {
        "collapsed": collapsed(table),
        "worst_flip_rate": table.groupby("dataset", sort=False).flip_rate.max().to_dict(),
        "seconds_on_adult": time_beside_fairlearn(),
    }
    (arguments.out / "found.json").write_text(json.dumps(found, indent=1))
    print(f"\n{json.dumps(found, indent=1)}")


def collapsed(table: pd.DataFrame) -> dict[str, int]:
    """Count the splits of each data set on which the defaults collapsed."""
    wide = table.pivot(index=["dataset", "seed"], columns="method")
    constant = wide["positive_rate"]["CooperativeBandits()"].isin([0.0, 1.0])
    varied = ~wide["positive_rate"]["LogisticRegression"].isin([0.0, 1.0])
    gone = (constant & varied) | (wide["auc"]["CooperativeBandits()"] < 0.55)
    return {str(name): int(count) for name, count in gone.groupby("dataset", sort=False).sum().items()}


if __name__ == "__main__":
    main()
