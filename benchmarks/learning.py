"""Learning from a long log, read in pieces: python benchmarks/learning.py --json results/benchmarks/learning.json

A log is filled with outcomes of decisions about made-up people; 100,000 are decided about by the loop and copied under
random ids until there are enough. Then a process of its own joins, learns, judges the candidate and looks at the status,
twice, the second time with 1,000 more. Needs about 0.6 kB of disk per outcome while it is filled, in --folder.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from peak import measured, resident

from evenhand import CooperativeBandits, DecisionLoop
from evenhand.decisions import lessons
from evenhand.decisions.status import Status

MADE, BATCH, NEW = 100_000, 10_000, 1_000


def people(n: int, seed: int) -> Iterator[tuple[str, np.ndarray, str]]:
    rng = np.random.default_rng(seed)
    X, s = rng.normal(size=(n, 8)).round(3), rng.choice(["f", "m"], n)
    return ((f"{seed} {at}", X[at], str(s[at])) for at in range(n))


def tell(loop: DecisionLoop, n: int, seed: int) -> None:
    made = loop.decide_many(people(n, seed))
    loop.outcome_many([{"id": one.id, "reward": float(one.action == "grant")} for one in made])


def fill(log: Path, n: int) -> None:
    """Make a log of n decisions with their outcomes."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(2000, 8)), rng.choice(["f", "m"], 2000)
    y = np.where(X[:, 0] > 0, "grant", "refuse")
    model = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    first = min(n, MADE)
    with DecisionLoop(model, log) as loop:
        for seed in range(1, first // BATCH + 1):
            tell(loop, BATCH, seed)
    plain = sqlite3.connect(log)
    for pragma in ("synchronous=OFF", "cache_size=-2000000"):
        plain.execute(f"PRAGMA {pragma}")
    for table in ("decisions", "outcomes"):
        names = [row[1] for row in plain.execute(f"PRAGMA table_info({table})")][1:]  # without the number
        columns = ", ".join(f'"{name}"' for name in names)
        other = (
            "lower(hex(randomblob(8)))"
            if table == "decisions"
            else "(SELECT id FROM decisions WHERE number = o.number + ?)"
        )
        for at in range(first, n, first):
            told = (at, first) if table == "outcomes" else (first,)
            copied = columns.replace('"id"', other)
            plain.execute(
                f"INSERT INTO {table} ({columns}) SELECT {copied} FROM {table} o WHERE number <= ? ORDER BY number",
                told,
            )
        plain.commit()
    plain.close()


def timed(name: str, step: Callable[[], Any]) -> dict[str, float]:
    took = measured(step)[1]
    took["added_mb"] = took.pop("megabytes")
    return {f"{name}_{what}": value for what, value in took.items()}


def measure(log: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with DecisionLoop(None, log) as loop:
        tell(loop, 10, 1_000_000)  # loads what the rest needs, too
        found["begun_mb"], status = resident(), Status(loop)
        steps: dict[str, Callable[[], Any]] = {
            "join": lambda: lessons.join(loop._log, loop.rules, loop.clock()),
            "learn": loop.learn,
            "status": status.look,
            "judge": loop.candidate,
        }
        for name, step in steps.items():
            found |= timed(name, step)
        tell(loop, NEW, 1_000_001)
        for name in ("join", "learn", "status"):
            found |= timed(f"again_{name}", steps[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="for the logs; by default a temporary one")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    results = []
    for n in options.outcomes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            log = Path(folder) / "log.db"
            fill(log, n)
            size = log.stat().st_size
            command = [sys.executable, __file__, "--measure", log]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            results.append({"n": n, "log_mb": size / 2**20, **json.loads(ran.stdout)})
        print(json.dumps(results[-1], indent=2), flush=True)
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
