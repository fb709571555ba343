"""Our consistency and discrimination against AIF360's, which is skipped where it does not import.

AIF360's consistency is Euclidean on encoded columns and counts a person among their own neighbours. Given its
neighbours, with the person taken out, ours says the same; with the person in, the two differ by a known factor.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestNeighbors

from evenhand.metrics import consistency, discrimination, impact_ratios, parity_differences
from factories import make_arrays

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    aif360 = pytest.importorskip("aif360.sklearn.metrics", exc_type=ImportError)

X, DECIDED, GROUP = make_arrays(200, groups=(0, 1), labels=(0, 1))


def test_consistency_differs_by_the_person_among_their_own_neighbours() -> None:
    k = 5
    theirs = aif360.consistency_score(X, DECIDED, n_neighbors=k)
    with_self = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(X, return_distance=False)
    assert (with_self[:, 0] == np.arange(200)).all()
    assert consistency(DECIDED, neighbours=with_self) == pytest.approx(theirs)
    # One of their k is the person, who always agrees: left out, the disagreement grows by k / (k - 1).
    without = consistency(DECIDED, neighbours=with_self[:, 1:])
    assert 1 - without == pytest.approx((1 - theirs) * k / (k - 1))


def test_discrimination_is_their_statistical_parity_difference() -> None:
    decided = pd.Series(DECIDED, index=pd.Index(GROUP, name="group"))
    theirs = aif360.statistical_parity_difference(decided, prot_attr="group", priv_group=1, pos_label=1)
    assert discrimination(DECIDED, DECIDED, sensitive_features=GROUP) == pytest.approx(abs(theirs))


def test_ratios_and_differences_to_a_reference_are_theirs_with_their_sign() -> None:
    decided = pd.Series(DECIDED, index=pd.Index(GROUP, name="group"))
    given = {"prot_attr": "group", "priv_group": 1, "pos_label": 1}
    asked = {"sensitive_features": GROUP, "reference": 1}
    theirs = aif360.disparate_impact_ratio(decided, **given)
    assert impact_ratios(DECIDED, DECIDED, **asked)[0] == pytest.approx(theirs)
    theirs = aif360.statistical_parity_difference(decided, **given)
    assert parity_differences(DECIDED, DECIDED, **asked)[0] == pytest.approx(theirs)
