"""Audits of tables from a hundred thousand to a hundred million people, beside DuckDB, fairlearn and Aequitas.

    python benchmarks/scale.py     # needs: pip install 'evenhand[large,compare,figures]'
    python benchmarks/scale.py --rows 100000 1000000 10000000 --json scale.json   # goes on where it was stopped

Made-up people with Adult's columns are written as Parquet, a million to a file; a hundred million take 1.2 GB. Every
contender runs in a process of its own, with the libraries loaded before the clock starts. Shown are seconds, those of
all processors together (which a busy machine does not change much), and the peak of the memory added:

- the audit of decisions by sex and race, counted by DuckDB, without features and with the search for subgroups by all
  of Adult's columns and consistency on 10,000 people drawn. DuckDB is held to `--memory`, and the process may not add
  more than `--cap` GiB: the system refuses it more (RLIMIT_DATA). The others may use four times as much;
- DuckDB's own `group by` of the four columns that the audit without features counts, and of the same four with each
  feature in turn, also of those that the audit puts in bins; only how many combinations there are comes back;
- fairlearn's MetricFrame (accuracy, selection rate, true and false positive rates) and Aequitas's group table, which
  take those four columns as pandas has them; reading them is part of their time. Aequitas wants an older pandas, so
  `--aequitas` names the Python of another environment.

A contender that fails is not tried on larger tables, nor one that would take, in proportion, more than `--limit`
seconds of the processors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import options
import peak

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGE, PICTURE = DOCS / "generated" / "scale.md", DOCS / "images" / "scale.svg"
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
            people.aggregate(f"{keys}, count(*) as n", keys).aggregate("count(*), sum(n)").fetchall()

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
    "audit, 12 features": lambda files, memory: audits(files, None, memory),
    "DuckDB, one group by per feature": lambda files, memory: group_bys(files, True, memory),
    "fairlearn MetricFrame": metric_frame,
    "Aequitas": aequitas,
}


def has_aequitas(python: str) -> bool:
    """Return whether Aequitas and what reads Parquet load in another Python; False where there is none."""
    try:
        loads = [python, "-c", "import aequitas.group, pandas, pyarrow"]
        return subprocess.run(loads, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def measured(name: str, files: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    share = 1 if name.startswith("audit") else 4
    run = CONTENDERS[name](files, f"{arguments.memory * share:g}GB")
    peak.cap(1024 * arguments.cap * share)
    return peak.measured(run)[1]


def all_measured(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Measure every contender on every table, but for those `rows` that were measured before."""
    for n in sorted(arguments.rows):
        files = files_of(arguments.folder, n)
        for name in CONTENDERS:
            python = arguments.aequitas if name == "Aequitas" else sys.executable
            before = [row for row in rows if row["contender"] == name]
            if python is None or any(row["rows"] == n for row in before):
                continue
            row: dict[str, Any] = {"rows": n, "contender": name, "seconds": None}
            last = max(before, key=lambda row: row["rows"], default=None)
            if last and last["seconds"] is None:
                continue
            if last is None or last["processor_seconds"] * n / last["rows"] <= arguments.limit:
                command = [python, __file__, "--contender", name, "--memory", str(arguments.memory)]
                command += ["--cap", str(arguments.cap), "--files", *files]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{n:>12,}  {name:34} failed: {done.stderr[-300:]}", flush=True)
                else:
                    row |= json.loads(done.stdout.splitlines()[-1])
            if row["seconds"] is not None:
                told = "{seconds:>9.2f} s {processor_seconds:>9.2f} s {megabytes:>9,.0f} MB".format(**row)
                print(f"{n:>12,}  {name:34} {told}", flush=True)
            rows.append(row)
            yield row


def publish(figures: dict[str, Any]) -> str:
    """Return the table of the page on large tables."""
    rows: list[dict[str, Any]] = figures["measured"]
    sizes = sorted({row["rows"] for row in rows})
    lines = ["| | " + " | ".join(f"{n:,} people" for n in sizes) + " |", "| --- " * (len(sizes) + 1) + "|"]
    for name in (name for name in CONTENDERS if name in {row["contender"] for row in rows}):
        cells = []
        for n in sizes:
            met = [row for row in rows if (row["rows"], row["contender"]) == (n, name)]
            told = "{seconds:.1f} s ({processor_seconds:.1f} s), {megabytes:,.0f} MB"
            failed = met and met[0]["seconds"] is None
            cells.append("failed, or over the limit" if failed else told.format(**met[0]) if met else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    told = (
        f"Seconds (of all processors), and the memory added at the peak. For an audit, DuckDB is held to "
        f"{figures['memory']:g} GB and the process to {figures['cap']:g} GiB more than before; the others may use "
        "four times as much. "
        f"Limit: {figures['limit']:,.0f} s of the processors. "
    )
    return "\n".join([*lines, "", f"{told}Command: `python benchmarks/scale.py`, one run each."]) + "\n"


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw the processors' time and the memory over the number of people, as docs/images/scale.svg."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "scale", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.2))
    for name in CONTENDERS:
        known = [row for row in rows if row["contender"] == name and row["seconds"] is not None]
        for axis, what in zip(axes, ("processor_seconds", "megabytes"), strict=True):
            style = "o-" if name.startswith("audit") else "s--" if name.startswith("DuckDB") else "^:"
            axis.loglog([row["rows"] for row in known], [row[what] for row in known], style, label=name)
    for axis, what in zip(axes, ("seconds of the processors", "memory added at the peak, MB"), strict=True):
        axis.set_xlabel("people")
        axis.set_title(what, fontsize=10)
        axis.grid(alpha=0.3)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=9, frameon=False
    )
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7, 10**8])
    parser.add_argument(
        "--folder", type=Path, default=Path("scale-people"), help="where the tables are written"
    )
    parser.add_argument("--memory", type=float, default=1, help="GB that DuckDB may use for an audit")
    parser.add_argument("--cap", type=float, default=2, help="GiB that the process of an audit may add")
    parser.add_argument("--limit", type=float, default=600, help="seconds of the processors for each table")
    parser.add_argument("--aequitas", help="the Python of an environment with Aequitas")
    parser.add_argument("--json", type=Path, help="keep the figures in this file, and go on from it")
    parser.add_argument("--contender", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--files", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contender:
        print(json.dumps(measured(arguments.contender, arguments.files, arguments)))
        return
    options.need(
        "pip install 'evenhand[large,compare,figures]'", "duckdb", "pyarrow", "fairlearn", "matplotlib"
    )
    if arguments.aequitas and not has_aequitas(arguments.aequitas):
        sys.exit(
            f"{arguments.aequitas} has no Aequitas: {arguments.aequitas} -m pip install aequitas pyarrow"
        )
    kept = arguments.json and arguments.json.exists()
    rows: list[dict[str, Any]] = json.loads(arguments.json.read_text())["measured"] if kept else []
    figures: dict[str, Any] = {"memory": arguments.memory, "cap": arguments.cap, "limit": arguments.limit}
    for _ in all_measured(arguments, rows):
        if arguments.json:
            arguments.json.write_text(json.dumps(figures | {"measured": rows}, indent=1), encoding="utf-8")
    PAGE.write_text(publish(figures | {"measured": rows}), encoding="utf-8")
    draw(rows)


if __name__ == "__main__":
    main()
