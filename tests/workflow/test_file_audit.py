from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits, audit, explore, load, save, tabular
from evenhand.progress import Progress
from evenhand.workflow import persistence
from evenhand.workflow.file_audit import audit_file
from evenhand.workflow.prediction_column import added_by_predict
from evenhand.workflow.table import NoUsableRowsError
from factories import evenhand, growth, make_people


class Heard(Progress):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)

    def start(self, what, total=None, work=None):
        self.said.append(what)


def test_it_finds_what_the_command_finds(fitted):
    found = audit_file(fitted.people, model=fitted.model, n_listed=500)
    told = json.loads(evenhand("audit", fitted.people, "--model", fitted.model, "--json").stdout)
    assert json.loads(json.dumps(found.audit.to_dict(), default=str)) == {
        name: value for name, value in told.items() if name != "written"
    }
    assert (found.label, found.sensitive) == ("hired", "sex")
    assert found.source["people"] == 400


def test_a_model_at_hand_decides_as_its_file(fitted):
    one, two = (audit_file(fitted.people, model=model) for model in (fitted.model, load(fitted.model)))
    pd.testing.assert_frame_equal(one.audit.metrics, two.audit.metrics)


def test_without_a_model_no_gap_is_filled(tmp_path):
    people = make_people(60)
    people.loc[:4, "skill"] = np.nan
    people.to_csv(tmp_path / "p.csv", index=False)
    found = audit_file(tmp_path / "p.csv", predictions="hired", sensitive=["sex"])
    assert "Values are missing in 'skill' (6)." in found.audit.notes


def test_few_people_are_audited_without_neighbours(fitted, tmp_path):
    pd.read_csv(fitted.people).head(3).to_csv(tmp_path / "p.csv", index=False)
    found = audit_file(tmp_path / "p.csv", model=fitted.model).audit
    assert found.about["people"] == 3
    assert "Neighbours were left out: 5 are too many for 3 people." in found.notes


def test_decisions_in_a_column_and_what_is_said_meanwhile(fitted):
    heard = Heard()
    found = audit_file(fitted.people, predictions="hired", label="hired", sensitive=["sex"], progress=heard)
    assert found.audit.value("accuracy") == 1
    assert heard.said[0].startswith("Dataset 'people' (400 people")
    assert heard.said[1] == "Measuring"


def test_a_tabular_model_is_audited_on_the_file_and_on_the_frame_alike(tmp_path):
    people = make_people(200)
    X, y, s = people.drop(columns=["hired", "sex"]), people["hired"], people["sex"]
    model = tabular(CooperativeBandits(1.0, epochs=3, random_state=0), categorical="branch")
    save(model.fit(X, y, sensitive_features=s), tmp_path / "m.skops")
    people.to_csv(tmp_path / "p.csv", index=False)
    columns = {"label": "hired", "sensitive": ["sex"], "categorical": ["branch"]}
    found = audit_file(tmp_path / "p.csv", model=tmp_path / "m.skops", **columns)
    direct = audit(model, X, y, sensitive_features=s)
    for metric in ("accuracy", "discrimination", "flip_rate"):
        assert found.audit.value(metric) == direct.value(metric)


def test_nobody_to_audit_and_nothing_to_audit_with(fitted, tmp_path):
    make_people(20).assign(sex="x").to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(NoUsableRowsError, match=r"None of the 20 rows .* can be audited: group 'x'"):
        audit_file(tmp_path / "p.csv", model=fitted.model)
    with pytest.raises(ValueError, match="Got neither of model and predictions"):
        audit_file(fitted.people)
    with pytest.raises(ValueError, match="Got both of model and predictions") as both:
        audit_file(fitted.people, model=fitted.model, predictions="hired")
    assert "To audit the labels" not in str(both.value)
    with pytest.raises(ValueError, match=r"has no such column. Its columns: 'skill', .*'hired'"):
        audit_file(fitted.people, sensitive="sex", predictions="x")


def test_columns_that_predict_added_are_found_in_linear_time():
    """Also where many look like some: every name was compared with every other."""

    def find(size):
        names = [f"{column}{what}" for column in range(size) for what in ("", "would_flip")]
        made = [f"new_{what}" for what in ("decision", "probability", "probability_as_f", "would_flip")]
        assert added_by_predict(pd.DataFrame(columns=[*names, *made, "new_probably"])) == made

    assert growth(find, 250) < 60


def test_a_model_larger_than_the_limit_is_refused_and_an_option_raises_it(fitted, monkeypatch, tmp_path):
    check = persistence._check_sizes
    # As if the file held 1 GiB more than it does.
    monkeypatch.setattr(persistence, "_check_sizes", lambda path, most: check(path, most - (1 << 30)))
    commands = [("predict", fitted.model, fitted.people, "-o", tmp_path / "d.csv"),
                ("audit", fitted.people, "--model", fitted.model)]  # fmt: skip
    for command in commands:
        assert "--max-model-size" in evenhand(*command, code=2).stderr
        evenhand(*command, "--max-model-size", "2")


def test_a_compressed_model_is_audited_by_the_groups_of_any_column(fitted, tmp_path):
    load(fitted.model).compress("f").save(tmp_path / "f.skops")
    found = audit_file(fitted.people, model=tmp_path / "f.skops", sensitive=["sex"])
    assert found.sensitive == "sex"
    assert found.audit.about["groups"].keys() == {"f", "m"}
    assert found.audit.value("flip_rate") == 0
    # As its decisions in a column, which know of no other group.
    people = pd.read_csv(fitted.people)
    said = load(tmp_path / "f.skops").decide(people).decision
    direct = audit(said, None, people["hired"], sensitive_features=people["sex"])
    for metric in ("accuracy", "discrimination"):
        assert found.audit.value(metric) == direct.value(metric)
    out = evenhand("audit", fitted.people, "--model", tmp_path / "f.skops", "--sensitive", "sex")
    assert "no way in which a decision changes with the group" in out.stdout
    alone = evenhand("audit", fitted.people, "--model", tmp_path / "f.skops")
    assert "one policy per group" not in alone.stdout


