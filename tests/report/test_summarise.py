from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.summarise import (
    check_summary,
    group_rows,
    mark_front,
    model_of,
    persons,
    read_summary,
    sentence,
    write_summary,
)  # fmt: skip


def _point(accuracy, discrimination):
    return model_of("m", {"accuracy": {"value": accuracy}, "discrimination": {"value": discrimination}})


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_the_front_is_what_nobody_beats(points):
    marked = mark_front([_point(a, d) for a, d in points])
    for (a, d), model in zip(points, marked, strict=True):
        beaten = any((x >= a and z <= d) and (x > a or z < d) for x, z in points)
        assert model["front"] == (not beaten)


def test_a_model_without_numbers_is_on_no_front():
    assert [m["front"] for m in mark_front([_point(None, 0.1), _point(0.5, 0.1)])] == [False, True]


def test_each_family_of_grid_points_has_a_front_of_its_own(comparison):
    points = comparison["studies"][0]["points"]
    assert [point["front"] for point in points] == [True, True, False, True, True]
    assert comparison["studies"][0]["sentence"] == "A sentence of its own."


def test_a_summary_survives_the_disk(summary, tmp_path):
    path = write_summary(summary, tmp_path / "s.json")
    assert read_summary(path) == json.loads(json.dumps(summary))
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_the_sentence_has_numbers_and_intervals_and_warns_of_constants():
    found = {
        "accuracy": {"value": 0.831, "low": 0.82, "high": 0.84},
        "discrimination": {"value": 0.004, "low": 0.001, "high": 0.02},
        "flip_rate": {"value": 0.002, "low": None, "high": None},
        "positive_rate": {"value": 0.5},
    }
    study = {"pos_label": "yes", "models": [model_of("M", found, chosen=True)]}
    text = sentence(study)
    assert "83.1 % (82.0 to 84.0)" in text
    assert "0.4 points (0.1 to 2.0)" in text
    assert "0.2 % would be" in text
    assert "95 % intervals" in text
    assert "Beware" not in text
    found["positive_rate"] = {"value": 0.999}
    assert "99.9 % the same answer" in sentence(study)
    assert sentence({"pos_label": "yes", "models": []}) == ""


def test_groups_are_counted():
    own = np.array([0, 0, 0, 1, 1])
    rows = group_rows(["y", "n", "y", "n", "n"], ["y", "y", "n", "n", "n"], own, ["a", "b", "nobody"], "y")
    assert [row["group"] for row in rows] == ["a", "b"]
    assert rows[0]["positive_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["base_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["true_positive_rate"]["value"] == 0.5
    assert rows[1]["true_positive_rate"]["value"] is None


def test_persons_come_with_those_who_flip_first_then_the_largest_gap():
    said = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.45, 0.55], [0.55, 0.45]], [[0.5, 0.5], [0.5, 0.5]]])
    found = persons(
        pd.DataFrame({"age": [1.5, np.nan, 3.0]}), said, np.array([0, 1, 0]), groups=["f", "m"],
        labels=["no", "yes"], pos_label="yes", limit=2, numbers=[10, 20, 30],
    )  # fmt: skip
    assert [row["person"] for row in found["rows"]] == [21, 11]
    assert found["rows"][0]["decisions"] == ["yes", "no"]
    assert found["rows"][0]["flips"]
    assert found["rows"][0]["features"] == [None]
    assert (found["people"], found["flips"]) == (3, 1)


def test_what_is_no_summary_is_refused(summary):
    with pytest.raises(ValueError, match="schema None"):
        check_summary({})
    with pytest.raises(ValueError, match="schema 'list'"):
        check_summary([])
    for missing in ("title", "studies", "made"):
        with pytest.raises(ValueError, match=f"no '{missing}'"):
            check_summary({name: part for name, part in summary.items() if name != missing})
    study = {name: part for name, part in summary["studies"][0].items() if name != "groups"}
    with pytest.raises(ValueError, match="study 1 has no 'groups'"):
        check_summary(summary | {"studies": [study]})
    with pytest.raises(ValueError, match="without name or metrics"):
        check_summary(summary | {"studies": [summary["studies"][0] | {"models": [{"name": "x"}]}]})
