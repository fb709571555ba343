from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import LinearSVC

from evenhand import CooperativeBandits, GradientBandit, tabular
from evenhand.baselines import ThresholdOptimizerClassifier
from evenhand.metrics.asking import respond
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.metrics.individual import flip_rate
from factories import make_arrays

N = 120
X, Y, SEX = make_arrays(N)
SCORE, OLD = 1 / (1 + np.exp(-X[:, 0])), X[:, 1] > 0


def people() -> pd.DataFrame:
    return pd.DataFrame({"sex": SEX, "score": SCORE})


def encoded() -> Any:
    return make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")


def test_a_model_is_told_every_group(told: Any) -> None:
    X = SCORE[:, None]
    said = respond(told.fit(X, Y), X, sensitive_features=SEX)
    assert (said.how, said.groups, said.labels) == ("told", ["f", "m"], ["no", "yes"])
    assert said.scores is said.probabilities_by_group is None
    np.testing.assert_array_equal(said.decisions_by_group[:, 0] == "yes", SCORE > 0.6)
    np.testing.assert_array_equal(said.decisions_by_group[:, 1] == "yes", SCORE > 0.4)
    np.testing.assert_array_equal(said.decisions, said.decisions_by_group[np.arange(N), said.own])
    assert flip_rate(said.decisions_by_group, said.own) == ((SCORE > 0.4) & (SCORE <= 0.6)).mean()


