"""Data sets made ready in processes are those made ready here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.datasets import Dataset
from evenhand.protocol import readying


def test_processes_make_the_same_of_data_sets(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {f"seed {seed}": (dataset, seed) for seed in range(3)}

    def made(*, processes: bool) -> readying.Arriving:
        return readying.all_ready(wanted, "published", processes=processes, workers=2)

    expected = dict(made(processes=True))  # so few of them are made ready here all the same
    monkeypatch.setattr(readying, "MANY", 1)
    monkeypatch.setattr(readying, "_in_threads", None)
    found = made(processes=True)
    assert list(found) == list(wanted)
    for key, prepared in found.items():
        for name in ("X", "y", "s", "neighbours"):
            np.testing.assert_array_equal(getattr(prepared, name), getattr(expected[key], name))
    path = readying.in_file(found, "seed 1", tmp_path)
    assert path.exists()  # the file that it came in
    assert not list(tmp_path.iterdir())
    del found
    assert not path.exists()


def test_who_asks_for_a_data_set_waits_for_it_and_those_before_it() -> None:
    begun: list[str] = []

    def ready() -> Iterator[Any]:
        for name in ("one", "two", "three"):
            begun.append(name)
            yield f"prepared {name}"
        begun.append("nobody")

    data = readying.Arriving(["one", "two", "three"], ready())
    assert (len(data), list(data), begun) == (3, ["one", "two", "three"], [])
    assert data["two"] == "prepared two"
    assert data["one"] == "prepared one"
    assert begun == ["one", "two"]
    with pytest.raises(KeyError, match="four"):
        data["four"]
    assert data["three"] == "prepared three"
    assert begun[2:] == ["three", "nobody"]  # whoever makes them ready ends with the last


def test_what_a_process_refuses_is_refused_here(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readying, "MANY", 1)
    with pytest.raises(ValueError, match="Got split='thirds'"):
        readying.all_ready({"one": (dataset, 0)}, "thirds", processes=True, workers=1)["one"]
