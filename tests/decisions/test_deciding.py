"""One id is one decision, whatever the order, the thread or the process."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import select

from evenhand import (
    ConflictError,
    DecisionLoop,
    GradientBandit,
    LogUnavailableError,
    WrongLogError,
    load,
)
from evenhand.decisions import schema


def test_the_same_id_gets_the_same_answer_and_another_context_is_a_conflict(where, begin, crowd):
    loop = begin(where)
    first = loop.decide("a", [0.1, 0.2, 0.3], "f")
    assert loop.decide("a", np.array([0.1, 0.2, 0.3]), "f") == first
    assert set(first.by_group) == {"f", "m"}
    assert first.by_group["f"][first.action] == first.probability
    assert sum(first.by_group["m"].values()) == pytest.approx(1)
    assert min(chance for said in first.by_group.values() for chance in said.values()) >= 0.02
    for context, group in (([0.1, 0.2, 0.4], "f"), ([0.1, 0.2, 0.3], "m")):
        with pytest.raises(ConflictError, match="'a' with another context or group"):
            loop.decide("a", context, group)
    loop.close()
    with DecisionLoop(None, where) as again:
        assert again.decide("a", [0.1, 0.2, 0.3], "f") == first


def test_answers_depend_on_the_seed_and_the_id_not_on_order_or_batches(begin, crowd, tmp_path):
    people = crowd[:200]
    one, other, third = (begin(tmp_path / name) for name in "abc")
    together = {found.id: (found.action, found.by_group) for found in one.decide_many(people)}
    alone = [other.decide(*person) for person in reversed(people)]
    assert {found.id: (found.action, found.by_group) for found in alone} == together
    with ThreadPoolExecutor(8) as threads:
        at_once = list(threads.map(lambda person: third.decide(*person), people * 2))
    assert {found.id: (found.action, found.by_group) for found in at_once} == together
    with DecisionLoop(None, tmp_path / "c") as reopened:
        assert reopened.replay().decisions == 200
    elsewhere = begin(tmp_path / "d", seed="1" * 32).decide_many(people)
    assert any(together[found.id][0] != found.action for found in elsewhere)


def test_actions_come_as_often_as_their_probabilities_say(begin, crowd, tmp_path):
    found = begin(tmp_path / "log", explore=0.2, held_out=0.25).decide_many(crowd)
    expected = sum(said.by_group[said.group]["grant"] for said in found)
    assert sum(said.action == "grant" for said in found) == pytest.approx(expected, abs=4 * np.sqrt(1000))
    rules = DecisionLoop(None, tmp_path / "log").rules
    assert np.mean(rules.draws([said.id for said in found])[1]) == pytest.approx(0.25, abs=0.03)


def test_a_batch_is_decided_wholly_or_not_at_all(where, begin, crowd):
    loop = begin(where)
    loop.decide(*crowd[0])
    with pytest.raises(ConflictError):
        loop.decide_many([crowd[1], (crowd[0][0], [9.0, 9.0, 9.0], "f")])
    with pytest.raises(ValueError, match="with a context of 2 numbers, expected 3"):
        loop.decide_many([crowd[2], ("short", [1.0, 2.0], "f")])
    with pytest.raises(ConflictError):
        loop.decide_many([("twice", [1.0, 2.0, 3.0], "f"), ("twice", [1.0, 2.0, 4.0], "f")])
    assert loop.replay().decisions == 1
    assert loop.decide_many([]) == []
    twice = loop.decide_many([crowd[3], crowd[3]])
    assert twice[0] == twice[1]


def test_batches_of_any_size_are_written_whole_and_in_order(where, begin, crowd):
    loop, at, expected = begin(where), 0, []
    for size in (1, 49, 50, 51, 120):
        batch = crowd[at : at + size]
        loop.decide_many(batch)
        # A batch is one moment. PostgreSQL gets it by id, see `writing.write`.
        expected += sorted(batch) if str(where).startswith("postgresql") else batch
        at += size
    kept = select(schema.decisions.c.id, schema.decisions.c.group).order_by(schema.decisions.c.number)
    assert loop._log.all(kept) == [(id, group) for id, _, group in expected]
    assert [one.id for one in loop.decide_many(crowd[100:400])] == [id for id, _, _ in crowd[100:400]]
    found = loop.replay()  # some of them were known
    assert (found.same, found.decisions) == (True, 400)


def test_a_bad_request_among_many_threads_fails_alone(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log")
    bad = [(f"bad {at}", [1.0], "f") for at in range(50)]

    def ask(person):
        try:
            return loop.decide(*person).id
        except ValueError:
            return "refused"

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(ask, [one for pair in zip(crowd[:50], bad, strict=True) for one in pair]))
    assert found[::2] == [person[0] for person in crowd[:50]]
    assert set(found[1::2]) == {"refused"}


@pytest.mark.parametrize("id", ["", "x" * 201, "a\x00b", "line\nbreak", "\ud800", 7, None])
def test_an_id_is_a_short_printable_text(begin, tmp_path, id):
    with pytest.raises(ValueError, match="expected a text of 1 to 200 printable characters"):
        begin(tmp_path / "log").decide(id, [0.0, 0.0, 0.0], "f")


@pytest.mark.parametrize(
    "context, group, error",
    [
        ([float("nan"), 0.0, 0.0], "f", "a missing value"),
        ([float("inf"), 0.0, 0.0], "f", "expected a finite number"),
        ([1e300, 0.0, 0.0], "f", "too large to compute with"),
        (["x" * (1 << 20), 0.0, 0.0], "f", "expected one row of numbers"),
        ([0.0] * 100_000, "f", "expected at most 65,536"),
        ([[0.0, 0.0, 0.0]], "f", "expected one row of numbers"),
        ([10**400, 0.0, 0.0], "f", "expected one row of numbers"),
        ({"a": 1}, "f", "expected one row of numbers"),
        ([0.0, 0.0, 0.0], "x" * (1 << 20), "fit saw only|Got group"),
        ([0.0, 0.0, 0.0], None, r"^Got no group, but expected one of 'f', 'm'\.$"),
    ],
)
def test_what_can_not_be_decided_about_is_refused_in_a_sentence(begin, tmp_path, context, group, error):
    loop = begin(tmp_path / "log")
    with pytest.raises(ValueError, match=error) as refused:
        loop.decide("a", context, group)
    assert len(str(refused.value)) < 1000
    assert loop.replay().decisions == 0


def test_a_deployed_model_takes_raw_columns(fitted, where, begin):
    loop = begin(where, model=load(fitted.model))
    person = {"skill": 0.3, "born": "01.02.1980", "job": "clerk", "branch": 2, "sex": "f", "name": "Ada"}
    found = loop.decide("a", person)
    assert found.group == "f"
    assert found.action in ("yes", "no")
    assert loop.decide("a", person, "f") == found
    assert loop.decide("a", person, {"sex": "f"}) == found
    assert [loop.decide(f"m{at}", {**person, "sex": "m"}).group for at in range(2)] == ["m", "m"]
    assert loop.decide("a", {**person, "branch": 2.0}) == found  # the same number
    assert loop.decide("a", {**person, "name": "Bea"}) == found  # a column that the model does not read
    with pytest.raises(ConflictError):
        loop.decide("a", {**person, "skill": 0.4})
    odd = {"skill": None, "born": None, "job": "astronaut \x00 né", "branch": "9", "sex": "m"}
    assert loop.decide("b", odd).group == "m"
    for change, error in (
        ({"skill": "many"}, "column 'skill': got 'many', expected a number"),
        ({"sex": "x" * (1 << 20)}, "training had only|x{50}"),
        ({"job": "x" * (1 << 20)}, "expected at most 65,536"),
        ({"job": object()}, "expected text, a number"),
        ({"job": "\ud800"}, "not valid Unicode"),
    ):
        with pytest.raises(ValueError, match=error) as refused:
            loop.decide("c", {**person, **change})
        assert len(str(refused.value)) < 1000
    with pytest.raises(ValueError, match="without 'born', but the model needs it"):
        loop.decide("c", {name: value for name, value in person.items() if name != "born"})
    with pytest.raises(ValueError, match="expected a dict of columns"):
        loop.decide("c", [1.0])
    for group in ("m", {"sex": "m"}):
        with pytest.raises(ValueError, match="Got the group 'm', but the context's 'sex' is that of 'f'"):
            loop.decide("c", person, group)
    for other in (
        "?",
        None,
        ["m"],
        {"sex": "m"},
        np.array(["m", "f"]),
    ):  # no group, which contradicts nothing
        assert loop.decide("a", {**person, "sex": other}, "f") == found
    replayed = loop.replay()
    assert (replayed.same, replayed.decisions) == (True, 4)


def test_two_deciders_share_a_postgresql_log(database, begin, crowd):
    loops = [begin(database), begin(database)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda at: loops[at % 2].decide(*crowd[at // 2]), range(400)))
    assert all(found[at] == found[at + 1] for at in range(0, 400, 2))
    assert loops[0].replay().decisions == 200
    for at in range(200):
        loops[at % 2].outcome(crowd[at][0], reward=float(at % 2))
    assert loops[0].learn().rows > 0
    loops[1].promote(force=True)
    loops[0].decide("after", [0.0, 0.0, 0.0], "f")
    assert loops[0].decide("after that", [0.0, 0.0, 0.0], "f").version == loops[0].version == 2


# The file ----------------------------------------------------------------------------------------------


def test_a_log_goes_on_with_its_own_model_and_rules_only(begin, model, fitted, tmp_path):
    where = tmp_path / "log"
    begin(where, reveals={"grant"}).close()
    begin(where, reveals={"grant"}).close()
    with pytest.raises(WrongLogError, match="begun with reveals=\\['grant'\\]"):
        begin(where)
    with pytest.raises(WrongLogError, match="a model that is not the one the log was begun with"):
        begin(where, model=model.reversed(), reveals={"grant"})
    with pytest.raises(ValueError, match="Got no model, and no log .*new: expected a model"):
        begin(tmp_path / "new", model=None)
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="expected a model to begin it with"):
        begin(tmp_path / "empty", model=None)
    with pytest.raises(ValueError, match="expected a fitted model"):
        begin(tmp_path / "new", model="model.skops")
    with pytest.raises(ValueError, match="reveals"):
        begin(tmp_path / "new", reveals={"gramt"})
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="not durable"):
        begin(":memory:")
    other = tmp_path / "other"
    other.write_bytes(b"no database at all, but long enough to be read as one" * 100)
    with pytest.raises(WrongLogError, match="not a decision log"):
        begin(other)


def test_a_log_that_goes_on_by_itself_ignores_no_rule(begin, tmp_path):
    rules = {"explore": 0.1, "held_out": 0.5, "within": 60.0, "overdue": -1.0, "unrevealed": -0.5,
             "explore_per_day": 9, "reveals": {"grant"}, "earns": {"grant": {"repaid": 1}}}  # fmt: skip
    begin(tmp_path / "log", **rules).close()
    begin(tmp_path / "log", model=None).close()
    begin(tmp_path / "log", model=None, explore=0.1, within=60).close()
    for told in ({"explore": 0.2}, {"within": 61}, {"held_out": 0.4}, {"reward_range": (-1, 2)}):
        with pytest.raises(WrongLogError, match=f"Got {next(iter(told))}=.*, but the log was begun with"):
            begin(tmp_path / "log", model=None, **told)


def test_sqlite_writes_ahead_and_waits_for_the_disk(begin, tmp_path):
    loop = begin(tmp_path / "log")
    with loop._log.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_an_older_log_is_brought_up_to_date_and_a_newer_one_refused(begin, tmp_path, monkeypatch):
    where = tmp_path / "log"
    begin(where).decide("a", [0.0, 0.0, 0.0], "f")

    def add_column(connection):
        connection.exec_driver_sql("ALTER TABLE erasures ADD COLUMN asked_by TEXT")

    newest = len(schema.MIGRATIONS) + 1
    with monkeypatch.context() as later:
        later.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, add_column])
        for _ in range(2):  # the second time there is nothing to do
            assert begin(where).replay().decisions == 1
        with sqlite3.connect(where) as plain:
            assert plain.execute("SELECT max(version) FROM schema_version").fetchone() == (newest + 1,)
            assert "asked_by" in [row[1] for row in plain.execute("PRAGMA table_info(erasures)")]
        plain.close()
    with pytest.raises(
        WrongLogError, match=f"version {newest + 1}, but this evenhand knows versions up to {newest}"
    ):
        begin(where)


def test_a_closed_log_says_so(begin, tmp_path):
    loop = begin(tmp_path / "log")
    loop.close()
    with pytest.raises(LogUnavailableError, match="closed"):
        loop.decide("a", [0.0, 0.0, 0.0], "f")


def test_what_is_no_person_and_no_outcome_is_named(begin, tmp_path):
    loop = begin(tmp_path / "log", model=GradientBandit(random_state=0, epochs=1).fit(np.eye(3), [0, 1, 1]))
    first, second = loop.decide_many([("a", [1.0, 0, 0]), ("b", [0, 1.0, 0], None)])
    assert (first.id, second.id) == ("a", "b")
    for wrong in ("abc", ("a",), ("a", [1.0, 0, 0], None, 1)):
        with pytest.raises(ValueError, match=r"expected \(id, context\) or \(id, context, group\)"):
            loop.decide_many([wrong])
    for wrong in (("a", 1), {"reward": 1}):
        with pytest.raises(ValueError, match="expected a dict with the key 'id'"):
            loop.outcome_many([wrong])
