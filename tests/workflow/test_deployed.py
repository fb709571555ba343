from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand import CooperativeBandits, audit, load, save
from evenhand.metrics import respond
from evenhand.tables.csv_format import MISSING_MARKS
from evenhand.tables.matching import as_labels
from evenhand.tables.preprocessing import make_preprocessor
from evenhand.workflow.deployed import Deployed


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "old": rng.choice([True, False], n),
            "group": rng.choice([0, 1], n),
            "y": rng.choice(["no", "yes"], n),
        }
    )


@pytest.fixture(scope="module")
def deployed(people) -> Deployed:
    contexts = people[["age", "old"]].assign(old=people["old"].astype(str).astype("category"))
    preprocessor = make_preprocessor(contexts).fit(contexts)
    model = CooperativeBandits(0.1, random_state=0, epochs=5)
    model.fit(preprocessor.transform(contexts), people["y"], sensitive_features=people["group"])
    return Deployed(preprocessor, model, {"age": "number", "old": "category"}, "y", ["group"], "yes")


def test_a_saved_model_decides_the_same(deployed, people, tmp_path):
    again = load(save(deployed, tmp_path / "m.skops"))
    first, second = deployed.decide(people), again.decide(people)
    assert (first.decision == second.decision).all()
    assert (first.by_group == second.by_group).all()


def test_text_says_the_same_as_typed_columns(deployed, people):
    text = people.astype(str).assign(old=people["old"].astype(str).str.lower())
    typed, told = deployed.decide(people), deployed.decide(text)
    assert told.scored.all()
    np.testing.assert_array_equal(typed.probability, told.probability)


def test_one_policy_for_everybody_is_told_as_such_by_an_audit(deployed, people):
    found = audit(deployed.compress(0), people, people["y"], sensitive_features="group", n_bootstrap=10)
    assert "the model has a single policy and is not told the group" in found.summary()
    assert found.value("flip_rate") == 0


def test_decide_equals_predict(deployed, people):
    found = deployed.decide(people)
    contexts = people[["age", "old"]].assign(old=people["old"].astype(str))
    assert (found.decision == deployed.predict(contexts, sensitive_features=people["group"])).all()
    said = deployed.predict_proba(contexts, sensitive_features=people["group"])
    np.testing.assert_allclose(found.probability, said[:, 1])


def test_groups_are_taken_from_the_table_where_it_has_them(deployed, people):
    given = deployed.predict_proba(people, sensitive_features=people["group"])
    np.testing.assert_array_equal(deployed.predict_proba(people), given)
    with pytest.raises(
        ValueError, match=r"a policy for each group of 'group' \(0, 1\), but got no sensitive_features"
    ):
        deployed.predict(people.drop(columns="group"))
    with pytest.raises(ValueError, match=r"Row 3, group '7' in 'group': training had only '0', '1'\."):
        deployed.predict(people.assign(group=people["group"].where(people.index != 3, 7)))


def test_categories_that_training_never_met_are_counted(deployed, people):
    rows = people.astype(object)
    rows.loc[:1, "old"], rows.loc[2, "old"], rows.loc[3, "group"] = "perhaps", None, 7
    assert deployed.decide(rows).unseen == {"old": {"perhaps": 2, "missing": 1}}
    assert deployed.decide(people).unseen == {}


def test_an_audit_puts_everybody_to_every_policy(deployed, people):
    contexts = people[["age", "old"]].assign(old=people["old"].astype(str))
    said = respond(deployed, contexts, sensitive_features=people["group"])
    assert said.how == "policies"
    assert said.groups == [0, 1]


def test_rows_with_gaps_reasons_and_nobody(deployed, people):
    rows = people.head(3).astype(object)
    rows.loc[0, "group"] = 7
    rows.loc[1, "age"] = "old"
    found = deployed.decide(rows)
    assert found.scored.tolist() == [False, False, True]
    assert "group '7' in 'group': training had only '0', '1'" in found.reasons[0]
    assert found.reasons[1] == "column 'age': got 'old', expected a number"
    assert len(found.decision) == 1
    nobody = deployed.decide(rows.head(2))
    assert (len(nobody.decision), nobody.by_group.shape) == (0, (0, 2))


def test_a_column_that_is_missing_is_named(deployed, people):
    with pytest.raises(ValueError, match=r"needs the column 'age'.* Did you mean 'Age'\?"):
        deployed.decide(people.rename(columns={"age": "Age"}))


def test_one_person_is_a_frame_of_one_row(deployed, people):
    assert len(deployed.decide(people.iloc[[0]])) == 1
    with pytest.raises(
        TypeError, match=r"Got a Series, but expected a DataFrame: of one person, .*iloc\[\[0\]\]"
    ):
        deployed.decide(people.iloc[0])


def test_labels_are_the_models_own_however_their_column_writes_them():
    model = _of_kinds(pd.Series(["a", "b"] * 10))
    for column in ([0, 1], [0.0, 1.0], ["0", "1.0"], pd.array([0, 1], dtype="Int64")):
        found = as_labels(pd.Series(column), model.classes_).tolist()
        assert found == [0, 1]
        assert all(isinstance(label, int) for label in found)
    assert as_labels(pd.Series(["2.0", "x"]), model.classes_).tolist() == ["2.0", "x"]


