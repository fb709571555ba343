"""Decisions per second of the loop and the service, with the log on disk, beside peers without a log.

    python benchmarks/serving.py            # needs: pip install 'evenhand[serve,peers]' (each peer optional), and wrk
    python benchmarks/serving.py --json results/benchmarks/serving.json

What the disk itself allows is measured in the same run: a bare durable commit of one row to SQLite. Latencies at 1,000
requests a second are counted from the moment at which a request was due, whether or not the service was ready for it.
Closed loops are by `wrk` (Debian package wrk); without it they are left out. The load and the service share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from deciding_peers import BATCH, against_peers, networks, people_of, rate_of

from evenhand import CooperativeEnsemble, DecisionLoop
from evenhand.tables.columns import kinds_of_columns
from evenhand.tables.preprocessing import encode, make_preprocessor
from evenhand.workflow.deployed import Deployed

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from service import Service

RATE = 1000
ESTIMATOR, DEPLOYED = "networks, rows of numbers", "deployed ensemble, columns of a table"
_WRK = """
local contexts, number, began = {CONTEXTS}, 0, tostring({})
local function person()
  number = number + 1
  return '{"id":"NAME ' .. began .. number .. '","context":' .. contexts[number %% #contexts + 1] .. '}'
end
function request()
  local body
  if %d == 1 then body = person() else
    local people = {}
    for at = 1, %d do people[at] = person() end
    body = '{"people":[' .. table.concat(people, ',') .. ']}'
  end
  return wrk.format("POST", "/decide", {["Content-Type"] = "application/json"}, body)
end
function done(summary, latency)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "failed": %%d, "p50": %%f, "p99": %%f}\\n', summary.requests,
    summary.duration, summary.errors.status + summary.errors.connect + summary.errors.timeout + summary.errors.read,
    latency:percentile(50), latency:percentile(99)))
