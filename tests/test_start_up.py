"""Nothing heavy is loaded before it is needed, and every public name still resolves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand

HEAVY = {"numpy", "pandas", "scipy", "sklearn", "numba", "plotly", "jinja2", "skops"}


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(); print(*{{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"]])
def test_help_and_version_load_no_numerical_library(arguments):
    run = f"from evenhand.cli import app; app({arguments!r}, standalone_mode=False)"
    assert not loaded_by(run) & HEAVY


def test_importing_evenhand_loads_nothing_of_the_command_line_and_no_numbers():
    assert not loaded_by("import evenhand") & {*HEAVY, "typer", "rich"}


def test_training_loads_neither_page_nor_command_line():
    used = loaded_by("from evenhand import CooperativeBandits, audit, explore, load")
    assert not used & {"plotly", "jinja2", "typer", "skops"}
    assert "numba" in used


def test_every_public_name_resolves_and_type_checkers_see_the_same_ones():
    tree = ast.parse(Path(evenhand.__file__).read_text(encoding="utf-8"))
    seen = {
        (alias.name, str(node.module))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("evenhand.")
        for alias in node.names
    }
    assert seen == {*evenhand._HOME_OF.items(), ("__version__", "evenhand.version")}
    assert {name for name, _ in seen} == set(evenhand.__all__)
    for name, module in seen:
        assert getattr(evenhand, name) is getattr(sys.modules[module], name)
    assert {"explore", "datasets"} <= set(dir(evenhand))
    assert evenhand.tables.load_table is sys.modules["evenhand.tables"].load_table


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'fit'"):
        _ = evenhand.fit
