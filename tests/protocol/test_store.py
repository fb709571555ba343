from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.protocol.store import Store, StoreError, key_of
from evenhand.protocol.trial import Result


def done(trained: Any) -> Result:
    return Result(trained, None, 0)


def test_a_result_is_read_back_exactly(tmp_path: Path) -> None:
    trained: Any = {"accuracy": 0.1 + 0.2, "missing": float("nan"), "steps": [1, 2]}
    with Store(tmp_path / "s.sqlite") as store:
        store.write("k", {"method": "LR"}, Result(trained, None, 1.5))
    with Store(tmp_path / "s.sqlite") as store:
        found = store.read(["k", "other"])
        assert store.succeeded("k")
        assert not store.succeeded("other")
    assert list(found) == ["k"]
    assert repr(found["k"].trained) == repr(trained)
    assert (found["k"].error, found["k"].seconds) == (None, 1.5)


def test_the_file_says_what_a_result_is_of(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.write("k", {"method": "LR"}, done(1))
    connection = sqlite3.connect(tmp_path / "s.sqlite")
    assert connection.execute("SELECT key, what, outcome FROM results").fetchall() == [
        ("k", '{"method": "LR"}', "1")
    ]
    connection.close()


def test_a_success_is_final_and_a_failure_is_tried_again() -> None:
    store = Store(None)
    store.write("k", {}, Result(None, "Traceback", 0))
    assert not store.succeeded("k")
    assert store.read(["k"])["k"].error == "Traceback"
    store.write("k", {}, done(1))
    store.write("k", {}, done(2))
    store.write("k", {}, Result(None, "later", 0))
    assert store.read(["k"])["k"].trained == 1
    assert len(store) == 1
    store.close()


def test_results_that_come_quickly_are_all_there_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path) as store, suppress(KeyboardInterrupt), store.writing() as write:
        for at in range(300):
            write(str(at), {}, Result(None, "Traceback", 0) if at == 7 else done(at))
        raise KeyboardInterrupt
    with Store(path) as store:
        assert {key: found.trained for key, found in store.read(map(str, range(300))).items()} == {
            str(at): None if at == 7 else at for at in range(300)
        }
        assert store.errors(["6", "7", "300"]) == {"6": None, "7": "Traceback"}


def test_what_could_not_be_written_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, failures = Store(None), [StoreError("full"), StoreError("full")]
    together = store._write_together

    def fail_first(results: Any) -> None:
        if failures:
            raise failures.pop()
        together(results)

    monkeypatch.setattr(store, "_write_together", fail_first)
    with store.writing() as write:
        for at in range(3):
            with suppress(StoreError):
                write(str(at), {}, done(at))
    assert sorted(store.read("012")) == ["0", "1", "2"]
    store.close()


def test_a_result_that_can_not_be_written_is_an_error() -> None:
    with (
        Store(None) as store,
        pytest.raises(TypeError, match="not JSON serializable"),
        store.writing() as write,
    ):
        write("k", {}, done(object()))


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"method": "LFR"}, {"parameters": {"C": 2.0}}, {"extra": None}]
)
def test_everything_that_determines_a_result_is_in_its_key(change: dict[str, object]) -> None:
    what = {"seed": 0, "method": "LR", "parameters": {"C": 1.0}}
    assert key_of(what) == key_of(json.loads(json.dumps(what)))
    assert key_of(what | change) != key_of(what)


def test_a_file_that_is_no_store_gets_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_text("this is no database, however one looks at it; " * 50)
    with pytest.raises(
        StoreError, match=r"Can't open the results in .*damaged, or not a store.*Move it away"
    ):
        Store(path)


def test_a_damaged_store_gets_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        for at in range(500):
            store.write(str(at), {}, done("x" * 500))
    data = bytearray(path.read_bytes())
    data[4096 : len(data) // 2] = b"\xff" * (len(data) // 2 - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged, or not a store"):
        Store(path)


def test_a_full_disk_gets_a_clear_error_and_keeps_what_is_finished(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.write("kept", {}, done(1))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"Can't write .*the disk is full.*free some space"):
            store.write("lost", {}, done("x" * 100_000))
    with Store(tmp_path / "s.sqlite") as store:
        assert store.succeeded("kept")
        assert not store.succeeded("lost")


def test_a_folder_that_can_not_be_written_gets_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="expected a file in a folder that can be written"):
        Store(tmp_path / "file" / "s.sqlite")


def test_a_store_of_another_layout_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(StoreError, match="has layout 7, but this evenhand reads layout 1"):
        Store(path)


_WRITER = """
import sys
from evenhand.protocol.store import Store
from evenhand.protocol.trial import Result
with Store(sys.argv[1]) as store:
    for at in range(200):
        store.write(f"shared {at}", {}, Result(at, None, 0))
        store.write(f"{sys.argv[2]} {at}", {}, Result(at, None, 0))
"""


@pytest.mark.slow
def test_two_processes_write_at_once_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name]) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    with Store(path) as store:
        assert len(store) == 600
        found = store.read([f"shared {at}" for at in range(200)])
        assert sorted(result.trained for result in found.values()) == list(range(200))
