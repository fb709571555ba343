"""Fits of tables from a hundred thousand to ten million people, streamed and in memory, and what follows a fit.

    python benchmarks/scale_fit.py --rows 100000 1000000 10000000    # needs: pip install 'evenhand[large]'
    python benchmarks/scale_fit.py --rows 100000 1000000 10000000 --cap 30000000 --json fits.json --publish

The made-up people of `scale.py`, in Parquet files of at most a million. Every contender runs in a process of its own, with
the libraries loaded before the clock starts. Shown are seconds, those of all processors together (which a busy machine
does not change much), and the peak of the memory added:

- the fit of the twelve networks of `evenhand fit --policies networks`, streamed with 200,000 people held, and the choice
  of one of them;
- the same in memory, up to `--most` people;
- the decisions of the chosen model about everybody (`evenhand predict`, file by file);
- the audit of these decisions with its page, counted by DuckDB (`evenhand audit --report`).

`--cap ROWS` then fits a table of so many people, λ = 20 alone, in a process that the system lets have no more memory than
a tenth of what the table takes in pandas, text as text (RLIMIT_DATA, beyond what the process has once it is loaded).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import options
import peak
from scale import files_of

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "generated" / "scale-fit.md"
ROLES: dict[str, Any] = {"label": "income", "sensitive": "sex", "drop": ["decision"], "policies": "networks"}


def fits(folder: Path, **more: Any) -> Callable[[], object]:
    from evenhand import explore

    def run() -> object:
        return explore(folder, **ROLES, **more).choose().save(folder / "model.skops")

    return run


def fits_in_memory(folder: Path) -> Callable[[], object]:
    import pandas as pd

    from evenhand import explore

    return lambda: explore(pd.read_parquet(sorted(folder.glob("*.parquet"))), **ROLES).choose()


def predicts(folder: Path) -> Callable[[], object]:
    from evenhand.workflow.deciding import decide_file

    decided = folder / "decided"
    decided.mkdir(exist_ok=True)

    def run() -> None:
        for path in sorted(folder.glob("*.parquet")):
            decide_file(folder / "model.skops", path, decided / path.name, prefix="new_", chunk=50_000)

    return run


def audits(folder: Path) -> Callable[[], object]:
    from typer.testing import CliRunner

    import evenhand.auditing.counted
    import evenhand.report.render  # noqa: F401
    from evenhand.cli import app

    asked = ["audit", str(folder / "decided"), "--predictions", "new_decision", "--label", "income"]
    asked += ["--sensitive", "sex", "--report", str(folder / "audit.html")]

    def run() -> None:
        done = CliRunner().invoke(app, asked)
        if done.exit_code:
            raise SystemExit(done.output)

    return run


CONTENDERS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "fit, streamed": fits,
    "fit, in memory": fits_in_memory,
    "predict": predicts,
    "audit and page": audits,
}


def people_in(folder: Path, rows: int) -> Path:
    """Return a folder with the files of just so many people."""
    own = folder / f"people-{rows}"
    own.mkdir(parents=True, exist_ok=True)
    for path in map(Path, files_of(folder, rows)):
        link = own / path.name
        if not link.exists():
            link.hardlink_to(path)
    return own


def in_pandas(folder: Path) -> float:
    """Return about how many MB the table takes in pandas, text as text, by its first file."""
    import pandas as pd
    import pyarrow.parquet as pq

    files = sorted(folder.glob("*.parquet"))
    first = pd.read_parquet(files[0])
    text = first.astype({name: "str" for name in first if isinstance(first[name].dtype, pd.CategoricalDtype)})
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    return float(text.memory_usage(deep=True).sum() * rows / len(first) / 2**20)


def capped(folder: Path, megabytes: float) -> dict[str, float]:
    """Fit with so little memory; a fit that asks for more fails."""
    run = fits(folder, weights=[20], buffer_rows=100_000)
    fits(
        people_in(folder.parent, 10_000), weights=[20], buffer_rows=5_000
    )()  # loads and compiles all there is
    peak.cap(megabytes)
    return peak.measured(run)[1]


def asked_apart(name: str, folder: Path, cap: float | None = None) -> dict[str, Any]:
    """Measure a contender in a process of its own."""
    command = [sys.executable, __file__, "--contender", name, "--folder", str(folder)]
    command += [] if cap is None else ["--megabytes", str(cap)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-500:], flush=True)
        return {"seconds": None}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def publish(figures: dict[str, Any]) -> str:
    """Return the table of the page on large tables."""
    rows = figures["measured"]
    sizes = sorted({row["rows"] for row in rows})
    lines = ["| | " + " | ".join(f"{n:,} people" for n in sizes) + " |", "| --- " * (len(sizes) + 1) + "|"]
    told = "{seconds:.0f} s ({processor_seconds:.0f} s), {megabytes:,.0f} MB"
    for name in CONTENDERS:
        met = {row["rows"]: row for row in rows if row["contender"] == name}
        cells = [told.format(**met[n]) if n in met and met[n]["seconds"] is not None else "" for n in sizes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    sized = " | ".join(f"{figures['in_pandas'][str(n)]:,.0f} MB" for n in sizes)
    lines += [f"| the table in pandas, text as text | {sized} |", ""]
    lines.append("Seconds (of all processors), and the memory added at the peak; twelve networks.")
    if figures.get("capped"):
        one = figures["capped"]
        lines.append(
            f"Held to {one['cap']:,.0f} MB of added memory, a tenth of what the table takes in pandas, the fit of "
            f"{one['rows']:,} people at λ = 20 took {told.format(**one)}."
        )
    lines.append("Command: `python benchmarks/scale_fit.py`, one run.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[10**5, 10**6, 10**7])
    parser.add_argument("--most", type=int, default=10**6, help="people of the largest fit in memory")
    parser.add_argument("--cap", type=int, help="people of the fit with little memory")
    parser.add_argument(
        "--folder", type=Path, default=Path("scale-people"), help="where the tables are written"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, after those that it holds")
    parser.add_argument("--publish", action="store_true", help=f"write {PAGE.name} for the documentation")
    parser.add_argument("--contender", choices=[*CONTENDERS, "capped"], help=argparse.SUPPRESS)
    parser.add_argument("--megabytes", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.contender:
        if asked.contender == "capped":
            found = capped(asked.folder, asked.megabytes)
        else:
            found = peak.measured(CONTENDERS[asked.contender](asked.folder))[1]
        print(json.dumps(found))
        return
    options.need("pip install 'evenhand[large]'", "duckdb", "pyarrow")
    figures: dict[str, Any] = {"measured": [], "in_pandas": {}, "capped": None}
    if asked.json and asked.json.exists():
        figures = json.loads(asked.json.read_text(encoding="utf-8"))
    for n in sorted(asked.rows):
        folder = people_in(asked.folder, n)
        figures["in_pandas"][str(n)] = in_pandas(folder)
        for name in CONTENDERS:
            if name != "fit, in memory" or n <= asked.most:
                found = asked_apart(name, folder)
                print(f"{n:>12,}  {name:18} {found}", flush=True)
                figures["measured"].append({"rows": n, "contender": name, **found})
    if asked.cap:
        folder = people_in(asked.folder, asked.cap)
        cap = in_pandas(folder) / 10
        figures["capped"] = {"rows": asked.cap, "cap": cap, **asked_apart("capped", folder, cap)}
        print(figures["capped"], flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if asked.publish:
        PAGE.write_text(publish(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
