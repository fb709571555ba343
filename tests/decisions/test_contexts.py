"""One way of writing a context, whatever types it came with."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

import numpy as np
import pandas as pd
import pytest

from evenhand.decisions.contexts import as_text


class Job(StrEnum):
    CLERK = "clerk"


@pytest.mark.parametrize(
    "value, text",
    [
        (1, "1"),
        (1.0, "1"),
        (np.float32(1), "1"),
        (np.int64(1), "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (True, "true"),
        (np.True_, "true"),
        (None, "null"),
        (float("nan"), "null"),
        (np.float64("nan"), "null"),
        (pd.NaT, "null"),
        (pd.NA, "null"),
        ("é\x00", '"\\u00e9\\u0000"'),
        (Job.CLERK, '"clerk"'),
        (np.str_("clerk"), '"clerk"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (pd.Timestamp("2026-01-02"), '"2026-01-02T00:00:00"'),
        ([np.float64(0.5), None], "[0.5,null]"),
        (np.array([0.5, 2.0]), "[0.5,2]"),
    ],
)
def test_values(value, text):
    assert as_text({"a": value}) == f'{{"a":{text}}}'


@pytest.mark.parametrize("value", [float("inf"), np.float64("-inf"), object(), 1j, b"x", "\ud800", {1}])
def test_what_is_no_value(value):
    with pytest.raises(ValueError, match="Got"):
        as_text({"a": value})
