from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.auditing import Audit, audit
from factories import make_arrays

SKILLS, Y, MEN = make_arrays(300, groups=(0, 1), labels=(0, 1))
X = pd.DataFrame({"man": MEN, "skill": SKILLS[:, 0]})


@pytest.fixture(scope="module")
def found() -> Audit:
    return audit(LogisticRegression().fit(X, Y), X, Y, sensitive_features="man", n_bootstrap=50)


def test_the_summary_says_what_was_measured_and_gives_no_verdict(found: Audit) -> None:
    text = found.summary()
    for word in ("fair", "bias", "discriminat", "good", "pass"):
        assert word not in text.lower()
    flips, points = found.row("flip_rate"), found.row("discrimination")
    assert f"{100 * flips['value']:.1f} % ({100 * flips['low']:.1f} to {100 * flips['high']:.1f})" in text
    assert f"{100 * points['value']:.1f} points" in text
    assert "300 people in 2 groups" in text
    assert repr(found).startswith("<Audit of 300 people in 2 groups>")


def test_dict_json_and_frame_hold_the_same(found: Audit, tmp_path: Path) -> None:
    as_dict = found.to_dict()
    assert json.loads(found.to_json(tmp_path / "audit.json")) == json.loads(json.dumps(as_dict))
    assert json.loads((tmp_path / "audit.json").read_text(encoding="utf-8")) == as_dict
    assert list(as_dict) == [
        "about",
        "summary",
        "notes",
        "metrics",
        "people",
        "neighbours",
        "subgroups",
        "thresholds",
        "twins",
        "worst",
        "search",
    ]
    frame = found.to_frame()
    assert list(frame.columns) == ["metric", "group", "value", "low", "high", "people"]
    assert len(frame) == len(as_dict["metrics"])
    flips = next(row for row in as_dict["metrics"] if row["metric"] == "flip_rate" and row["group"] is None)
    assert flips["value"] == found.value("flip_rate")
    largest = next(row for row in as_dict["metrics"] if row["metric"] == "gap_maximum_kl")
    assert largest["low"] is None  # NaN is no JSON


def test_frames_hold_positions_and_what_people_read_counts_from_one(found: Audit) -> None:
    as_dict = found.to_dict()
    assert [person["person"] for person in as_dict["people"]] == (found.people.index + 1).tolist() != []
    for name in ("person", "neighbour"):
        assert [pair[name] for pair in as_dict["neighbours"]] == (found.neighbours[name] + 1).tolist() != []


def test_a_feature_may_be_called_person() -> None:
    named = X.rename(columns={"skill": "person"})
    found = audit(LogisticRegression().fit(named, Y), named, Y, sensitive_features="man", n_bootstrap=50)
    for person in found.to_dict()["people"]:
        assert person["person "] == named["person"][person["person"] - 1]


def test_the_frame_is_a_copy(found: Audit) -> None:
    frame = found.to_frame()
    frame["value"] = 0
    assert found.value("accuracy") > 0


def test_notes_are_added_to_a_copy(found: Audit) -> None:
    more = found.with_notes("One.", "Two.")
    assert more.notes == [*found.notes, "One.", "Two."]
    assert more.summary().endswith("Note: One.\nNote: Two.")
    assert "One." not in found.summary()


def test_an_unknown_metric_lists_the_known(found: Audit) -> None:
    with pytest.raises(KeyError, match="Got metric 'flips' of group None, but measured were accuracy"):
        found.value("flips")


def test_one_group_is_said(found: Audit) -> None:
    alone = audit(Y, X[["skill"]], Y, sensitive_features=["all"] * 300, n_bootstrap=20)
    assert "There is only one group" in alone.summary()


def test_names_that_are_no_json_become_text() -> None:
    day = pd.Timestamp("2020-01-01")
    groups: Any = [day] * 150 + [pd.Timestamp("2021-01-01")] * 150
    as_json = audit(Y, X[["skill"]], Y, sensitive_features=groups, n_bootstrap=20).to_json()
    assert "2020-01-01 00:00:00" in json.loads(as_json)["about"]["groups"]


def test_a_notebook_shows_words_and_measures(found: Audit) -> None:
    page = found._repr_html_()
    assert page.count("<li>") == len(found.summary().splitlines())
    assert "<td>flip_rate</td>" in page
    hostile = found.with_notes("<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in hostile
