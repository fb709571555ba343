"""Read a DataFrame from a stranger's pickle: only harmless functions are called.

A pickle can name any function and have it run. Here, each name that a pickled DataFrame needs stands for a
small harmless function, every other name is refused, and the table is built from plain arrays. It therefore
does not depend on the internals of the pandas version that wrote the pickle.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class RefusedPickleError(pickle.UnpicklingError):
    """The pickle names something that a table does not need."""


def read_frame(pickled: bytes) -> pd.DataFrame:
    """Return the DataFrame in a pickle; anything else in it is refused.

    >>> try:
    ...     read_frame(pickle.dumps(len))
    ... except RefusedPickleError as error:
    ...     print(error)
    The pickle names builtins.len, which no table needs: refused.
    """
    try:
        found = _Unpickler(io.BytesIO(pickled)).load()
        if not isinstance(found, _Frame):
            raise RefusedPickleError(
                f"Got a pickled {type(found).__name__}, but expected a DataFrame: refused."
            )
        return found.assemble()
    except (EOFError, IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise RefusedPickleError(
            f"The pickle is damaged, or not a table as expected ({error}): refused."
        ) from error


class _Frame:
    """Stands for pandas' DataFrame: takes its state, and builds a real one from the blocks in it."""

    manager: _Manager

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.manager = state["_mgr"]

    def assemble(self) -> pd.DataFrame:
        names, _ = self.manager.axes
        columns: dict[int, np.ndarray[Any, Any]] = {}
        for values, placement in self.manager.blocks:
            columns.update(zip(_positions(placement, len(names)), values, strict=True))
        return pd.DataFrame({name: columns[position] for position, name in enumerate(names)})


class _Manager(NamedTuple):
    """Stands for pandas' BlockManager: only holds the blocks and the axes."""

    blocks: tuple[Any, ...]
    axes: list[Any]


class _Named:
    """Stands for classes that are named, but never created."""


def _new_index(_kind: type[_Named], state: dict[str, Any]) -> Any:
    return list(state["data"]) if "data" in state else range(state["start"], state["stop"], state["step"])


def _array(buffer: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)


def _positions(placement: Any, width: int) -> range | list[int]:
    return range(width)[placement] if isinstance(placement, slice) else [int(at) for at in placement]


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "slice"): slice,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): _Named,
    ("numpy.core.multiarray", "_reconstruct"): lambda _kind, _shape, _typecode: np.ndarray((0,), dtype="b"),
    ("numpy.core.numeric", "_frombuffer"): _array,
    ("pandas._libs.internals", "_unpickle_block"): lambda values, placement, _dimensions: (values, placement),
    ("pandas.core.frame", "DataFrame"): _Frame,
    ("pandas.core.indexes.base", "Index"): _Named,
    ("pandas.core.indexes.base", "_new_Index"): _new_index,
    ("pandas.core.indexes.range", "RangeIndex"): _Named,
    ("pandas.core.internals.managers", "BlockManager"): _Manager,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise RefusedPickleError(
                f"The pickle names {module}.{name}, which no table needs: refused."
            ) from None
