"""What the benchmarks ask for on the command line, and how they write down their figures."""

from __future__ import annotations

import argparse
import json
from typing import Any


def asked(told: str | None, rounds: int, **others: Any) -> argparse.Namespace:
    """Return how many rounds to run, the file to write to, and what else is named, of its default's kind; `told` is the benchmark's docstring."""
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    for name, default in others.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def write(figures: Any, path: str | None) -> None:
    """Write figures to a file, if one was asked for."""
    if path:
        with open(path, "w") as file:
            json.dump(figures, file, indent=2)
