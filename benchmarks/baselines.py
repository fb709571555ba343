"""How long the paper's baselines take at Adult's size, on one thread, and what they reach there.

    python benchmarks/baselines.py      # under a minute; reads Adult through evenhand.datasets, once

Bars: Rawlsian's 34,000 rounds × 102 features in under 10 seconds (rank-one updates; beside it, fresh
inverses, timed on 200 rounds and carried forward), and one epoch of ALFR's widest network in about a second.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings
from typing import Any

import numpy as np

from evenhand.baselines import ALFR, LFR, LR, Rawlsian
from evenhand.datasets import DataUnavailableError, load_adult
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split


def best_of(times: int, work: Any) -> float:
    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return min(once() for _ in range(times))


def fresh_inverses(rows: Any, rounds: int) -> None:
    """The same intervals by solving anew each round, as the method is often written."""
    V = [np.eye(rows.shape[1]) for _ in range(2)]
    for step in range(rounds):
        for arm in range(2):
            x = rows[2 * step + arm]
            np.sqrt(x @ np.linalg.inv(V[arm]) @ x)
        V[step % 2] += np.outer(x, x)


def speed() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(34_000, 102))
    y, s = (X[:, 0] > 0).astype(int), rng.integers(0, 2, 34_000)
    Rawlsian(n_rounds=2, fit_intercept=False).fit(X[:50], y[:50], sensitive_features=s[:50])
    model = Rawlsian(fit_intercept=False, random_state=0)
    seconds = best_of(3, lambda: model.fit(X, y, sensitive_features=s))
    slow = best_of(3, lambda: fresh_inverses(X, 200)) * 34_000 / 200
    print(f"Rawlsian, 34,000 rounds × 102 dense features: {seconds:.2f} s (fresh inverses: {slow:.0f} s)")

    for decoder in (0.0, 1.0):
        game = ALFR(40, n_hidden=40, reconstruction_weight=decoder, epochs=1, random_state=0)
        game.fit(X[:100], y[:100], sensitive_features=s[:100])
        seconds = best_of(3, lambda game=game: game.fit(X, y, sensitive_features=s))
        what = "with a decoder" if decoder else "no decoder"
        print(
            f"ALFR, one epoch of 34,000 × 102, 40 hidden, 40 in the representation, {what}: {seconds:.2f} s"
        )


def adult() -> None:
    try:
        dataset = load_adult()
    except DataUnavailableError as error:
        print(f"Adult skipped: {error}")
        return
    parts = prepare(dataset, split(dataset, seed=0))
    train, test = parts.train, parts.test
    print(f"\nAdult, {train.X.shape[0]:,} × {train.X.shape[1]}, split of seed 0: test part")
    print(f"{'':70} seconds accuracy discrimination flip rate positive")
    models = [
        LR(),
        LR(aware=True),
        Rawlsian(random_state=0),
        LFR(random_state=0),
        LFR(parity_weight=10, random_state=0),
        ALFR(random_state=0),
        ALFR(adversary_weight=10, adversary_steps=5, random_state=0),
    ]
    for model in models:
        seconds = best_of(1, lambda model=model: model.fit(train.X, train.y, sensitive_features=train.s))
        positive = model.predict(test.X, sensitive_features=test.s) == parts.pos_label
        rates = [positive[test.s == name].mean() for name in model.groups_]
        accuracy = (positive == (test.y == parts.pos_label)).mean()
        decisions = model.probabilities_by_group(test.X).argmax(axis=2)
        flips = (decisions != decisions[:, :1]).any(axis=1).mean()
        name = " ".join(repr(model).split())
        print(
            f"{name:70} {seconds:7.2f} {accuracy:8.4f} {max(rates) - min(rates):14.4f} {flips:9.4f} "
            f"{positive.mean():8.4f}"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    speed()
    adult()
