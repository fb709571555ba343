from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.summarise import mark_front, model_of, sentence


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


def test_the_front_can_be_that_of_another_measure():
    both = [("a", 0.9, 0.5), ("b", 0.5, 0.9)]
    models = [
        model_of(
            name,
            {"accuracy": {"value": a}, "balanced_accuracy": {"value": b}, "discrimination": {"value": 0.1}},
        )
        for name, a, b in both
    ]
    assert [m["front"] for m in mark_front(models)] == [True, False]
    assert [m["front"] for m in mark_front(models, "balanced_accuracy")] == [False, True]


def test_each_family_of_grid_points_has_a_front_of_its_own(comparison):
    points = comparison["studies"][0]["points"]
    assert [point["front"] for point in points] == [True, True, False, True, True]
    assert comparison["studies"][0]["sentence"] == "A sentence of its own."


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
    assert "“M” is correct for 83.1 %" in text
    assert "of the test set" in text
    assert "0.2 % would get a different decision in another group" in text
    assert "95 % intervals" in text
    assert "Beware" not in text
    found["positive_rate"] = {"value": 0.999}
    assert "99.9 % the same answer" in sentence(study)
    assert "of these people" in sentence(study, audited=True)
    assert sentence({"pos_label": "yes", "models": []}) == ""


def test_groups_are_named_only_where_they_differ():
    found = {"accuracy": {"value": None}, "discrimination": {"value": 0.0, "low": None, "high": None}}
    study = {"pos_label": "yes", "sensitive": "sex", "models": [model_of("M", found, chosen=True)]}
    for least, most, between in [
        ("a", "a", "groups"),
        ("", "b", " and b"),
        ("0", "1", "sex = 0 and sex = 1"),
    ]:
        study["widest"] = {"label": "yes", "least": least, "most": most}
        assert f"differs between {between} by 0.0 points" in sentence(study).replace("The", "the")
    study["models"] = [model_of("M", {"accuracy": {"value": None, "low": 0.1}}, chosen=True)]
    assert sentence(study) == ""
