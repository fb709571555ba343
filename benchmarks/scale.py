"""Audits of tables from a hundred thousand to a hundred million people, beside DuckDB, fairlearn and Aequitas.

    python benchmarks/scale.py --rows 100000 1000000 10000000
    python benchmarks/scale.py --rows 100000 1000000 10000000 100000000 --json scale.json --publish

Made-up people with Adult's columns are written as Parquet, a million to a file. Every contender runs in a process of
its own, with the libraries loaded before the clock starts. Shown are seconds, those of all processors together (which
a busy machine does not change much), and the peak of the memory added:

- the audit of decisions by sex and race, counted by DuckDB, without features and with the search for subgroups by all
  of Adult's columns, with DuckDB held to `--memory`;
- DuckDB's own `group by` of the four columns that the audit without features counts, and of the same four with each
  feature in turn, whose values all come back, also those that the audit puts in bins;
- fairlearn's MetricFrame (accuracy, selection rate, true and false positive rates) and Aequitas's group table, which
  take those four columns as pandas has them; reading them is part of their time. Aequitas wants an older pandas, so
  `--aequitas` names the Python of another environment.

A contender that fails, or takes longer than `--limit` seconds, is not tried on larger tables.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "generated" / "scale.md"
PIECE = 1_000_000
FOUR = ["sex", "race", "income", "decision"]
LEVELS = {  # Adult's categories, and how common each is
    "workclass": 8, "education": 16, "marital_status": 7, "occupation": 14, "relationship": 6, "native_country": 41
}  # fmt: skip


def write_piece(path: Path, rows: int, seed: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)

    def category(names: list[str], shares: np.ndarray | None = None) -> pa.Array:
        codes = rng.choice(len(names), rows, p=shares).astype(np.int8)
        return pa.DictionaryArray.from_arrays(codes, names)

    columns: dict[str, object] = {
        name: category([f"{name} {at}" for at in range(n)], (share := 0.7 ** np.arange(n)) / share.sum())
        for name, n in LEVELS.items()
    }
    male = rng.random(rows) < 0.67
    hours = np.clip(rng.normal(38 + 4 * male, 10, rows), 1, 99).astype(np.int64)
    age = np.clip(rng.gamma(6, 6.5, rows), 17, 90).astype(np.int64)
    education = rng.integers(1, 17, rows)
    skill = 0.25 * (education - 10) + 0.03 * (hours - 40) + 0.02 * (age - 40) + 0.6 * male
    columns |= {
        "age": age,
        "fnlwgt": rng.lognormal(12, 0.5, rows).astype(np.int64),
        "education_num": education,
        "capital_gain": np.where(rng.random(rows) < 0.08, rng.integers(1, 120, rows) * 250, 0),
        "capital_loss": np.where(rng.random(rows) < 0.05, rng.integers(15, 30, rows) * 100, 0),
        "hours_per_week": hours,
        "race": category(
            ["White", "Black", "Asian", "Amer-Indian", "Other"], np.array([0.85, 0.1, 0.03, 0.01, 0.01])
        ),
        "sex": pa.DictionaryArray.from_arrays(male.astype(np.int8), ["Female", "Male"]),
    }
    for name, noise in (("income", 1.5), ("decision", 1.0)):
        high = skill + rng.normal(0, noise, rows) > 1.2
        columns[name] = pa.DictionaryArray.from_arrays(high.astype(np.int8), ["<=50K", ">50K"])
    temporary = path.with_suffix(".part")
    pq.write_table(pa.table(columns), temporary)
    temporary.rename(path)  # a piece that is there is whole


def files_of(folder: Path, rows: int) -> list[str]:
    """Return the files with the first so many people, written where they are not there yet."""
    size = min(rows, PIECE)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"people-{size}-{at:04d}.parquet" for at in range(-(-rows // size))]
    for at, path in enumerate(paths):
        if not path.exists():
            write_piece(path, size, seed=at)
    return [str(path) for path in paths]


def audits(files: list[str], columns: list[str] | None, memory: str) -> Callable[[], object]:
    import duckdb

    from evenhand import audit
    from evenhand.auditing import counted  # noqa: F401

    duckdb.execute(f"set memory_limit='{memory}'")
    table = duckdb.read_parquet(files)
    named = table if columns is None else table.select(*columns)
    return lambda: audit("decision", named, "income", sensitive_features=["sex", "race"])


def group_bys(files: list[str], features: bool, memory: str) -> Callable[[], object]:
    import duckdb

    duckdb.execute(f"set memory_limit='{memory}'")
    people = duckdb.read_parquet(files)
    more = [name for name in people.columns if name not in FOUR] if features else [None]

    def run() -> None:
        for name in more:
            keys = ", ".join([*FOUR, *([] if name is None else [name])])
            people.aggregate(f"{keys}, count(*)", keys).fetchall()

    return run


def metric_frame(files: list[str], memory: str) -> Callable[[], object]:
    import pandas as pd
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
    from sklearn.metrics import accuracy_score

    def run() -> object:
        frame = pd.read_parquet(files, columns=FOUR)
        truth, decided = (frame[name] == ">50K" for name in ("income", "decision"))
        metrics = {"accuracy": accuracy_score, "selection": selection_rate}
        metrics |= {"tpr": true_positive_rate, "fpr": false_positive_rate}
        groups = frame[["sex", "race"]]
        return MetricFrame(metrics=metrics, y_true=truth, y_pred=decided, sensitive_features=groups).by_group

    return run


def aequitas(files: list[str], memory: str) -> Callable[[], object]:
    import pandas as pd
    from aequitas.group import Group

    def run() -> object:
        frame = pd.read_parquet(files, columns=FOUR)
        people = pd.DataFrame(
            {
                "score": (frame["decision"] == ">50K").astype(int),
                "label_value": (frame["income"] == ">50K").astype(int),
                "group": frame["sex"].astype(str) + " " + frame["race"].astype(str),
            }
        )
        return Group().get_crosstabs(people, attr_cols=["group"])

    return run


CONTENDERS: dict[str, Callable[[list[str], str], Callable[[], object]]] = {
    "audit, no features": lambda files, memory: audits(files, FOUR, memory),
    "DuckDB, one group by": lambda files, memory: group_bys(files, False, memory),
    "audit, subgroups by 12 features": lambda files, memory: audits(files, None, memory),
    "DuckDB, one group by per feature": lambda files, memory: group_bys(files, True, memory),
    "fairlearn MetricFrame": metric_frame,
    "Aequitas": aequitas,
}


def measured(name: str, files: list[str], memory: str) -> dict[str, float]:
    from peak import AddedMemory

    run = CONTENDERS[name](files, memory)
    with AddedMemory() as added:
        started, worked = time.perf_counter(), time.process_time()
        run()
        seconds, processor = time.perf_counter() - started, time.process_time() - worked
    return {"seconds": seconds, "processor_seconds": processor, "megabytes": added.added}


def all_measured(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Measure every contender on every table, each in a process of its own."""
    rows, given_up = [], set()
    for n in sorted(arguments.rows):
        files = files_of(arguments.folder, n)
        for name in CONTENDERS:
            python = arguments.aequitas if name == "Aequitas" else sys.executable
            if name in given_up or python is None:
                continue
            command = [python, __file__, "--contender", name, "--memory", arguments.memory, "--files", *files]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=arguments.limit, check=True
                )
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                print(
                    f"{n:>12,}  {name:34} failed: {str(getattr(error, 'stderr', error))[-300:]}", flush=True
                )
                given_up.add(name)
                rows.append({"rows": n, "contender": name, "seconds": None})
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            rows.append({"rows": n, "contender": name, **found})
            seconds, added = found["seconds"], found["megabytes"]
            worked = found["processor_seconds"]
            print(f"{n:>12,}  {name:34} {seconds:>9.2f} s {worked:>9.2f} s {added:>9,.0f} MB", flush=True)
    return rows


