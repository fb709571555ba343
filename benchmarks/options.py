"""What the benchmarks ask for on the command line, and how they write down their figures."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
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


def need(install: str, *modules: str) -> None:
    """End with one line that says what to install, if one of the modules is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        sys.exit(f"This benchmark needs {', '.join(missing)}: {install}")


def need_device() -> Any:
    """Return CuPy, or end with one line that says what is missing: CuPy or a GPU."""
    from evenhand.cuda import cupy

    try:
        return cupy()
    except (ImportError, RuntimeError) as error:
        sys.exit(str(error))
