"""The tables of benchmarks/serving.py; publish.py writes them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
from publish import RESULTS, markdown


def serving() -> str:
    """Decisions over HTTP and in process with the log on disk; learning beside peers that keep no log."""
    figures = json.loads((RESULTS / "benchmarks" / "serving.json").read_text())
    served = [
        {
            "over HTTP, on disk before the answer": what,
            "decisions per second": f"{told['rate']:,.0f}",
            "p50, ms": f"{told['p50']:.2f}",
            "p99, ms": f"{told['p99']:.2f}",
        }
        for what, told in figures["latencies"].items()
    ]
    inside = [
        {
            "in process": what,
            "decisions per second": f"{told['rate']:,.0f}",
            "per second of a processor": f"{told['per_cpu']:,.0f}",
        }
        for what, told in figures["in_process"].items()
    ]
    rates = figures["learning"]
    ours = [name for name in rates if name.startswith("evenhand")]
    learned = [
        {
            "decide, see the reward, learn": what,
            "people per second": f"{told['rate']:,.0f}",
            "per second of a processor": f"{told['per_cpu']:,.0f}",
            **{
                f"{name.split(', 1,000')[0]} is": ""
                if what in ours
                else f"{rates[name]['per_cpu'] / told['per_cpu']:,.1f} × as fast"
                for name in ours
            },
        }
        for what, told in rates.items()
    ]
    tables = "\n\n".join(markdown(pd.DataFrame(rows)) for rows in (served, inside, learned))
    return (
        f"{tables}\n\nOne run on {figures['cores']} cores, which the load shared; the system's load was "
        f"{figures['load']:.1f} before it. Ratios are per second of a processor. Command: `python benchmarks/serving.py`."
    )


PAGES: dict[str, Callable[[], str]] = {"serving": serving}
