from __future__ import annotations

import threading
from pathlib import Path

import pytest

from evenhand.atomic import replacing, try_writing, write_text


def test_a_file_appears_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one")
    write_text(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "two")]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")

    def write_half() -> None:
        with replacing(path) as partial:
            partial.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="full"):
        write_half()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "before")]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path, both_open = tmp_path / "a.txt", threading.Barrier(2)

    def write(text: str) -> None:
        with replacing(path) as partial:
            both_open.wait()
            partial.write_text(text * 10_000)

    threads = [threading.Thread(target=write, args=(text,)) for text in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(path.read_text()) in ({"x"}, {"y"})
    assert len(path.read_text()) == 10_000


def test_a_users_own_partial_file_and_links_are_left_alone(tmp_path: Path) -> None:
    own, target = tmp_path / "a.csv.partial", tmp_path / "target"
    own.write_text("mine")
    target.write_text("theirs")
    (tmp_path / ".a.csv.partial").symlink_to(target)
    write_text(tmp_path / "a.csv", "new")
    assert own.read_text() == "mine"
    assert target.read_text() == "theirs"


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_text(tmp_path / "atomic", "x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_longest_name_that_the_disk_takes_can_be_written(tmp_path: Path) -> None:
    assert write_text(tmp_path / ("ä" * 120 + ".txt"), "x").read_text() == "x"


def test_a_folder_that_is_not_there_is_named_and_the_temporary_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "none" / "m.skops"
    for write in (try_writing, lambda at: write_text(at, "x")):
        with pytest.raises(FileNotFoundError) as raised:
            write(path)
        assert str(raised.value) == f"Got {path} to write to, but there is no folder '{path.parent}'."


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "afile").touch()
    beside, under = tmp_path / "afile" / "m.skops", tmp_path / "afile" / "models" / "m.skops"
    for write in (try_writing, lambda at: write_text(at, "x")):
        with pytest.raises(NotADirectoryError) as raised:
            write(beside)
        assert str(raised.value) == (
            f"Got {beside} to write to, but '{beside.parent}' is a file, not a folder."
        )
        with pytest.raises(FileNotFoundError) as lacking:
            write(under)
        assert str(lacking.value) == f"Got {under} to write to, but there is no folder '{under.parent}'."
