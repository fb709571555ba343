from __future__ import annotations

import numpy as np
import pandas as pd

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
