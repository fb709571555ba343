"""The tables of benchmarks/training.py and benchmarks/defaults.py; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pages import figures, markdown


def speed() -> str:
    found = figures("benchmarks/training")
    rates = found["updates_per_second"]
    rows = [
        {
            "Algorithm 1, one thread": name,
            "updates per second": f"{rate:,.0f}",
            "evenhand is": "" if name == "evenhand" else f"{rates['evenhand'] / rate:,.0f} × faster",
        }
        for name, rate in rates.items()
    ]
    threads = f"Two models in two threads: {found['two_threads']:.2f} × the speed of one."
    return f"{markdown(pd.DataFrame(rows))}\n\n{threads} Command: `python benchmarks/training.py`, one run."


def speed_of_defaults() -> str:
    found = figures("benchmarks/defaults")
    met, seconds = found["people_per_second"], found["seconds_of_a_fit"]
    rates = pd.DataFrame(
        [(name, f"{rate:,.0f}", f"{met['evenhand'] / rate:.1f} ×") for name, rate in met.items()],
        columns=[
            "training with default settings, one thread",
            "people per second",
            "time relative to evenhand",
        ],
    )
    fits = pd.DataFrame(
        [(name, f"{value:.2f}", f"{value / seconds['evenhand']:.1f} ×") for name, value in seconds.items()],
        columns=["a whole fit on Adult, one thread", "seconds", "time relative to evenhand"],
    )
    return f"{markdown(rates)}\n\n{markdown(fits)}\n\nCommand: `python benchmarks/defaults.py`, one run."


def growth() -> str:
    found = figures("benchmarks/training")
    steps = pd.DataFrame(found["growth"]).rename(columns={"ns_per_step": "ns per step"})
    steps["ns per step"] = steps["ns per step"].map("{:,.0f}".format)
    ways = pd.DataFrame(found["sparse_or_dense"])
    ways["share"] = ways["share"].map("{:.0%}".format)
    for name in ("sparse", "dense"):
        ways[name] = ways[name].map("{:,.0f}".format)
    ways.columns = ["columns filled", "sparse rows, ns per step", "dense rows, ns per step"]
    return f"{markdown(steps)}\n\n{markdown(ways)}\n\nCommand: `python benchmarks/training.py`."


PAGES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "speed-of-defaults": speed_of_defaults,
    "growth": growth,
}
