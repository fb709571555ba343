"""Labels come back as they were given: truth values stay truth values, and a category's values its own."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand import audit, explore, load
from factories import FIT, evenhand, make_people

PEOPLE = make_people(300).drop(columns=["born"])
HIRED = PEOPLE["hired"] == "yes"
QUICK = {"weights": [1], "policies": "networks", "epochs": 20, "n_jobs": 1}


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (HIRED, "b"),
        (HIRED.astype("boolean"), "b"),
        (pd.Series(pd.Categorical(HIRED.astype(int))), "i"),
        (pd.Series(pd.Categorical(HIRED)), "b"),
        (HIRED.astype(int), "i"),
    ],
    ids=["bool", "boolean", "categories", "categories of bool", "int"],
)
def test_what_a_model_decides_compares_with_the_users_own_labels(labels, kind, tmp_path):
    people = PEOPLE.assign(hired=labels)
    model = explore(people, label="hired", sensitive="sex", **QUICK).choose()
    assert model.classes_.dtype.kind == kind
    assert model.pos_label is model.classes_.tolist()[1]
    right = np.mean(model.predict(people) == labels.to_numpy())
    assert right > 0.5
    found = audit(model, people.drop(columns="hired"), people["hired"], sensitive_features="sex")
    assert found.value("accuracy") == right
    again = load(model.save(tmp_path / "m.skops"))
    assert again.predict(people).dtype == model.predict(people).dtype
    assert np.array_equal(again.predict(people), model.predict(people))
    assert again.card["data"]["label"]["labels"] == model.classes_.tolist()


def test_truth_values_of_polars_and_a_positive_label_given_as_text():
    people = pl.from_pandas(PEOPLE.assign(hired=HIRED))
    model = explore(people, label="hired", sensitive="sex", positive="False", **QUICK).choose()
    assert model.pos_label is False
    assert (
        audit(model, people.drop("hired"), people["hired"], sensitive_features="sex").value("accuracy") > 0.5
    )


def test_files_with_true_and_false_fit_together_whatever_writes_them(tmp_path):
    people = PEOPLE.assign(hired=HIRED)
    people.to_csv(tmp_path / "comma.csv", index=False)
    people.to_csv(
        tmp_path / "semicolon.csv", index=False, sep=";", decimal=","
    )  # whose truth values are text
    people.to_parquet(tmp_path / "people.parquet")
    people.to_excel(tmp_path / "people.xlsx", index=False)
    files = [tmp_path / name for name in ("comma.csv", "semicolon.csv", "people.parquet", "people.xlsx")]
    for made_with in files[:2]:
        model = tmp_path / "m.skops"
        evenhand("fit", made_with, "--label", "hired", "--positive", "True", "-o", model, *FIT)
        told = []
        for file in files:
            out = evenhand("audit", file, "--model", model, "--part", "test", "--json")
            told.append(json.loads(out.stdout)["metrics"])
            evenhand("predict", model, file, "-o", tmp_path / "decided.csv")
            decided = pd.read_csv(tmp_path / "decided.csv", sep=None, engine="python")
            assert (decided["decision"].astype(str) == decided["hired"].astype(str)).mean() > 0.5
        assert all(metrics == told[0] for metrics in told)
