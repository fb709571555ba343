from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.protocol import engines
from evenhand.protocol.engines import Task, run_tasks
from evenhand.protocol.grids import Method, our_methods, paper_methods
from evenhand.protocol.selection import CRITERIA
from evenhand.protocol.trial import Outcome, Prepared, make_ready

# Both start helper processes and sockets whose late clean-up the garbage collector may grumble about.
pytestmark = pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning")


@pytest.fixture
def data(dataset: Any) -> dict[str, Prepared]:
    return {"d": make_ready(dataset, 0, "random", "d")}


def all_tasks() -> list[Task]:
    methods = [*paper_methods(full=False), *our_methods(full=False)]
    return [
        Task(f"{method.name} {at}", "d", method, point, 0, CRITERIA)
        for method in methods
        for at, point in enumerate(method.points(400))
    ]


def outcomes(finished: Iterator[tuple[str, Outcome]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, outcome in finished:
        assert key not in found
        assert outcome.error is None, outcome.error
        found[key] = outcome.selected
    return found


@pytest.fixture
def expected(data: dict[str, Prepared]) -> dict[str, Any]:
    return outcomes(run_tasks(all_tasks(), data, engine="threads", workers=1))


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return repr(sorted(left.items())) == repr(sorted(right.items()))  # exact, and equal for NaN


def test_threads_give_the_same_bits_in_any_number(
    data: dict[str, Prepared], expected: dict[str, Any]
) -> None:
    assert same(outcomes(run_tasks(all_tasks(), data, workers=3)), expected)


class Mortal(LogisticRegression):  # type: ignore[misc]
    """Kills its own process: every time, or unless the mark of an earlier death is there."""

    def __init__(self, mark: str = "", always: bool = False) -> None:
        super().__init__()
        self.mark, self.always = mark, always

    def fit(self, X: Any, y: Any) -> Any:
        if self.always or not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def mortal(folder: Path, *, always: bool = False) -> Task:
    point = {"mark": str(folder / "died"), "always": always}
    method = Method("mortal", lambda seed, **point: Mortal(**point))
    return Task(f"mortal, always={always}", "d", method, point, 0, CRITERIA)


def test_processes_give_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "TRIES", 2)
    tasks = [*all_tasks()[:2], mortal(tmp_path), *all_tasks()[2:], mortal(tmp_path, always=True)]
    found = dict(run_tasks(tasks, data, engine="processes", workers=2))
    assert found.pop("mortal, always=False").error is None
    assert "died 2 times" in str(found.pop("mortal, always=True").error)
    assert same(outcomes(iter(found.items())), expected)


def test_a_dask_cluster_of_two_workers_gives_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    tasks = [*all_tasks()[:2], mortal(tmp_path), *all_tasks()[2:]]
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        found = dict(run_tasks(tasks, data, engine="dask", address=address))
    assert (tmp_path / "died").exists()
    assert found.pop("mortal, always=False").error is None
    assert same(outcomes(iter(found.items())), expected)


@pytest.mark.filterwarnings("default::FutureWarning", "default::UserWarning")
def test_a_local_ray_gives_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    tasks = [*all_tasks()[:2], mortal(tmp_path), *all_tasks()[2:]]
    found = dict(run_tasks(tasks, data, engine="ray", workers=2))
    assert (tmp_path / "died").exists()
    assert found.pop("mortal, always=False").error is None
    assert same(outcomes(iter(found.items())), expected)


def test_data_is_read_once_a_worker_not_once_a_trial(
    data: dict[str, Prepared], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    real = engines.joblib.load
    monkeypatch.setattr(engines.joblib, "load", lambda *a, **k: loads.append(a) or real(*a, **k))
    engines.joblib.dump(data["d"], tmp_path / "d.joblib")
    task = all_tasks()[0]
    for _ in range(3):
        engines._run_from_file(tmp_path, task)
    assert len(loads) == 1


def test_tasks_are_taken_as_workers_become_free(data: dict[str, Prepared]) -> None:
    taken = []

    def tasks() -> Iterator[Task]:
        for task in all_tasks() * 3:
            taken.append(task.key)
            yield task

    running = run_tasks(tasks(), data, workers=1)
    next(running)
    assert len(taken) < len(all_tasks() * 3)
    running.close()  # type: ignore[attr-defined]


def test_unknown_engines_and_useless_addresses_are_refused(data: dict[str, Prepared]) -> None:
    with pytest.raises(ValueError, match=r"Got engine='thread'.*Did you mean 'threads'"):
        run_tasks([], data, engine="thread")
    with pytest.raises(ValueError, match=r"Got address='tcp://x' with engine='threads'"):
        run_tasks([], data, address="tcp://x")
    with pytest.raises(ValueError, match=r"Got workers=0"):
        run_tasks([], data, workers=0)


def test_a_missing_package_is_named(data: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(engines.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install 'evenhand\[ray\]'"):
        next(run_tasks([], data, engine="ray"))


def test_a_failing_trial_has_its_traceback(data: dict[str, Prepared]) -> None:
    def broken(seed: int) -> Any:
        raise RuntimeError("no such luck")

    (found,) = run_tasks([Task("b", "d", Method("broken", broken), {}, 0, CRITERIA)], data)
    assert found[1].selected is None
    assert "RuntimeError: no such luck" in str(found[1].error)
    assert np.isfinite(found[1].seconds)
