"""People as plain values are encoded as a table of them would be, bit for bit."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.fixes import parse_version

from evenhand.tables import plain_rows
from evenhand.tables.matching import read_contexts
from evenhand.tables.plain_rows import PlainRows, same_features
from evenhand.tables.preprocessing import encode, make_preprocessor

KINDS = {
    "job": "category", "code": "category", "member": "category", "town": "category", "pay": "number",
    "years": "number", "born": "%d.%m.%Y", "since": "ISO8601",
}  # fmt: skip


def trained(sparse):
    rng = np.random.default_rng(0)
    n = 500
    towns = [f"town {int(at)}" for at in rng.exponential(40, n)]  # more than 100: the rarest share a column
    people = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "baker ", "missing"], n), "code": rng.choice(["1", "02", "7"], n),
            "member": rng.choice(["True", "False"], n), "town": towns if sparse else rng.choice(["a", "b"], n),
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(8, 1, n)), "years": rng.integers(0, 40, n),
            "born": rng.integers(-9000, 9000, n).astype(float), "since": np.full(n, 3.0),
        }
    )  # fmt: skip
    return make_preprocessor(people).fit(people)


PREPROCESSORS = [trained(False), trained(True)]


def by_table(preprocessor, people):
    frame = pd.DataFrame(people, columns=list(KINDS), dtype=object)
    reasons = np.full(len(people), "", dtype=object)
    return encode(preprocessor, read_contexts(frame, KINDS, preprocessor, reasons)), reasons


numbers = st.none() | st.integers(-(2**54), 2**54) | st.floats(-1e6, 1e6) | st.floats(allow_nan=False)
words = st.sampled_from(
    [
        "clerk",
        "baker",
        " baker ",
        "1",
        "1.0",
        "2",
        "02",
        "true",
        "TRUE",
        "town 3",
        "",
        "NA",
        "?",
        "missing",
        "a,b",
    ]
)
values = (
    words | st.text(max_size=4) | st.booleans() | numbers.map(lambda n: n if n is None or n % 1 else int(n))
)
days = st.dates(date(1650, 1, 1), date(2300, 1, 1))
dates = (
    st.none() | days.map(lambda day: day.strftime("%d.%m.%Y")) | st.sampled_from(["1.2.1980", "31.02.1980"])
)
isos = st.none() | days.map(str) | st.sampled_from(["2020-02-30", "2020-01-01T12:00", "?"])
people = st.fixed_dictionaries(
    dict.fromkeys(list(KINDS)[:4], values)
    | {"pay": st.one_of(numbers, numbers, numbers, words), "years": numbers, "born": dates, "since": isos}
)


@settings(max_examples=100)
@given(some=st.lists(people, min_size=1, max_size=3), sparse=st.booleans())
def test_the_same_as_a_table(some, sparse):
    preprocessor = PREPROCESSORS[sparse]
    assert preprocessor.sparse_output_ is sparse
    found = ROWS[sparse].encode(some)
    if found is not None:
        wanted, reasons = by_table(preprocessor, some)
        assert not (reasons != "").any()
        assert same_features(found, wanted)


ROWS = [PlainRows(KINDS, one) for one in PREPROCESSORS]
USUAL = {
    "job": "clerk", "code": 2, "member": True, "town": "town 1", "pay": 1234.5, "years": None, "born": "01.02.1980",
    "since": "2020-12-31",
}  # fmt: skip


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="older scikit-learn rounds otherwise, so that people are read by tables",
)
@pytest.mark.parametrize("rows", ROWS)
def test_usual_people_need_no_table(rows):
    assert rows.encode([USUAL, {**USUAL, "born": None, "town": "elsewhere", "pay": 7}]) is not None
    for odd in ({"pay": "7"}, {"pay": True}, {"pay": 10**400}, {"job": ["clerk"]}, {"born": "1.2.1980"}):
        assert rows.encode([USUAL, {**USUAL, **odd}]) is None


def test_a_library_that_rounds_otherwise_is_noticed(monkeypatch):
    def otherwise(preprocessor, contexts):
        features = encode(preprocessor, contexts)
        features[5, 0] = np.nextafter(features[5, 0], np.float32(9))
        return features

    monkeypatch.setattr(plain_rows, "encode", otherwise)
    assert PlainRows(KINDS, PREPROCESSORS[0]).encode([USUAL]) is None