def test_a_compressed_model_knows_the_people_it_was_made_with(fitted, tmp_path):
    load(fitted.model).compress("f").save(tmp_path / "f.skops")
    whole, one = (
        audit_file(fitted.people, model=model, sensitive=sensitive, part=part).audit.about
        for model, sensitive, part in [
            (tmp_path / "f.skops", ["sex"], "all"),
            (tmp_path / "f.skops", ["sex"], "test"),
        ]
    )
    assert whole["trained_on"] == 280
    assert "trained_on" not in one
    assert one["people"] == audit_file(fitted.people, model=fitted.model, part="test").audit.about["people"]


def test_unknown_and_small_groups_of_a_compressed_model_are_as_asked(fitted, tmp_path):
    load(fitted.model).compress("f").save(tmp_path / "f.skops")
    people = pd.read_csv(fitted.people)
    people.loc[:3, "sex"] = ["?", None, "x", "y"]
    people.to_csv(tmp_path / "p.csv", index=False)

    def groups(**options):
        done = audit_file(tmp_path / "p.csv", model=tmp_path / "f.skops", sensitive=["sex"], **options).audit
        return done.about["groups"], " ".join(done.notes)

    found, notes = groups()
    assert found.keys() == {"f", "m", "x", "y"}
    assert "2 of 400 rows are left out: unknown 'sex' (2)." in notes
    found, notes = groups(unknown="keep", merge_small="other")
    assert found.keys() == {"f", "m", "other"}
    assert found["other"] == 4
    with pytest.raises(ValueError, match=r"Got other in merge_small, which has no effect"):
        audit_file(tmp_path / "p.csv", model=tmp_path / "f.skops", merge_small="other")


@pytest.mark.parametrize(
    ("sensitive", "options"),
    [(["sex", "race"], {}), (["sex"], {"merge_small": "other", "min_group": 100})],
)
def test_people_of_unknown_group_are_recognised_as_trained_on(sensitive, options, tmp_path):
    rng = np.random.default_rng(0)
    people = make_people(500).assign(race=rng.choice(["x", "y"], 500))
    people.loc[rng.random(500) < 0.1, "sex"] = "?"
    people.to_csv(tmp_path / "p.csv", index=False)
    model = explore(
        tmp_path / "p.csv", label="hired", sensitive=sensitive, unknown="keep", weights=[1.0], epochs=2,
        policies="networks", n_jobs=1, **options,
    ).choose()  # fmt: skip
    about = audit_file(tmp_path / "p.csv", model=model).audit.about
    assert about["trained_on"] == model.card["data"]["parts"]["train"]
    assert audit_file(tmp_path / "p.csv", model=model, part="test").audit.about["people"] < 100


def test_only_people_who_are_audited_count_as_trained_on(fitted, tmp_path):
    """Whoever has no group in the column that a compressed model is audited by is left out."""
    people = pd.read_csv(fitted.people)
    people["race"] = np.where(np.arange(len(people)) % 2, "", np.where(np.arange(len(people)) % 4, "x", "y"))
    people.to_csv(tmp_path / "p.csv", index=False)
    about = audit_file(
        tmp_path / "p.csv", model=load(fitted.model).compress("f"), sensitive=["race"]
    ).audit.about
    assert about["people"] == len(people) // 2
    assert 0 < about["trained_on"] < about["people"]


def test_a_compressed_model_is_audited_with_the_checks_of_other_audits(fitted, tmp_path):
    people, model = pd.read_csv(fitted.people), load(fitted.model).compress("f")
    people["sex2"] = np.where(np.arange(len(people)) % 3, "m ", np.where(people["sex"] == "f", "F", "f"))
    people.assign(land="x").to_csv(tmp_path / "p.csv", index=False)
    notes = " ".join(audit_file(tmp_path / "p.csv", model=model, sensitive=["sex2"]).audit.notes)
    assert "blanks around" in notes
    assert "differ only in case" in notes
    with pytest.raises(ValueError, match=r"The sensitive column 'land' of .* has one value only"):
        audit_file(tmp_path / "p.csv", model=model, sensitive=["sex2", "land"])


def test_people_without_labels_are_audited_with_a_model(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.drop(columns="hired").to_csv(tmp_path / "p.csv", index=False)
    found, known = (
        audit_file(path, model=fitted.model).audit for path in (tmp_path / "p.csv", fitted.people)
    )
    assert found.value("flip_rate") == known.value("flip_rate")
    assert found.value("positive_rate") == known.value("positive_rate")
    assert "Accuracy was not measured" in found.summary()
    assert "has no column 'hired', so there are no labels to compare with." in found.summary()
    with pytest.raises(ValueError, match="has no column 'hird' to compare with. Did you mean 'hired'"):
        audit_file(fitted.people, model=fitted.model, label="hird")


def test_columns_that_a_model_lacks_are_all_named(fitted):
    model = load(fitted.model)
    people = pd.read_csv(fitted.people)
    with pytest.raises(ValueError, match=r"needs the columns 'skill', 'job', which the table does not have"):
        model.decide(people.drop(columns=["skill", "job"]))
    with pytest.raises(TypeError, match=r"Got the path 'new.csv', but expected a DataFrame"):
        model.decide("new.csv")
