"""Explorations whose networks a GPU trains: all at once, the rest as ever."""

import sys

import numpy as np
import pandas as pd
import pytest

import evenhand
from devices import needs_device
from evenhand import cuda
from evenhand.bandits import many
from factories import make_people

ROLES = {"label": "hired", "sensitive": "sex", "categorical": "branch"}
SMALL = {"weights": [3, 0], "epochs": 5, "n_jobs": 1}


@pytest.fixture
def pretended(monkeypatch):
    """A GPU that is none: the same hands over, trained on the CPU; returns what it was asked to train."""
    asked = []

    def at_once(tasks, criterion, progress):
        asked.extend(model for task in tasks for model in task.models)
        return many._one_by_one(tasks, criterion, 1, progress, stops=True)

    monkeypatch.setattr(cuda, "cupy", lambda: None)
    monkeypatch.setattr(many, "_at_once", at_once)
    return asked


@pytest.mark.parametrize("policies", ["networks", "both"])
def test_networks_go_to_the_gpu_together_and_come_back(pretended, policies):
    people = make_people()
    here, there = (
        evenhand.explore(people, **ROLES, **SMALL, policies=policies, engine=engine)
        for engine in ("cpu", "cuda")
    )
    assert len(pretended) == 4
    pd.testing.assert_frame_equal(here.candidates, there.candidates)
    steps = there.choice().candidate.curve["steps"]
    assert steps == here.choice().candidate.curve["steps"][-len(steps) :]


def test_trees_stay(pretended):
    evenhand.explore(make_people(), **ROLES, **SMALL | {"weights": [1]}, policies="trees", engine="cuda")
    assert not pretended


def test_what_a_gpu_trained_is_not_taken_for_what_a_cpu_did(pretended, tmp_path):
    given = ROLES | SMALL | {"policies": "networks", "resume": tmp_path}
    evenhand.explore(make_people(), **given)
    evenhand.explore(make_people(), **given, engine="cuda")
    assert len(pretended) == 4
    kept = [*tmp_path.glob("*.skops")]
    assert len(kept) == 8
    # What a killed run has trained is not trained again.
    evenhand.explore(make_people(), **given, engine="cuda")
    assert len(pretended) == 4
    max(kept, key=lambda path: path.stat().st_mtime_ns).unlink()
    evenhand.explore(make_people(), **given, engine="cuda")
    assert len(pretended) == 5


def test_a_gpu_that_is_not_there_is_said_before_anything_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"engine='cuda' needs: pip install 'evenhand\[cuda\]'"):
        evenhand.explore("no such file.csv", engine="cuda")
    with pytest.raises(ValueError, match="Got engine='gpu', but expected"):
        evenhand.explore("no such file.csv", engine="gpu")


def test_a_streamed_table_stays_on_the_cpu(pretended, tmp_path):
    make_people().to_parquet(tmp_path / "people.parquet")
    with pytest.raises(ValueError, match="engine='cuda' for a table that is streamed"):
        evenhand.explore(tmp_path / "people.parquet", **ROLES, **SMALL, buffer_rows=1000, engine="cuda")


@pytest.mark.device
@needs_device[1]
def test_a_gpu_finds_what_the_cpu_finds():
    people = make_people()
    here, there = (
        evenhand.explore(people, **ROLES, **SMALL, policies="networks", engine=engine).candidates
        for engine in ("cpu", "cuda")
    )
    for name in ("accuracy", "discrimination", "flip_rate"):
        np.testing.assert_allclose(here[name], there[name], atol=0.02)
