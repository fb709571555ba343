"""Running counts are those of the whole log, at every look, whatever comes between."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest
from sqlalchemy import delete, insert, select

from evenhand.decisions import counting, settling
from evenhand.decisions.schema import contradictions, decisions, lessons, outcomes
from evenhand.decisions.status import Status, find
from evenhand.decisions.watching import Watch

LOANS = {"reveals": {"grant"}, "unrevealed": 0.25, "explore": 0.35, "held_out": 0.0}


def counted(loop):
    """Count the whole log, row by row."""
    earned = {row.decision: row.reward for row in loop._log.all(select(lessons))}
    rows, cells = loop._log.all(select(decisions)), Counter()
    for row in rows:
        cell = (row.version, row.group, row.action)
        known = row.number in earned
        cells.update(
            {
                (cell, "floors"): row.floor,
                (cell, "decisions"): 1,
                (cell, "known"): known,
                (cell, "revealed"): row.revealed,
            }
        )
        cells.update({(cell, "explored"): row.explored, (cell, "earned"): earned.get(row.number, 0)})
    waiting = sum(row.revealed and row.number not in earned for row in rows)
    return cells, [
        len(rows), len(loop._log.all(select(outcomes))), len(loop._log.all(select(contradictions))), waiting,
        len(earned), sum(earned.values()),
    ]  # fmt: skip


def assert_counts(status, loop):
    found, (cells, counts) = status.look(), counted(loop)
    names = ("decisions", "outcomes", "contradictions", "awaited", "known", "earned")
    assert [found["counts"][name] for name in names] == pytest.approx(counts)
    for row in found["cells"]:
        cell = (row["version"], row["group"], row["action"])
        for name in ("decisions", "known", "revealed", "explored", "floors", "earned"):
            assert row[name] == pytest.approx(cells[cell, name]), (cell, name)
    assert len(found["cells"]) == len({cell for cell, _ in cells})


def test_running_counts_are_those_of_the_whole_log(where, begin, crowd):
    loop = begin(where, **LOANS)
    status = Status(loop)
    assert_counts(status, loop)
    for round in range(3):
        people = crowd[round * 40 : round * 40 + 40]
        made = loop.decide_many(people)
        assert_counts(status, loop)
        loop.outcome_many([{"id": one.id, "reward": 0.5} for one in made[:30]])
        loop.outcome_many([{"id": one.id, "reward": 0.75} for one in made[:3]])
        loop.outcome(f"early {round}", reward=1.0)
        assert_counts(status, loop)
        loop.learn()
        assert_counts(status, loop)
        loop.promote(force=True)
        loop.candidate()
        loop.outcome(made[35].id, reward=0.5)
        loop.erase(made[0].id, made[34].id) if round else loop.erase("early 0")
        assert_counts(status, loop)


def test_a_look_counts_what_is_new(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", **LOANS)
    status = Status(loop)
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "reward": 1.0} for one in made])
    loop.learn()
    before = status.look()["counts"]
    with loop._log.write() as connection:  # behind its back: what was counted is not read again
        for table in (decisions, outcomes, lessons):
            connection.execute(delete(table))
    loop.decide(*crowd[60])
    after = status.look()["counts"]
    assert (after["decisions"], after["outcomes"]) == (51, before["outcomes"])
    assert before["known"] <= after["known"] <= before["known"] + 1  # a refusal is known at once


def test_rewards_are_known_before_anybody_learns(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", **LOANS)
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "reward": 0.75} for one in made])
    counts = Status(loop).look()["counts"]
    assert (counts["known"], counts["awaited"]) == (50, 0)
    one = loop.decide(*crowd[60])
    loop.outcome(one.id, reward=0.75)
    assert find(loop, one.id)[1]["reward"] == (0.75 if loop.rules.shows(one.action) else 0.25)
    with loop._log.learning:  # it learns, which may take long: looking doesn't wait
        assert Status(loop).look()["counts"]["known"] == 51


def test_looking_does_not_wait_for_another_process_that_writes(begin, crowd, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.decisions.status._PATIENCE", 0.05)
    loop = begin(tmp_path / "log.db", **LOANS)
    one = loop.decide(*crowd[0])
    loop.outcome(one.id, reward=0.75)
    status = Status(loop)
    with sqlite3.connect(tmp_path / "log.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert status.look()["counts"]["known"] == 0
        other.execute("ROLLBACK")
    with loop._log.learning:  # until the look's own join is over
        pass
    assert status.look()["counts"]["known"] == 1


def test_the_first_look_after_a_start_goes_on_from_the_log_s_own_counts(where, begin, crowd, monkeypatch):
    monkeypatch.setattr(counting, "_MANY", 30)
    loop = begin(where, **LOANS)
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "reward": 1.0} for one in made])
    loop.learn()
    before = Status(loop).look()
    assert Status(loop).look() == before
    loop.decide_many(crowd[50:60])  # too few to write the counts anew
    with loop._log.write() as connection:
        connection.execute(delete(decisions).where(decisions.c.number <= 50))
    assert Status(loop).look()["counts"]["decisions"] == 60
    loop.erase(crowd[55][0])
    assert Status(loop).look()["counts"]["decisions"] == 9


def test_lessons_that_were_counted_are_in_the_log_s_own_counts_too(where, begin, crowd, monkeypatch):
    loop = begin(where, **LOANS)
    made = loop.decide_many(crowd[:50])
    loop.outcome_many([{"id": one.id, "reward": 1.0} for one in made])
    loop.learn()
    monkeypatch.setattr(counting, "_MANY", 60)  # more than the decisions, less than those and their lessons
    before = Status(loop).look()
    with loop._log.write() as connection:
        connection.execute(delete(lessons))
    assert Status(loop).look() == before


def test_a_look_at_a_policy_that_decided_nothing_yet_does_not_read_the_log_again(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", **LOANS)
    loop.decide_many(crowd[:50])
    loop.learn()
    loop.promote(force=True)
    watch = Watch(loop)
    assert watch.look()["people"] == 0
    assert watch._seen[2].reached == 50
    loop.decide_many(crowd[50:60])
    assert watch.look()["people"] == 10


def test_a_decision_that_is_committed_late_is_counted(database, begin, crowd, monkeypatch):
    loop = begin(database, **LOANS)
    monkeypatch.setattr(settling, "_WAIT", 0.05)
    loop.decide(*crowd[0])
    late = {**loop._log.all(select(decisions))[0]._asdict(), "id": "late"}
    del late["number"]
    status = Status(loop)
    with loop._log.engine.connect() as slow:
        slow.execute(insert(decisions).values(**late))
        loop.decide(*crowd[1])
        found = status.look()
        assert found["counts"]["decisions"] == 2
        assert found["treated"]["people"] == 0  # their turn comes when all before them are known
        slow.commit()
    found = status.look()
    assert found["counts"]["decisions"] == found["treated"]["people"] == 3
    assert_counts(status, loop)
