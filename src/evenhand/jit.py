"""How loops are compiled: without the GIL, cached on disk, and with NumPy's rule that x / 0 is infinite.

Python's rule, an exception, would keep every loop with a division from being vectorised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from numba import njit

from evenhand.code_version import code_version


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function, and caches its machine code if a folder is writable."""
    how: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"} | options

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return _stamped(njit(**how)(function))
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            warnings.warn(
                "Machine code can't be kept: neither evenhand's folder nor the home folder is writable, "
                "so every process compiles its loops again. Set NUMBA_CACHE_DIR to a folder of yours.",
                stacklevel=2,
            )
            return njit(**how | {"cache": False})(function)

    return compiled


def _stamped(compiled: Any) -> Any:
    """Use cached machine code only while all the code behind it is unchanged.

    Numba checks only the time and size of the function's own file. But the functions that it calls are
    compiled into it, and files from a wheel have the times that the wheel's builder gave them.
    """
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp") and compiled.targetoptions.get("inline") != "always":
        file._source_stamp = (file._source_stamp, code_version(compiled.py_func.__module__))
    return compiled
