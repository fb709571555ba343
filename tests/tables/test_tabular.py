from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand
from evenhand import CooperativeBandits, CooperativeBoosting, audit, load, save, tabular
from evenhand.metrics.scorers import scorer
from evenhand.tables.preprocessing import make_preprocessor
from factories import make_people


def bandits(**options):
    return CooperativeBandits(1.0, **({"epochs": 3, "random_state": 0} | options))


@pytest.fixture(scope="module")
def table():
    return make_people(300)


@pytest.fixture(scope="module")
def people(table):
    """Text, dates, gaps, truth values and the sensitive column itself; but not the label."""
    rng = np.random.default_rng(1)
    return table.drop(columns="hired").assign(
        old=rng.choice([True, False], len(table)), since=pd.to_datetime(table["born"], format="%d.%m.%Y")
    )


@pytest.fixture(scope="module")
def model(people, table):
    return tabular(bandits(), categorical="branch").fit(
        people, table["hired"], sensitive_features=people["sex"]
    )


def test_three_lines_from_a_raw_table_to_decisions(people, table):
    model = tabular(CooperativeBandits(divergence_weight=1.0, random_state=0))
    model.fit(people, table["hired"], sensitive_features=people["sex"])
    assert model.score(people, table["hired"], sensitive_features=people["sex"]) > 0.85
    assert is_classifier(model)
    assert model.groups_.tolist() == ["f", "m"]
    assert model.classes_.tolist() == ["no", "yes"]


