from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.datasets import Dataset
from evenhand.metrics.selection import HighestDelta
from evenhand.protocol import sweep as sweep_module
from evenhand.protocol.grids import Method, grid, paper_methods
from evenhand.protocol.store import Store, StoreError
from evenhand.protocol.sweep import Sweep

TREE = Method(
    "tree", lambda seed, **point: DecisionTreeClassifier(random_state=seed, **point), grid(max_depth=[1, 3])
)
LOGISTIC = Method("logistic", lambda seed, **point: LogisticRegression(**point), grid(C=[0.01, 1.0]))


def test_one_row_a_data_set_seed_method_and_criterion(dataset: Dataset) -> None:
    table = Sweep([TREE, LOGISTIC], [dataset], seeds=2).run()
    keys = ["dataset", "seed", "method", "criterion"]
    assert len(table) == len(table[keys].drop_duplicates()) == 1 * 2 * 2 * 3
    assert table["accuracy"].between(0.4, 1).all()


def test_the_best_point_is_chosen_on_validation(dataset: Dataset, tmp_path: Path) -> None:
    sweep = Sweep([TREE], [dataset], criteria=[HighestDelta()], store=tmp_path / "s.sqlite")
    (row,) = sweep.run().to_dict("records")
    known = sweep.store.read(trial.key for trial in sweep.trials)
    deltas = {
        json.dumps(trial.point): known[trial.key].trained["criteria"]["delta"]["validation"]["delta"]
        for trial in sweep.trials
    }
    assert deltas[row["parameters"]] == max(deltas.values())
    assert len(set(deltas.values())) > 1


def test_every_point_of_a_grid_has_a_seed_of_its_own_and_keeps_it(dataset: Dataset) -> None:
    seen: dict[tuple[str, int], set[int]] = {}

    def make(seed: int, *, name: str, depth: int) -> DecisionTreeClassifier:
        seen.setdefault((name, depth), set()).add(seed)
        return DecisionTreeClassifier(max_depth=depth)

    methods = [Method(name, make, grid(name=[name], depth=[1, 2, 3])) for name in ("one", "two")]
    Sweep(methods, [dataset], seeds=1).run()
    assert len(set.union(*seen.values())) == len(seen) == 6
    again = {point: set(seeds) for point, seeds in seen.items()}
    Sweep([Method("one", make, grid(depth=[3, 1], name=["one"]))], [dataset], seeds=1).run()
    assert seen == again  # nor does it change with the rest of the grid
    Sweep(methods[:1], [dataset], seeds=[1]).run()
    assert all(len(seeds) == 2 for (name, _), seeds in seen.items() if name == "one")


def test_equal_points_go_to_the_earlier_of_the_grid(dataset: Dataset) -> None:
    same = Method("same", lambda seed, **point: LogisticRegression(), grid(unused=[3, 1, 2]))
    table = Sweep([same], [dataset]).run()
    assert set(table["parameters"]) == {'{"unused": 3}'}


