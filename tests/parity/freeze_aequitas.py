"""Writes aequitas.json, disparities that Aequitas finds, for test_metrics_aequitas.py.

Aequitas 1.1.0 needs pandas 2: run this in an environment of its own.
"""

import json
from pathlib import Path

import numpy as np

NAMES = ("ppr", "pprev", "ppr_disparity", "pprev_disparity")


def people(n=300, seed=0):
    """Return made-up labels, decisions and groups of unequal size."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    decided = rng.random(n) < np.select([race == "a", race == "b"], [0.5, 0.35], 0.6)
    return rng.integers(0, 2, n), decided.astype(int), race


def main():
    import pandas as pd
    from aequitas.bias import Bias
    from aequitas.group import Group

    label, decided, race = people()
    frame = pd.DataFrame({"score": decided, "label_value": label, "race": race})
    crosstab, _ = Group().get_crosstabs(frame, attr_cols=["race"])
    found = {}
    for reference in ("a", "b"):
        given = {"original_df": frame, "ref_groups_dict": {"race": reference}, "check_significance": False}
        rows = Bias().get_disparity_predefined_groups(crosstab, **given).set_index("attribute_value")
        found[reference] = {name: rows[name].astype(float).to_dict() for name in NAMES}
    Path(__file__).with_name("aequitas.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
