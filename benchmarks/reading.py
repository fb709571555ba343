"""Reading a CSV file as `evenhand fit` and `evenhand audit` do, beside bare parsers that check nothing.

    python benchmarks/reading.py --rows 500000

Made-up people with Adult's columns, plain and with every text quoted. Shown are seconds of all processors, the fastest
of three. `read_table` finds damaged lines, codes with leading zeros and guarded formulas; field by field is how it
reads files in which something is unusual.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import options
import pandas as pd
import pyarrow.csv
from scale import write_piece

from evenhand.tables.files import read_table


def fastest(run: Callable[[], object]) -> float:
    found = []
    for _ in range(3):
        started = time.process_time()
        run()
        found.append(time.process_time() - started)
    return min(found)


def main() -> None:
    arguments = options.asked(__doc__, rows=500_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_piece(path, arguments.rows, seed=0)
        people = pd.read_parquet(path)
        for name, quoting in (("plain", csv.QUOTE_MINIMAL), ("quoted", csv.QUOTE_NONNUMERIC)):
            file = path.with_name(f"{name}.csv")
            people.to_csv(file, index=False, quoting=quoting)
            told = {
                "read_table": fastest(lambda file=file: read_table(file)),
                "pandas.read_csv": fastest(lambda file=file: pd.read_csv(file, low_memory=False)),
                "pyarrow.csv": fastest(lambda file=file: pyarrow.csv.read_csv(file).to_pandas()),
            }
            with patch("evenhand.tables.files.plain_lines", return_value=None):
                told["read_table, field by field"] = fastest(lambda file=file: read_table(file))
            print(
                f"{arguments.rows:,} rows, {name}: " + ", ".join(f"{of} {s:.2f} s" for of, s in told.items())
            )


if __name__ == "__main__":
    main()
