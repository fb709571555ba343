import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits, audit
from evenhand.auditing.people import differences
from factories import make_arrays


def test_people_who_flip_are_listed_first_and_then_the_largest_gaps():
    X, y, s = make_arrays(600)
    model = CooperativeBandits(0, random_state=0).fit(X, y, sensitive_features=s)
    people = audit(model, X, y, sensitive_features=s, n_listed=200).people
    flips, gaps = people["flips"].to_numpy(), people["gap"].to_numpy()
    assert 0 < flips.sum() < len(people)
    assert flips[: flips.sum()].all()
    assert (np.diff(gaps[flips]) <= 0).all()
    assert (np.diff(gaps[~flips]) <= 0).all()
    decisions = model.probabilities_by_group(X).argmax(2)
    assert flips.sum() == (decisions[:, 0] != decisions[:, 1]).sum()


def test_two_numbers_that_differ_are_told_so_that_they_do():
    mine, theirs = pd.Series({"age": 30.0, "pay": 3695.33508}), pd.Series({"age": 31.5, "pay": 3695.33511})
    assert differences(mine, theirs) == "age 30 | 31.5, pay 3695.33508 | 3695.33511"
    assert differences(mine, pd.Series({"age": 30.0, "pay": 3701.26})) == "pay 3695.3 | 3701.3"


@pytest.mark.parametrize("kind", ["Int64", "Float64", "object"])
def test_missing_values_of_nullable_columns_are_compared(kind):
    mine = pd.Series({"age": pd.array([30], kind)[0], "pay": pd.NA, "job": pd.NA}, dtype=object)
    theirs = pd.Series({"age": pd.NA, "pay": 7, "job": pd.NA}, dtype=object)
    assert differences(mine, theirs) == "age 30 | missing, pay missing | 7"
    X, y, s = make_arrays(100)
    people = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).convert_dtypes()
    people.loc[:20, "a"] = pd.NA
    found = audit(y, people, y, sensitive_features=s, n_bootstrap=2)
    assert found.neighbours["differ_in"].str.contains("missing").any()
