from __future__ import annotations

import numpy as np
import pytest

import evenhand
from evenhand.report.render import render
from factories import make_people, make_rare


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


def test_a_rare_label_is_chosen_and_drawn_by_balanced_accuracy_and_the_page_says_so():
    frontier = evenhand.explore(
        make_rare(1000),
        label="hired",
        sensitive="sex",
        weights=(0, 5),
        epochs=1,
        policies="networks",
        n_jobs=1,
    )
    summary = frontier.summary(max_discrimination=1)
    [study] = summary["studies"]
    by = "the highest balanced accuracy among the models of networks with discrimination ≤ 1"
    assert (frontier.rare, study["upwards"], study["chosen_by"]) == (True, "balanced_accuracy", by)
    page = render(summary)
    assert f"It was chosen on the validation part by <bdi>{by}</bdi>, and decides" in page
    assert ">Balanced accuracy against <span" in page
    assert "on the Pareto front of balanced accuracy and discrimination." in page
    assert frontier.plot().layout.yaxis.title.text == "balanced accuracy"
    best = max(study["models"], key=lambda one: one["metrics"]["balanced_accuracy"]["value"])
    assert best["front"]


def test_the_headline_says_that_tiny_groups_are_filled_up():
    people = make_people(600).drop(columns="sex")
    people["town"] = np.where(np.arange(600) % 60 == 0, "Uri", np.where(np.arange(600) % 2, "Bern", "Zug"))
    given = {"label": "hired", "weights": (0,), "epochs": 1, "policies": "networks", "n_jobs": 1}
    [study] = evenhand.explore(people, sensitive="town", **given).summary()["studies"]
    assert ", with groups of fewer than 20 people filled up to as many;" in study["sentence"]
    people = people[people["town"] != "Uri"]
    [study] = evenhand.explore(people, sensitive="town", **given).summary()["studies"]
    assert "filled up" not in study["sentence"]
