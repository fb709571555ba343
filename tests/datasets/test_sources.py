from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.datasets import sources
from evenhand.datasets.sources import COMPAS_SCORES, data_folder, has_private, private_path
from evenhand.datasets.wheels import DataUnavailableError


def test_the_argument_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / "environment"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder() == tmp_path / "environment"


def test_an_installed_package_looks_nowhere_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    installed = tmp_path / "lib" / "site-packages" / "evenhand" / "datasets"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    monkeypatch.setattr(sources, "__file__", str(installed / "sources.py"))
    monkeypatch.chdir(tmp_path)
    assert data_folder() is None
    assert not has_private(COMPAS_SCORES)
    with pytest.raises(DataUnavailableError, match="no folder was given"):
        private_path(COMPAS_SCORES)


def test_a_source_checkout_looks_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    package = tmp_path / "project" / "src" / "evenhand" / "datasets"
    package.mkdir(parents=True)
    beside = tmp_path / "shared" / "data"
    beside.mkdir(parents=True)
    monkeypatch.setattr(sources, "__file__", str(package / "sources.py"))
    assert data_folder() == beside
