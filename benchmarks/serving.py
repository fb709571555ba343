"""Decisions per second of the loop and the service, with the log on disk: python benchmarks/serving.py

Beside them, in the same run, a bare durable commit of one row to SQLite: what the disk itself allows. Needs `wrk`
(Debian package wrk) for the service; without it only what runs in this process is measured.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from evenhand import CooperativeBandits, DecisionLoop, save

SECONDS, BATCH = 8, 1000
_WRK = """
local number = math.random(1, 1e9)
function request()
  number = number + 1
  local people = {}
  for at = 1, %d do
    people[at] = string.format('{"id":"NAME %%s-%%d-%%d","context":[%%f,0.5,-0.5],"group":"f"}', tostring({}), number, at, math.random())
  end
  local body = %s
  return wrk.format("POST", "/decide", {["Content-Type"] = "application/json"}, body)
end
function done(summary, latency)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "failed": %%d, "p50": %%f, "p99": %%f}\\n', summary.requests,
    summary.duration, summary.errors.status + summary.errors.connect + summary.errors.timeout, latency:percentile(50), latency:percentile(99)))
end
"""


def starting_model() -> CooperativeBandits:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(2000, 3)), rng.choice(["f", "m"], 2000)
    return CooperativeBandits(random_state=0).fit(
        X, np.where(X[:, 0] > 0, "grant", "refuse"), sensitive_features=s
    )


def bare_commits(folder: Path) -> np.ndarray:
    """Return the seconds that each durable commit of one row takes, with nothing of ours."""
    log = sqlite3.connect(folder / "bare.db", isolation_level=None)
    log.execute("PRAGMA journal_mode=WAL")
    log.execute("PRAGMA synchronous=FULL")
    log.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, content TEXT)")
    took, end = [], time.perf_counter() + SECONDS / 2
    while time.perf_counter() < end:
        began = time.perf_counter()
        log.execute("INSERT INTO rows VALUES (?, ?)", (str(len(took)), "x" * 300))
        took.append(time.perf_counter() - began)
    log.close()
    return np.array(took)


def in_process(folder: Path) -> None:
    rng = np.random.default_rng(1)
    people = [(f"{at}", row, "f") for at, row in enumerate(rng.normal(size=(100_000, 3)))]
    with DecisionLoop(starting_model(), folder / "batched.db") as loop:
        loop.decide_many(people[:100])
        began = time.perf_counter()
        for at in range(100, len(people), 10_000):
            loop.decide_many(people[at : at + 10_000])
        took = time.perf_counter() - began
    print(f"in process, batches of 10,000: {(len(people) - 100) / took:,.0f} decisions/s")
    with DecisionLoop(starting_model(), folder / "threads.db") as loop, ThreadPoolExecutor(32) as threads:
        began = time.perf_counter()
        list(threads.map(lambda person: loop.decide(*person), people[:10_000]))
        print(
            f"in process, one at a time in 32 threads: {10_000 / (time.perf_counter() - began):,.0f} decisions/s"
        )


def service(folder: Path) -> None:
    model = save(starting_model(), folder / "model.skops")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "evenhand",
        "serve",
        model,
        "--log",
        folder / "served.db",
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(2)
        for name, people, connections in (("single", 1, 1), ("single", 1, 16), ("batched", BATCH, 4)):
            script = folder / f"{name}.lua"
            body = "people[1]" if people == 1 else "'{\"people\":[' .. table.concat(people, ',') .. ']}'"
            script.write_text((_WRK % (people, body)).replace("NAME", f"{name} {connections}"))
            work = [
                "wrk",
                "-t1",
                f"-c{connections}",
                f"-d{SECONDS}s",
                "-s",
                script,
                f"http://127.0.0.1:{port}/",
            ]
            ran = subprocess.run(work, capture_output=True, text=True, check=True)
            told = json.loads(ran.stdout.splitlines()[-1])
            rate = told["requests"] * people / told["microseconds"] * 1e6
            print(
                f"service, {name}, {connections} connections: {rate:,.0f} decisions/s, p50 {told['p50'] / 1000:.1f} ms, "
                f"p99 {told['p99'] / 1000:.1f} ms, {told['failed']} failed"
            )
        process.send_signal(signal.SIGTERM)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = bare_commits(folder) * 1000
        print(
            f"bare SQLite commit: {1000 / bare.mean():,.0f}/s, p50 {np.median(bare):.2f} ms, p99 {np.quantile(bare, 0.99):.2f} ms"
        )
        in_process(folder)
        if shutil.which("wrk"):
            service(folder)
        else:
            print("there is no wrk: the service was not measured")


if __name__ == "__main__":
    main()
