"""At which probability should a rare label be decided? Balanced accuracy of several thresholds on new people.

    python experiments/thresholds.py         # writes results/thresholds/; about 5 minutes on two cores

Made tables of 1,000 to 20,000 people, of whom 5 % are labelled positive, with a label that is linear in the features or
not. 70 % train a logistic regression, networks, or networks and trees, 15 % are the validation part, and 20,000 others are
tested. The thresholds: 0.5; the share of the label in the training part; the one with the highest balanced accuracy on the
validation part; that one only where it beats the share by a standard error; and the best on the test part, which nobody
can know. `ece` is the calibration error on the test part.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from asking import asked
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

from evenhand import CooperativeBandits, CooperativeEnsemble
from evenhand.metrics import balanced_accuracy, calibration_error

SHARE, TESTED = 0.05, 20_000
MODELS = ("logistic regression", "networks", "networks and trees")


def made(people: int, bent: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s, X = rng.choice(["f", "m"], people), rng.normal(size=(people, 5))
    X[:, 1] += s == "m"
    score = X[:, 0] + 0.7 * X[:, 1] + 0.5 * (s == "m") + bent * (X[:, 2] ** 2 - 1) + rng.normal(size=people)
    return X, (score > np.quantile(score, 1 - SHARE)).astype(int), s


def said_by(model: str, X: np.ndarray, y: np.ndarray, s: np.ndarray, train: slice) -> np.ndarray:
    if model == MODELS[0]:
        return LogisticRegression().fit(X[train], y[train]).predict_proba(X)[:, 1]
    kind = CooperativeBandits if model == MODELS[1] else CooperativeEnsemble
    learner = kind(random_state=0).fit(X[train], y[train], sensitive_features=s[train])
    return learner.predict_proba(X, sensitive_features=s)[:, 1]


def compared(people: int, bent: float, seed: int, model: str) -> dict[str, float | str]:
    X, y, s = made(people + TESTED, bent, seed)
    ends = int(0.7 * people), int(0.85 * people)
    said = said_by(model, X, y, s, slice(ends[0]))
    validated, tested = (y[ends[0] : ends[1]], said[ends[0] : ends[1]]), (y[people:], said[people:])

    def worth(bar: float, part: tuple[np.ndarray, np.ndarray]) -> float:
        return balanced_accuracy(part[0], (part[1] >= bar).astype(int))

    def best(part: tuple[np.ndarray, np.ndarray]) -> float:
        return max(
            np.unique(np.quantile(part[1], np.linspace(0, 0.999, 200))), key=lambda bar: worth(bar, part)
        )

    share, chosen = y[: ends[0]].mean(), best(validated)
    right = [(validated[1][validated[0] == label] >= share).astype(int) == label for label in (0, 1)]
    error = 0.5 * np.sqrt(sum(hits.mean() * (1 - hits.mean()) / len(hits) for hits in right))
    surely = chosen if worth(chosen, validated) > worth(share, validated) + error else share
    bars = {
        "0.5": 0.5,
        "share": share,
        "validation": chosen,
        "validation, surely": surely,
        "best": best(tested),
    }
    return {"people": people, "bent": bent, "seed": seed, "model": model} | {
        name: worth(bar, tested) for name, bar in bars.items()
    } | {"ece": calibration_error(*tested)}  # fmt: skip


def main() -> None:
    given = asked(__doc__, "results/thresholds", seeds=8, jobs=-1)
    runs = product((1_000, 4_000, 20_000), (0.0, 1.0), range(given.seeds), MODELS)
    table = pd.DataFrame(Parallel(n_jobs=given.jobs)(delayed(compared)(*run) for run in runs))
    table.to_csv(given.out / "thresholds.csv", index=False)
    shown = table.drop(columns="seed").groupby(["people", "bent", "model"]).mean()
    print(shown.round(3).to_string())


if __name__ == "__main__":
    main()
