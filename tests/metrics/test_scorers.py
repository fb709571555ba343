from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.svm import LinearSVC

from evenhand import CooperativeBandits, tabular
from evenhand.metrics import group, individual
from evenhand.metrics.scorers import SCORERS, scorer
from evenhand.metrics.scores import auc, calibration_error
from factories import make_arrays

N = 150
X, Y, SEX = make_arrays(N, 2, groups=("f", "m", "x"))
X = 1 / (1 + np.exp(-X))


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_every_scorer_is_its_metric_and_greater_is_better(policies: Any) -> None:
    model = policies.fit(X, Y)
    decided = model.predict(X, sensitive_features=SEX)
    said = model.probabilities_by_group(X)
    own = np.searchsorted(["f", "m", "x"], SEX)
    mine = said[np.arange(N), own]
    keywords = {"sensitive_features": SEX}
    want = {
        "accuracy": group.accuracy(Y, decided),
        "balanced_accuracy": group.balanced_accuracy(Y, decided),
        "auc": auc(Y, mine),
        "calibration_error": -calibration_error(Y, mine),
        "discrimination": -group.discrimination(Y, decided, **keywords),
        "impact_ratio": group.impact_ratio(Y, decided, **keywords),
        "delta": group.delta(Y, decided, **keywords),
        "equal_opportunity_difference": -group.equal_opportunity_difference(Y, decided, **keywords),
        "equalized_odds_difference": -group.equalized_odds_difference(Y, decided, **keywords),
        "consistency": individual.consistency(decided, X=X),
        "metric_free_gap": -individual.metric_free_gap(said, own).mean,
        "flip_rate": -individual.flip_rate(said.argmax(axis=2), own),
    }
    got = {name: score(model, X, Y, sensitive_features=SEX) for name, score in SCORERS.items()}
    assert got == want
    assert -1 < got["flip_rate"] < 0


def test_cross_validate_routes_groups_to_the_scorers(routing: None) -> None:
    found = cross_validate(
        LogisticRegression(), X, Y, cv=3, scoring=SCORERS, params={"sensitive_features": SEX}
    )
    assert (found["test_discrimination"] < 0).all()
    assert (found["test_flip_rate"] == 0).all()  # it never sees the group


def test_cross_validate_routes_groups_to_the_model_too(routing: None, told: Any) -> None:
    model = told.set_fit_request(sensitive_features=True)
    found = cross_validate(
        model, X, Y, cv=3, scoring=SCORERS["flip_rate"], params={"sensitive_features": SEX}
    )
    assert (found["test_score"] < -0.05).all()


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_sparse_matrix_is_scored_as_the_array_that_it_is(kind: Any) -> None:
    man = (SEX == "m").astype(float)
    features = np.column_stack([X * (X > 0.3), man])
    blind = features[:, :2]
    told = CooperativeBandits(epochs=2, random_state=0).fit(blind, Y, sensitive_features=SEX)
    sees = LogisticRegression().fit(features, Y)
    for model, table, groups in (
        (told, blind, SEX),
        (sees, blind @ np.eye(2, 3), SEX),
        (sees, features, man),
    ):
        for name, score in SCORERS.items():
            if name != "consistency":
                dense = score(model, table, Y, sensitive_features=groups)
                assert score(model, kind(table), Y, sensitive_features=groups) == pytest.approx(dense), name
    assert SCORERS["flip_rate"](sees, kind(features), Y, sensitive_features=man) < 0
    with pytest.raises(TypeError, match="Got a sparse matrix, but expected a table"):
        SCORERS["consistency"](sees, kind(features), Y, sensitive_features=SEX)


def test_cross_validate_takes_a_sparse_matrix(routing: None) -> None:
    found = cross_validate(
        LogisticRegression(), sparse.csr_array(X), Y, cv=3, scoring=SCORERS["discrimination"],
        params={"sensitive_features": SEX}, error_score="raise",
    )  # fmt: skip
    assert (found["test_score"] < 0).all()


def test_grid_search_chooses_by_a_scorer(routing: None) -> None:
    search = GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=scorer("delta", pos_label="yes"))
    search.fit(X, Y, sensitive_features=SEX[::-1])  # other people's groups, which the labels do not lean on
    assert search.best_params_ == {"C": 1.0}


def test_the_request_can_be_renamed(routing: None) -> None:
    renamed = scorer("discrimination").set_score_request(sensitive_features="sex")
    found = cross_validate(LogisticRegression(), X, Y, cv=3, scoring=renamed, params={"sex": SEX})
    plain = cross_validate(
        LogisticRegression(), X, Y, cv=3, scoring=scorer("discrimination"), params={"sensitive_features": SEX}
    )
    assert found["test_score"].tolist() == plain["test_score"].tolist()


def test_arguments_reach_the_metric(policies: Any) -> None:
    model = policies.fit(X, Y)
    by_name = {
        name: scorer("metric_free_gap", divergence=name)(model, X, Y, sensitive_features=SEX)
        for name in ("kl", "total_variation")
    }
    assert by_name["total_variation"] == pytest.approx(-0.17, abs=0.03)
    assert by_name["kl"] != by_name["total_variation"]


def test_what_scikit_learn_passes_no_groups_to_is_named_with_what_works(routing: None) -> None:
    model = CooperativeBandits(epochs=1, random_state=0).set_fit_request(sensitive_features=True)
    model.set_predict_request(sensitive_features=True).set_predict_proba_request(sensitive_features=True)
    given = {"params": {"sensitive_features": SEX}, "cv": 2}
    works = r"pass nothing to predict: score with evenhand\.metrics\.SCORERS, or .* in evenhand\.tabular"
    for fails in (
        lambda: cross_val_predict(model, X, Y, method="predict_proba", **given),
        lambda: cross_validate(model, X, Y, scoring="roc_auc", error_score="raise", **given),
    ):
        with pytest.raises(ValueError, match=works) as told:
            fails()
        assert "set_predict_request" not in str(told.value)  # which was done
    assert len(cross_validate(model, X, Y, scoring=SCORERS["auc"], **given)["test_score"]) == 2
    people = pd.DataFrame(X, columns=["skill", "pay"]).assign(sex=SEX)
    assert len(cross_val_predict(tabular(model), people, Y, method="predict_proba", **given)) == N


def test_scorers_travel_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(scorer("delta", pos_label="yes")))
    model = LogisticRegression().fit(X, Y)
    assert again(model, X, Y, sensitive_features=SEX) == scorer("delta")(model, X, Y, sensitive_features=SEX)


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    with pytest.raises(ValueError, match="Did you mean 'discrimination'"):
        scorer("discriminaton")
    for name in ("auc", "metric_free_gap"):
        with pytest.raises(ValueError, match=f"{name} needs probabilities"):
            scorer(name)(LinearSVC().fit(X, Y), X, Y, sensitive_features=SEX)
