"""Rare labels: the threshold that decisions are made at, and models that are no constants."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evenhand
from evenhand.metrics import calibration_error
from evenhand.tables import load_table
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split
from evenhand.workflow.rare import settle_threshold
from factories import evenhand as command
from factories import make_people, make_rare

ROLES = {"label": "hired", "sensitive": "sex"}
SMALL = {"weights": [0, 20], "policies": "networks", "n_jobs": 1}


@pytest.fixture(scope="module")
def people():
    return make_rare()


@pytest.fixture(scope="module")
def frontier(people):
    return evenhand.explore(people, **ROLES, **SMALL)


def parts_of(people):
    dataset = load_table(people, **ROLES)
    return prepare(dataset, split(dataset, seed=0, stratify="both"))


def test_the_model_chosen_for_a_rare_label_is_no_constant(frontier):
    choice = frontier.choice()
    assert choice.criterion == "balanced_even"
    assert choice.test["balanced_accuracy"]["value"] > 0.75
    assert choice.same_answer < 0.95
    assert frontier.choice(max_flip=0.5).criterion == "balanced_accuracy"
    assert "balanced accuracy" in frontier._repr_html_()
    assert choice.model.card["model"]["chosen by"] == "balanced_even"


def test_all_that_decides_uses_the_one_threshold(frontier, people, tmp_path):
    model = evenhand.load(frontier.model.save(tmp_path / "m.skops"))
    assert model.threshold == pytest.approx(0.05, abs=0.005)
    assert model.card["model"]["threshold"] == model.threshold
    assert "threshold 0.05" in repr(model)
    by_group = model.probabilities_by_group(people)[..., 1] >= model.threshold
    own = by_group[np.arange(len(people)), (people["sex"] == "m").astype(int)]
    decided = model.decide(people)
    np.testing.assert_array_equal(decided.decision == "yes", own)
    np.testing.assert_array_equal(model.predict(people) == "yes", own)
    np.testing.assert_array_equal(decided.would_flip, by_group[:, 0] != by_group[:, 1])
    for pos_label, bar in (("yes", model.threshold), ("no", 1 - model.threshold)):
        found = evenhand.audit(
            model,
            people.drop(columns="hired"),
            people["hired"],
            sensitive_features="sex",
            pos_label=pos_label,
        )
        assert found.value("flip_rate") == decided.would_flip.mean()
        assert found.value("positive_rate") == np.mean(own == (pos_label == "yes"))
        assert found.about["threshold"] == pytest.approx(bar)
        assert f"A score of {bar:g} or more is the decision" in found.summary()
        assert len(found.thresholds) > 10


def test_parity_holds_at_the_threshold(frontier):
    table = frontier.candidates.set_index("name")
    assert table.loc["λ = 0", "discrimination"] > 0.1
    assert table.loc["λ = 0, with parity", "discrimination"] < 0.06
    assert table.loc["λ = 0, with parity", "balanced_accuracy"] > 0.75


def test_a_threshold_leaves_probabilities_as_they_are(frontier, people):
    plain = evenhand.explore(people, **ROLES, **SMALL, threshold=0.5)
    assert plain.notes == frontier.notes[:-1]
    for mine, other in zip(frontier.trained[:2], plain.trained[:2], strict=True):  # those without parity
        said = [one.model.probabilities_by_group(frontier.parts.test.X) for one in (mine, other)]
        np.testing.assert_array_equal(*said)
    test = people.iloc[frontier.test_rows]
    for model in (frontier.model, plain.model):
        assert calibration_error(test["hired"], model.predict_proba(test), pos_label="yes") < 0.03


@pytest.mark.parametrize("positive", ["yes", "no"])  # the second label, and the first
def test_the_share_of_either_label_can_be_the_threshold(people, positive):
    one = evenhand.explore(people, **ROLES, **SMALL, positive=positive).choice()
    assert one.model.threshold == pytest.approx(0.05 if positive == "yes" else 0.95, abs=0.005)
    assert one.test["balanced_accuracy"]["value"] > 0.75
    assert one.candidate.validation["discrimination"]["value"] < 0.06


def test_a_threshold_is_chosen_only_where_it_is_needed():
    assert settle_threshold(None, parts_of(make_people())) == (None, [])  # no label is rare
    certain = make_rare(share=0.15).assign(skill=lambda table: 3 * (table["hired"] == "yes") + table["skill"])
    assert settle_threshold(None, parts_of(certain)) == (None, [])  # it is rare, and found at 0.5
    bar, notes = settle_threshold(None, parts_of(make_rare()))
    assert bar == pytest.approx(0.05, abs=0.005)
    assert "--threshold 0.5" in notes[0]
    bar, notes = settle_threshold("balanced", parts_of(make_people()))
    assert 0.4 < bar < 0.7
    assert "--threshold" not in notes[0]


def test_what_is_no_threshold_is_an_error(people):
    three = people.assign(hired=np.where(people["skill"] > 1, "perhaps", people["hired"]))
    for table, threshold, message in (
        (people, 1.5, "Got threshold=1.5, but expected a finite number above 0 and at most 1"),
        (people, "even", "Got threshold='even', but expected a finite number"),
        (three, "balanced", "Got threshold='balanced' for 3 labels, but a threshold is for two labels"),
    ):
        with pytest.raises(ValueError, match=message):
            evenhand.explore(table, **ROLES, **SMALL, threshold=threshold)
    with pytest.raises(ValueError, match=r"Got threshold=0\.2 for 3 labels"):
        evenhand.CooperativeBandits(reward=evenhand.Likelihood() + evenhand.Parity(threshold=0.2)).fit(
            three[["skill"]], three["hired"], sensitive_features=three["sex"]
        )


def test_the_command_takes_a_threshold_and_shows_balanced_accuracy(people, tmp_path):
    people.to_csv(tmp_path / "p.csv", index=False)
    fit = ("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
           "--weights", "20", "--policies", "networks", "--jobs", "1")  # fmt: skip
    out = command(*fit, "--criterion", "balanced_accuracy")
    assert "balanced accuracy" in out.stdout
    assert "The decision is 'yes' if its probability is at least 0.05" in " ".join(out.stderr.split())
    document = json.loads(command(*fit, "--threshold", "0.2", "--json").stdout)
    assert document["threshold"] == 0.2
    assert evenhand.load(tmp_path / "m.skops").threshold == 0.2
    out = command(*fit, "--threshold", "low", code=2)
    assert "Got --threshold 'low', but expected 'balanced' or a number" in out.stderr
