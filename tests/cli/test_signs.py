"""What `predict` wrote can be read again: labels + and -, gaps written '-', and values that look like formulas."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from factories import FIT, evenhand, make_people


def test_decisions_that_were_written_are_decided_and_audited_alike(tmp_path):
    people = make_people(300)
    people["hired"] = np.where(people["hired"] == "yes", "+", "-")
    people["skill"] = people["skill"].astype(object).where(people["skill"].notna(), "-")
    people["job"] = people["job"].replace({"clerk": "@home", "cook": "=1+1"})
    people.to_csv(tmp_path / "p.csv", index=False)
    roles = ("--label", "hired", "--sensitive", "sex", "--positive", "+")
    evenhand("fit", tmp_path / "p.csv", *roles, *FIT, "-o", tmp_path / "m.skops")
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    told = [
        json.loads(
            evenhand("predict", tmp_path / "m.skops", data, "-o", to, "--prefix", prefix, "--json").stdout
        )
        for data, to, prefix in ((tmp_path / "p.csv", once, ""), (once, twice, "new_"))
    ]
    assert [(said["decided"], said["rejected"], said["unseen"]) for said in told] == [(300, 0, {})] * 2
    again = pd.read_csv(twice)
    assert again["decision"].tolist() == again["new_decision"].tolist()
    assert set(again["decision"]) == {"+", "-"}
    assert set(again["job"]) == {"'@home", "'=1+1", "<b>boss"}  # still no formulas
    for asked in (("--predictions", "decision", *roles), ("--model", tmp_path / "m.skops")):
        evenhand("audit", once, *asked, "--json")
