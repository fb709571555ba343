"""The tables of benchmarks/serving.py and benchmarks/learning.py; publish.py writes them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pages import figures, markdown


def serving() -> str:
    """Decisions over HTTP and in process with the log on disk; learning beside peers that keep no log."""
    found = figures("benchmarks/serving")
    served = [
        {
            "over HTTP, on disk before the answer": what,
            "decisions per second": f"{told['rate']:,.0f}",
            "p50, ms": f"{told['p50']:.2f}",
            "p99, ms": f"{told['p99']:.2f}",
        }
        for what, told in found["latencies"].items()
    ]
    inside = [
        {
            "in process": what,
            "decisions per second": f"{told['rate']:,.0f}",
            "per second of a processor": f"{told['per_cpu']:,.0f}",
        }
        for what, told in found["in_process"].items()
    ]
    rates = found["learning"]
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
        f"{tables}\n\nOne run on {found['cores']} cores, which the load shared; the system's load was "
        f"{found['load']:.1f} before it. Ratios are per second of a processor. Command: `python benchmarks/serving.py`."
    )


def learning() -> str:
    rows, clock, worked = [], 0.0, 0.0
    for one in figures("benchmarks/learning"):
        row = {"outcomes in the log": f"{one['n']:,}"}
        for name in ("join", "learn", "judge", "status", "again_join", "again_learn", "again_status"):
            took = one.get(f"{name}_processor_seconds")
            row[name.replace("again_", "1,000 more: ")] = "–" if took is None else f"{took:.3g} s"
            clock, worked = clock + one.get(f"{name}_seconds", 0.0), worked + (took or 0.0)
        most = max(value for name, value in one.items() if name.endswith("added_mb"))
        rows.append({**row, "memory added, at most": f"{most:.0f} MB"})
    note = (
        "Processor seconds in one thread; SQLite, 8 columns, two groups, ids in random order. `judge` is `candidate`, `status` "
        f"the first look at `/status`. By the clock it took {clock / worked:.1f} times as long, on two cores that other work "
        "used, too. Command: `python benchmarks/learning.py`."
    )
    return f"{markdown(pd.DataFrame(rows))}\n\n{note}"


PAGES: dict[str, Callable[[], str]] = {"serving": serving, "learning": learning}