def test_it_is_the_preprocessing_and_the_estimator_and_nothing_else(model, people, table):
    born = (pd.to_datetime(people["born"], format="%d.%m.%Y") - pd.Timestamp(0)).dt.days.astype(float)
    ready = pd.DataFrame(
        {
            "skill": people["skill"],
            "born": born,
            "job": people["job"].astype("category"),
            "branch": people["branch"].astype(str).astype("category"),
            "old": people["old"].astype(str).astype("category"),
            "since": born,
        }
    )
    preprocessor = make_preprocessor(ready).fit(ready)
    by_hand = bandits().fit(
        preprocessor.transform(ready), table["hired"].to_numpy(), sensitive_features=people["sex"]
    )
    for ours, theirs in zip(model.estimator_.policies_, by_hand.policies_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(model.encode(people), preprocessor.transform(ready))
    assert model.columns_ == {
        "skill": "number",
        "born": "%d.%m.%Y",
        "job": "category",
        "branch": "category",
        "old": "category",
        "since": "ISO8601",
    }


def test_the_sensitive_column_is_no_feature_however_it_is_given(model, people, table):
    assert "sex" not in model.columns_
    assert "'sex' reveals the group, so it is not a feature." in model.notes_
    others = {
        "by its values": people["sex"].to_numpy(),
        "under another name": people["sex"].rename("gender"),
        "by its name, as other values": (people["sex"] == "f").astype(int),
        "as a table": people[["sex"]],
        "as a dict": {"sex": people["sex"].tolist()},
        "as Polars": pl.Series("sex", people["sex"].tolist()),
    }
    for how, groups in others.items():
        other = tabular(bandits(epochs=0.1), categorical="branch")
        other.fit(people, table["hired"], sensitive_features=groups)
        assert (how, list(other.columns_)) == (how, list(model.columns_))
    assert "sex" in tabular(LogisticRegression()).fit(people, table["hired"]).columns_


def test_groups_are_taken_from_the_table_only_where_they_are_the_same(model, people, table):
    own = model.predict_proba(people, sensitive_features=people["sex"])
    np.testing.assert_array_equal(model.predict_proba(people), own)
    assert model.sensitive_columns_ == ["sex"]
    with pytest.raises(ValueError, match="Got no sensitive_features, but expected each person's group"):
        model.predict(people.drop(columns="sex"))
    numbers = people.assign(sex=(people["sex"] == "f").astype(int))
    swapped = tabular(bandits(epochs=0.1)).fit(numbers, table["hired"], sensitive_features=1 - numbers["sex"])
    assert swapped.sensitive_columns_ == []
    with pytest.raises(ValueError, match="Got no sensitive_features"):
        swapped.predict(numbers)


def test_several_sensitive_columns(people, table):
    groups = people[["sex", "old"]]
    model = tabular(bandits()).fit(people, table["hired"], sensitive_features=groups)
    assert model.groups_.tolist() == [
        "sex=f, old=False",
        "sex=f, old=True",
        "sex=m, old=False",
        "sex=m, old=True",
    ]
    assert not {"sex", "old"} & set(model.columns_)
    given = model.predict_proba(people, sensitive_features=groups[["old", "sex"]])
    np.testing.assert_array_equal(model.predict_proba(people), given)
    bare = tabular(bandits()).fit(
        people, table["hired"], sensitive_features=groups[["old", "sex"]].to_numpy()
    )
    assert bare.sensitive_columns_ == ["old", "sex"]
    assert bare.groups_.tolist() == ["False & f", "False & m", "True & f", "True & m"]


def test_probabilities_under_every_policy(model, people):
    every = model.probabilities_by_group(people)
    assert every.shape == (300, 2, 2)
    own = (people["sex"] == "m").to_numpy().astype(int)
    said = model.predict_proba(people, sensitive_features=people["sex"])
    np.testing.assert_array_equal(every[np.arange(300), own], said)


def test_polars_arrow_and_plain_columns_say_the_same(model, people):
    said = model.predict_proba(people)
    others = (pl.from_pandas(people), pl.from_pandas(people).to_arrow(), people.to_dict("list"))
    for other in others:
        np.testing.assert_array_equal(model.predict_proba(other), said)
    shuffled = people[people.columns[::-1]].assign(more="ignored")
    np.testing.assert_array_equal(model.predict_proba(shuffled), said)


def test_new_categories_and_gaps_are_decided_and_other_values_are_errors(model, people):
    new = people.head(2).assign(job=["astronaut", None], skill=[None, "0.5"])
    assert np.isfinite(model.predict_proba(new)).all()
    names = model.preprocessor_.get_feature_names_out().tolist()
    jobs = [at for at, name in enumerate(names) if name.startswith("job_")]
    assert not model.encode(new)[:, jobs].any()
    with pytest.raises(ValueError, match="Row 0, column 'skill': got 'high', expected a number"):
        model.predict(people.head(2).assign(skill="high"))
    with pytest.raises(ValueError, match=r"needs the column 'skill'.* Did you mean 'skil'"):
        model.predict(people.rename(columns={"skill": "skil"}))


def test_the_label_is_no_feature(table):
    model = tabular(bandits(epochs=0.1))
    with pytest.raises(ValueError, match=r"X has a column 'hired'.*drop='hired'"):
        model.fit(table, table["hired"], sensitive_features=table["sex"])
    model.set_params(drop="hired").fit(table, table["hired"], sensitive_features=table["sex"])
    assert "hired" not in model.columns_
    model.predict(table.drop(columns="hired"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": "jobb"}, "Got drop='jobb', but X has no such column. Did you mean 'job'"),
        ({"categorical": ["jobb"]}, "Got categorical='jobb', but X has no such column"),
        ({"drop": ["skill", "born", "job", "branch", "old", "since"]}, "X has no column left to learn from"),
    ],
)
def test_bad_columns(options, message, people, table):
    with pytest.raises(ValueError, match=message):
        tabular(bandits(), **options).fit(people, table["hired"], sensitive_features=people["sex"])


def test_what_is_no_table_and_what_is_not_fitted(people):
    with pytest.raises(TypeError, match=r"expected the path of a CSV, Parquet or Excel file, or a frame"):
        tabular(bandits()).fit(7, [0, 1])
    with pytest.raises(NotFittedError):
        tabular(bandits()).predict(people)
    array = np.random.default_rng(0).normal(size=(60, 2))
    numbers = tabular(bandits()).fit(array, array[:, 0] > 0, sensitive_features=["a", "b"] * 30)
    assert list(numbers.columns_) == ["0", "1"]


def test_it_can_be_cloned_and_its_parameters_set(model, people, table):
    copy = clone(model)
    assert not hasattr(copy, "estimator_")
    assert copy.get_params()["estimator__divergence_weight"] == 1.0
    again = copy.fit(people, table["hired"], sensitive_features=people["sex"])
    np.testing.assert_array_equal(again.predict_proba(people), model.predict_proba(people))
    assert copy.set_params(estimator__divergence_weight=3.0).estimator.divergence_weight == 3.0


@pytest.mark.parametrize("routing", [True, False])
def test_it_works_with_and_without_metadata_routing(routing, model, people, table):
    with config_context(enable_metadata_routing=routing):
        other = clone(model).fit(people, table["hired"], sensitive_features=people["sex"])
        said = other.predict_proba(people, sensitive_features=people["sex"])
    np.testing.assert_array_equal(said, model.predict_proba(people))


def test_a_search_routes_the_groups_without_being_told_to(people, table):
    blind = people.drop(columns="sex")  # so that the groups can come by routing only
    grid = {"estimator__divergence_weight": [0.0, 2.0]}
    with config_context(enable_metadata_routing=True):
        for scoring in (None, scorer("accuracy"), scorer("flip_rate")):
            search = GridSearchCV(tabular(bandits()), grid, cv=2, scoring=scoring, error_score="raise")
            search.fit(blind, table["hired"], sensitive_features=people["sex"])
            assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        said = search.best_estimator_.predict(blind, sensitive_features=people["sex"])
        routed = {"params": {"sensitive_features": people["sex"]}, "cv": 2}
        scores = cross_val_score(tabular(bandits()), blind, table["hired"], **routed)
        # scikit-learn routes nothing to predict here: the groups come from the table.
        found = cross_val_predict(tabular(bandits()), people, table["hired"], **routed)
        asked = {"method": "predict_proba"} | routed
        likely = cross_val_predict(tabular(bandits()), people, table["hired"], **asked)
    assert set(said) == set(found) == {"no", "yes"}
    assert len(scores) == 2
    assert likely.shape == (300, 2)


def test_a_search_without_routing_takes_the_groups_from_the_table(people, table):
    search = GridSearchCV(tabular(bandits()), {"estimator__divergence_weight": [0.0, 2.0]}, cv=2)
    search.fit(people, table["hired"], sensitive_features=people["sex"])
    assert search.best_estimator_.groups_.tolist() == ["f", "m"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_saved_model_decides_the_same(model, people, tmp_path):
    again = load(save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict_proba(people), model.predict_proba(people))
    assert again.sensitive_columns_ == ["sex"]
    assert again.notes_ == model.notes_


def test_an_audit_knows_each_policy(model, people, table):
    found = audit(model, people, table["hired"], sensitive_features=people["sex"], random_state=0)
    decided = model.probabilities_by_group(people).argmax(2)
    flips = found.metrics.query("metric == 'flip_rate' and group.isna()")["value"].item()
    assert flips == pytest.approx((decided[:, 0] != decided[:, 1]).mean())


def test_one_policy_for_everyone(model, people):
    single = model.compress("f")
    every = model.probabilities_by_group(people)
    np.testing.assert_allclose(single.predict_proba(people.drop(columns="sex")), every[:, 0], atol=1e-6)
    assert not hasattr(single, "probabilities_by_group")
    assert model.probabilities_by_group(people).shape[1] == 2


def test_a_classifier_that_takes_no_groups_is_blind(people, table):
    model = tabular(LogisticRegression(max_iter=500)).fit(
        people, table["hired"], sensitive_features=people["sex"]
    )
    assert "sex" not in model.columns_
    first = model.predict(people, sensitive_features=people["sex"])
    assert (first == model.predict(people.drop(columns="sex"))).all()
    assert not hasattr(model, "probabilities_by_group")
    assert model.groups_.tolist() == ["everyone"]
    found = audit(model, people, table["hired"], sensitive_features=people["sex"], n_bootstrap=20)
    assert "the model has a single policy and is not told the group" in found.summary()


def test_it_is_at_the_top_level():
    assert "tabular" in evenhand.__all__


def test_groups_are_the_names_of_columns_in_every_method(people, table):
    by_name = tabular(bandits()).fit(people, table["hired"], sensitive_features="sex")
    by_value = tabular(bandits()).fit(people, table["hired"], sensitive_features=people["sex"])
    assert by_name.sensitive_columns_ == ["sex"]
    assert "sex" not in by_name.columns_
    said = by_value.predict_proba(people, sensitive_features=people["sex"])
    for named in ("sex", ["sex"], None):
        np.testing.assert_array_equal(by_name.predict_proba(people, sensitive_features=named), said)
        right = by_name.score(people, table["hired"], sensitive_features=named)
        assert right == by_value.score(people, table["hired"], sensitive_features=people["sex"])
    first = by_name.predict(people[:1], sensitive_features="sex")
    assert first.tolist() == by_name.predict(people[:1]).tolist() == by_value.predict(people[:1]).tolist()
    np.testing.assert_array_equal(
        by_name.probabilities_by_group(people), by_value.probabilities_by_group(people)
    )
    found = audit(by_name, people, table["hired"], sensitive_features="sex", random_state=0)
    assert found.value("accuracy") == by_name.score(people, table["hired"])


def test_several_names_make_combined_groups_and_a_wrong_one_is_named(people, table):
    model = tabular(bandits(epochs=0.1)).fit(people, table["hired"], sensitive_features=["sex", "old"])
    assert model.sensitive_columns_ == ["sex", "old"]
    assert len(model.groups_) == 4
    assert len(model.predict(people, sensitive_features=["old", "sex"])) == len(people)
    with pytest.raises(
        ValueError, match=r"Got sensitive_features='sx', but X has no such column. Did you mean"
    ):
        tabular(bandits()).fit(people, table["hired"], sensitive_features="sx")


def test_one_policy_for_everyone_takes_no_groups_from_the_table(people, table):
    model = tabular(CooperativeBoosting(rounds=5, random_state=0), categorical="branch")
    model.fit(people, table["hired"], sensitive_features="sex")
    single = model.compress("f")
    own = (people["sex"] == "f").to_numpy()
    np.testing.assert_array_equal(single.predict(people)[own], model.predict(people)[own])
    assert model.sensitive_columns_ == ["sex"]


def test_groups_that_an_inner_estimator_would_not_get_are_an_error(people, table):
    for around in (make_pipeline(StandardScaler(), bandits()), GridSearchCV(bandits(), {"hidden": [3]})):
        with pytest.raises(ValueError, match=r"around CooperativeBandits, which would not get the groups"):
            tabular(around).fit(people, table["hired"], sensitive_features="sex")
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    assert len(tabular(plain).fit(people, table["hired"], sensitive_features="sex").predict(people)) == len(
        people
    )


def test_too_few_groups_are_counted_and_not_taken_for_names(people, table):
    with pytest.raises(ValueError, match=rf"Got sensitive_features for {len(people) - 1} people"):
        tabular(bandits()).fit(people, table["hired"], sensitive_features=people["sex"].tolist()[1:])


def test_a_lacking_sensitive_column_is_named_beside_the_error(model, people):
    with pytest.raises(ValueError, match="sensitive_features") as raised:
        model.predict(people.drop(columns="sex"))
    assert raised.value.__notes__ == ["The groups are in 'sex', which X lacks."]
