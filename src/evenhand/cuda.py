"""The door to a GPU: CuPy, or an error that says how to get it."""

from __future__ import annotations

from typing import Any

from evenhand.checks import one_of

ENGINES = ("cpu", "cuda")


def check_engine(engine: str) -> str:
    """Return the name of an engine that can be used here, or raise an error that says what is missing."""
    if one_of("engine", engine, ENGINES) == "cuda":
        cupy()
    return engine


def cupy() -> Any:
    """Return CuPy, or raise an error that says how to get it."""
    try:
        import cupy as found

        found.cuda.Device().compute_capability  # noqa: B018, raises where there is no device
    except ImportError as error:
        raise ImportError(f"engine='cuda' needs: pip install 'evenhand[cuda]' ({error})") from error
    except Exception as error:
        raise RuntimeError(f"engine='cuda' found no CUDA device ({error}); use engine='cpu'.") from error
    return found
