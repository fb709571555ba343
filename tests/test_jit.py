from __future__ import annotations

import pytest

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
