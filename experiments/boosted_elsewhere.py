"""Networks, trees or both? On other people's tables, with every default as it is.

    python experiments/boosted_elsewhere.py          # writes results/boosted_elsewhere/; some minutes on two cores

The nine public tables of elsewhere.py, none of which was looked at while the defaults of the trees were made. 70 % of
the people train, 30 % are measured, five times over; nothing is chosen, so there is no validation part. Beside ours:
logistic regression and boosted trees that never see the group. A killed run goes on where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asking
import elsewhere
import numpy as np
import pandas as pd
from elsewhere import TABLES, People, people_of
from frontier import version_of
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    Likelihood,
    LogRatio,
    Parity,
)
from evenhand.code_version import code_version
from evenhand.metrics import auc

FIRST_SEED, SEEDS, WEIGHT = 3000, 5, 20.0
BLIND = ("blind LR", "blind trees")
SHORT_BY, AUC_SHORT_BY, MAX_FLIP = 0.003, 0.003, 0.005  # how much worse is as good: 0.3 points and 0.003


def models(seed: int) -> dict[str, Any]:
    even = Likelihood() + LogRatio() + Parity(bound=0.0)
    scaled = CooperativeBandits(standardize=False)
    return {
        "blind LR": LogisticRegression(max_iter=1000),
        "blind trees": HistGradientBoostingClassifier(random_state=seed),
        "networks": CooperativeBandits(WEIGHT, standardize=False, checkpoint_every=10**9, random_state=seed),
        "trees": CooperativeBoosting(WEIGHT, random_state=seed),
        "ensemble": CooperativeEnsemble(WEIGHT, bandits=scaled, random_state=seed),
        "ensemble, parity": CooperativeEnsemble(WEIGHT, reward=even, bandits=scaled, random_state=seed),
    }


def split(everybody: People, seed: int) -> tuple[People, People]:
    """70 % and 30 % of the people; features scaled by those who train."""
    order = np.random.default_rng(seed).permutation(len(everybody.y))
    train, test = np.split(order, [round(0.7 * len(order))])
    mean, deviation = everybody.X[train].mean(0), everybody.X[train].std(0)
    kept = deviation > 1e-9
    X = np.clip((everybody.X[:, kept] - mean[kept]) / deviation[kept], -8, 8)
    first, second = (People(X[at], everybody.y[at], everybody.s[at]) for at in (train, test))
    return first, second


def measured(everybody: People, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each model: fitted on 70 %, measured on 30 %."""
    train, test = split(everybody, seed)
    for name, model in models(seed).items():
        if name in BLIND:
            likely = model.fit(train.X, train.y).predict_proba(test.X)[:, 1]
            flips = 0.0
        else:
            said = model.fit(train.X, train.y, sensitive_features=train.s).probabilities_by_group(test.X)
            likely = said[np.arange(len(test.y)), np.searchsorted(model.groups_, test.s), 1]
            flips = float((said[:, 0].argmax(1) != said[:, 1].argmax(1)).mean())
        yes = likely > 0.5
        rates = [float(yes[test.s == group].mean()) for group in (0, 1)]
        yield {"people": len(everybody.y), "seed": seed, "method": name, "accuracy": float((yes == test.y).mean()),
               "discrimination": abs(rates[0] - rates[1]), "flip_rate": flips, "auc": auc(test.y, likely)}  # fmt: skip


def kept(folder: Path, table: Callable[[], Any], seed: int) -> pd.DataFrame:
    """The rows of one table and split, from their file if an earlier run made them."""
    file = folder / f"{table.__name__}-{seed}.csv"
    return asking.kept(file, lambda: measured(people_of(table), seed)).assign(table=table.__name__)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Means by table, the smallest first, and whether each of ours is as good as the better blind one."""
    means = (
        found.groupby(["people", "table", "method"], sort=False).mean(numeric_only=True).drop(columns="seed")
    )
    rows = []
    for (people, table), some in means.groupby(["people", "table"]):
        some = some.droplevel(["people", "table"])
        best = some.loc[list(BLIND)].max()
        for method, row in some.iterrows():
            aim = ""
            if method in ("networks", "trees", "ensemble"):
                short, auc_short = best.accuracy - row.accuracy, best.auc - row.auc
                met = short <= SHORT_BY and auc_short <= AUC_SHORT_BY and row.flip_rate <= MAX_FLIP
                aim = "met" if met else f"accuracy {-100 * short:+.2f} points, AUC {-auc_short:+.4f}"
            rows.append({"table": table, "people": people, "method": method, **row, "aim": aim})
    return pd.DataFrame(rows)


def main() -> None:
    seeds = {"default": SEEDS, "help": "how many splits"}
    arguments = asking.asked(__doc__, "results/boosted_elsewhere", seeds=seeds)
    version = version_of(sys.modules[__name__], elsewhere) + code_version("evenhand.boosting.ensemble")[:12]
    done = arguments.out / version
    done.mkdir(exist_ok=True)
    jobs = [
        delayed(kept)(done, table, FIRST_SEED + seed) for seed in range(arguments.seeds) for table in TABLES
    ]
    found = pd.concat(Parallel(n_jobs=2)(jobs), ignore_index=True)
    found.to_csv(arguments.out / "trials.csv", index=False)
    shown = summary(found)
    shown.to_csv(arguments.out / "summary.csv", index=False)
    print(shown.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
