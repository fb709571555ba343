"""Frames and columns of other libraries as pandas objects: Polars, Arrow and all that narwhals supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


def as_pandas(given: Any) -> Any:
    """Return a frame or column of any library as a pandas object, and anything else unchanged.

    Lazy frames are collected. Polars needs no pyarrow.

    >>> as_pandas([1, 2]), as_pandas(pd.Series([1, 2])).tolist()
    ([1, 2], [1, 2])
    """
    usual = (pd.DataFrame, pd.Series, np.ndarray, str, list, tuple, dict)
    if given is None or isinstance(given, usual) or sparse.issparse(given):
        return given
    import narwhals as nw  # imported only for frames of other libraries

    given = given.to_table() if _is_data_set(given) else given
    found: Any = nw.from_native(given, pass_through=True, allow_series=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if not isinstance(found, (nw.DataFrame, nw.Series)):
        return given
    if not found.implementation.is_polars():
        return found.to_pandas()
    if isinstance(found, nw.Series):
        return _column(found)
    return pd.DataFrame({name: _column(found[name]) for name in found.columns})


def as_lazy(given: Any) -> Any:
    """Return a table that is counted without loading it, as a narwhals LazyFrame; None for any other table.

    These are lazy frames of Polars, Dask and Spark, DuckDB relations, and Arrow data sets, which are read by
    DuckDB.
    """
    if given is None or isinstance(given, (pd.DataFrame, np.ndarray, list, tuple, dict)):
        return None
    import narwhals as nw

    if _is_data_set(given):
        given = duckdb_module("a data set of Arrow").from_arrow(given)
    found: Any = nw.from_native(given, pass_through=True, allow_series=True)
    return found if isinstance(found, nw.LazyFrame) else None


def _is_data_set(given: Any) -> bool:
    return type(given).__module__.startswith("pyarrow") and hasattr(given, "scanner")


def duckdb_module(what: str) -> Any:
    """Return DuckDB, or raise an error that says how to install it for this kind of table."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(f"To count {what}, install DuckDB: pip install 'evenhand[large]'") from error
    return duckdb


def _column(column: Any) -> pd.Series[Any]:
    """Return a Polars column as a pandas Series; Polars' own conversion needs pyarrow."""
    import narwhals as nw

    values = (column.cast(nw.Float64) if column.dtype == nw.Decimal else column).to_numpy()
    series: pd.Series[Any] = pd.Series(values, name=column.name or None).infer_objects()
    return series.astype("category") if column.dtype in (nw.Categorical, nw.Enum) else series