def test_finished_trials_are_not_repeated(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Sweep([TREE, LOGISTIC], [dataset], store=tmp_path / "s.sqlite").run()

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(sweep_module, "run_trials", refuse)
    monkeypatch.setattr(sweep_module, "all_ready", refuse)
    again = Sweep([TREE, LOGISTIC], [dataset], store=tmp_path / "s.sqlite").run()
    pd.testing.assert_frame_equal(first, again, check_exact=True)


def test_what_determines_a_result_changes_its_key(dataset: Dataset) -> None:
    def keys(**change: Any) -> set[str]:
        options: dict[str, Any] = {"methods": [TREE], "datasets": [dataset]} | change
        return {trial.key for trial in Sweep(**options).trials}

    other = Dataset(
        dataset.name,
        dataset.contexts.assign(born=dataset.contexts["born"] + 1),
        dataset.label,
        dataset.sensitive,
        "yes",
    )
    variants = [
        {"datasets": [other]},
        {"seeds": [1]},
        {"split": "random"},
        {"criteria": [HighestDelta()]},
        {"methods": [Method("tree", TREE.make, TREE.grid, version="2")]},
        {"methods": [Method("tree", TREE.make, TREE.grid, most_people=100)]},
        {"methods": [Method("tree", TREE.make, TREE.grid, budget=lambda people: {"max_leaf_nodes": people})]},
    ]
    assert keys() == keys() != set()
    for change in variants:
        assert not keys() & keys(**change), change


def test_a_failing_trial_is_recorded_and_the_rest_go_on(dataset: Dataset, tmp_path: Path) -> None:
    def sometimes(seed: int, fails: bool) -> Any:
        if fails:
            raise RuntimeError("no such luck")
        return LogisticRegression()

    method = Method("sometimes", sometimes, grid(fails=[True, False]))
    sweep = Sweep([method], [dataset], store=tmp_path / "s.sqlite")
    table = sweep.run()
    assert set(table["parameters"]) == {'{"fails": false}'}
    (failure,) = sweep.failures().to_dict("records")
    assert failure["parameters"] == '{"fails": true}'
    assert "RuntimeError: no such luck" in failure["error"]

    everything = Sweep([Method("never", sometimes, grid(fails=[True]))], [dataset])
    assert everything.run().empty
    assert everything.chosen(dataset.name, 0, "never", "delta") is None


def test_bad_sweeps_are_refused(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="Got no method"):
        Sweep([], [dataset])
    with pytest.raises(ValueError, match="Got the method 'tree' twice"):
        Sweep([TREE, TREE], [dataset])
    with pytest.raises(ValueError, match="Got the data set 'people' twice"):
        Sweep([TREE], [dataset, dataset])
    with pytest.raises(ValueError, match="Got seeds=0"):
        Sweep([TREE], [dataset], seeds=0)
    with pytest.raises(ValueError, match=r"Got split='mine'"):
        Sweep([TREE], [dataset], split="mine")
    with pytest.raises(ValueError, match=r"Got name='adlut'.*Did you mean 'adult'"):
        Sweep([TREE], ["adlut"])


_RUN = """
import sys, time
sys.path.insert(0, {folder!r})
from factories import make_dataset
from sklearn.tree import DecisionTreeClassifier
from evenhand.protocol.grids import Method, grid
from evenhand.protocol.sweep import Sweep

class Slow(DecisionTreeClassifier):
    def fit(self, X, y):
        time.sleep(0.02)
        with open({log!r}, "a") as log:
            log.write(f"{{self.max_depth}}\\n")
        return super().fit(X, y)

method = Method("slow", lambda seed, **point: Slow(random_state=seed, **point), grid(max_depth=list(range(1, 41))))
table = Sweep([method], [make_dataset()], store={store!r}).run(workers=2)
table.to_csv({out!r})
"""


def start(folder: Path, store: str = "s.sqlite", out: str = "out.csv") -> subprocess.Popen[bytes]:
    names = {"store": str(folder / store), "out": str(folder / out), "log": str(folder / "log")}
    code = _RUN.format(folder=str(Path(__file__).parents[1]), **names)
    return subprocess.Popen([sys.executable, "-c", code])


def finished(folder: Path) -> int:
    if not (folder / "s.sqlite").exists():
        return 0
    connection = sqlite3.connect(folder / "s.sqlite", timeout=30)
    try:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # the table is not there yet
    finally:
        connection.close()


@pytest.mark.slow
def test_killed_and_run_again_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "a", tmp_path / "b"
    undisturbed.mkdir()
    disturbed.mkdir()
    assert start(undisturbed).wait() == 0
    kills = 0
    for enough in (5, 20):
        process = start(disturbed)
        while finished(disturbed) < enough and process.poll() is None:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        kills += 1
        assert enough <= finished(disturbed) < 40
    assert start(disturbed).wait() == 0
    with Store(disturbed / "s.sqlite") as store:
        assert len(store) == 40
    trained = (disturbed / "log").read_text().split()
    # A kill may cost what was running or on its way to the store, never what was finished.
    assert 40 <= len(trained) <= 40 + kills * 6
    assert (disturbed / "out.csv").read_bytes() == (undisturbed / "out.csv").read_bytes()


@pytest.mark.slow
def test_two_runs_on_one_store_at_a_time_do_no_harm(tmp_path: Path) -> None:
    runs = [start(tmp_path, out=f"{name}.csv") for name in ("a", "b")]
    assert [run.wait() for run in runs] == [0, 0]
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with Store(tmp_path / "s.sqlite") as store:
        assert len(store) == 40


def test_trials_that_an_engine_loses_are_an_error(monkeypatch: pytest.MonkeyPatch, dataset: Any) -> None:
    sweep = Sweep(paper_methods(full=False)[:1], [dataset], seeds=1)
    real = sweep_module.run_trials
    monkeypatch.setattr(
        sweep_module, "run_trials", lambda *given, **how: itertools.islice(real(*given, **how), 1)
    )
    with pytest.raises(StoreError, match=r"2 of 3 trials have neither a result nor an error, such as LR on"):
        sweep.run(workers=1)
