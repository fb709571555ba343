"""A column that says how many people each person stands for, from the table to the audit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand.metrics import accuracy, positive_rates
from evenhand.tables import load_table
from factories import evenhand as command
from factories import make_people, make_rare

ROLES = {"label": "hired", "sensitive": "sex", "categorical": "branch"}
SMALL = {"weights": [0, 20], "policies": "networks", "epochs": 5, "n_jobs": 1}


@pytest.fixture(scope="module")
def people():
    """Those who were hired stand for many: three in four of all people, half of the table."""
    table = make_people(1000)
    return table.assign(counts=np.where(table["hired"] == "yes", 3.0, 1.0))


@pytest.fixture(scope="module")
def frontier(people):
    return evenhand.explore(people, weight="counts", **ROLES, **SMALL)


def test_models_learn_from_and_are_judged_by_the_people_that_the_table_stands_for(frontier, people):
    model = frontier.model
    assert "counts" not in model.columns
    assert model.card["data"]["weight"] == "counts"
    plain = evenhand.explore(people.drop(columns="counts"), **ROLES, **SMALL)
    rates = [one.candidates["positive_rate"].mean() for one in (frontier, plain)]
    assert rates[0] > rates[1] + 0.1
    test = people.iloc[frontier.test_rows]
    decided = model.predict(test)
    found = frontier.choice()
    right = accuracy(test["hired"], decided, sample_weight=test["counts"])
    assert found.test["accuracy"]["value"] == pytest.approx(right)
    assert right != pytest.approx(accuracy(test["hired"], decided))
    shares = positive_rates(
        test["hired"], decided, sensitive_features=test["sex"], sample_weight=test["counts"]
    )
    assert {row["group"]: row["positive_rate"]["value"] for row in found.groups} == pytest.approx(shares)
    assert frontier.dataset.fingerprint != plain.dataset.fingerprint


def test_a_rare_label_is_rare_among_the_people():
    table = make_rare(share=0.4)
    table = table.assign(counts=np.where(table["hired"] == "yes", 1.0, 20.0))
    few = {"label": "hired", "sensitive": "sex", **SMALL}
    weighted = evenhand.explore(table, weight="counts", **few)
    assert weighted.rare
    assert weighted.parts.threshold == pytest.approx(0.4 / (0.4 + 0.6 * 20), rel=0.05)
    assert not evenhand.explore(table.drop(columns="counts"), **few).rare


def test_commands_take_the_column(people, frontier, tmp_path):
    data = tmp_path / "p.csv"
    people.to_csv(data, index=False)
    fit = ("fit", data, "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops", "--weight", "counts",
           "--categorical", "branch", "--weights", "0,20", "--policies", "networks", "--epochs", "5", "--jobs", "1")  # fmt: skip
    document = json.loads(command(*fit, "--json").stdout)
    assert document["test"] == frontier.choice().test
    model = evenhand.load(tmp_path / "m.skops")
    command("predict", tmp_path / "m.skops", data, "-o", tmp_path / "d.csv")
    decided = pd.read_csv(tmp_path / "d.csv")
    assert (decided["decision"] == model.predict(people)).all()
    of_test = ("audit", data, "--model", tmp_path / "m.skops", "--part", "test", "--json")
    weighted, plain = (json.loads(command(*of_test, *more).stdout) for more in (("--weight", "counts"), ()))
    values = [
        {row["metric"]: row["value"] for row in found["metrics"] if row["group"] is None}
        for found in (weighted, plain)
    ]
    assert values[0]["accuracy"] == pytest.approx(document["test"]["accuracy"]["value"])
    assert values[0]["accuracy"] != pytest.approx(values[1]["accuracy"])
    assert any("people with equal weights" in note for note in weighted["notes"])
    past = ("audit", data, "--label", "hired", "--sensitive", "sex", "--predictions", "hired", "--json")
    found = json.loads(command(*past, "--weight", "counts").stdout)
    rate = np.average(people["hired"] == "yes", weights=people["counts"])
    assert found["about"]["label_rate"] == pytest.approx(rate)
    assert rate > (people["hired"] == "yes").mean() + 0.1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], r"The weight 'w' of .* is -1 in row 2, but expected numbers of at least 0"),
        ([1, None, 1], "in row 2, but expected numbers"),
        (["1", "one", "1"], "is 'one' in row 2"),
        ([0, 0, 0], "some of them above 0"),
    ],
)
def test_what_is_no_weight_is_an_error(weights, message):
    table = pd.DataFrame({"age": [1, 2, 3], "sex": ["f", "m", "f"], "hired": ["n", "y", "n"], "w": weights})
    with pytest.raises(ValueError, match=message):
        load_table(table, label="hired", sensitive="sex", weight="w")
    with pytest.raises(ValueError, match=r"Got weight='v', but .* has no such column"):
        load_table(table, label="hired", sensitive="sex", weight="v")


def test_an_audit_takes_an_array_or_a_column(people):
    X, given = people.drop(columns="hired"), {"sensitive_features": "sex", "n_bootstrap": 100}
    weights = people["counts"]
    past = people["hired"]
    array = evenhand.audit(past, X.drop(columns="counts"), past, sample_weight=weights, **given)
    column = evenhand.audit(past, X, past, sample_weight="counts", **given)
    pd.testing.assert_frame_equal(array.metrics, column.metrics)
    plain = evenhand.audit(past, X.drop(columns="counts"), past, **given)
    rates = [found.row("positive_rate", "f") for found in (array, plain)]
    f = (people["sex"] == "f").to_numpy()
    assert rates[0]["value"] == pytest.approx(np.average(past[f] == "yes", weights=weights[f]))
    assert rates[0]["value"] > rates[1]["value"]
    assert rates[0]["people"] == rates[1]["people"] == f.sum()
    with pytest.raises(
        ValueError, match=r"Got sample_weight='count', but X has no such column.* Did you mean 'counts'"
    ):
        evenhand.audit(past, X, past, sample_weight="count", **given)
    with pytest.raises(ValueError, match="Got a sample_weight of -3 in row"):
        evenhand.audit(past, X, past, sample_weight=-weights, **given)