class OtherThresholds:
    """Somebody else's mitigator around a model that does not use the group."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, model: Any) -> None:
        self.model = self.estimator_ = model

    def predict(self, X: Any, sensitive_features: Any = None) -> Any:
        bar = np.where(np.asarray(sensitive_features) == "f", 0.6, 0.4)
        return np.where(self.model.predict_proba(X)[:, 1] >= bar, "yes", "no")


@pytest.mark.parametrize("inner", [GradientBandit, CooperativeBandits])
def test_a_model_is_not_blind_because_one_inside_it_is(inner: Any) -> None:
    fitted = inner(steps=200, random_state=0).fit(X, Y)
    assert respond(fitted, X, sensitive_features=SEX).how in ("single", "blind")
    said = respond(OtherThresholds(fitted), X, sensitive_features=SEX)
    scores = fitted.predict_proba(X)[:, 1]
    assert said.how == "told"
    assert said.flips.mean() == ((scores >= 0.4) & (scores < 0.6)).mean() > 0


@pytest.mark.parametrize("inner", [GradientBandit, CooperativeBandits])
def test_thresholds_by_group_around_our_models_are_told_the_group(inner: Any) -> None:
    y = (Y == "yes").astype(int)
    ours = ThresholdOptimizerClassifier(estimator=inner(steps=200, random_state=0))
    theirs = ThresholdOptimizer(estimator=ours.estimator, predict_method="predict_proba")
    for model in (ours, theirs):
        said = respond(model.fit(X, y, sensitive_features=SEX), X, sensitive_features=SEX)
        assert said.how in ("told", "policies")
        assert said.groups == ["f", "m"]


def test_tabular_around_a_model_that_takes_no_group() -> None:
    model = tabular(GradientBandit(steps=100, random_state=0)).fit(pd.DataFrame({"score": SCORE}), Y)
    said = respond(model, pd.DataFrame({"score": SCORE}), sensitive_features=SEX)
    assert said.flips.sum() == 0


def test_policies_speak_for_groups_that_are_not_there(policies: Any) -> None:
    X = SCORE[:, None]
    said = respond(policies.fit(X, Y), X, sensitive_features=SEX)
    assert (said.how, said.groups) == ("policies", ["f", "m", "x"])
    assert said.probabilities_by_group.shape == (N, 3, 2)
    np.testing.assert_array_equal(said.scores, said.probabilities_by_group[np.arange(N), said.own])


def test_the_last_step_of_a_pipeline_is_told_too(policies: Any) -> None:
    halved = make_pipeline(FunctionTransformer(lambda X: np.asarray(X) / 2), policies).fit(SCORE[:, None], Y)
    direct = respond(policies, SCORE[:, None] / 2, sensitive_features=SEX)
    said = respond(halved, SCORE[:, None], sensitive_features=SEX)
    assert said.how == "policies"
    np.testing.assert_array_equal(said.probabilities_by_group, direct.probabilities_by_group)


def test_the_sensitive_column_is_set_to_every_value() -> None:
    X = people()
    model = make_pipeline(encoded(), LogisticRegression()).fit(X, Y)
    said = respond(model, X, sensitive_features=X["sex"])
    assert (said.how, said.columns, said.groups) == ("column", ["sex"], ["f", "m"])
    for code, sex in enumerate("fm"):
        np.testing.assert_array_equal(
            said.probabilities_by_group[:, code], model.predict_proba(X.assign(sex=sex))
        )
    np.testing.assert_array_equal(said.decisions, model.predict(X))
    assert X["sex"].tolist() == SEX.tolist()


@pytest.mark.parametrize("sensitive", [SEX, SEX.tolist(), pd.Series(SEX), {"who": SEX}], ids=type)
def test_the_column_is_found_by_what_it_tells(sensitive: Any) -> None:
    # In numbers, in an array, and in two one-hot columns: all of them change together.
    X = np.column_stack([SCORE, SEX == "m", SEX == "f"]).astype(float)
    model = LogisticRegression().fit(X, Y)
    said = respond(model, X, sensitive_features=sensitive)
    assert (said.how, said.columns) == ("column", [1, 2])
    as_men = np.column_stack([SCORE, np.ones(N), np.zeros(N)])
    # Within rounding: how a matrix lies in memory decides which product BLAS takes.
    np.testing.assert_allclose(said.probabilities_by_group[:, 1], model.predict_proba(as_men), rtol=1e-12)


def test_crossed_columns_are_set_together() -> None:
    X = people().assign(old=OLD)
    model = make_pipeline(encoded(), LogisticRegression()).fit(X, Y)
    said = respond(model, X, sensitive_features=X[["sex", "old"]])
    assert said.columns == ["sex", "old"]
    assert said.groups == ["sex=f, old=False", "sex=f, old=True", "sex=m, old=False", "sex=m, old=True"]
    np.testing.assert_array_equal(
        said.probabilities_by_group[:, 2], model.predict_proba(X.assign(sex="m", old=False))
    )


def test_a_model_that_never_sees_the_group_is_blind() -> None:
    X = people()
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X[["score"]], Y)
    for given in (X, X[["score"]]):  # the model takes its own columns out of a wider table
        said = respond(search, given, sensitive_features=SEX)
        assert (said.how, said.columns) == ("blind", [])
        assert (said.decisions_by_group == said.decisions[:, None]).all()
        assert (said.probabilities_by_group == said.scores[:, None]).all()


def test_a_model_without_probabilities_still_decides() -> None:
    said = respond(LinearSVC().fit(SCORE[:, None], Y), SCORE[:, None], sensitive_features=SEX)
    assert said.scores is None
    assert said.labels == ["no", "yes"]


def test_tiny_groups_hold_no_proof() -> None:
    frame = pd.DataFrame({"sex": ["f", "f", "m", "m"], "by_chance": [1, 1, 2, 2]})
    own = np.array([0, 0, 1, 1])
    assert sensitive_columns(frame, ["f", "f", "m", "m"], own) == []
    assert sensitive_columns(frame, frame["sex"], own) == ["sex"]
    assert sensitive_columns(frame, frame["sex"], np.zeros(4, dtype=int)) == []


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    X = people()
    with pytest.raises(TypeError, match="Got OneHotEncoder, which has no predict"):
        respond(OneHotEncoder(), X, sensitive_features=SEX)
    with pytest.raises(ValueError, match="named 'sex', but the column of X of that name holds other values"):
        respond(DummyClassifier().fit(X, Y), X, sensitive_features=pd.Series(SEX[::-1], name="sex"))
    with pytest.raises(ValueError, match="sensitive_features for 3 people"):
        respond(DummyClassifier().fit(X, Y), X, sensitive_features=["f", "m", "m"])

    class Wide(DummyClassifier):
        def predict(self, X: Any) -> np.ndarray:
            return np.zeros((len(X), 2))

    with pytest.raises(ValueError, match=r"predictions of shape \(120, 2\), but expected 120 decisions"):
        respond(Wide().fit(X, Y), X, sensitive_features=SEX)

    class NotOne(DummyClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.full((len(X), 2), 0.7)

    with pytest.raises(ValueError, match=r"predict_proba.*sum to one"):
        respond(NotOne().fit(X, Y), X, sensitive_features=SEX)


class Nameless(DummyClassifier):
    """A model that knows its columns only by number, or refuses others by itself."""

    def fit(self, X: Any, y: Any) -> Any:
        self.seen_ = list(X.columns)
        return super().fit(X.to_numpy(), y)

    def predict(self, X: Any) -> Any:
        if np.asarray(X).shape[1] != len(self.seen_):
            raise ValueError("unknown columns")
        return np.where(np.asarray(X)[:, 0] > 0.5, "yes", "no")


def test_the_group_is_left_out_for_a_model_that_was_fitted_without_it() -> None:
    X = people().assign(old=OLD)
    model = Nameless().fit(X[["score", "old"]], Y)
    model.n_features_in_ = 2
    said = respond(model, X, sensitive_features=X["sex"])
    np.testing.assert_array_equal(said.decisions == "yes", SCORE > 0.5)
    del model.n_features_in_
    told = r"Nameless can't predict the people in X \(unknown columns\). X has 'sex'.*X.drop\(columns=\['sex'\]\)"
    with pytest.raises(ValueError, match=told):
        respond(model, X, sensitive_features=X["sex"])
    with pytest.raises(ValueError, match="^unknown columns"):  # then it is something else
        respond(model, X, sensitive_features=SEX)


def test_somebody_elses_groups_are_not_read() -> None:
    model = LogisticRegression().fit(SCORE[:, None], Y)
    model.groups_ = [[0], [1, 2]]
    assert respond(model, SCORE[:, None], sensitive_features=SEX).how == "blind"


def test_columns_of_an_array_are_not_taken_for_the_sensitive_ones() -> None:
    Z = np.random.default_rng(0).normal(size=(200, 3))
    model = LogisticRegression().fit(Z[:, :2], Z[:, 0] > 0)
    with pytest.raises(ValueError, match="X has 3 features, but LogisticRegression is expecting 2"):
        respond(model, Z, sensitive_features=np.arange(200) % 2)
