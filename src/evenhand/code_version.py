"""How a result was made: the code and the libraries behind it, the command, the seeds and the data."""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NotRequired, TypedDict

from evenhand.version import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
RESOURCES = "importlib.resources"  # reads other files of a package
_PACKAGE, _ROOT = "evenhand", Path(__file__).parent


@cache
def code_version(*modules: str) -> str:
    """Return a hash of the code behind some modules, and of the versions of the numerical libraries.

    The code is that of the modules and of everything that they import from evenhand, directly or not, with
    the CUDA sources of packages whose files they read. Docstrings, comments and layout of Python don't change
    the hash. Modules from outside evenhand add nothing.

    >>> len(code_version("evenhand.bandits.cooperative"))
    64
    """
    digest = hashlib.sha256()
    for module in sorted(modules_behind(*modules)):
        file = _file_of(module)
        digest.update(f"{module} {_read(file)[0]}\n".encode())
        if RESOURCES in _read(file)[1]:
            for source in sorted(file.parent.glob("*.cu")):
                digest.update(source.read_bytes())
    digest.update(repr(sorted(library_versions().items())).encode())
    return digest.hexdigest()


def modules_behind(*modules: str) -> set[str]:
    """Return these modules and all modules that they import from evenhand, directly or not.

    Imports inside functions count; imports that are only for type checkers don't.

    >>> behind = modules_behind("evenhand.protocol.trial")
    >>> "evenhand.metrics.group" in behind, "evenhand.report.render" in behind
    (True, False)
    """
    found: set[str] = set()
    waiting = [module for module in modules if module.split(".")[0] == _PACKAGE]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += [name for name in _read(_file_of(module))[1] if name != RESOURCES]
    return found


class Source(TypedDict):
    """Data that a report or a model was made from."""

    name: str
    people: int
    source: NotRequired[str]
    sha256: NotRequired[str]
    fingerprint: NotRequired[str]


class Made(TypedDict):
    """How a report or a model was made."""

    command: str
    when: str
    evenhand: str
    python: str
    platform: str
    packages: dict[str, str]
    seeds: list[int]
    data: list[Source]


def made(command: str, *, seeds: Sequence[int], data: Sequence[Source], code: str = "") -> Made:
    """Return how a report or a model was made; `code` is a `code_version`, or '' to leave it out."""
    return {
        "command": command,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "evenhand": __version__ + (f" (code {code[:12]})" if code else ""),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": library_versions() | {"skops": metadata.version("skops")},
        "seeds": list(seeds),
        "data": list(data),
    }


def library_versions() -> dict[str, str]:
    """Return the versions of the numerical libraries."""
    return {name: metadata.version(name) for name in LIBRARIES}


def _file_of(module: str) -> Path:
    stem = _ROOT.joinpath(*module.split(".")[1:])
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if path.is_file():
            return path
    raise ModuleNotFoundError(
        f"Got the module {module!r}, but expected one of evenhand's; there is none in {_ROOT}."
    )


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a file's code, and the modules that it imports: of evenhand, and `RESOURCES`."""
    tree = ast.parse(path.read_bytes())
    imported = tuple(dict.fromkeys(_imports(tree)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imported


def _imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name.split(".")[0] == _PACKAGE)
        elif isinstance(child, ast.ImportFrom) and child.module == RESOURCES:
            yield RESOURCES
        elif isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == _PACKAGE:
            yield from (_home_of(str(child.module), alias.name) for alias in child.names)
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _imports(child)


def _home_of(module: str, name: str) -> str:
    """Return the module that `from module import name` needs."""
    try:
        _file_of(f"{module}.{name}")
        return f"{module}.{name}"
    except ModuleNotFoundError:
        pass
    if module == _PACKAGE:  # it exports everything: follow only this name
        for node in ast.walk(ast.parse(_file_of(module).read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module and name in {a.name for a in node.names}:
                return _home_of(node.module, name)
    return module
