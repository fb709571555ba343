from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.auditing import audit
from evenhand.auditing.near_copies import near_copies

RNG = np.random.default_rng(0)
N = 400
SCORE = RNG.random(N)
DECIDED = np.where(SCORE > 0.6, "yes", "no")


@pytest.mark.parametrize(
    ("column", "tells"),
    [
        (SCORE, True),
        (-SCORE, True),
        (np.where(np.arange(N) < 3, 0.0, SCORE), True),  # but for a few
        (np.where(DECIDED == "yes", "Approved", "Denied"), True),
        (SCORE > 0.6, True),
        (pd.Timestamp("2020-01-01") + pd.to_timedelta(SCORE, unit="D"), True),
        (np.where(RNG.random(N) < 0.05, RNG.random(N), SCORE), False),
        (RNG.random(N), False),
        (np.arange(N), False),
        ([f"person {i}" for i in range(N)], False),
        (np.full(N, np.nan), False),
    ],
)
def test_what_tells_the_decision(column: object, tells: bool) -> None:
    assert near_copies(pd.DataFrame({"it": column}), DECIDED) == (["it"] if tells else [])


def test_where_nearly_all_are_decided_alike_saying_so_tells_nothing() -> None:
    decided = np.where(np.arange(N) < 2, "yes", "no")
    assert near_copies(pd.DataFrame({"job": ["cook", "clerk"] * (N // 2)}), decided) == []
    assert near_copies(pd.DataFrame({"score": SCORE}), np.full(N, "no")) == []


def test_the_audit_of_decisions_notes_them() -> None:
    X = pd.DataFrame({"score": SCORE, "age": RNG.integers(20, 60, N)})
    found = audit(DECIDED, X, DECIDED, sensitive_features=["f", "m"] * (N // 2), n_bootstrap=20)
    assert any("can be predicted almost perfectly from 'score'. If" in note for note in found.notes)
