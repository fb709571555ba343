from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.baselines import LR


def test_unaware_it_is_scikit_learns(planted):
    X, y, s = planted
    model = LR(0.3).fit(X, y, sensitive_features=s)
    own = LogisticRegression(C=0.3, max_iter=500).fit(X, y)
    assert np.allclose(model.predict_proba(X), own.predict_proba(X))
    assert model.classes_.tolist() == own.classes_.tolist()


def test_aware_it_is_scikit_learns_with_a_column_a_group(planted):
    X, y, s = planted
    model = LR(aware=True).fit(X, y, sensitive_features=s)
    columns = np.column_stack([X, s == "f", s == "m"]).astype(float)
    own = LogisticRegression(max_iter=500).fit(columns, y)
    assert np.allclose(model.predict_proba(X, sensitive_features=s), own.predict_proba(columns))


def test_awareness_helps_accuracy_where_the_group_sways_the_label(planted):
    X, y, s = planted
    blind, aware = LR().fit(X, y), LR(aware=True).fit(X, y, sensitive_features=s)
    assert (aware.predict(X, sensitive_features=s) == y).mean() > (blind.predict(X) == y).mean() + 0.03


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_scikit_learn_refuses_a_bad_C(planted, bad):
    X, y, _ = planted
    with pytest.raises(ValueError, match="The 'C' parameter of LogisticRegression"):
        LR(bad).fit(X, y)
