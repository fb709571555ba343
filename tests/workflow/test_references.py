from __future__ import annotations

import numpy as np

from evenhand import explore
from factories import make_people


def test_many_categories_are_no_reason_for_a_warning_of_lightgbm(capfd):
    people = make_people(300)
    people["town"] = np.random.default_rng(0).integers(0, 60, 300).astype(str) + " town"
    frontier = explore(people, label="hired", sensitive="sex", weights=[0], epochs=0.1, n_jobs=1)
    trees = next(one for one in frontier.blind if "trees" in one.name)
    assert frontier.tested(trees)["accuracy"]["value"] > 0.5
    said = capfd.readouterr()
    assert "Converting" not in said.out + said.err
