from __future__ import annotations

from pathlib import Path

import pytest
from asking import asked, kept


@pytest.fixture
def ask(tmp_path, monkeypatch):
    def ask(*given):
        monkeypatch.setattr("sys.argv", ["script.py", *given])
        return asked(
            "What it does.",
            str(tmp_path / "results" / "script"),
            names={"default": ["a", "b"], "choices": ["a", "b", "c"]},
            time_limit={"default": 300, "type": float},
            seeds=5,
            tables=False,
        )

    return ask


def test_defaults_are_kept_and_the_folder_is_made(ask):
    given = ask()
    assert (given.names, given.time_limit, given.seeds, given.tables) == (["a", "b"], 300, 5, False)
    assert isinstance(given.out, Path)
    assert given.out.is_dir()


def test_options_are_of_their_defaults_kind(ask, tmp_path):
    given = ask("--names", "c", "--time-limit", "0.5", "--seeds", "2", "--tables", "--out", str(tmp_path))
    assert (given.names, given.time_limit, given.seeds, given.tables) == (["c"], 0.5, 2, True)
    assert given.out == tmp_path


@pytest.mark.parametrize("given", [("--names", "d"), ("--seeds", "0.5"), ("--unknown",)])
def test_what_is_not_of_their_kind_is_refused(ask, given):
    with pytest.raises(SystemExit):
        ask(*given)


def test_rows_that_were_not_all_made_are_made_again(tmp_path):
    def stopped():
        yield {"a": 1}
        raise KeyboardInterrupt

    file = tmp_path / "rows.csv"
    with pytest.raises(KeyboardInterrupt):
        kept(file, stopped)
    assert not file.exists()
    assert kept(file, lambda: [{"a": 0.1}, {"a": 2}])["a"].tolist() == [0.1, 2.0]
    assert kept(file, lambda: pytest.fail("made already"))["a"].tolist() == [0.1, 2.0]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
