from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.metrics.selection import CRITERIA
from evenhand.protocol import engines
from evenhand.protocol.engines import run_trials
from evenhand.protocol.grids import Method, our_methods, paper_methods
from evenhand.protocol.trial import Prepared, Result, Trial, make_ready

# Both start helper processes and sockets whose late clean-up the garbage collector may grumble about.
pytestmark = pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning")


@pytest.fixture(scope="module")
def data(dataset: Any) -> dict[str, Prepared]:
    return {"d": make_ready(dataset, 0, "random")}


def all_trials() -> list[Trial]:
    methods = [*paper_methods(full=False), *our_methods(full=False)]
    return [
        Trial(f"{method.name} {at}", "d", "people", 0, method, point, CRITERIA)
        for method in methods
        for at, point in enumerate(method.points(400))
    ]


def by_key(finished: Iterator[tuple[Trial, Result]]) -> dict[str, Result]:
    found: dict[str, Result] = {}
    for trial, result in finished:
        assert trial.key not in found
        found[trial.key] = result
    return found


def trained(found: dict[str, Result]) -> dict[str, Any]:
    assert not [result.error for result in found.values() if result.error]
    return {key: result.trained for key, result in found.items()}


@pytest.fixture(scope="module")
def expected(data: dict[str, Prepared]) -> dict[str, Any]:
    return trained(by_key(run_trials(all_trials(), data, engine="threads", workers=1)))


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return repr(sorted(left.items())) == repr(sorted(right.items()))  # exact, and equal for NaN


def test_threads_give_the_same_bits_in_any_number(
    data: dict[str, Prepared], expected: dict[str, Any]
) -> None:
    assert same(trained(by_key(run_trials(all_trials(), data, workers=3))), expected)


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


def mortal(folder: Path, *, always: bool = False) -> Trial:
    point = {"mark": str(folder / "died"), "always": always}
    method = Method("mortal", lambda seed, **point: Mortal(**point))
    return Trial(f"mortal, always={always}", "d", "people", 0, method, point, CRITERIA)


@pytest.mark.slow
def test_processes_give_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "TRIES", 2)
    trials = [*all_trials()[:2], mortal(tmp_path), *all_trials()[2:], mortal(tmp_path, always=True)]
    found = by_key(run_trials(trials, data, engine="processes", workers=2))
    assert found.pop("mortal, always=False").error is None
    assert "died 2 times" in str(found.pop("mortal, always=True").error)
    assert same(trained(found), expected)


@pytest.mark.slow
def test_a_dask_cluster_of_two_workers_gives_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    trials = [*all_trials()[:2], mortal(tmp_path), *all_trials()[2:]]
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        found = by_key(run_trials(trials, data, engine="dask", address=address))
    assert (tmp_path / "died").exists()
    assert found.pop("mortal, always=False").error is None
    assert same(trained(found), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("default::FutureWarning", "default::UserWarning")
def test_a_local_ray_gives_the_same_bits_and_a_death_costs_a_retry_and_nothing_else(
    data: dict[str, Prepared], expected: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    trials = [*all_trials()[:2], mortal(tmp_path), *all_trials()[2:]]
    found = by_key(run_trials(trials, data, engine="ray", workers=2))
    assert (tmp_path / "died").exists()
    assert found.pop("mortal, always=False").error is None
    assert same(trained(found), expected)


def test_data_is_read_once_a_worker_not_once_a_trial(
    data: dict[str, Prepared], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    real = engines.joblib.load
    monkeypatch.setattr(engines.joblib, "load", lambda *a, **k: loads.append(a) or real(*a, **k))
    path, trial = engines.in_file(data, "d", tmp_path), all_trials()[0]
    for _ in range(3):
        assert engines.in_file(data, "d", tmp_path) == path
        engines._run_from_file(path, trial)
    assert len(loads) == 1


def test_trials_are_taken_as_workers_become_free(data: dict[str, Prepared]) -> None:
    taken = []

    def trials() -> Iterator[Trial]:
        for trial in all_trials() * 3:
            taken.append(trial.key)
            yield trial

    running = run_trials(trials(), data, workers=1)
    next(running)
    assert len(taken) < len(all_trials() * 3)
    running.close()  # type: ignore[attr-defined]


def test_unknown_engines_and_useless_addresses_are_refused(data: dict[str, Prepared]) -> None:
    with pytest.raises(ValueError, match=r"Got engine='thread'.*Did you mean 'threads'"):
        run_trials([], data, engine="thread")
    with pytest.raises(ValueError, match=r"Got address='tcp://x' with engine='threads'"):
        run_trials([], data, address="tcp://x")
    with pytest.raises(ValueError, match=r"Got workers=0"):
        run_trials([], data, workers=0)


def test_a_missing_package_is_named(data: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(engines.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install 'evenhand\[ray\]'"):
        next(run_trials([], data, engine="ray"))


def test_a_failing_trial_has_its_traceback(data: dict[str, Prepared]) -> None:
    def broken(seed: int) -> Any:
        raise RuntimeError("no such luck")

    trial = Trial("b", "d", "people", 0, Method("broken", broken), {}, CRITERIA)
    ((tried, result),) = run_trials([trial], data)
    assert tried is trial
    assert result.trained is None
    assert "RuntimeError: no such luck" in str(result.error)
    assert np.isfinite(result.seconds)
