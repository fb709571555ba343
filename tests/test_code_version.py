from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import evenhand
from evenhand import code_version as versions


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the package's code, which the version is then made of."""
    root = tmp_path / "evenhand"
    shutil.copytree(Path(evenhand.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(versions.version, "__file__", str(root / "__init__.py"))
    return root


def current() -> str:
    versions.code_version.cache_clear()
    try:
        return versions.code_version()
    finally:
        versions.code_version.cache_clear()


@pytest.mark.parametrize(
    "file", ["rewards/terms.py", "bandits/kernels/loop.py", "protocol/selection.py", "baselines/lfr.py"]
)
def test_code_that_can_change_a_result_changes_the_version(file: str, copy: Path) -> None:
    before = current()
    (copy / file).write_text((copy / file).read_text() + "\n")
    assert current() != before


@pytest.mark.parametrize("file", ["report/render.py", "protocol/compare.py", "cli/__init__.py"])
def test_code_that_only_shows_results_does_not(file: str, copy: Path) -> None:
    before = current()
    (copy / file).write_text((copy / file).read_text() + "\n")
    assert current() == before


def test_libraries_are_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = current()
    monkeypatch.setattr(versions, "library_versions", lambda: {"numpy": "0.1"})
    assert current() != before
    assert set(versions.versions()) >= {"evenhand", "code", "python", "numpy"}
