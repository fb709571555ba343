"""A shift of contexts is named by its column; chance is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from evenhand import load
from evenhand.decisions import drifting
from evenhand.decisions.drifting import compare, drift_of


def people(rng, n, *, mean=0.0, cooks=0.5, gaps=0.0):
    return {
        "pay": rng.normal(mean, size=n).tolist(),
        "job": np.where(rng.random(n) < cooks, "cook", "smith").tolist(),
        "age": [None if gap else age for gap, age in zip(rng.random(n) < gaps, rng.normal(size=n), strict=True)],
        "town": rng.choice([f"town {at}" for at in range(40)], n).tolist(),
        "flag": (rng.random(n) < 0.5).tolist(),
        "none": [None] * n,
    }  # fmt: skip


def shifted(found):
    return {one["column"] for one in found if one["shifted"]}


def test_what_shifted_is_found_and_told():
    rng = np.random.default_rng(0)
    before, now = people(rng, 1000), people(rng, 400, mean=0.7, cooks=0.8, gaps=0.6)
    found = compare(before, now)
    assert shifted(found) == {"pay", "job", "age"}
    told = {one["column"]: one for one in found}
    assert told["job"]["before"].split(" % ")[1] == told["job"]["now"].split(" % ")[1]
    assert told["age"]["now"].endswith("% missing")
    assert [one["index"] for one in found] == sorted((one["index"] for one in found), reverse=True)
    shares = np.array(
        [[before["job"].count(name) / 1000, now["job"].count(name) / 400] for name in ("cook", "smith")]
    )
    by_hand = ((shares[:, 1] - shares[:, 0]) * np.log(shares[:, 1] / shares[:, 0])).sum()
    assert told["job"]["index"] == pytest.approx(by_hand, rel=0.02)
    assert told["job"]["chance"] == pytest.approx(chi2.isf(0.001 / 6, 1) * (1 / 1000 + 1 / 400))


def test_chance_alone_is_no_shift(monkeypatch):
    monkeypatch.setattr(drifting, "NOTABLE", 0.0)  # so that the sample's size alone decides
    monkeypatch.setattr(drifting, "CHANCE", 0.05)
    rng = np.random.default_rng(1)
    wrong = [bool(shifted(compare(people(rng, 200), people(rng, 100)))) for _ in range(200)]
    assert 0 < sum(wrong) < 25  # 10 are expected


def test_the_last_people_are_compared_with_those_before_the_policy(where, begin, crowd):
    now = [0.0]
    loop = begin(where, held_out=0.0, clock=lambda: now[0])
    assert drift_of(loop)["columns"] == []
    loop.decide_many(crowd[:150])
    assert drift_of(loop)["columns"] == []  # 75 on either side
    loop.decide_many(crowd[150:400])
    found = drift_of(loop)
    assert (found["people"], found["before"], found["learned_from"]) == (200, 200, False)
    assert {one["column"] for one in found["columns"]} == {"group", "number 1", "number 2", "number 3"}
    assert not shifted(found["columns"])
    now[0] = 10.0
    loop.outcome_many([{"id": person[0], "reward": 1.0} for person in crowd[:400]])
    loop.learn()
    loop.promote(force=True)
    other = [(f"new {id}", [x, y, z + 1], "f") for id, (x, y, z), _ in crowd[:300]]
    loop.decide_many(other)
    found = drift_of(loop)
    assert (found["people"], found["before"], found["learned_from"]) == (300, 400, True)
    assert shifted(found["columns"]) == {"group", "number 3"}


def test_columns_of_a_table_go_by_their_names(fitted, begin, tmp_path):
    loop = begin(tmp_path / "log.db", model=load(fitted.model))
    loop.decide_many(
        (f"{at}", {"skill": at % 7, "born": "01.02.1980", "job": "cook" if at < 200 else "smith", "branch": 1, "sex": "fm"[at % 2]}, None)
        for at in range(400)
    )  # fmt: skip
    assert [one["column"] for one in drift_of(loop)["columns"] if one["shifted"]] == ["job"]
