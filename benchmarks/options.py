"""What the benchmarks ask for on the command line, and how they write down their figures."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def asked(told: str | None, *, json: bool = False, **others: Any) -> argparse.Namespace:
    """Return what is asked for; `told` is the benchmark's docstring.

    Each option is its default, of the kind that it takes, or a dict of what argparse takes. With `json`, a file to write
    the figures to is asked for, too.
    """
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, option in others.items():
        more = option if isinstance(option, dict) else {"type": type(option), "default": option}
        parser.add_argument(f"--{name}", **more)
    if json:
        parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def write(figures: Any, path: str | None) -> None:
    """Write figures to a file, if one was asked for."""
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(figures, indent=2))


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
