"""How loops are compiled: without the GIL, kept on disk, and with NumPy's rule that x / 0 is infinite.

(Python's rule, an exception, would stop every loop with a division from vectorising.)
"""

from __future__ import annotations

from functools import partial

from numba import njit

jit = partial(njit, nogil=True, cache=True, error_model="numpy")
