"""Services as processes and disks meet them: killed, out of room, two on one log, with a clock that is wrong."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from service_kills import kill_services
from small_disk import NoDiskError, filled, small_disk
from sqlalchemy import select

from evenhand import LogUnavailableError, load
from evenhand.decisions.schema import decisions
from evenhand.decisions.serve.app import make_app
from evenhand.decisions.serve.beside import Beside
from evenhand.report.live import live_page
from factories import evenhand

HERE = {"base_url": "http://127.0.0.1"}


def as_json(people):
    return [dict(zip(("id", "context", "group"), person, strict=True)) for person in people]


def ids_in(loop):
    return sorted(row[0] for row in loop._log.all(select(decisions.c.id)))


@pytest.mark.slow
def test_nothing_that_a_killed_service_answered_is_lost():
    found = kill_services(2, seed=1, longest=1.0)
    assert all(name.startswith("nothing lost") for name in found), found
    assert any("replay identical" in name for name in found), found


def test_two_services_on_one_postgresql_log(begin, database, crowd):
    loops = [begin(database, held_out=0.0), begin(database, model=None)]
    people = as_json(crowd[:300])
    with (
        TestClient(make_app(loops[0]), **HERE) as one,
        TestClient(make_app(loops[1]), **HERE) as other,
        ThreadPoolExecutor(8) as threads,
    ):

        def ask(client, body):
            answer = client.post("/decide", json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        asked = [(client, person) for person in people for client in (one, other)]  # at the same moment
        found = list(threads.map(lambda both: ask(*both), asked))
        assert found[::2] == found[1::2]
        assert ids_in(loops[0]) == sorted(person["id"] for person in people)
        told = {"outcomes": [{"id": person["id"], "reward": 1.0} for person in people]}
        both = list(threads.map(lambda client: client.post("/outcome", json=told).json(), (one, other)))
        words = list(zip(*(answer["statuses"] for answer in both), strict=True))
        assert all(sorted(pair) == ["accepted", "repeated"] for pair in words)
        loops[1].learn()
        assert other.post("/promote", json={"force": True}).json()["promoted"]
        ask(one, as_json(crowd[300:301])[0])  # meets the promotion in the log
        late = ask(one, as_json(crowd[301:302])[0])
        assert (late["version"], one.get("/health").json()["version"]) == (2, 2)
        assert ask(other, people[0]) == found[0]
        assert loops[0].replay().same


def test_the_same_people_in_another_order_do_not_stop_each_other(begin, database, crowd):
    loops = [begin(database, held_out=0.0), begin(database, model=None)]
    with ThreadPoolExecutor(2) as threads:
        for at in range(0, len(crowd), 1000):
            people = crowd[at : at + 1000]
            told = [{"id": person[0], "reward": 1.0} for person in people]
            made = threads.map(lambda loop, some: loop.decide_many(some), loops, (people, people[::-1]))
            said = threads.map(lambda loop, some: loop.outcome_many(some), loops, (told, told[::-1]))
            one, other = made
            assert one == other[::-1]
            one, other = said
            pairs = list(zip(one, other[::-1], strict=True))
            assert {*pairs} <= {("accepted", "repeated"), ("repeated", "accepted")}, {*pairs}


def test_no_room_is_503_until_there_is_some(begin, crowd):
    try:
        with small_disk("4m") as disk:
            loop = begin(disk / "log.db", held_out=0.0)
            with TestClient(make_app(loop), **HERE) as client:
                people = as_json(crowd[:1000])
                assert client.post("/decide", json={"people": people[:20]}).status_code == 200
                made = ids_in(loop)
                with filled(disk):
                    answers = [client.post("/decide", json={"people": people[at : at + 100]}) for at in (100, 200, 300)]  # fmt: skip
                    told = client.post("/outcome", json={"outcomes": [{"id": one, "reward": 1.0} for one in made]})  # fmt: skip
                    refused = [answer for answer in answers if answer.status_code == 503]
                    assert refused  # a log that has a little room of its own may take the first
                    assert all(answer.headers["retry-after"] == "1" for answer in refused)
                    assert "nothing was written" in refused[0].json()["detail"]
                    assert client.get("/health").status_code == 200
                    kept = [one["id"] for answer in answers if answer.status_code == 200 for one in answer.json()["decisions"]]  # fmt: skip
                    assert ids_in(loop) == sorted([*made, *kept])
                for at in (100, 200, 300):
                    assert client.post("/decide", json={"people": people[at : at + 100]}).status_code == 200
                assert ids_in(loop) == sorted(one["id"] for one in [*people[:20], *people[100:400]])
                again = client.post("/outcome", json={"outcomes": [{"id": one, "reward": 1.0} for one in made]})  # fmt: skip
                assert set(again.json()["statuses"]) == {"repeated" if told.status_code == 200 else "accepted"}  # fmt: skip
                assert loop.replay().same
    except NoDiskError as error:
        pytest.skip(str(error))


def test_a_clock_that_goes_backwards(begin, tmp_path, crowd):
    now = [1e9]
    loop = begin(tmp_path / "log.db", held_out=0.0, within=60.0, clock=lambda: now[0])
    with TestClient(make_app(loop, page=live_page), **HERE) as client:
        early, late = as_json(crowd[:2])
        first = client.post("/decide", json=early).json()
        now[0] -= 3600.0
        assert client.post("/decide", json=early).json() == first
        second = client.post("/decide", json=late).json()
        assert second["at"] == first["at"] - 3600.0
        told = {"outcomes": [{"id": early["id"], "reward": 1.0}, {"id": late["id"], "reward": 0.0}]}
        assert client.post("/outcome", json=told).json() == {"statuses": ["accepted"] * 2}
        assert loop.learn().rows == 2
        assert client.post("/promote", json={"force": True}).status_code == 200
        assert client.post("/rollback").json() == {"version": 1}
        assert client.get("/").status_code == 200
        assert loop.replay().same


def test_the_same_id_with_anything_else_is_409(client, crowd):
    (person,) = as_json(crowd[:1])
    first = client.post("/decide", json=person).json()
    for other in ({"context": [0.0, 0.0, 0.0]}, {"group": {"f": "m", "m": "f"}[person["group"]]}):
        refused = client.post("/decide", json={**person, **other})
        assert refused.status_code == 409
        assert "one id is one decision" in refused.json()["detail"]
        both = client.post("/decide", json={"people": [{**person, "id": "new"}, {**person, **other}]})
        assert both.status_code == 409
    assert client.get("/decision", params={"id": "new"}).status_code == 404  # all or none
    assert client.post("/decide", json=person).json() == first


def test_groups_and_categories_never_met(begin, fitted, tmp_path):
    loop = begin(tmp_path / "log.db", model=load(fitted.model))
    person = {"skill": 0.3, "born": "01.02.1980", "job": "clerk", "branch": 2, "sex": "f"}
    with TestClient(make_app(loop), **HERE) as client:

        def ask(id, **other):
            answer = client.post("/decide", json={"id": id, "context": {**person, **other}})
            return answer.status_code, answer.json().get("detail", "")

        assert ask("a") == (200, "")
        assert ask("b", job="astronaut") == (200, "")  # as `predict` does: none of the jobs it has met
        assert ask("c", more="is not read") == (200, "")
        for wrong, said in (
            ({"sex": "x"}, "'x'"), ({"sex": None}, "sex"), ({"skill": "much"}, "skill"), ({"born": "yesterday"}, "born"),
        ):  # fmt: skip
            status, detail = ask("d", **wrong)
            assert (status, said in detail) == (422, True), detail
        lacking = client.post("/decide", json={"id": "d", "context": {"skill": 0.3, "sex": "f"}})
        assert (lacking.status_code, "'born'" in lacking.json()["detail"]) == (422, True)
        assert ids_in(loop) == ["a", "b", "c"]
        assert loop.replay().same


def test_work_beside_goes_on_whatever_happens_and_a_log_that_is_away_is_one_line(caplog):
    happens = [LogUnavailableError("no room"), ZeroDivisionError("a bug")]
    done = threading.Event()

    def work():
        if happens:
            raise happens.pop(0)
        done.set()

    beside = Beside("learner", 0.01, work)
    beside.start()
    assert done.wait(30)
    beside.stop()
    away, bug = caplog.records
    assert (away.levelname, away.exc_info) == ("WARNING", None)
    assert away.message == "evenhand-learner waits 0.01 seconds: no room"
    assert (bug.levelname, bug.exc_info[0]) == ("ERROR", ZeroDivisionError)


@pytest.mark.parametrize(
    ("log", "code", "said"),
    [
        ("nowhere/log.db", 2, "Got nowhere/log.db to write to, but there is no folder 'nowhere'."),
        ("text.db", 2, "log='text.db', which is not a decision log: file is not a database."),
        ("mysql://me:secret@db/x", 2, "log='mysql://me:***@db/x', but expected a file, or"),
        (
            "postgresql://me:secret@127.0.0.1:1/x",
            1,  # another time, it may be there
            "log='postgresql+psycopg://me:***@127.0.0.1:1/x', which can't",
        ),
    ],
)
def test_a_log_that_cannot_be_opened_is_one_sentence(log, code, said, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("no database")
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ran = evenhand("serve", fitted.model, "--log", log, "--port", port, code=code)
    assert said in " ".join(ran.output.split())
    assert "Traceback" not in ran.output
    assert "same id" not in ran.output
    assert threading.active_count() == threads


def test_a_port_that_is_taken_is_one_sentence_and_leaves_no_log(fitted, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options in ((fitted.model, "--log", tmp_path / "log.db"), ("--demo",)):
            said = " ".join(evenhand("serve", *options, "--port", port, code=1).output.split())
            assert f"Port {port} is already in use: choose another with --port." in said
            assert "Deciding at" not in said
    assert not (tmp_path / "log.db").exists()
