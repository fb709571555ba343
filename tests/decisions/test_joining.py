"""Lessons are joined from what is new: the same as if the whole log were read each time, whoever writes beside."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies
from sqlalchemy import create_engine, delete, event, func, insert, select, text

from evenhand.decisions import lessons as joining
from evenhand.decisions import schema, settling
from evenhand.decisions.log import Log
from evenhand.decisions.rules import make_rules
from evenhand.decisions.schema import decisions, lessons, outcomes
from evenhand.decisions.status import Status

WITHIN = 10.0
RULES = {
    "seed": "0" * 32, "explore": 0.1, "explore_per_day": None, "held_out": 0.0, "unrevealed": 0.25, "within": WITHIN, "overdue": -1.0,
    "reward_range": (-2, 1), "reveals": {"grant"}, "earns": {"grant": {"repaid": 1.0, "defaulted": -2.0}},
}  # fmt: skip
LABELS = [None, "repaid", "defaulted"]
PEOPLE = strategies.integers(0, 2)
STEPS = strategies.one_of(
    strategies.tuples(strategies.just("decide"), PEOPLE, strategies.booleans()),
    strategies.tuples(strategies.just("tell"), PEOPLE, strategies.sampled_from([-5, 10, 15]), strategies.sampled_from(LABELS)),
    strategies.tuples(strategies.just("wait"), strategies.sampled_from([-5, 5, 10])),
    strategies.tuples(strategies.just("erase"), PEOPLE),
    strategies.tuples(strategies.just("join")),
)  # fmt: skip


def row(number, *, at=0.0, granted=True):
    return {
        "id": f"{number}", "at": at, "group": "f", "context": "[0]", "by_group": "[[0.5,0.5]]", "version": 1,
        "action": "grant" if granted else "refuse", "probability": 0.5, "revealed": granted, "held_out": False, "floor": 0.1, "explored": False,
    }  # fmt: skip


def told(number, *, at=0.0, label=None):
    return {"id": f"{number}", "at": at, "received": at, "reward": None if label else 0.5, "label": label}


def begun(where):
    log = Log(where)
    with log.write() as connection:
        connection.execute(insert(schema.settings).values(name=joining.SITTING, value="1"))
    return log


def write(log, query, *rows):
    with log.write() as connection:
        connection.execute(query, *rows)


def expect(rules, log, known, now):
    """Go through the whole log; add to `known` what each decision earned that is not there yet."""
    came = {one.id: one for one in log.all(select(outcomes))}
    for made in log.all(select(decisions)):
        seen = came.get(made.id)
        if made.number in known:
            continue
        if not made.revealed:
            known[made.number] = (rules.unrevealed, "unrevealed")
        elif seen is not None and seen.at <= made.at + WITHIN:
            reward = seen.reward if seen.label is None else rules.earns["grant"][seen.label]
            known[made.number] = (reward, "outcome")
        elif rules.overdue is not None and made.at < now - WITHIN:
            known[made.number] = (rules.overdue, "overdue")


def kept(log):
    return {one.decision: (one.reward, one.why) for one in log.all(select(lessons))}


@settings(max_examples=40)
@given(steps=strategies.lists(STEPS, min_size=20, max_size=40), overdue=strategies.booleans())
def test_it_is_as_if_the_whole_log_were_read(steps, overdue):
    rules = make_rules(["grant", "refuse"], **{**RULES, "overdue": -1.0 if overdue else None})
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_WRITTEN", 2)
        log, now, known = begun(Path(folder) / "log.db"), 0.0, {}
        log.engine.dispose()  # thousands of commits need not wait for the disk
        event.listen(log.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
        for name, *how in [*steps, ("join",)]:
            if name == "decide" and not log.all(select(decisions).where(decisions.c.id == f"{how[0]}")):
                write(log, insert(decisions), row(how[0], at=now, granted=how[1]))
            elif name == "tell" and not log.all(select(outcomes).where(outcomes.c.id == f"{how[0]}")):
                write(log, insert(outcomes), told(how[0], at=now + how[1], label=how[2]))
            elif name == "wait":
                now += how[0]
            elif name == "erase":
                numbers = select(decisions.c.number).where(decisions.c.id == f"{how[0]}")
                for number in [number for (number,) in log.all(numbers)]:
                    write(log, delete(lessons).where(lessons.c.decision == number))
                    known.pop(number, None)
                for table in (decisions, outcomes):
                    write(log, delete(table).where(table.c.id == f"{how[0]}"))
            elif name == "join":
                before = len(known)
                expect(rules, log, known, now)
                assert joining.join(log, rules, now) == len(known) - before
                assert kept(log) == known
        log.close()


def test_a_second_join_reads_nothing_again(tmp_path, monkeypatch):
    rules, log, asked = make_rules(["grant", "refuse"], **RULES), begun(tmp_path / "log.db"), []
    write(log, insert(decisions), [row(number) for number in range(50)])
    write(log, insert(outcomes), [told(number) for number in range(20)])
    assert joining.join(log, rules, 0.0) == 20
    written = joining._write
    monkeypatch.setattr(joining, "_write", lambda *told: asked.append(told) or written(*told))
    assert joining.join(log, rules, 5.0) == 0
    assert not asked
    assert joining.join(log, rules, 11.0) == 30
    assert len(asked) == 1
    log.close()


def test_a_join_that_was_killed_or_overtaken_is_done_again(tmp_path, monkeypatch):
    rules, log = make_rules(["grant", "refuse"], **RULES), begun(tmp_path / "log.db")
    write(log, insert(decisions), [row(number) for number in range(5)])
    write(log, insert(outcomes), [told(number) for number in range(4)])
    set_joined, first = joining._set_joined, joining.settled

    def killed(*told):
        raise KeyboardInterrupt

    monkeypatch.setattr(joining, "_set_joined", killed)
    with pytest.raises(KeyboardInterrupt):
        joining.join(log, rules, 0.0)
    monkeypatch.setattr(joining, "_set_joined", set_joined)

    def overtaken(log, table, before):
        upto = first(log, table, before)
        if table is outcomes:
            monkeypatch.setattr(joining, "settled", first)
            write(log, insert(outcomes), told(4))
            assert joining.join(log, rules, 0.0) == 1
            write(log, insert(decisions), row(5, granted=False))
        return upto

    monkeypatch.setattr(joining, "settled", overtaken)
    joining.join(log, rules, 0.0)
    assert json.loads(log.setting(joining.JOINED))[1] == 5  # what the other wrote down stands
    joining.join(log, rules, 0.0)
    assert len(kept(log)) == 6
    log.close()


@pytest.mark.parametrize("table", ["decisions", "outcomes"])
def test_a_row_that_is_committed_late_is_not_passed_over(database, monkeypatch, table):
    rules, log = make_rules(["grant", "refuse"], **RULES), begun(database)
    late, other = (
        (insert(decisions).values(**row(1)), insert(decisions).values(**row(2)))
        if table == "decisions"
        else (insert(outcomes).values(**told(1)), insert(outcomes).values(**told(2)))
    )
    write(
        log,
        *(
            (insert(outcomes), [told(1), told(2)])
            if table == "decisions"
            else (insert(decisions), [row(1), row(2)])
        ),
    )
    slow = log.engine.connect()
    slow.execute(late)
    write(log, other)
    monkeypatch.setattr(settling, "_WAIT", 0.05)
    joining.join(log, rules, 0.0)
    assert len(kept(log)) <= 1
    write(log, insert(decisions).values(**row(3)))  # nobody was held up
    monkeypatch.setattr(settling, "_WAIT", 30.0)
    again = threading.Thread(target=joining.join, args=(log, rules, 0.0))
    again.start()
    slow.commit()
    again.join(20)
    assert not again.is_alive()
    assert len(kept(log)) == 2
    slow.close()
    log.close()


def test_a_log_of_the_first_version_goes_on(where, begin, crowd):
    loop = begin(where, held_out=0.0)
    made = loop.decide_many(crowd[:60])
    loop.outcome_many([{"id": one.id, "reward": 1.0} for one in made[:40]])
    loop.close()
    engine = create_engine(
        where.replace("postgresql:", "postgresql+psycopg:") if ":" in where else f"sqlite:///{where}"
    )
    with engine.begin() as connection:  # as that version had it
        for change in (
            "DROP INDEX decisions_at",
            "ALTER TABLE decisions DROP COLUMN floor", "ALTER TABLE decisions DROP COLUMN explored", "DROP INDEX lessons_in_order",
            "CREATE INDEX ix_lessons_sitting ON lessons (sitting)",
            "CREATE TABLE older (id VARCHAR(200) PRIMARY KEY, at DOUBLE PRECISION NOT NULL, "
            "received DOUBLE PRECISION NOT NULL, reward DOUBLE PRECISION, label TEXT)",
            "INSERT INTO older SELECT id, at, received, reward, label FROM outcomes",
            "DROP TABLE outcomes", "ALTER TABLE older RENAME TO outcomes",
            "DELETE FROM schema_version", "INSERT INTO schema_version VALUES (1)",
        ):  # fmt: skip
            connection.execute(text(change))
    engine.dispose()
    again = begin(where, held_out=0.0)
    assert again.outcome(made[0].id, reward=1.0) == "repeated"
    assert again.learn().rows == 40
    again.outcome_many([{"id": one.id, "reward": 0.0} for one in made[40:]])
    assert again.learn().rows == 20
    assert again.replay().same
    assert again._log.all(select(func.count()).select_from(outcomes))[0][0] == 60
    assert Status(again).look()["counts"]["awaited"] == 0
