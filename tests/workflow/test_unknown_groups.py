"""People of unknown group, small groups that were merged, and one policy for everyone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand.workflow.deciding import decide_file
from factories import evenhand as command
from factories import make_people


@pytest.fixture(scope="module")
def model():
    people = make_people()
    options = {"label": "hired", "sensitive": "sex", "categorical": "branch"}
    return evenhand.explore(people, **options, weights=[0], epochs=10, n_jobs=1).choose(criterion="accuracy")


@pytest.fixture
def people():
    table = make_people(200, seed=1)
    table.loc[:99, "sex"] = (["?", "unknown", None, "x"] * 25)[:100]
    return table


def test_the_mean_of_all_policies_decides_those_of_unknown_group(model, people):
    said = model.probabilities_by_group(people)
    found = model.decide(people, unknown_group="mean")
    assert found.scored.all()
    np.testing.assert_array_equal(found.by == "own policy", people.index >= 100)
    expected = model.classes_[said.mean(axis=1).argmax(axis=1)]
    np.testing.assert_array_equal(found.decision[:100], expected[:100])
    known = model.decide(people.tail(100))
    for name in ("decision", "probability", "would_flip"):
        np.testing.assert_array_equal(getattr(found, name)[100:], getattr(known, name))
    apart = said.argmax(axis=2)[:, 0] != said.argmax(axis=2)[:, 1]
    np.testing.assert_array_equal(found.would_flip, apart)
    assert 0 < apart[:100].sum() < 100


def test_or_only_where_all_policies_agree(model, people):
    said = model.probabilities_by_group(people).argmax(axis=2)
    found = model.decide(people, unknown_group="agree")
    agree = said[:, 0] == said[:, 1]
    np.testing.assert_array_equal(found.scored, agree | (people.index >= 100))
    assert set(found.reasons[~found.scored]) == {"unknown group, and the groups' policies disagree"}
    np.testing.assert_array_equal(
        found.decision[found.by != "own policy"], model.classes_[said[:, 0]][:100][agree[:100]]
    )
    assert (~model.decide(people).scored).sum() == 100
    with pytest.raises(ValueError, match="Got unknown_group='guess', but expected one of 'reject', 'mean'"):
        model.decide(people, unknown_group="guess")


def test_a_file_without_the_sensitive_column_can_be_decided(model, people, tmp_path):
    people.drop(columns="sex").to_csv(tmp_path / "p.csv", index=False)
    found = decide_file(model, tmp_path / "p.csv", unknown_group="mean")
    assert (found.decided, found.by_rule, found.rejected) == (200, 200, 0)
    assert found.notes == ["200 people of unknown group: decided by the mean of all policies."]
    written = pd.read_csv(tmp_path / "p.decided.csv")
    assert set(written["decided_by"]) == {"all policies: mean"}


def test_compress_is_on_the_command_line_and_on_loaded_models(model, people, tmp_path):
    model.save(tmp_path / "m.skops")
    command("compress", tmp_path / "m.skops", "--group", "f", "-o", tmp_path / "f.skops")
    single = evenhand.load(tmp_path / "f.skops")
    everybody = people.drop(columns="sex")
    decided = single.decide(everybody)
    np.testing.assert_array_equal(
        decided.decision, model.classes_[model.probabilities_by_group(people)[:, 0].argmax(1)]
    )
    np.testing.assert_array_equal(single.predict(everybody), decided.decision)
    assert not decided.would_flip.any()
    assert "not used" in repr(single)
    assert single.card["metrics"] == {}
    out = command("compress", tmp_path / "m.skops", "--group", "g", "-o", tmp_path / "g.skops", code=2)
    assert "Got group='g', but fit saw only 'f', 'm'." in out.stderr


def test_members_of_merged_and_unknown_groups_find_their_policy(tmp_path):
    people = make_people(300)
    people.loc[:5, "sex"], people.loc[6:9, "sex"], people.loc[10:30, "sex"] = "x", "y", "?"
    people.to_csv(tmp_path / "p.csv", index=False)
    frontier = evenhand.explore(
        people, label="hired", sensitive="sex", merge_small="other", unknown="keep", min_group=20,
        weights=[0], epochs=1, n_jobs=1,
    )  # fmt: skip
    frontier.model.save(tmp_path / "m.skops")
    model = evenhand.load(tmp_path / "m.skops")
    assert model.groups_.tolist() == ["f", "m", "other", "unknown"]
    own = model.decide(people).answers.own
    np.testing.assert_array_equal(own[:31], [2] * 10 + [3] * 21)
    out = command("audit", tmp_path / "p.csv", "--model", tmp_path / "m.skops", "--min-group", 5)
    assert "The model has seen these people" in out.stdout


def test_an_empty_group_is_called_empty(model, people):
    rows = people[:4].assign(sex=["f", None, " ", "x"])
    reasons = model.decide(rows).reasons.tolist()
    assert reasons[0] == ""
    assert reasons[1] == reasons[2] == "'sex' is empty; training had only 'f', 'm'"
    assert reasons[3] == "group 'x' in 'sex': training had only 'f', 'm'"
