"""Access to a GPU: CuPy, or an error that says what is missing."""

from __future__ import annotations

from typing import Any

from evenhand.checks import JobFailedError, one_of

ENGINES = ("cpu", "cuda")
OLDEST = "8.0"  # compute capability: the training kernel copies rows while it computes


def check_engine(engine: str) -> str:
    """Return the engine's name if it can be used here; otherwise raise an error that says what is missing."""
    if one_of("engine", engine, ENGINES) == "cuda":
        cupy()
    return engine


def cupy() -> Any:
    """Return CuPy, or raise an error that says what is missing."""
    try:
        import cupy as found

        capability = found.cuda.Device().compute_capability  # raises if there is no device
    except ImportError as error:
        raise ImportError(f"engine='cuda' needs: pip install 'evenhand[cuda]' ({error})") from error
    except Exception as error:
        raise JobFailedError(f"engine='cuda' found no CUDA device ({error}); use engine='cpu'.") from error
    if int(capability) < int(OLDEST.replace(".", "")):
        raise JobFailedError(
            f"engine='cuda' found a GPU of compute capability {capability[:-1]}.{capability[-1]}, but needs "
            f"{OLDEST} or higher; use engine='cpu'."
        )
    try:
        found.cuda.nvrtc.getVersion()
    except Exception as error:
        raise JobFailedError(
            "engine='cuda' found no NVRTC, CUDA's compiler, which 'evenhand[cuda]' installs with CuPy: "
            f"pip install 'evenhand[cuda]' ({error})"
        ) from error
    return found
