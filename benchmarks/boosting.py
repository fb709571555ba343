"""CooperativeBoosting against plain LightGBM, and against a fair method around boosted trees, in one run on Adult.

    python benchmarks/boosting.py    # needs: pip install 'evenhand[compare]'

A whole fit, with and without parity, beside LightGBM's own with the same rounds, leaves, step and regularisation, and
beside one fit of fairlearn's ExponentiatedGradient around scikit-learn's boosted trees. Then deciding: LightGBM's trees
by its own `predict`, and the same trees by our compiled loop. All on one thread. Contenders take turns, several times
over, and the best time of each counts: seconds of the processor, so that a busy machine costs nobody anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import options
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from evenhand import CooperativeBoosting, Likelihood, LogRatio, Parity
from evenhand.baselines import ExponentiatedGradientClassifier
from evenhand.boosting.trees import from_lightgbm
from evenhand.datasets import load
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

ROUNDS, LEAVES, LEAST, L2 = 120, 31, 100, 20.0  # what CooperativeBoosting has by default for this many people


def adult():
    """Who trains on Adult, as dense rows, which all contenders take."""
    dataset = load("adult", rows="published")
    train = prepare(dataset, split(dataset, seed=0)).train
    rows = train.X.toarray() if hasattr(train.X, "toarray") else train.X
    return np.ascontiguousarray(rows, dtype=np.float32), np.asarray(train.y), np.asarray(train.s)


def best_of(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of the processor, best of several rounds in which each contender has its turn."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - started)
    return best


def plain_lightgbm() -> LGBMClassifier:
    return LGBMClassifier(
        n_estimators=ROUNDS, num_leaves=LEAVES, min_child_samples=LEAST, reg_lambda=L2, n_jobs=1, verbose=-1
    )  # fmt: skip


def fits(X, y, s, rounds: int) -> dict[str, float]:
    even = Likelihood() + LogRatio() + Parity(bound=0.0)
    models = {
        "CooperativeBoosting, λ = 20": CooperativeBoosting(20.0, random_state=0),
        "CooperativeBoosting, λ = 20, parity": CooperativeBoosting(20.0, reward=even, random_state=0),
    }
    few = slice(500)
    for model in models.values():
        model.fit(X[few], y[few], sensitive_features=s[few])  # compiles, or reads what was compiled before
    contenders: dict[str, Callable[[], object]] = {"LightGBM, plain": lambda: plain_lightgbm().fit(X, y)}
    for name, model in models.items():
        contenders[name] = lambda model=model: model.fit(X, y, sensitive_features=s)
    return best_of(contenders, rounds)


def game(X, y, s) -> float:
    """One fit of ExponentiatedGradient around boosted trees; it takes too long for several."""
    inside = ExponentiatedGradientClassifier(HistGradientBoostingClassifier(random_state=0))
    return best_of({"game": lambda: inside.fit(X, y, sensitive_features=s)}, 1)["game"]


def deciding(X, y, rounds: int) -> dict[str, float]:
    """Nanoseconds per person: the same trees, by LightGBM and by our loop."""
    booster = plain_lightgbm().fit(X, y).booster_
    trees = from_lightgbm(booster.model_to_string(), 1)
    theirs = booster.predict(X, raw_score=True, num_threads=1)
    assert np.abs(trees.scores(X, 1)[0] - theirs).max() < 1e-6
    contenders: dict[str, Callable[[], object]] = {
        "LightGBM's predict": lambda: booster.predict(X, raw_score=True, num_threads=1),
        "our compiled trees": lambda: trees.scores(X, 1),
    }
    return {name: 1e9 * seconds / len(X) for name, seconds in best_of(contenders, rounds).items()}


def main() -> None:
    arguments = options.asked(__doc__, json=True, rounds=5)
    options.need("pip install 'evenhand[compare]'", "fairlearn")
    X, y, s = adult()
    with threadpool_limits(1):
        seconds = fits(X, y, s, arguments.rounds)
        seconds["ExponentiatedGradient around boosted trees"] = game(X, y, s)
        figures = {"seconds": seconds, "nanoseconds_per_person": deciding(X, y, 2 * arguments.rounds)}
    print(f"A fit on Adult, {len(y):,} people, one thread\n{'':46}{'seconds':>10}{'× LightGBM':>12}")
    for name, value in seconds.items():
        print(f"{name:46}{value:>10.2f}{value / seconds['LightGBM, plain']:>12.2f}")
    print("\nDeciding, ns a person")
    for name, value in figures["nanoseconds_per_person"].items():
        print(f"{name:46}{value:>10,.0f}")
    options.write(figures, arguments.json)


if __name__ == "__main__":
    main()
