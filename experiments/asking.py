"""What the experiments ask for on the command line, and rows that a killed run does not make again."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd


def asked(told: str | None, out: str, **options: Any) -> argparse.Namespace:
    """Return the options that were given; the folder `--out` is made.

    `told` is the script's docstring. Each option is its default, of the kind that it takes: a number, a list for one
    value or more, or False for a switch. Or it is a dict of what argparse takes besides, with the default in it.
    """
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, option in options.items():
        more = option if isinstance(option, dict) else {"default": option}
        parser.add_argument(f"--{name.replace('_', '-')}", **{**kind_of(more["default"]), **more})
    parser.add_argument("--out", type=Path, default=Path(out))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


def kind_of(default: Any) -> dict[str, Any]:
    """What argparse is told about an option, by its default."""
    if isinstance(default, bool):
        return {"action": "store_true"}
    if isinstance(default, list):
        return {"nargs": "+", "type": type(default[0])}
    return {"type": type(default)}


def kept(file: Path, rows: Callable[[], Iterable[dict[str, Any]]]) -> pd.DataFrame:
    """Read the rows from a CSV file, which is written first if it is not there; a file that is there is whole."""
    if not file.exists():
        partial = file.with_suffix(".partial")
        pd.DataFrame(list(rows())).to_csv(partial, index=False)
        partial.rename(file)
    return pd.read_csv(file)
