"""What the tables' scripts share: they read and fill the same store as `evenhand reproduce`, in results/."""

from __future__ import annotations

import argparse
from pathlib import Path

from evenhand.progress import to_stderr
from evenhand.protocol.compare import TITLES, markdown
from evenhand.protocol.reproduce import Results, reproduce

PUBLIC = ("adult", "compas", "german", "health")


def run(
    about: str | None, *, datasets: tuple[str, ...] = PUBLIC, methods: list[str] | None = None
) -> Results:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the whole grids")
    parser.add_argument("--seeds", type=int, default=1, help="how many splits")
    parser.add_argument("--out", type=Path, default=Path("results"), help="the folder with the store")
    asked = vars(parser.parse_args())
    # Beside the whole reproduction's tables, not over them; the store is shared.
    return reproduce(datasets=datasets, methods=methods, progress=to_stderr(), tables=False, **asked)


def show(results: Results, name: str) -> None:
    print(f"## {TITLES[name]}\n\n{markdown(results.tables[name])}")
