"""Count people where their table is: in Polars, DuckDB, Dask or Spark, through narwhals.

Most queries are counts by some expressions or a few aggregates, so only the numbers are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand.frames import as_pandas

PEOPLE = "people"
ROW = "row in evenhand's table"  # the column of row numbers; not a feature
FIRST = 20_000  # the rows that we read to see what a column holds
BINS = 4096  # for a column of numbers with many values
MOST_VALUES = 2000  # the most values of a column to count one by one
MOST_ROWS = 200_000  # the most values to load uncounted
MOST_CELLS = 50_000  # the most combinations of groups, labels and decisions


class Engine:
    """A lazy narwhals frame and its schema."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.schema: dict[str, Any] = dict(frame.collect_schema())

    def column(self, name: str) -> Any:
        """Return a column as an expression, in which NaN is missing like any other missing value."""
        kind, column = self.schema[name], nw.col(name)
        if isinstance(kind, nw.Decimal):
            return column.cast(nw.Float64)
        return nw.when(~column.is_nan()).then(column) if kind.is_float() else column

    def count(
        self, keys: Mapping[str, Any], sums: Mapping[str, Any] | None = None, where: Any = None,
        most: int | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """Return the number of people with each combination of `keys`, and their sums of other expressions.

        `where` filters the people. At most `most` combinations are returned, even if there are more.
        """
        frame, sums = self.frame if where is None else self.frame.filter(where), sums or {}
        grouped = frame.select(**keys, **sums).group_by(list(keys))
        counted = grouped.agg(nw.len().alias(PEOPLE), *(nw.col(name).sum() for name in sums))
        table = as_pandas(counted if most is None else counted.head(most))
        return pd.DataFrame(table.assign(**{PEOPLE: table[PEOPLE].astype(np.int64)}))

    def people(self, keys: Mapping[str, Any], weight: str | None, most: int) -> pd.DataFrame:
        """Return the number of people with each combination, and the sums of weights and squared weights.

        With a weight, rows are also split by whether it is above 0 (`counts`). Raises if a weight is invalid
        or there are more than `most` combinations.
        """
        by, sums = dict(keys), {}
        if weight is not None:
            column = self.column(weight).cast(nw.Float64)
            fine = ~column.is_null() & column.is_finite() & (column >= 0)
            sums = {"weight": column, "squares": column * column}
            by |= {"fine": fine, "counts": column > 0}
        rows = self.count(by, sums, most=most + 1)
        if rows.empty:
            raise ValueError("Got a table without people, but expected some.")
        if len(rows) > most:
            raise ValueError(
                f"Got more than {most:,} combinations of values, but expected groups, labels and decisions "
                "of few kinds."
            )
        if weight is not None and (wrong := int(rows.loc[~rows["fine"].astype(bool), PEOPLE].sum())):
            raise ValueError(
                f"Got {wrong} people with a sample_weight that is missing, negative or infinite, but "
                "expected finite numbers of at least 0."
            )
        return rows

    def first(self, names: list[str]) -> pd.DataFrame:
        """Return the first rows, to see what the columns hold."""
        return pd.DataFrame(as_pandas(self.frame.select(*names).head(FIRST)))

    def numbered(self) -> Any:
        """Return the frame with a column of row numbers from 0; None if the engine has no row numbers.

        Numbers follow the engine's row order. Spark leaves gaps between the numbers of its partitions.
        """
        native, engine = self.frame.to_native(), str(self.frame.implementation.value)
        if ROW in self.schema:
            return self.frame
        if engine == "duckdb":
            found = native.select(f'*, row_number() over () - 1 as "{ROW}"')
        elif engine == "polars":
            found = native.with_row_index(ROW)
        elif engine == "dask":
            found = native.assign(**{ROW: 1})
            found = found.assign(**{ROW: found[ROW].cumsum() - 1})
        elif engine.startswith("pyspark"):
            from pyspark.sql.functions import monotonically_increasing_id

            found = native.withColumn(ROW, monotonically_increasing_id())
        elif engine in ("pandas", "pyarrow"):
            return self.frame.collect().with_row_index(ROW).lazy()
        else:
            return None
        return nw.from_native(found)

    def ends(self, name: str) -> tuple[float, float]:
        """Return the smallest and largest value of a column of numbers; NaN if it has none."""
        column = self.column(name).cast(nw.Float64)
        found = as_pandas(self.frame.select(low=column.min(), high=column.max())).astype(float)
        return float(found["low"].iloc[0]), float(found["high"].iloc[0])

    def bin_of(self, name: str, low: float, high: float) -> Any:
        """Return the bin of each number, from 0 to BINS, as an expression; bins keep the numbers' order."""
        return ((self.column(name).cast(nw.Float64) - low) * (BINS / (high - low))).round(0)

    def in_order(self, name: str, binned: pd.DataFrame, low: float, high: float) -> Callable[[int], float]:
        """Return a function that gives the value at a rank, for a column of numbers with many values.

        `binned` counts the people in each bin. The values of a bin are loaded when one of them is needed; if
        there are too many, they are counted in smaller bins first.
        """
        binned = binned.sort_values("bin", ignore_index=True)
        until, value = binned[PEOPLE].cumsum().to_numpy(), self.column(name).cast(nw.Float64)

        @cache
        def within(at: int) -> Callable[[int], float]:
            here = self.bin_of(name, low, high) == float(binned["bin"].iloc[at])
            inside = value.is_between(low, high) & here
            if binned[PEOPLE].iloc[at] <= MOST_ROWS:
                values = as_pandas(self.frame.filter(inside).select(value=value))["value"]
                return np.sort(values.to_numpy(dtype=float)).__getitem__
            ends = as_pandas(self.frame.filter(inside).select(low=value.min(), high=value.max())).iloc[0]
            least, most = float(ends["low"]), float(ends["high"])
            if least == most:
                return lambda rank: least
            finer = self.count({"bin": self.bin_of(name, least, most)}, where=value.is_between(least, most))
            return self.in_order(name, finer, least, most)

        def value_at(rank: int) -> float:
            at = int(np.searchsorted(until, rank, side="right"))
            return float(within(at)(rank - int(until[at - 1] if at else 0)))

        return value_at
