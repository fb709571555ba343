"""LFR beside AIF360's scikit-learn-style (PyTorch) one: 34,000 people, 105 features, 10 prototypes.

    python benchmarks/lfr.py            # about two minutes; needs aif360, torch and skorch

Both on one thread, minimising the same objective: AIF360's, which is evenhand's with distance="euclidean" and
the weights divided by the number of features (A_x) and of prototypes (A_z). AIF360 runs as it is, 200
iterations at most; evenhand gets 60. Shown for two fairness weights, AIF360's default 50 and a mild 1:
seconds, the objective reached, and the ratio of seconds. The bar is 10 times at the default, to an objective
at least as good. A last table shows what rounding the corner of L_z is worth.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import logging
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from evenhand.baselines import LFR, lfr
from evenhand.baselines._prototypes import Losses, People, Prototypes, objective

N_PEOPLE, K = 34_000, 10
CATEGORIES = (7, 16, 7, 14, 6, 5, 2, 42)  # of eight columns, beside six numbers: Adult's shape
A_X, A_Y = 0.01, 1.0
SEEDS = (0, 1, 2)


def make_people() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, N_PEOPLE)
    numbers = rng.normal(size=(N_PEOPLE, 6))
    numbers[:, 0] += 0.5 * s
    columns = [np.eye(n)[rng.choice(n, N_PEOPLE, p=rng.dirichlet(np.full(n, 0.5)))] for n in CATEGORIES]
    X = np.hstack([numbers, *columns])
    score = X @ rng.normal(0, 0.7, X.shape[1]) + 0.5 * s + rng.logistic(size=N_PEOPLE)
    return X, (score > np.quantile(score, 0.7)).astype(np.int64), s


def evenhand(X: Any, y: Any, s: Any, fairness: float, seed: int, max_iter: int = 60) -> tuple[float, float]:
    model = LFR(
        K, reconstruction_weight=A_X / X.shape[1], classifier_weight=A_Y, parity_weight=fairness / K,
        distance="euclidean", max_iter=max_iter, random_state=seed,
    )  # fmt: skip
    began = time.perf_counter()
    model.fit(X, y, sensitive_features=s)
    return time.perf_counter() - began, model.objective_


def aif360(X: Any, y: Any, s: Any, fairness: float, seed: int) -> tuple[float, float]:
    import torch
    from aif360.sklearn.preprocessing import LearnedFairRepresentations

    torch.set_num_threads(1)
    frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([s], names=["s"]))
    labels = pd.Series(y, index=frame.index)
    model = LearnedFairRepresentations(
        "s",
        n_prototypes=K,
        reconstruct_weight=A_X,
        target_weight=A_Y,
        fairness_weight=fairness,
        random_state=seed,
    )
    began = time.perf_counter()
    model.fit(frame, labels)
    seconds = time.perf_counter() - began
    reached = Prototypes(model.coef_.ravel(), model.prototypes_, np.ones((2, X.shape[1])))
    weights = Losses(A_X / X.shape[1], A_Y, fairness / K)
    return seconds, objective(reached, People.gather(X, y, s), weights, weighted=False)[0]


def main() -> None:
    X, y, s = make_people()
    evenhand(X[:200], y[:200], s[:200], 1.0, 0)  # compiled and cached before the clock starts
    print(f"{X.shape[0]:,} × {X.shape[1]}, {K} prototypes, one thread, seeds {SEEDS}: seconds (objective)")
    for fairness in (50.0, 1.0):
        own = [evenhand(X, y, s, fairness, seed) for seed in SEEDS]
        line = ", ".join(f"{seconds:.2f} ({value:.4f})" for seconds, value in own)
        print(f"fairness weight {fairness:g}:\n  evenhand {line}")
        try:
            theirs = [aif360(X, y, s, fairness, seed) for seed in SEEDS]
        except ImportError as error:
            print(f"  AIF360 skipped: {error}")
            continue
        line = ", ".join(f"{seconds:.2f} ({value:.4f})" for seconds, value in theirs)
        ratio = min(theirs)[0] / min(own)[0]
        gap = max(value for _, value in own) - min(value for _, value in theirs)
        print(f"  AIF360   {line}\n  {ratio:.1f} times as fast, best against best; ", end="")
        print(f"our worst objective minus their best: {gap:+.4f}")

    print("Zemel's own distance, A_z = 1, 200 iterations, seed 0:")
    for name, smoothings in (("corner rounded", lfr.SMOOTHINGS), ("corner as it is", (0.0, 0.0))):
        lfr.SMOOTHINGS = smoothings
        model = LFR(K, random_state=0).fit(X, y, sensitive_features=s)
        accuracy = (model.predict(X, sensitive_features=s) == y).mean()
        gap = model.losses_.parity
        print(f"  {name}: objective {model.objective_:.4f}, accuracy {accuracy:.4f}, L_z {gap:.5f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # AIF360's, about packages that nothing here needs
    main()
