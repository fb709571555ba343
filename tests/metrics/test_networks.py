from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from evenhand import CooperativeBandits
from evenhand.baselines import LR
from evenhand.metrics.classifiers import probabilities_by_group
from evenhand.metrics.networks import freeze
from factories import make_arrays

LABELS, GROUPS = np.array(["no", "yes"]), np.array(["f", "m"])


@pytest.fixture
def people() -> tuple[Any, Any, Any]:
    X, y, s = make_arrays(200)
    return X.astype(np.float32), y, s


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_policies_say_what_the_model_says(form: Any, people: tuple[Any, Any, Any]) -> None:
    X, y, s = people
    model = CooperativeBandits(epochs=2, random_state=0).fit(X, y, sensitive_features=s)
    expected = model.probabilities_by_group(X)
    said = probabilities_by_group(model, form(X), labels=LABELS, groups=GROUPS, products=True)
    np.testing.assert_allclose(said, expected, atol=1e-6)
    quick = probabilities_by_group(
        model, form(X), labels=LABELS, groups=GROUPS, products=True, decisions_only=True
    )
    np.testing.assert_array_equal(quick.argmax(2), expected.argmax(2))


def test_a_model_told_the_group_is_asked_as_every_group(people: tuple[Any, Any, Any]) -> None:
    X, y, s = people
    model = LR(aware=True).fit(X, y, sensitive_features=s)
    said = probabilities_by_group(model, X, labels=LABELS, groups=GROUPS, products=True)
    for at, group in enumerate(GROUPS):
        expected = model.predict_proba(X, sensitive_features=np.full(200, group))
        np.testing.assert_array_equal(said[:, at], expected)

    class Foreign:
        def predict(self, X: Any, *, sensitive_features: Any) -> Any:
            return model.predict(X, sensitive_features=sensitive_features)

    told = probabilities_by_group(Foreign(), X, labels=LABELS, groups=GROUPS, products=True)
    np.testing.assert_array_equal(told.argmax(2), said.argmax(2))


def test_a_model_that_is_not_told_says_the_same_for_every_group(people: tuple[Any, Any, Any]) -> None:
    X, y, _ = people
    model = LogisticRegression().fit(X, y)
    said = probabilities_by_group(model, X, labels=LABELS, groups=GROUPS, products=True)
    np.testing.assert_array_equal(said[:, 0], model.predict_proba(X))
    np.testing.assert_array_equal(said[:, 0], said[:, 1])


def test_a_model_without_probabilities_says_one_for_its_decision(people: tuple[Any, Any, Any]) -> None:
    X, y, _ = people
    model = LinearSVC().fit(X, y)
    said = probabilities_by_group(model, X, labels=LABELS, groups=GROUPS, products=True)
    np.testing.assert_array_equal(LABELS[said[:, 0].argmax(1)], model.predict(X))
    assert set(np.unique(said)) == {0.0, 1.0}


def test_frozen_policies_say_what_the_model_said_then(people: tuple[Any, Any, Any]) -> None:
    X, y, s = people
    said, frozen = {}, {}

    def keep(step: int, model: Any) -> None:
        said[step] = probabilities_by_group(model, X, labels=LABELS, groups=GROUPS, products=True)
        frozen[step] = freeze(model)

    CooperativeBandits(epochs=2, checkpoint_every=100, random_state=0).fit(
        X, y, sensitive_features=s, callback=keep
    )
    for step, then in said.items():
        again = probabilities_by_group(frozen[step], X, labels=LABELS, groups=GROUPS, products=True)
        np.testing.assert_array_equal(again, then)
    assert not np.array_equal(said[100], said[400])
    assert freeze(LogisticRegression()) is None
