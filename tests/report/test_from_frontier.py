from __future__ import annotations

import pytest

import evenhand
from evenhand.report.render import render
from factories import make_people


@pytest.mark.parametrize(
    ("policies", "counted"), [("networks", "people seen in training"), ("trees", "rounds of trees")]
)
def test_a_curve_says_what_its_steps_are(policies, counted):
    frontier = evenhand.explore(
        make_people(), label="hired", sensitive="sex", weights=(0, 1), epochs=2, policies=policies, n_jobs=1
    )
    summary = frontier.summary()
    [curve] = summary["studies"][0]["convergence"]
    assert curve["counted"] == counted
    assert f'<th scope="col">{counted}</th>' in render(summary)


def test_a_fit_says_once_where_the_model_was_chosen_and_names_groups_with_their_column():
    people = make_people()
    people["sex"] = (people["sex"] == people["sex"].iloc[0]).astype(int)
    frontier = evenhand.explore(
        people, label="hired", sensitive="sex", weights=(0, 1), epochs=2, policies="networks", n_jobs=1
    )
    assert "sensitive 'sex' (sex = " in repr(frontier)
    [study] = frontier.summary()["studies"]
    page = render(frontier.summary()).partition('<script type="application/json"')[0]
    assert page.count("hosen on the validation part") == 1
    assert "Every number here is from the test part, except in training curves." in page
    assert (
        "between sex = 0 and sex = 1 by" in study["sentence"]
        or "between sex = 1 and sex = 0 by" in study["sentence"]
    )
    assert [model["name"] for model in study["submodels"][:2]] == [
        "the policy of sex = 0",
        "the policy of sex = 1",
    ]
