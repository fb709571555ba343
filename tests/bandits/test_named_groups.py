"""Groups that are columns of X, and none at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from evenhand import CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, audit
from evenhand.bandits.deciding import NoGroupsWarning


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"skill": rng.normal(size=200), "years": rng.normal(size=200)})
    table["sex"], table["old"] = rng.choice(["f", "m"], 200), rng.choice(["0", "1"], 200)
    return table, np.where(table["skill"] + (table["sex"] == "m") > 0, "yes", "no")


NETWORKS, TREES = (
    CooperativeBandits(1.0, epochs=5, random_state=0),
    CooperativeBoosting(1.0, rounds=5, random_state=0),
)
KINDS = [NETWORKS, TREES, CooperativeEnsemble(1.0, bandits=NETWORKS, boosting=TREES, random_state=0)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("names", ["sex", ["sex", "old"]])
def test_names_of_columns_are_the_same_as_the_columns(people, names, kind):
    X, y = people
    X = X.drop(columns="old") if names == "sex" else X
    model = clone(kind).fit(X, y, sensitive_features=names)
    groups, features = X[names], X.drop(columns=names)
    same = clone(kind).fit(features, y, sensitive_features=groups)
    assert model.feature_names_in_.tolist() == ["skill", "years"]
    expected = same.predict(features, sensitive_features=groups)
    for given in ({"sensitive_features": names}, {"sensitive_features": groups}, {}):
        np.testing.assert_array_equal(model.predict(X, **given), expected)
    assert model.score(X, y, sensitive_features=names) == np.mean(expected == y)
    np.testing.assert_array_equal(model.predict(features, sensitive_features=groups), expected)
    np.testing.assert_array_equal(model.probabilities_by_group(X), same.probabilities_by_group(features))
    found = audit(model, X, y, sensitive_features=names, n_bootstrap=10)
    flips = same.probabilities_by_group(features).argmax(2)
    assert found.value("flip_rate") == (flips != flips[:, :1]).any(axis=1).mean()
    with pytest.raises(ValueError, match="X has no such column. Did you mean 'sex'"):
        clone(kind).fit(X, y, sensitive_features="sexx")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_no_groups_are_warned_of(people, kind):
    X, y = people
    with pytest.warns(NoGroupsWarning, match="one policy for everybody"):
        clone(kind).fit(X[["skill"]], y)


def test_too_few_groups_are_not_taken_for_names_of_columns(people):
    X, y = people
    with pytest.raises(
        ValueError, match="sensitive_features for 100 people, but expected one value for each of 200"
    ):
        clone(NETWORKS).fit(X[["skill"]], y, sensitive_features=["f", "m"] * 50)
