"""Where results are to go is tried before the work, and with a real file: rights alone can mislead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import evenhand as library
from evenhand.progress import Progress
from evenhand.protocol.reproduce import reproduce
from evenhand.workflow import audit_plan, deciding, exploring
from factories import evenhand, make_people

ROLES = ("--label", "hired", "--sensitive", "sex")


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A folder in which nobody can make a file, not even root, whatever its rights say."""
    folder, make = tmp_path / "locked", os.open
    folder.mkdir()

    def refuse(path, *arguments, **named):
        if folder in Path(os.fsdecode(path)).parents:
            raise PermissionError(13, "Permission denied", str(path))
        return make(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    return folder


@pytest.fixture
def unworked(monkeypatch):
    for module, name in [(exploring, "train_all"), (deciding, "read_chunks"), (audit_plan, "audit")]:
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("the work has begun"))


@pytest.mark.parametrize(
    "outputs",
    [
        ("fit", "{data}", *ROLES, "-o", "{locked}/m.skops"),
        ("fit", "{data}", *ROLES, "-o", "{folder}/m.skops", "--report", "{locked}/r.html"),
        ("fit", "{data}", *ROLES, "-o", "{folder}/m.skops", "--summary", "{locked}/s.json"),
        ("predict", "{model}", "{data}", "-o", "{locked}/d.csv"),
        ("predict", "{model}", "{data}", "-o", "{folder}/d.csv", "--rejects", "{locked}/r.csv"),
        ("audit", "{data}", "--model", "{model}", "--report", "{locked}/r.html"),
        ("report", "{summary}", "-o", "{locked}/r.html"),
    ],
)
def test_a_folder_that_takes_no_file_is_told_before_the_work(fitted, tmp_path, locked, unworked, outputs):
    places = {"data": tmp_path / "p.csv", "model": fitted.model, "summary": fitted.summary}
    make_people(60).to_csv(places["data"], index=False)
    arguments = [text.format(locked=locked, folder=tmp_path, **places) for text in outputs]
    result = evenhand(*arguments, code=1)
    assert f"but no file can be made in {locked}: Permission denied." in result.stderr.replace("\n", " ")
    assert not list(tmp_path.glob("m*"))
    assert not list(tmp_path.glob(".*")), "the trial left a file behind"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that refuses root")
def test_a_folder_of_the_system_is_refused_for_real(tmp_path, unworked):
    make_people(60).to_csv(tmp_path / "p.csv", index=False)
    result = evenhand("fit", tmp_path / "p.csv", *ROLES, "-o", "/proc/self/m.skops", code=1)
    assert "no file can be made in /proc/self" in result.stderr


def test_reproduce_tries_its_folder_even_where_the_store_is_open_to_it(locked, monkeypatch):
    monkeypatch.setattr("evenhand.protocol.reproduce.load_public", lambda *_: pytest.fail("data is loaded"))
    with pytest.raises(OSError, match=f"no file can be made in {locked}"):
        reproduce(datasets=["german"], out=locked)
    assert (locked / "trials.sqlite").exists()  # SQLite does not ask Python


class _Told(Progress):
    def __init__(self):
        self.texts = []

    def say(self, text):
        self.texts.append(text)


def test_models_that_cannot_be_kept_are_noted_and_trained_all_the_same(locked):
    told = _Told()
    how = {"label": "hired", "sensitive": "sex", "weights": [0], "epochs": 2, "n_jobs": 1}
    frontier = library.explore(make_people(100), **how, resume=locked, progress=told)
    assert len(frontier.trained) == 2
    assert any("its trained models are lost" in text and str(locked) in text for text in told.texts)
    assert list(locked.iterdir()) == []


def test_a_folder_without_tables_is_named_and_not_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (("fit", ".", *ROLES), ("audit", ".", *ROLES, "--predictions", "hired")):
        result = evenhand(*command, code=2)
        assert ". is a folder without Parquet files; expected a CSV" in " ".join(result.stderr.split())
    result = evenhand("predict", ".", "people.csv", code=2)
    assert "Got '.', which is a folder; expected a model" in result.stderr


def test_an_output_under_a_file_is_an_error_before_the_work_begins(fitted, tmp_path):
    (tmp_path / "afile").touch()
    result = evenhand("predict", fitted.model, fitted.people, "-o", tmp_path / "afile" / "d.csv", code=2)
    assert "d.csv to write to, but " in result.stderr
    assert "afile' is a file, not a folder." in " ".join(result.stderr.split())


@pytest.mark.parametrize("name", ["m.skops", "r.html"])
def test_from_python_a_folder_that_is_not_there_is_named(fitted, tmp_path, name):
    model, path = library.load(fitted.model), tmp_path / "none" / name
    write = (lambda: model.save(path)) if name == "m.skops" else (lambda: library.save(model, path))
    with pytest.raises(
        FileNotFoundError, match=f"Got {path} to write to, but there is no folder '{path.parent}'"
    ):
        write()
