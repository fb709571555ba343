"""The rule for every outcome: late, repeated, out of order, before its decision, contradicting."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from evenhand.decisions.schema import contradictions, decisions, lessons, outcomes

LOANS = {"reveals": {"grant"}, "earns": {"grant": {"repaid": 1.0, "defaulted": -2.0}}}


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


def actions(loop, crowd, wanted, count):
    """Decide until there are so many people with an action; return their ids."""
    return [found.id for found in loop.decide_many(crowd) if found.action == wanted][:count]


def earned(loop):
    query = select(decisions.c.id, lessons.c.reward, lessons.c.why).join(
        lessons, lessons.c.decision == decisions.c.number
    )
    return {id: (reward, why) for id, reward, why in loop._log.all(query)}


def test_the_rules(where, begin, crowd):
    clock = Clock()
    loop = begin(where, **LOANS, within=timedelta(days=100), overdue=-1.0, clock=clock)
    day = 86_400.0
    good, bad, silent, slow, twice, torn = actions(loop, crowd[:500], "grant", 6)
    refused = actions(loop, crowd[:500], "refuse", 1)[0]

    assert loop.outcome("later", label="repaid", at=clock.now) == "early"
    assert loop.outcome(good, label="repaid", at=clock.now + 50 * day) == "accepted"
    assert (
        loop.outcome(bad, label="defaulted", at=datetime.fromtimestamp(clock.now + 9 * day, UTC))
        == "accepted"
    )
    assert loop.outcome(slow, label="repaid", at=clock.now + 101 * day) == "late"
    assert loop.outcome(refused, label="repaid") == "unrevealed"
    assert [loop.outcome(twice, label="repaid", at=clock.now + at) for at in (7, 5)] == [
        "accepted",
        "repeated",
    ]
    assert loop.outcome(torn, label="repaid") == "accepted"
    assert [loop.outcome(torn, label="defaulted") for _ in range(2)] == ["contradicting"] * 2
    assert len(loop._log.all(select(contradictions))) == 1

    loop.learn()
    found = earned(loop)
    assert {id: found.get(id) for id in (good, bad, silent, slow, twice, torn)} == {
        good: (1.0, "outcome"),
        bad: (-2.0, "outcome"),
        silent: None,
        slow: None,
        twice: (1.0, "outcome"),
        torn: (1.0, "outcome"),
    }
    assert found[refused] == (0.0, "unrevealed")

    clock.now += 101 * day
    loop.learn()
    assert earned(loop)[silent] == earned(loop)[slow] == (-1.0, "overdue")
    assert loop.outcome(silent, label="repaid") == "late"
    loop.learn()
    assert earned(loop)[silent] == (-1.0, "overdue")  # what was learned stands
    assert loop.replay().same


def test_an_outcome_before_its_decision_waits_for_it(where, begin, crowd):
    loop = begin(where)
    assert loop.outcome(crowd[0][0], reward=1.0) == "early"
    assert loop.outcome("nobody", reward=1.0) == "early"
    loop.decide(*crowd[0])
    loop.learn()
    assert earned(loop) == {crowd[0][0]: (1.0, "outcome")}


def test_the_order_of_outcomes_does_not_matter(begin, crowd, tmp_path):
    fingerprints = set()
    for name, step in (("one", 1), ("other", -1)):
        loop = begin(tmp_path / name)
        loop.decide_many(crowd[:300])
        for person in crowd[:300][::step]:
            loop.outcome(person[0], reward=float(person[1][0] > 0))
        loop.learn()
        fingerprints.add(loop.policies()[-1]["fingerprint"])
    assert len(fingerprints) == 1


def test_a_clock_that_goes_backwards_loses_nothing(where, begin, crowd):
    clock = Clock()
    loop = begin(where, within=60.0, clock=clock)
    loop.decide(*crowd[0])
    clock.now -= 3600
    loop.decide(*crowd[1])
    assert [loop.outcome(person[0], reward=1.0) for person in crowd[:2]] == ["accepted"] * 2
    loop.learn()
    assert len(earned(loop)) == 2
    assert loop.replay().same


def test_without_a_window_nothing_is_late(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log")
    loop.decide(*crowd[0])
    assert loop.outcome(crowd[0][0], reward=0.5, at=1e12) == "accepted"


def test_labels_are_actions_unless_told_otherwise(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log")
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "label": "grant"} for one in made])
    loop.learn()
    assert earned(loop) == {one.id: (float(one.action == "grant"), "outcome") for one in made}


@pytest.mark.parametrize(
    "told, error",
    [
        ({}, "expected one of them"),
        ({"reward": 1.0, "label": "grant"}, "expected one of them"),
        (
            {"reward": float("nan")},
            "Got reward=nan, but expected a finite number of at least 0 and at most 1",
        ),
        ({"reward": 1.5}, "reward_range"),
        ({"reward": "x" * (1 << 20)}, "expected a number"),
        ({"label": "x" * (1 << 20)}, "expected one of 'grant', 'refuse'"),
        ({"reward": 1.0, "at": float("inf")}, "Got at=inf"),
    ],
)
def test_an_outcome_that_is_none_is_refused(begin, crowd, tmp_path, told, error):
    loop = begin(tmp_path / "log")
    with pytest.raises(ValueError, match=error) as refused:
        loop.outcome_many([{"id": "fine", "reward": 1.0}, {"id": "a", **told}])
    assert len(str(refused.value)) < 1000
    assert loop._log.all(select(outcomes)) == []


@pytest.mark.parametrize(
    "options, error",
    [
        ({"reveals": {"lend"}}, "Got reveals with 'lend', but expected actions: 'grant', 'refuse'"),
        ({"earns": {"lend": {"repaid": 1}}}, "Got earns with 'lend'"),
        ({"overdue": 0.0}, "no within"),
        ({"within": -1}, "Got within=-1"),
        (
            {"unrevealed": 2.0},
            "Got unrevealed=2.0, but expected a finite number of at least 0 and at most 1. reward_range=",
        ),
        ({"reward_range": (1, 1)}, "expected a lower and a higher finite number"),
        (
            {"earns": {"grant": {"a": 1, "b": 3}}, "unrevealed": 1.0, "reward_range": (1, 3)},
            "Got reward_range=(1, 3), but expected one with 0: earns doesn't name the outcome 'a' of 'refuse'",
        ),
        (
            {"earns": {"grant": {"a": 1}, "refuse": {"b": 3}}, "unrevealed": 1.0, "reward_range": (1, 3)},
            "the outcome 'b' of 'grant', which therefore earns 0.",
        ),
        ({"explore": 0.6}, "Got explore=0.6"),
        ({"held_out": 1.5}, "Got held_out=1.5"),
        ({"max_flip": -1}, "Got max_flip=-1"),
        ({"confidence": 1}, "Got confidence=1"),
        ({"seed": "zz"}, "Got a seed that is not 32 hexadecimal digits"),
        ({"seed": "0" * 30}, "Got a seed that is not 32 hexadecimal digits"),
    ],
)
def test_rules_are_checked_before_a_log_is_begun(begin, tmp_path, options, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        begin(tmp_path / "log", **options)
    begin(tmp_path / "log").close()  # nothing of it was written


@pytest.mark.parametrize(
    "told",
    [
        {"earns": {"grant": {"a": 1, "b": 3}}, "reveals": {"grant"}},
        {"earns": {"grant": {"a": 1, "b": 3}, "refuse": {"a": 3, "b": 1}}},
    ],
)
def test_a_range_without_0_is_enough_if_every_outcome_is_named(begin, crowd, tmp_path, told):
    loop = begin(tmp_path / "log", **told, unrevealed=1.0, reward_range=(1, 3))
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "label": "b"} for one in made])
    loop.learn()
    assert {reward for reward, _ in earned(loop).values()} == {1.0, 3.0}


def test_a_label_that_would_earn_more_than_the_range_is_refused(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log", reward_range=(-1, 0.5))
    made = loop.decide_many(crowd[:1])[0]
    with pytest.raises(ValueError, match=r"earns 0 or 1, and reward_range is -1 to 0.5"):
        loop.outcome(made.id, label="grant")
    assert loop.outcome(made.id, reward=0.5) == "accepted"


def test_what_earns_does_not_name_earns_0_and_0_is_in_the_range(begin, crowd, tmp_path):
    """A label may be reported for somebody who got another action than `earns` names."""
    loop = begin(tmp_path / "log", earns={"grant": {"repaid": 3, "defaulted": 1}}, explore=0.1)
    made = loop.decide_many(crowd[:200])
    loop.outcome_many([{"id": one.id, "label": "repaid"} for one in made])
    loop.learn()
    assert set(earned(loop).values()) == {(0.0, "outcome"), (3.0, "outcome")}
    assert loop.candidate().outcomes > 0


def test_erased_rows_are_gone_and_replay_says_what_is_missing(where, begin, crowd, tmp_path):
    people = [*crowd[:300], ("somebody", [0.123456789, 0.0, 0.0], "f")]
    loop = begin(where, held_out=0.0)
    loop.decide_many(people)
    loop.outcome_many([{"id": person[0], "reward": 0.987654321} for person in people])
    loop.outcome("somebody", reward=0.0)
    loop.learn()
    assert loop.erase("somebody", "never met") == 1
    assert loop.erase("somebody") == 0
    found = loop.replay()
    assert (found.same, found.missing, found.erased, found.decisions) == (True, {2: 1}, 1, 300)
    if where.endswith(".db"):
        files = [path.read_bytes() for path in tmp_path.glob("log.db*")]
        assert not any(b"somebody" in content or b"0.123456789" in content for content in files)
    again = loop.decide("somebody", [5.0, 0.0, 0.0], "m")  # the id is free again
    assert again.group == "m"
    loop.learn()
    assert loop.replay().missing == {2: 1}


def test_a_log_that_was_changed_behind_its_back_is_noticed(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log", held_out=0.0)
    loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": person[0], "reward": 1.0} for person in crowd[:50]])
    loop.learn()
    for change, noticed in (
        ("UPDATE decisions SET probability = probability / 2 WHERE number = 3", "decision"),
        ("UPDATE lessons SET reward = 0.0 WHERE decision = 7", "policy 2"),
        ("UPDATE policies SET fingerprint = 'x' WHERE version = 1", "policy 1"),
    ):
        with sqlite3.connect(tmp_path / "log") as plain:
            plain.execute(change)
        plain.close()
        assert any(text.startswith(noticed) for text in loop.replay().differing), change


def test_export_for_audits(where, begin, crowd, tmp_path):
    import pandas as pd

    loop = begin(where, **LOANS)
    made = loop.decide_many(crowd[:100])
    loop.outcome_many([{"id": one.id, "label": "repaid"} for one in made])
    loop.learn()
    files = loop.export(tmp_path / "audit")
    tables = {path.stem: pd.read_parquet(path) for path in files}
    assert len(tables["decisions"]) == 100
    said = tables["decisions"].set_index("id")["probability"]
    assert said.to_dict() == {one.id: one.probability for one in made}
    granted = tables["decisions"].query("action == 'grant'")
    assert set(granted["earned"]) == {1.0}
    assert tables["policies"]["version"].tolist() == [1, 2]
    assert tables["promotions"]["why"].tolist() == ["start"]
    assert len(tables["erasures"]) == len(tables["contradictions"]) == 0
