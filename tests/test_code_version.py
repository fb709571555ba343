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
    monkeypatch.setattr(versions, "_ROOT", root)
    return root


READ: dict[bytes, tuple[str, tuple[str, ...]]] = {}


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file's code says is read once for all tests: every copy has the same files but one."""
    real = versions._read.__wrapped__

    def read(path: Path) -> tuple[str, tuple[str, ...]]:
        code = path.read_bytes()
        if code not in READ:
            READ[code] = real(path)
        return READ[code]

    monkeypatch.setattr(versions, "_read", read)


TRAINS = (
    "evenhand.protocol.trial",
    "evenhand.protocol.gpu",
    "evenhand.protocol.theorem",
    "evenhand.workflow.candidates",
)


def current(*modules: str) -> str:
    return versions.code_version.__wrapped__(*(modules or TRAINS))


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    "file",
    [
        "rewards/registry.py", "bandits/kernels/loop.py", "bandits/kernels/optimisers.py", "network.py", "groups.py",
        "metrics/selection.py", "protocol/grids.py", "protocol/theorem.py", "baselines/lfr.py",
        "metrics/group.py", "tables/splits.py", "tables/preprocessing.py", "workflow/candidates.py",
        "bandits/cuda/optimisers.cu", "bandits/cuda/watching.py", "protocol/gpu.py",
    ],
)  # fmt: skip
def test_code_that_can_change_a_result_changes_the_version(file: str, copy: Path) -> None:
    before = current()
    (copy / file).write_text((copy / file).read_text() + "\nx = 1\n")
    assert current() != before


@pytest.mark.parametrize(
    "file",
    ["report/render.py", "report/summarise.py", "protocol/compare.py", "protocol/engines.py", "cli/fit.py",
     "workflow/card.py", "auditing/sentences.py"],
)  # fmt: skip
def test_code_that_only_shows_or_transports_results_does_not(file: str, copy: Path) -> None:
    before = current()
    (copy / file).write_text((copy / file).read_text() + "\nx = 1\n")
    assert current() == before


def test_a_number_counts_and_a_docstring_a_comment_and_layout_do_not(copy: Path) -> None:
    before = current()
    file = copy / "protocol" / "trial.py"
    changed(file, '"""One trial', '"""Another sentence. One trial')
    changed(file, "\n\n\n", "\n\n\n# a comment\n\n\n")
    assert current() == before
    changed(file, "NEIGHBOURS = 5", "NEIGHBOURS = 6")
    assert current() != before


def test_a_workflow_does_not_depend_on_the_protocol_nor_the_other_way_round(copy: Path) -> None:
    trial, workflow = current("evenhand.protocol.trial"), current("evenhand.workflow.candidates")
    for file in ("protocol/trial.py", "workflow/candidates.py"):
        (copy / file).write_text((copy / file).read_text() + "\nx = 1\n")
        assert (current("evenhand.workflow.candidates") == workflow) is (file == "protocol/trial.py")
    assert current("evenhand.protocol.trial") != trial


def test_what_is_no_module_of_evenhand_is_an_error_and_what_is_a_strangers_adds_nothing() -> None:
    assert current("evenhand.network", "my_methods") == current("evenhand.network")
    with pytest.raises(ModuleNotFoundError, match=r"Got the module 'evenhand.netwrk'"):
        current("evenhand.netwrk")


def test_imports_of_type_checkers_are_not_followed_and_those_of_functions_are(copy: Path) -> None:
    (copy / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from evenhand import b\n"
        "def run():\n    from evenhand.c import f\n    import evenhand.d\n"
    )
    for name in "bcd":
        (copy / f"{name}.py").write_text("from evenhand import a\n")
    assert versions.modules_behind("evenhand.a") == {"evenhand.a", "evenhand.c", "evenhand.d"}


def test_libraries_are_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = current()
    monkeypatch.setattr(versions, "library_versions", lambda: {"numpy": "0.1"})
    assert current() != before


def test_how_something_was_made_is_told_with_versions_and_code() -> None:
    data: list[versions.Source] = [{"name": "people", "people": 3}]
    found = versions.made("evenhand fit", seeds=range(2), data=data, code="0123456789abcdef")
    assert found["seeds"] == [0, 1]
    assert found["data"] == data
    assert found["evenhand"] == f"{evenhand.__version__} (code 0123456789ab)"
    assert set(found["packages"]) == {*versions.LIBRARIES, "skops"}
