from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import twins
from evenhand.auditing.causal import Equations, read_graph

QUICK: dict[str, Any] = {"n_null": 19, "n_bootstrap": 50, "n_pairs": 60}


class Pays:
    """Yes where pay is above a bar."""

    classes_ = np.array([0, 1])

    def predict(self, X: pd.DataFrame) -> Any:
        return (X["pay"] > 30).astype(int).to_numpy()


def people(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Sex affects hours and the job, hours and age affect pay, sex does not affect age."""
    rng = np.random.default_rng(seed)
    man = rng.random(n) < 0.5
    hours = np.round(rng.normal(np.where(man, 40, 30), np.where(man, 6, 3)))
    job = np.where(rng.random(n) < np.where(man, 0.7, 0.2), "driver", "nurse")
    age = rng.integers(20, 60, n)
    pay = 0.7 * hours + 0.1 * age + rng.normal(size=n)
    frame = pd.DataFrame({"age": age, "hours": hours.astype(int), "job": job, "pay": pay})
    return frame, pd.Series(np.where(man, "m", "f"), name="sex")


EDGES = ["sex->hours", "sex->job", "hours->pay", "age->pay"]


def equations(frame: pd.DataFrame, sex: pd.Series[Any]) -> Equations:
    return Equations(frame, (sex == "m").to_numpy().astype(int), read_graph(EDGES, frame.columns, ["sex"]))


def test_what_the_group_affects_moves_and_the_rest_stays() -> None:
    frame, sex = people()
    women, men = np.flatnonzero(sex == "f"), np.flatnonzero(sex == "m")
    moved = equations(frame, sex).moved(women, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(moved["age"], frame["age"].iloc[women])
    # Hours have men's mean and men's wider spread, and women keep their rank.
    assert moved["hours"].mean() == pytest.approx(frame["hours"].iloc[men].mean(), abs=0.3)
    assert moved["hours"].std() == pytest.approx(frame["hours"].iloc[men].std(), rel=0.1)
    assert moved["hours"].corr(frame["hours"].iloc[women].reset_index(drop=True), "spearman") > 0.95
    assert moved["hours"].dtype == frame["hours"].dtype
    assert (moved["job"] == "driver").mean() == pytest.approx(
        (frame["job"].iloc[men] == "driver").mean(), abs=0.1
    )
    # Whoever drove keeps driving: nobody's category changes against the stream.
    assert (moved["job"][(frame["job"].iloc[women] == "driver").to_numpy()] == "driver").all()
    # Ten hours more are worth seven, and what is a person's own stays.
    raised = moved["pay"] - frame["pay"].iloc[women].reset_index(drop=True)
    assert raised.mean() == pytest.approx(7, abs=1)
    assert raised.std() < 3


def test_somebody_moved_to_their_own_group_stays_who_they_are() -> None:
    frame, sex = people()
    women = np.flatnonzero(sex == "f")
    moved = equations(frame, sex).moved(women, 0, np.random.default_rng(0))
    same = frame.iloc[women].reset_index(drop=True)
    assert (moved["job"] == same["job"]).all()
    np.testing.assert_array_equal(moved["hours"], same["hours"])
    np.testing.assert_allclose(moved["pay"], same["pay"])


def test_gaps_stay_gaps_and_dates_stay_dates() -> None:
    frame, sex = people()
    frame["hours"] = frame["hours"].where(np.arange(len(frame)) % 7 > 0)
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["age"] + 100 * (sex == "m"), "D")
    codes = (sex == "m").to_numpy().astype(int)
    parents = read_graph([*EDGES, "sex->since"], frame.columns, ["sex"])
    women = np.flatnonzero(codes == 0)
    moved = Equations(frame, codes, parents).moved(women, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(moved["hours"].isna(), frame["hours"].iloc[women].isna())
    later = moved["since"] - frame["since"].iloc[women].reset_index(drop=True)
    assert later.median() / pd.Timedelta(1, "D") == pytest.approx(100, abs=5)


def test_the_graphs_counterparts_are_decided_differently_through_the_affected_columns() -> None:
    frame, sex = people()
    found = twins(Pays(), frame, sensitive_features=sex, edges=EDGES, **QUICK)
    flips = found.flips.set_index("group")
    assert flips.loc["f", "clear"]
    assert not flips.loc["m", "clear"]
    assert flips.loc["f", "share"] > 0.4
    assert found.columns["column"][found.columns["clear"]].tolist() == ["pay"]
    assert {"pay"} <= set(found.steps["column"][found.steps["changed"]]) <= {"hours", "job", "pay"}
    assert (found.people["counterpart"] == -1).all()
    assert found.to_dict()["people"][0]["counterpart"] is None
    assert "made by the graph sex->hours" in found.summary()


def test_a_graph_that_leaves_the_model_s_column_alone_finds_nothing() -> None:
    frame, sex = people()
    found = twins(Pays(), frame, sensitive_features=sex, edges=["sex->job"], **QUICK)
    assert found.flips["people"].tolist() == [0, 0]
    assert not found.flips["clear"].any()


def test_decisions_alone_are_asked_of_a_surrogate() -> None:
    frame, sex = people(300)
    found = twins(Pays().predict(frame), frame, sensitive_features=sex, edges=EDGES, **QUICK)
    assert found.flips.set_index("group").loc["f", "clear"]
    assert "boosted trees stand in" in found.notes[0]
    with pytest.raises(ValueError, match="Got the same decision for everybody"):
        twins(np.ones(300, dtype=int), frame, sensitive_features=sex, edges=EDGES, **QUICK)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (["sex-hours"], "Got the edge 'sex-hours', but expected one like"),
        (["sex->"], "Got the edge 'sex->', but expected one like"),
        (["sex->huors"], "Got 'huors' in the edge 'sex->huors'.*Did you mean 'hours'"),
        (["hours->sex"], "nothing can be a cause of the group"),
        (["age->pay"], "Got no edge from the group"),
        (["sex->pay", "pay->hours", "hours->pay"], "form a cycle"),
    ],
)
def test_wrong_graphs_are_refused(edges: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_graph(edges, ["age", "hours", "pay"], ["sex"])


def test_columns_downstream_of_others_follow_them() -> None:
    assert read_graph(["a->b", "group->a", "c->b"], ["a", "b", "c"], []) == {"a": ["group"], "b": ["a", "c"]}
