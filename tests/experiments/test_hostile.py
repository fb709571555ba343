"""A stranger's input: nothing crashes, nothing ends in a traceback, nobody is decided about by NaN."""

from __future__ import annotations

import hostile
import numpy as np
import pytest
import reliability

GOOD = {hostile.WORKED, hostile.REFUSED}


def test_sparse_parts_that_do_not_fit_are_refused() -> None:
    found = reliability.try_csr(1500, seed=0)
    assert set(found) == GOOD, found
    assert found.total() == 1500


@pytest.mark.slow
def test_damaged_models_are_refused_or_decide_by_numbers() -> None:
    found = reliability.try_models(100, seed=0)
    assert set(found) == GOOD, found


@pytest.mark.slow
def test_damaged_tables_lose_their_rows_at_most() -> None:
    found = reliability.try_tables(40, seed=0)
    assert set(found) <= GOOD, found


def test_the_harness_sees_what_it_looks_for() -> None:
    def work(item: str) -> None:
        if item == "crash":
            np.ctypeslib.ctypes.string_at(0)
        if item == "bug":
            raise KeyError(item)
        if item == "nan":
            raise hostile.NotFiniteError

    found = hostile.tried(work, ["fine", "crash", "bug", "fine", "nan", "crash"])
    assert found == {hostile.WORKED: 2, hostile.CRASH: 2, hostile.TRACEBACK: 1, hostile.SILENT_NAN: 1}
