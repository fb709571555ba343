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