def _of_kinds(kinds: pd.Series) -> Deployed:
    """A model of one category alone."""
    contexts = pd.DataFrame({"kind": kinds.astype("category")})
    preprocessor = make_preprocessor(contexts).fit(contexts)
    y, groups = np.arange(len(kinds)) % 2, np.arange(len(kinds)) // 2 % 2
    model = CooperativeBandits(0.1, random_state=0, epochs=20)
    model.fit(preprocessor.transform(contexts), y, sensitive_features=groups)
    return Deployed(preprocessor, model, {"kind": "category"}, "y", ["group"], 1)


def test_a_mark_of_no_value_is_the_missing_category_unless_training_met_it_as_one():
    def decided(model):
        rows = pd.DataFrame({"kind": [None, *MISSING_MARKS, "missing"], "group": 0})
        return model.decide(rows).probability

    said = decided(_of_kinds(pd.Series(["missing", "a", "a", "b"] * 10)))
    assert (said == said[0]).all()
    met = decided(_of_kinds(pd.Series(["missing", "NA", "NA", "b"] * 10)))
    assert met[2] != met[0]
    assert (np.delete(met, 2) == met[0]).all()


def test_a_bad_context_is_named(deployed):
    rows = pd.DataFrame({"age": ["30", "old"], "old": True}, index=["ann", "bob"])
    with pytest.raises(ValueError, match=r"Row 'bob', column 'age': got 'old', expected a number"):
        deployed.predict_proba(rows, sensitive_features=[0, 1])


@pytest.mark.parametrize("columns", [["group"], ["group", "side"]])
def test_a_group_is_known_by_its_very_name_before_any_other_spelling(deployed, people, columns):
    table = people.assign(group=np.where(people["group"] == 0, "f", "f "), side="1")
    groups = table[columns]
    model = CooperativeBandits(0.1, random_state=0, epochs=1)
    contexts = people[["age", "old"]].assign(old=people["old"].astype(str).astype("category"))
    model.fit(deployed.preprocessor.transform(contexts), people["y"], sensitive_features=groups)
    asked = Deployed(deployed.preprocessor, model, deployed.columns, "y", columns, "yes")
    names = [", ".join(f"{name}={row[name]}" for name in columns) for _, row in groups.iterrows()]
    names = names if len(columns) > 1 else groups["group"].tolist()
    assert asked.groups_[asked.read(table)[1]].tolist() == names
    _, codes, reasons = asked.read(table.assign(group=" f", side="1.0"))
    assert set(asked.groups_[codes]) == {"group=f, side=1" if len(columns) > 1 else "f"}
    assert set(reasons) == {""}


def test_a_number_too_large_for_the_model_is_a_reason(deployed, people):
    rows = people.assign(age=np.where(people.index == 3, 1e300, people["age"]))
    reasons = deployed.decide(rows).reasons
    assert np.flatnonzero(reasons).tolist() == [3]
    assert reasons[3] == "column 'age': got '1e+300', expected a number up to 3.4e+38"


def test_it_says_what_it_is_and_hostile_names_stay_text(deployed, people, tmp_path):
    assert repr(deployed).splitlines() == [
        "Deployed model",
        "  label     'y': 'no', 'yes' (positive: 'yes')",
        "  groups    'group': 0, 1",
        "  columns   age, old",
        "  λ         0.1",
    ]
    hostile = Deployed(deployed.preprocessor, deployed.model, {"<script>": "number"}, "<b>", ["<i>"], "yes")
    page = hostile._repr_html_()
    assert "&lt;script&gt;" in page
    assert not any(tag in page for tag in ("<script", "<b>", "<i>"))
    again = load(deployed.save(tmp_path / "m.skops"))
    assert repr(again) == repr(deployed)


def test_decisions_are_a_table_for_people(deployed, people):
    rows = people.set_index(pd.Index([f"p{row}" for row in people.index])).astype(object)
    rows.loc["p1", "age"] = "old"
    found = deployed.decide(rows)
    table = found.to_frame()
    assert list(table) == ["decision", "probability", "probability_as_0", "probability_as_1", "would_flip"]
    assert table.index.tolist() == [name for name in rows.index if name != "p1"]
    own = np.where(rows.loc[table.index, "group"] == 0, table["probability_as_0"], table["probability_as_1"])
    np.testing.assert_array_equal(table["probability"], own)
    assert found.to_frame("new_").columns[0] == "new_decision"
    assert repr(found).startswith(f"Decisions about 299 people, {found.would_flip.sum()} of whom would get a")
    assert "1 row could not be scored" in repr(found)
    assert "<table" in found._repr_html_()
    assert len(found) == 299


def test_frames_of_other_libraries_are_decided_the_same(deployed, people):
    other = pl.from_pandas(people)
    np.testing.assert_array_equal(deployed.decide(other).probability, deployed.decide(people).probability)
    np.testing.assert_array_equal(deployed.predict_proba(other), deployed.predict_proba(people))