def publish(figures: dict[str, object]) -> str:
    """Return the table of the page on large tables."""
    rows: list[dict[str, object]] = figures["measured"]  # type: ignore[assignment]
    sizes = sorted({row["rows"] for row in rows})
    lines = ["| | " + " | ".join(f"{n:,} people" for n in sizes) + " |", "| --- " * (len(sizes) + 1) + "|"]
    for name in dict.fromkeys(row["contender"] for row in rows):
        cells = []
        for n in sizes:
            met = [row for row in rows if (row["rows"], row["contender"]) == (n, name)]
            told = "{seconds:.1f} s ({processor_seconds:.1f} s), {megabytes:,.0f} MB"
            failed = met and met[0]["seconds"] is None
            cells.append("failed, or over the limit" if failed else told.format(**met[0]) if met else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    told = (
        f"Seconds (of all processors), and the memory added at the peak; DuckDB held to {figures['memory']}. "
        f"Limit: {figures['limit']:,.0f} s. "
    )
    return "\n".join([*lines, "", f"{told}Command: `python benchmarks/scale.py`, one run."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument(
        "--folder", type=Path, default=Path("scale-people"), help="where the tables are written"
    )
    parser.add_argument("--memory", default="1GB", help="DuckDB's limit")
    parser.add_argument("--limit", type=float, default=900, help="seconds for each contender on each table")
    parser.add_argument("--aequitas", help="the Python of an environment with Aequitas")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--publish", action="store_true", help=f"write {PAGE.name} for the documentation")
    parser.add_argument("--contender", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--files", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contender:
        print(json.dumps(measured(arguments.contender, arguments.files, arguments.memory)))
        return
    figures: dict[str, object] = {
        "memory": arguments.memory,
        "limit": arguments.limit,
        "measured": all_measured(arguments),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if arguments.publish:
        PAGE.write_text(publish(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
