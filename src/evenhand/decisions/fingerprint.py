"""A model's fingerprint: equal for models that decide and learn identically, bit for bit.

The bytes of a model's file won't do: they contain the time and addresses in memory.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def fingerprint(model: Any) -> str:
    """Return a hash of everything in a model: its parameters, its arrays and its random state.

    >>> fingerprint({"a": np.zeros(2), "b": 1}) == fingerprint({"b": 1, "a": np.zeros(2)})
    True
    >>> fingerprint(np.zeros(2)) == fingerprint(np.zeros(2, dtype=np.float32))
    False
    """
    digest = hashlib.sha256()
    _add(digest, model)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    digest.update(f"<{type(value).__name__}".encode())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, (np.ndarray, list, tuple)):
        digest.update(str(np.shape(value) if isinstance(value, np.ndarray) else len(value)).encode())
        for inner in value.ravel() if isinstance(value, np.ndarray) else value:
            _add(digest, inner)
    elif isinstance(value, dict):
        for key in sorted(value, key=lambda name: (str(type(name)), str(name))):
            _add(digest, key)
            _add(digest, value[key])
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif isinstance(value, (str, bytes, bool, int, float, complex, type(None), np.generic, np.dtype)):
        digest.update(repr(value).encode())
    elif isinstance(value, np.random.RandomState):
        _add(digest, value.get_state())
    elif hasattr(value, "__dict__"):
        _add(digest, vars(value))
    else:
        digest.update(repr(value).encode())
    digest.update(b">")
