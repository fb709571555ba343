from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand
from evenhand import jit as module


def test_without_a_folder_for_machine_code_loops_compile_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = module.njit

    def no_folder(**how: object) -> object:
        if how["cache"]:
            raise RuntimeError("cannot cache function 'twice': no locator available for file 'x.py'")
        return real(**how)

    monkeypatch.setattr(module, "njit", no_folder)
    with pytest.warns(UserWarning, match="Machine code can't be kept.*NUMBA_CACHE_DIR"):

        @module.jit()
        def twice(x):
            return 2 * x

    assert twice(21) == 42


_RUN = """
from evenhand.metrics.gower_kernel import doubled
print(doubled(21), sum(doubled.stats.cache_hits.values()))
"""
_OUTER = "\n\nfrom evenhand.metrics.rates import factor\n@jit()\ndef doubled(x):\n    return factor(x)\n"
_INNER = "\n\nfrom evenhand.jit import jit\n@jit()\ndef factor(x):\n    return {} * x\n"


def test_kept_machine_code_is_not_used_when_a_function_in_another_file_has_changed(tmp_path: Path) -> None:
    """As in an upgraded install, whose files have the same times and sizes."""
    copy = tmp_path / "evenhand"
    shutil.copytree(Path(evenhand.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    inner, outer = copy / "metrics" / "rates.py", copy / "metrics" / "gower_kernel.py"
    outer.write_text(outer.read_text() + _OUTER)
    before = inner.read_text()
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(factor: int) -> list[str]:
        inner.write_text(before + _INNER.format(factor))
        for path in (inner, outer):
            os.utime(path, (0, 0))
        # -B: Python's own files of bytecode go by times and sizes, too.
        ran = subprocess.run(
            [sys.executable, "-B", "-c", _RUN], env=environment, capture_output=True, text=True, check=True
        )
        return ran.stdout.split()

    assert run(2) == ["42", "0"]
    assert run(2) == ["42", "1"]  # kept
    assert run(3) == ["63", "0"]  # and not used where it is stale
