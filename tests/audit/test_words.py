from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.audit import audit


def test_the_subgroup_named_comes_with_what_is_certain_of_it() -> None:
    sex, job = np.tile(["f", "m"], 400), np.repeat(["cook", "clerk"], 400)
    decided = ((sex == "m") & (job == "cook")).astype(int)
    found = audit(decided, pd.DataFrame({"job": job}), decided, sensitive_features=sex, n_bootstrap=20)
    worst = found.subgroups.iloc[0]
    assert (
        "among job = cook (400 people): decided 1 0.0 % of f, 100.0 % of m. Allowing for all comparisons, "
        f"that is a difference of at least {100 * worst['low']:.1f} points."
    ) in found.summary()
    assert 0.8 < worst["low"] < 1


def test_one_label_alone_is_not_compared() -> None:
    found = audit(["no"] * 8, None, ["no"] * 8, sensitive_features=["f", "m"] * 4, n_bootstrap=20)
    assert "Everybody was decided 'no'" in found.summary()
    assert "differ" not in found.summary().splitlines()[2]


class _Told:
    classes_ = np.array(["no", "yes"])

    def predict(self, X: Any, *, sensitive_features: Any) -> Any:
        return self.classes_[self.predict_proba(X, sensitive_features=sensitive_features).argmax(1)]

    def predict_proba(self, X: Any, *, sensitive_features: Any) -> Any:
        yes = np.where(np.asarray(sensitive_features) == "f", 0.6, 0.7)  # 10 points, but 0.02 nats
        return np.stack([1 - yes, yes], axis=1)


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.05, "100.0"), (0.11, "0.0")])
def test_a_gap_in_words_is_a_difference_of_probabilities(epsilon: float, wanted: str) -> None:
    X, sex = pd.DataFrame({"age": np.arange(40)}), np.array(["f", "m"] * 20)
    y = np.where(np.arange(40) < 20, "no", "yes")
    found = audit(_Told(), X, y, sensitive_features=sex, epsilon=epsilon, n_bootstrap=20)
    assert (
        f"For {wanted} % the probability of a decision is {100 * epsilon:g} points or more away from what it "
        "would be in another group (total variation); the largest such difference is 10.0 points. The "
        "list of people has their gaps in nats of Kullback-Leibler divergence"
    ) in found.summary()
    found = audit(
        _Told(), X, y, sensitive_features=sex, divergence="total_variation", epsilon=epsilon, n_bootstrap=20
    )
    assert "nats" not in found.summary()
