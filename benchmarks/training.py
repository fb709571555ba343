"""Updates per second of Algorithm 1, against the same step in PyTorch, NumPy and Vowpal Wabbit, in one run.

    python benchmarks/training.py            # needs: pip install torch vowpalwabbit (each optional)

Two groups, 40 hidden units, rows shaped like one-hot Adult (13 of 102 columns filled), one pinned thread.
Every contender is timed in turn, several times over, and its best time counts, so that a busy machine is busy
for all. Then: two threads on two models against one, sparse rows against dense, and how the cost of a step grows
with steps, rows, features, hidden units and groups.
"""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import options
from scipy import sparse

from evenhand import CooperativeBandits
from evenhand.bandits import contexts
from evenhand.bandits.kernels.subnormal import flushed_to_zero

ROWS, COLUMNS, FILLED, HIDDEN, WEIGHT, RATE = 34_189, 102, 13, 40, 10.0, 1e-3


def adult_shaped(n_rows=ROWS, n_columns=COLUMNS, filled=FILLED, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    columns = np.argsort(rng.random((n_rows, n_columns)), axis=1)[:, :filled]
    columns.sort(axis=1)
    values = rng.normal(size=n_rows * filled).astype(np.float32)
    starts = np.arange(n_rows + 1, dtype=np.int32) * filled
    X = sparse.csr_array((values, columns.ravel().astype(np.int32), starts), shape=(n_rows, n_columns))
    return X, rng.integers(0, 2, n_rows), rng.integers(0, n_groups, n_rows)


def algorithm_1(steps: int, hidden: int = HIDDEN) -> CooperativeBandits:
    return CooperativeBandits.published(
        WEIGHT,
        hidden=hidden,
        learning_rate=RATE,
        steps=steps,
        order="file",
        checkpoint_every=10**9,
        random_state=0,
    )


def evenhand_loop(X, y, s, steps: int) -> Callable[[], object]:
    model = algorithm_1(steps)
    model.fit(X, y, sensitive_features=s)  # compiles, or reads what was compiled before
    return lambda: model.fit(X, y, sensitive_features=s)


def dense_evenhand_loop(X, y, s, steps: int) -> Callable[[], object]:
    """The same with every zero multiplied, as the loops below do; evenhand by itself would store such rows sparsely."""
    model, dense = algorithm_1(steps), X.toarray()

    def run() -> None:
        usual, contexts.SPARSE_BELOW = contexts.SPARSE_BELOW, 0
        try:
            model.fit(dense, y, sensitive_features=s)
        finally:
            contexts.SPARSE_BELOW = usual

    run()
    return run


def numpy_loop(X, y, s, steps: int) -> Callable[[], object]:
    """Algorithm 1 as a person would write it in NumPy: dense rows, in-place updates, no autograd."""
    dense = X.toarray()
    rng = np.random.default_rng(0)
    W1, b1 = rng.normal(size=(2, COLUMNS, HIDDEN)).astype("f4") / 10, np.zeros((2, HIDDEN), "f4")
    W2, b2 = rng.normal(size=(2, HIDDEN, 2)).astype("f4") / 6, np.zeros((2, 2), "f4")

    def say(x, g):
        h = np.maximum(x @ W1[g] + b1[g], 0)
        z = h @ W2[g] + b2[g]
        e = np.exp(z - z.max())
        return h, e / e.sum()

    def run() -> None:
        for t in range(steps):
            x, g = dense[t % len(dense)], s[t % len(dense)]
            h, p = say(x, g)
            _, q = say(x, 1 - g)
            a = int(rng.random() > p[0])
            r = (a == y[t % len(dense)]) - WEIGHT * (p * np.log(p / q)).sum()
            d = -p * (RATE * r)
            d[a] += RATE * r
            dh = (W2[g] @ d) * (h > 0)
            W2[g] += np.outer(h, d)
            b2[g] += d
            W1[g] += np.outer(x, dh)
            b1[g] += dh

    return run


def torch_loop(X, y, s, steps: int) -> Callable[[], object] | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    rows = torch.from_numpy(X.toarray())
    nets = [
        torch.nn.Sequential(torch.nn.Linear(COLUMNS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 2))
        for _ in range(2)
    ]
    optimisers = [torch.optim.SGD(net.parameters(), lr=RATE) for net in nets]
    groups, labels = s.tolist(), y.tolist()

    def run() -> None:
        for t in range(steps):
            i = t % len(groups)
            x, g = rows[i], groups[i]
            p = torch.softmax(nets[g](x), -1)
            with torch.no_grad():
                q = torch.softmax(nets[1 - g](x), -1)
                a = int(torch.multinomial(p, 1))
                reward = float(a == labels[i]) - WEIGHT * float((p * (p / q).log()).sum())
            optimisers[g].zero_grad()
            (-reward * p[a].log()).backward()
            optimisers[g].step()

    return run


def vowpal_wabbit_loop(X, y, s, steps: int) -> Callable[[], object] | None:
    """Vowpal Wabbit's contextual bandit, fed row by row: predict, sample, learn. Linear, one model a group."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    workers = [Workspace("--cb_explore 2 --quiet --epsilon 0.1") for _ in range(2)]
    rng = np.random.default_rng(0)
    texts = []
    for i in range(min(steps, 3000)):
        at = slice(X.indptr[i], X.indptr[i + 1])
        texts.append(" ".join(f"{c}:{v:.4f}" for c, v in zip(X.indices[at], X.data[at], strict=True)))

    def run() -> None:
        for t in range(steps):
            i = t % len(texts)
            worker = workers[s[i]]
            shares = worker.predict("| " + texts[i])
            a = int(rng.random() * sum(shares) > shares[0])
            worker.learn(f"{a + 1}:{-float(a == y[i])}:{shares[a]} | {texts[i]}")

    return run


def best_of(contenders: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, float]:
    """Seconds per step, best of several rounds in which each contender has its turn."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(rounds):
        for name, (run, steps) in contenders.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - started) / steps)
    return best


