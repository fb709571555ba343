"""The tables of benchmarks/gpu.py, of benchmarks/gower_gpu.py and of the tests on a device; publish.py writes them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import pandas as pd
from pages import RESULTS, TITLES, figures, markdown

TESTED = re.compile(r"^_+ (?P<test>\w+)(?:\[(?P<case>.*)\])? _+$|^apart (?P<apart>[\d.e+-]+),", re.M)


def gpu() -> str:
    """Model-steps per second by setting and number of models."""
    found = figures("benchmarks/gpu")
    rows = [
        {
            "models at once": setting,
            **{f"{run['models']:,}": f"{run['steps_per_second'] / 1e6:,.1f}" for run in runs},
        }
        for setting, runs in found["throughput"].items()
    ]
    whole = found["fit_many"]
    told = (
        f"Millions of people per second, over all models, on one {found['device']}. A whole `fit_many` of "
        f"{whole['models']:,} models that see 100,000 people each took {whole['cuda']:.1f} s there, and one such model "
        f"{whole['one_on_the_cpu']:.2f} s on one core of the same machine. Command: `python benchmarks/gpu.py`, one run."
    )
    columns = {int(filled): nanoseconds for filled, nanoseconds in found["by_columns"].items()}
    least, most = min(columns), max(columns)
    each = (columns[most] - columns[least]) / (most - least)
    told += (
        f"\n\n**Where the time goes.** A step of a model with 40 units takes {columns[most]:.0f} ns beside 923 others if "
        f"the row fills {most} columns, and {each:.0f} ns less for every column that it doesn't fill. So "
        f"{most * each / columns[most]:.0%} of the time goes into weights of columns, read once and written once, and the "
        "rest, which is the same for any row, into sums over the units, probabilities, the draw and the reward."
    )
    return f"{markdown(pd.DataFrame(rows).fillna(''))}\n\n{told}"


def gpu_grid() -> str:
    """The paper's own job, in one sentence."""
    found = figures("benchmarks/gpu")
    grid = found["paper_grid"]
    *sizes, last = (f"{TITLES[name]} ({people:,})" for name, people in grid["people"].items())
    return (
        f"**The paper's whole grid of CCB**, 40 models scored every 1,000 steps, on each of {grid['splits']} splits of the "
        f"people of {', '.join(sizes)} and {last}: {grid['models']:,} models in {grid['seconds']:.0f} s on one "
        f"{found['device']}, with 16 CPU cores to prepare the data and test the models. The kernels were compiled before. "
        f"Command: `python benchmarks/gpu.py --splits {grid['splits']}`, one run."
    )


def gpu_tests() -> str:
    """The largest difference from the NumPy definition after 1,000 steps, by test."""
    text = (RESULTS / "benchmarks" / "gpu-tests.txt").read_text()
    found, test = defaultdict(list), ""
    for match in TESTED.finditer(text):
        if match["apart"]:
            found[test].append(float(match["apart"]))
        else:
            test = match["test"]
    rows = [
        {
            "test": name.removeprefix("test_").replace("_", " "),
            "trainings compared": len(apart),
            "largest difference of a weight": f"{max(apart):.0e}",
        }
        for name, apart in found.items()
    ]
    passed = re.search(r"\b(\d+) passed", text)
    command = "pytest -rA -m device"
    told = f"{passed[1]} tests passed. Command: `{command}`, on the device above."
    return f"{markdown(pd.DataFrame(rows))}\n\n{told}"


def gower_gpu() -> str:
    """Seconds for the neighbours of everybody, on the GPU and on the same machine's CPU."""
    found = figures("benchmarks/gower-gpu")
    tables = found["tables"]
    rows = [
        {
            "people": f"{one['people']:,}, {one['kind']}",
            "GPU, s": f"{one['cuda']:.2g}",
            "of it the search": f"{one['parts']['search']:.2g}",
            "all cores, s": f"{one['all cores']:.2g}" if one["all cores"] else "",
            "all cores / GPU": f"{one['all cores'] / one['cuda']:.1f}" if one["all cores"] else "",
            "compared": f"{one['compared']:,}",
        }
        for one in tables
    ]
    largest = max(tables, key=lambda one: (one["people"], one["kind"] == "like Adult"))
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in largest["parts"].items())
    told = (
        f"Exact neighbours (k = {found['k']}) of everybody among everybody, 14 columns, on one {found['device']} and "
        f"{largest['cores']} cores of the same machine. *Compared* are those searched on both: their neighbours and "
        f"distances are the same to the last bit. Where the time goes with {largest['people']:,} people "
        f"{largest['kind']}: {parts}. Command: `python benchmarks/gower_gpu.py`, one run."
    )
    return f"{markdown(pd.DataFrame(rows))}\n\n{told}"


PAGES: dict[str, Callable[[], str]] = {
    "gpu": gpu, "gpu-grid": gpu_grid, "gpu-tests": gpu_tests, "gower-gpu": gower_gpu,
}  # fmt: skip
