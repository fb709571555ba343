"""Frames and columns of any library, as pandas has them: Polars, Arrow and what else narwhals knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


def as_pandas(given: Any) -> Any:
    """Return a frame or a column of any library as one of pandas, and anything else as it is.

    What is lazy is collected. Polars needs no pyarrow.

    >>> as_pandas([1, 2]), as_pandas(pd.Series([1, 2])).tolist()
    ([1, 2], [1, 2])
    """
    usual = (pd.DataFrame, pd.Series, np.ndarray, str, list, tuple, dict)
    if given is None or isinstance(given, usual) or sparse.issparse(given):
        return given
    import narwhals as nw  # only where there is another frame

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


def _column(column: Any) -> pd.Series[Any]:
    """Return a column of Polars, whose own conversion needs pyarrow."""
    import narwhals as nw

    values = (column.cast(nw.Float64) if column.dtype == nw.Decimal else column).to_numpy()
    series: pd.Series[Any] = pd.Series(values, name=column.name or None).infer_objects()
    return series.astype("category") if column.dtype in (nw.Categorical, nw.Enum) else series