end
"""


def deployed() -> tuple[Deployed, list[dict[str, Any]]]:
    """Return a model as `evenhand fit` makes them, and people for it, in four numbers and four categories."""
    rng, n = np.random.default_rng(0), 2000
    names = {"job": 8, "purpose": 10, "housing": 3, "history": 5}
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n), "amount": rng.lognormal(8, 1, n).round(2),
            "months": rng.integers(4, 60, n), "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(7, 1, n).round()),
            **{name: [f"{name} {at}" for at in rng.integers(kinds, size=n)] for name, kinds in names.items()},
        }
    )  # fmt: skip
    sex = rng.choice(["f", "m"], n)
    good = np.where(people["amount"] / people["months"] < 150, "good", "bad")
    preprocessor = make_preprocessor(people).fit(people)
    model = CooperativeEnsemble(random_state=0).fit(
        encode(preprocessor, people), good, sensitive_features=sex
    )
    made = Deployed(preprocessor, model, kinds_of_columns(people, {}), "risk", ["sex"], "good")
    rows = people.astype(object).assign(sex=sex)
    return made, rows.where(rows.notna(), None).to_dict("records")


# The service -------------------------------------------------------------------------------------------


def bare_commits(folder: Path, seconds: float) -> dict[str, float]:
    """Return how long a durable commit of one row takes, with nothing of ours."""
    log = sqlite3.connect(folder / "bare.db", isolation_level=None)
    log.execute("PRAGMA journal_mode=WAL")
    log.execute("PRAGMA synchronous=FULL")
    log.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, content TEXT)")
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        log.execute("INSERT INTO rows VALUES (?, ?)", (str(len(took)), "x" * 300))
        took.append(time.perf_counter() - began)
    log.close()
    return summary(took, 1 / np.mean(took))


def summary(seconds: list[float], rate: float, failed: int = 0) -> dict[str, float]:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1000
    return {"rate": float(rate), "p50": float(p50), "p99": float(p99), "failed": failed}


def by_wrk(
    port: int, script: Path, contexts: list[str], people: int, connections: int, seconds: float
) -> Any:
    listed = "{" + ",".join(f"[==[{one}]==]" for one in contexts) + "}"
    text = _WRK % (people, people)
    script.write_text(text.replace("{CONTEXTS}", listed).replace("NAME", f"{people} {connections}"))
    command = [
        "wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), f"http://127.0.0.1:{port}/",
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout.splitlines()[-1])
    rate = told["requests"] * people / told["microseconds"] * 1e6
    return {"rate": rate, "p50": told["p50"] / 1000, "p99": told["p99"] / 1000, "failed": told["failed"]}


async def at_a_rate(port: int, contexts: list[str], seconds: float) -> dict[str, float]:
    """Return the latencies of single requests that come at a fixed rate, each from when it was due."""
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(64):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    took: list[float] = []
    failed = 0
    sent = itertools.cycle(contexts)

    async def ask(number: int, due: float) -> None:
        nonlocal failed
        body = f'{{"id":"due {number}","context":{next(sent)}}}'.encode()
        reader, writer = connection = await free.get()
        head = f"POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        took.append(time.perf_counter() - due)
        failed += not answer.startswith(b"HTTP/1.1 200")
        free.put_nowait(connection)

    gc.collect()
    gc.freeze()  # else the load itself would stop now and then, to go through all that is imported here
    began = time.perf_counter()
    asking = []
    for number in range(int(seconds * RATE)):
        due = began + number / RATE
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        asking.append(asyncio.create_task(ask(number, due)))
    await asyncio.gather(*asking)
    return summary(took, len(took) / (time.perf_counter() - began), failed)


def service(folder: Path, seconds: float) -> dict[str, dict[str, float]]:
    X, s = people_of(500)
    rows = [f'{json.dumps(row)},"group":"{group}"' for row, group in zip(X.round(4).tolist(), s, strict=True)]
    made, people = deployed()
    found = {}
    for name, model, contexts in (
        (ESTIMATOR, networks(), rows),
        (DEPLOYED, made, [json.dumps(person) for person in people[:500]]),
    ):
        where = str(folder / f"{name}.db")
        DecisionLoop(model, where).close()
        with Service(where) as serving:
            ask_at_a_rate = at_a_rate(serving.port, contexts, seconds)
            found[f"{name}: one a request, {RATE:,} requests/s"] = run_alone(ask_at_a_rate)
            for size, connections in ((1, 1), (1, 16), (BATCH, 2)) if shutil.which("wrk") else ():
                how = "one" if size == 1 else f"{size:,}"
                told = by_wrk(serving.port, folder / "ask.lua", contexts, size, connections, seconds)
                several = "connection" + "s" * (connections > 1)
                found[f"{name}: {how} a request, {connections} {several}"] = told
    return found


def run_alone(coroutine: Any) -> Any:
    try:
        import uvloop

        return uvloop.run(coroutine)
    except ImportError:
        return asyncio.run(coroutine)


# In process --------------------------------------------------------------------------------------------


def in_process(folder: Path, n: int) -> dict[str, dict[str, float]]:
    X, s = people_of(n)
    people = [
        (f"{at}", row, group) for at, (row, group) in enumerate(zip(X.tolist(), s.tolist(), strict=True))
    ]
    found = {}
    with DecisionLoop(networks(), folder / "batched.db") as loop:
        loop.decide_many([("warm", [0.0, 0.0, 0.0], "f")])
        found["decided, on disk, 1,000 at a time"] = rate_of(lambda: in_batches(loop.decide_many, people), n)
    with DecisionLoop(networks(), folder / "threads.db") as loop, ThreadPoolExecutor(32) as threads:
        few = people[: n // 10]
        found["decided, on disk, one at a time in 32 threads"] = rate_of(
            lambda: list(threads.map(lambda person: loop.decide(*person), few)), len(few)
        )
    return found


def in_batches(does: Callable[[Any], Any], rows: Any, size: int = BATCH) -> None:
    for at in range(0, len(rows), size):
        does(rows[at : at + size])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commit = {"a bare durable commit to SQLite": bare_commits(folder, arguments.seconds / 2)}
        figures["latencies"] = commit | service(folder, arguments.seconds)
        figures["in_process"] = in_process(folder, 50_000)
        figures["learning"] = against_peers(folder)
    for what, told in figures["latencies"].items():
        print(
            f"{what:80}{told['rate']:>9,.0f}/s  p50 {told['p50']:.2f} ms  p99 {told['p99']:.2f} ms  {told['failed']} failed"
        )
    for what, told in {**figures["in_process"], **figures["learning"]}.items():
        print(f"{what:80}{told['rate']:>9,.0f}/s  {told['per_cpu']:,.0f} per second of a processor")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
