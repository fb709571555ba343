"""Decide, see the reward, learn: our loop and other libraries on the same stream of people; serving.py runs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import CooperativeBandits, DecisionLoop

BATCH = 1000


def people_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.choice(["f", "m"], n)


def networks() -> CooperativeBandits:
    X, s = people_of(2000)
    return CooperativeBandits(random_state=0).fit(
        X, np.where(X[:, 0] > 0, "grant", "refuse"), sensitive_features=s
    )


def rate_of(does: Callable[[], Any], n: int) -> dict[str, float]:
    """Return how many people a second are done, by the clock and by the processor: others may use the machine."""
    began, busy = time.perf_counter(), time.process_time()
    does()
    return {"rate": n / (time.perf_counter() - began), "per_cpu": n / (time.process_time() - busy)}


def loop_on_disk(X: Any, y: Any, s: Any, folder: Path) -> Callable[[], Any]:
    loop = DecisionLoop(networks(), folder / "learning.db")
    asked = list(zip(map(str, range(len(X))), X.tolist(), s.tolist(), strict=True))

    def run() -> None:
        for at in range(0, len(asked), BATCH):
            told = loop.decide_many(asked[at : at + BATCH])
            right = y[at : at + BATCH]
            loop.outcome_many(
                {"id": one.id, "reward": float(one.action == good)}
                for one, good in zip(told, right, strict=True)
            )
        loop.learn()
        loop.close()

    return run


def in_memory(X: Any, y: Any, s: Any, folder: Path) -> Callable[[], Any]:
    model = networks()
    model.update(X[:2], y[:2], [1.0, 1.0], [0.5, 0.5], sensitive_features=s[:2])  # compiled

    def run() -> None:
        for at in range(0, len(X), BATCH):
            rows = slice(at, at + BATCH)
            actions, chances = model.sample_actions(X[rows], sensitive_features=s[rows], random_state=at)
            earned = (actions == y[rows]).astype(float)
            model.update(X[rows], actions, earned, chances, sensitive_features=s[rows])

    return run


def vowpal_wabbit(X: Any, y: Any, s: Any, folder: Path) -> Callable[[], Any]:
    from vowpalwabbit import Workspace

    worker, rng = Workspace("--cb_explore 2 --quiet --epsilon 0.1"), np.random.default_rng(0)
    texts = [" ".join(f"{at}:{value:.6f}" for at, value in enumerate(row)) for row in X.tolist()]
    names = ["grant", "refuse"]

    def run() -> None:
        for text, good in zip(texts, y, strict=True):
            shares = worker.predict(f"| {text}")
            action = int(rng.random() * sum(shares) > shares[0])
            worker.learn(f"{action + 1}:{-float(names[action] == good)}:{shares[action]} | {text}")

    return run


def river(X: Any, y: Any, s: Any, folder: Path) -> Callable[[], Any]:
    from river.bandit import LinUCBDisjoint

    policy = LinUCBDisjoint(alpha=1.0, seed=0)
    contexts = [dict(enumerate(row)) for row in X.tolist()]

    def run() -> None:
        for context, good in zip(contexts, y, strict=True):
            action = policy.pull(["grant", "refuse"], context=context)
            policy.update(action, context, float(action == good))

    return run


def mabwiser(X: Any, y: Any, s: Any, folder: Path) -> Callable[[], Any]:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(arms=["grant", "refuse"], learning_policy=LearningPolicy.LinGreedy(epsilon=0.1), seed=0)
    mab.fit(["grant", "refuse"], [0, 0], X[:2])

    def run() -> None:
        for at, good in enumerate(y):
            action = mab.predict(X[at : at + 1])
            mab.partial_fit([action], [float(action == good)], X[at : at + 1])

    return run


PEERS: dict[str, tuple[Callable[..., Callable[[], Any]], int]] = {
    "evenhand, in memory, 1,000 at a time": (in_memory, 200_000),
    "evenhand's loop, each on disk, 1,000 at a time": (loop_on_disk, 30_000),
    "Vowpal Wabbit's Python binding, in memory, one by one": (vowpal_wabbit, 10_000),
    "River LinUCB, in memory, one by one": (river, 5_000),
    "MABWiser LinGreedy, in memory, one by one": (mabwiser, 1_000),
}


def against_peers(folder: Path) -> dict[str, dict[str, float]]:
    found = {}
    for name, (make, n) in PEERS.items():
        X, s = people_of(n)
        y = np.where(X[:, 0] > 0, "grant", "refuse")
        try:
            run = make(X, y, s, folder)
        except ImportError as error:
            print(f"{name}: left out, {error.name} is not installed")
            continue
        found[name] = rate_of(run, n)
    return found
