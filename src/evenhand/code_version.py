"""What determines a result besides its parameters: the code, and the libraries that do the arithmetic."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from evenhand import version

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
# Code that only shows or transports results: changing it makes no finished trial stale.
_ONLY_SHOWS = (
    "report", "cli", "auditing", "progress", "protocol/compare", "protocol/store",
    "protocol/engines", "protocol/reproduce", "protocol/findings", "protocol/write",
)  # fmt: skip


@cache
def code_version() -> str:
    """Return a sha256 of the code that can change a result, and of the versions of the libraries it uses.

    >>> len(code_version())
    64
    """
    root = Path(version.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if not any(name == f"{part}.py" or name.startswith(f"{part}/") for part in _ONLY_SHOWS):
            digest.update(f"{name}\n".encode())
            digest.update(file.read_bytes())
    digest.update(repr(sorted(library_versions().items())).encode())
    return digest.hexdigest()


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries whose arithmetic is used."""
    return {name: metadata.version(name) for name in LIBRARIES}


def versions() -> dict[str, str]:
    """Return what a report says of where its numbers were made."""
    return {
        "evenhand": version.__version__,
        "code": code_version(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        **library_versions(),
    }
