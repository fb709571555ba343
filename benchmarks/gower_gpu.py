"""Exact Gower neighbours on a GPU beside the same search on the CPU: 5 neighbours of everybody, 14 columns.

    python benchmarks/gower_gpu.py --json results/benchmarks/gower-gpu.json    # needs: pip install 'evenhand[cuda]', and a device

6 numbers and 8 categories with about Adult's values and frequencies, drawn independently; and uniform ones, which prune
worst. The best of several rounds counts on the GPU, and kernels are compiled before. All cores of the same machine are timed
once, on everybody in tables like Adult. Whoever was searched on the CPU must have the same neighbours, at the same distances
to the last bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import options
import pandas as pd

from evenhand.cuda import cupy
from evenhand.metrics import Neighbours, gower_neighbours
from evenhand.metrics.gower_coarse import places_of
from evenhand.metrics.gower_cuda import nearest, pack
from evenhand.metrics.gower_features import features_of, scales_of

K, SOME = 5, 4096  # people who are compared in a uniform table
VALUES = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2,
          "country": 42}  # fmt: skip


def adult_shaped(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gains, losses = np.rint(rng.lognormal(8.6, 1, 119)).clip(114, 99_999), np.rint(rng.uniform(155, 4356, 92))
    frame = pd.DataFrame({
        "age": np.rint(17 + rng.gamma(2.8, 7.7, n)).clip(17, 90),
        "weight": np.rint(rng.lognormal(12, 0.55, n)),
        "years": np.rint(rng.normal(10, 2.6, n)).clip(1, 16),
        "gain": np.where(rng.random(n) < 0.083, rng.choice(gains, n), 0),
        "loss": np.where(rng.random(n) < 0.047, rng.choice(losses, n), 0),
        "hours": np.where(rng.random(n) < 0.47, 40, np.rint(rng.normal(40, 14, n)).clip(1, 99)),
    })  # fmt: skip
    for name, count in VALUES.items():
        often = 1 / np.arange(1, count + 1) ** (3 if name in ("race", "country") else 1.2)
        codes = rng.choice(count, n, p=often / often.sum())
        frame[name] = pd.Categorical.from_codes(codes, [f"{name} {at}" for at in range(count)])
    return frame


def uniform(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 6))).add_prefix("number")
    for at in range(8):
        frame[f"category{at}"] = pd.Categorical.from_codes(rng.integers(0, 12, n), list("abcdefghijkl"))
    return frame


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    cupy().cuda.Device().synchronize()
    return time.perf_counter() - start, found


def in_parts(frame: pd.DataFrame) -> dict[str, float]:
    """Return the seconds that the parts of a search take."""
    cp, parts = cupy(), {}
    parts["table"], features = timed(lambda: features_of(frame, None, None))
    parts["ranges"], scales = timed(lambda: scales_of(features))
    parts["sending and boxes"], people = timed(lambda: pack(features, scales, cp))
    places = places_of(people.order, cp.arange(len(frame)), cp)
    parts["search"], found = timed(lambda: nearest(people, cp.sort(places).astype(np.int32), K))
    parts["fetching"], _ = timed(lambda: [cp.asnumpy(one.T[places]) for one in found])
    return parts


def on_cpu(frame: pd.DataFrame, found: Neighbours, kind: str) -> dict[str, Any]:
    """Return the seconds on all cores, if everybody is searched there, and of how many people neighbours were compared.

    Of a table that takes minutes, some are. Seconds for everybody can't be worked out from them: on tables like Adult,
    that gave twice as many seconds as were measured, or more.
    """
    everybody = kind == "like Adult"
    people = np.random.default_rng(0).choice(len(frame), len(frame) if everybody else SOME, replace=False)
    seconds, cpu = timed(lambda: gower_neighbours(frame, K, people=people))
    assert np.array_equal(found.indices[people], cpu.indices), "not the same neighbours"
    assert np.array_equal(found.similarity[people], cpu.similarity), "not the same distances"
    return {"cores": os.cpu_count(), "compared": len(people), "all cores": seconds if everybody else None}


def main() -> None:
    arguments = options.asked(__doc__, json=True, rounds=3)
    name = options.need_device().cuda.runtime.getDeviceProperties(0)["name"].decode()
    figures: dict[str, Any] = {"device": name, "k": K, "tables": []}
    gower_neighbours(adult_shaped(1000), K)  # compiles, or reads what was compiled before
    tables = [("like Adult", adult_shaped, n) for n in (10_000, 100_000, 1_000_000)]
    for kind, make, n in [*tables, ("uniform", uniform, 1_000_000)]:
        frame = make(n)
        first, found = timed(lambda frame=frame: gower_neighbours(frame, K, engine="cuda"))
        print(f"{kind}, {n:,} people: {first:.2f} s the first time, with compiling", flush=True)
        rounds = [
            timed(lambda frame=frame: gower_neighbours(frame, K, engine="cuda"))[0]
            for _ in range(arguments.rounds)
        ]
        parts = min((in_parts(frame) for _ in range(arguments.rounds)), key=lambda one: sum(one.values()))
        figures["tables"].append(
            {"kind": kind, "people": n, "first": first, "cuda": min(rounds), "parts": parts}
        )
        print(figures["tables"][-1], flush=True)
        figures["tables"][-1] |= on_cpu(frame, found, kind)
        print(figures["tables"][-1], flush=True)
    options.write(figures, arguments.json)


if __name__ == "__main__":
    main()