def against_peers(rounds: int) -> dict[str, float]:
    X, y, s = adult_shaped()
    makers = {
        "evenhand": (evenhand_loop, 400_000),
        "evenhand, rows kept dense": (dense_evenhand_loop, 200_000),
        "PyTorch loop, dense rows": (torch_loop, 600),
        "NumPy loop, dense rows": (numpy_loop, 3_000),
        "Vowpal Wabbit, its own linear bandit, rows as text": (vowpal_wabbit_loop, 3_000),
    }
    contenders = {}
    for name, (maker, steps) in makers.items():
        run = maker(X, y, s, steps)
        if run is None:
            print(f"{name}: not installed, left out")
        else:
            contenders[name] = (run, steps)
    seconds = best_of(contenders, rounds)
    print(f"\nAlgorithm 1, two groups, {HIDDEN} units, {FILLED} of {COLUMNS} columns filled, one thread")
    print(f"{'':52}{'updates/s':>14}{'evenhand is':>16}")
    for name, value in seconds.items():
        ratio = "" if name == "evenhand" else f"{value / seconds['evenhand']:,.0f} × faster"
        print(f"{name:52}{1 / value:>14,.0f}{ratio:>16}")
    return {name: 1 / value for name, value in seconds.items()}


def two_threads(rounds: int) -> float:
    X, y, s = adult_shaped()
    one, two = evenhand_loop(X, y, s, 1_500_000), evenhand_loop(X, y, s, 1_500_000)

    def together() -> None:
        threads = [threading.Thread(target=run) for run in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seconds = best_of({"alone": (one, 1), "together": (together, 1)}, rounds)
    ratio = 2 * seconds["alone"] / seconds["together"]
    print(f"\nTwo models in two threads: {ratio:.2f} × the speed of one")
    return ratio


def growth(rounds: int) -> list[dict[str, float | str]]:
    """Nanoseconds per step, one setting changed at a time."""
    base = {
        "steps": 200_000,
        "rows": ROWS,
        "features": COLUMNS,
        "filled": FILLED,
        "hidden": HIDDEN,
        "groups": 2,
    }
    changes = {
        "steps": (50_000, 200_000, 800_000), "rows": (2_000, 34_189, 200_000), "features": (30, 102, 1_000),
        "filled": (6, 13, 26, 102), "hidden": (10, 20, 40, 80), "groups": (2, 4, 8),
    }  # fmt: skip
    table: list[dict[str, float | str]] = []
    for setting, values in changes.items():
        for value in values:
            world = {**base, setting: value}
            if setting == "filled" and value == COLUMNS:
                world["filled"] = COLUMNS
            X, y, s = adult_shaped(world["rows"], world["features"], world["filled"], world["groups"])
            model = algorithm_1(world["steps"], world["hidden"])
            model.fit(X, y, sensitive_features=s)
            again = partial(model.fit, X, y, sensitive_features=s)
            seconds = best_of({"fit": (again, world["steps"])}, rounds)
            table.append({"setting": setting, "value": value, "ns_per_step": seconds["fit"] * 1e9})
    print(f"\nHow the cost of a step grows (base: {base})")
    print(f"{'setting':12}{'value':>10}{'ns/step':>10}")
    for row in table:
        print(f"{row['setting']:12}{row['value']:>10,}{row['ns_per_step']:>10,.0f}")
    return table


def sparse_or_dense(rounds: int) -> list[dict[str, float]]:
    """Nanoseconds per step on the same table stored both ways: where contexts.SPARSE_BELOW comes from."""
    table = []
    usual = contexts.SPARSE_BELOW
    for filled in (10, 20, 30, 40, 60, 102):
        X, y, s = adult_shaped(filled=filled)
        dense = X.toarray()
        model = algorithm_1(100_000)
        contexts.SPARSE_BELOW = 0  # a dense array stays dense
        seconds = best_of(
            {
                "sparse": (partial(model.fit, X, y, sensitive_features=s), 100_000),
                "dense": (partial(model.fit, dense, y, sensitive_features=s), 100_000),
            },
            rounds,
        )
        table.append({"share": filled / COLUMNS} | {name: value * 1e9 for name, value in seconds.items()})
    contexts.SPARSE_BELOW = usual
    print("\nThe same table stored sparsely and densely, ns/step")
    print(f"{'filled':>8}{'sparse':>10}{'dense':>10}")
    for row in table:
        print(f"{row['share']:>8.0%}{row['sparse']:>10,.0f}{row['dense']:>10,.0f}")
    return table


def added_memory() -> float:
    """Peak memory of a fit beyond X, as a share of X: rows are read in place, never copied per model."""
    X, y, s = adult_shaped(200_000)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    model = CooperativeBandits(steps=1000, random_state=0)
    model.fit(X, y, sensitive_features=s)
    tracemalloc.start()
    model.fit(X, y, sensitive_features=s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\nMemory added by a fit: {peak / 1e6:.1f} MB; X itself: {size / 1e6:.1f} MB")
    return peak / size


def main() -> None:
    arguments = options.asked(__doc__, json=True, rounds=7)
    figures = {"two_threads": two_threads(arguments.rounds), "memory_share": added_memory()}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with flushed_to_zero():  # as our loop does for itself, so that peers have it too
        figures["updates_per_second"] = against_peers(arguments.rounds)
    figures["sparse_or_dense"] = sparse_or_dense(arguments.rounds)
    figures["growth"] = growth(max(1, arguments.rounds // 2))
    options.write(figures, arguments.json)


if __name__ == "__main__":
    main()
