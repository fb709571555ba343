"""What strangers send to the service: it fails on nothing, and answers as its own description says."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack

import pytest
from fastapi.testclient import TestClient
from hostile import AGAINST_SCHEMA, BAD, REFUSED, TRACEBACK, WORKED
from hostile_requests import attack, judge_answer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service import Service

from evenhand.decisions.serve.app import make_app
from evenhand.decisions.serve.guards import Guard

PERSON = {"id": "a", "context": [0.1, 0.2, 0.3], "group": "f"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
fields = st.dictionaries(
    st.sampled_from(["id", "context", "group", "reward", "label", "at", "people", "outcomes", "force"]),
    json_values,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(["/decide", "/outcome", "/promote"]), body=fields | json_values)
def test_no_request_makes_the_service_fail(client, path, body):
    answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    kind, document = answer.headers["content-type"], client.app.openapi()
    became = judge_answer(document, "POST", path, answer.status_code, kind, answer.content)
    assert became in (WORKED, REFUSED), answer.text


@pytest.mark.slow
def test_bytes_that_are_hardly_http(begin, tmp_path):
    begin(tmp_path / "log.db").close()
    with Service(str(tmp_path / "log.db"), "--learn-every", "1") as service:
        found = attack(150, 0, service, PERSON["context"], "f")
        assert not set(found) & set(BAD), found
        assert found[WORKED] > 15
        with ExitStack() as waiting:
            for _ in range(100):  # clients that never finish keep nobody else waiting
                slow = waiting.enter_context(socket.create_connection(("127.0.0.1", service.port)))
                slow.sendall(b"POST /decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            assert service.ask("/decide", PERSON)[0] == 200
    assert b"Exception in ASGI application" not in service.said
    assert begin(tmp_path / "log.db", model=None).replay().same


def test_the_script_notices_answers_that_are_against_the_schema(client):
    def judged(status, content, kind="application/json"):
        return judge_answer(client.app.openapi(), "POST", "/outcome", status, kind, content)

    assert judged(200, b'{"status": "accepted"}') == WORKED
    assert judged(422, b'{"detail": "Got it"}') == REFUSED
    assert judged(500, b'{"detail": "Got it"}') == TRACEBACK
    for answer in (
        (200, b"{}"), (200, b'{"status": NaN}'), (200, b"<p>", "text/html"), (422, b'{"detail": {}}'),
        (418, b"{}"), (422, json.dumps({"detail": "x" * 30_000}).encode()),
    ):  # fmt: skip
        assert judged(*answer) == AGAINST_SCHEMA, answer


def test_many_problems_take_little_time(client):
    """Were each compared with all others, this test would take minutes."""
    answer = client.post(
        "/outcome", json={"id": "a", "reward": 1.0, **dict.fromkeys(map(str, range(30_000)))}
    )
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) == 20


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/decide", {**PERSON, "context": ["1", 0.2, 0.3]}),
        ("/decide", {**PERSON, "context": [True, 0.2, 0.3]}),
        ("/outcome", {"id": "a", "reward": True}),
        ("/outcome", {"id": "a", "reward": "1"}),
        ("/outcome", {"id": "a", "reward": 1.0, "at": "1"}),
        ("/promote", {"force": "yes"}),
    ],
)
def test_what_only_looks_like_a_number_is_refused(client, path, body):
    assert client.post(path, json=body).status_code == 422


def test_there_is_nothing_to_go_back_to(client):
    refused = client.post("/rollback")
    assert refused.status_code == 409
    assert "none is before it" in refused.json()["detail"]


def test_a_page_of_another_site_changes_nothing(client):
    for headers, wanted in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://before.the.proxy"}, 409),
        ({"Origin": "http://127.0.0.1"}, 409),
        ({}, 409),
    ):
        assert client.post("/rollback", headers=headers).status_code == wanted, headers
    assert client.get("/health", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link


def test_a_length_of_5000_digits(client):
    said = []

    async def send(message):
        said.append(message.get("status"))

    headers = [(b"host", b"localhost"), (b"content-length", b"1" * 5000)]
    scope = {"type": "http", "method": "POST", "path": "/decide", "headers": headers}
    guard = Guard(None, "127.0.0.1", {"deciding": None, "administering": None})
    asyncio.run(guard(scope, None, send))
    assert said[0] == 413


def test_a_note_that_postgresql_cannot_hold(begin, database, crowd):
    loop = begin(database, held_out=0.0)
    with TestClient(make_app(loop), base_url="http://127.0.0.1") as client:
        loop.decide(*crowd[0])
        loop.outcome(crowd[0][0], reward=1.0)
        loop.learn()
        refused = client.post("/promote", json={"force": True, "note": "a\0b"})
        assert (refused.status_code, loop.version) == (422, 1)
        assert "NUL" in refused.json()["detail"]
        assert client.post("/promote", json={"force": True, "note": "a b"}).status_code == 200


def test_a_forgotten_header_is_named(client):
    said = client.post("/decide", content=json.dumps(PERSON), headers={"Content-Type": "text/plain"})
    assert said.status_code == 422
    assert said.json()["detail"] == (
        "Got a body of text/plain, but expected JSON with the header 'Content-Type: application/json'."
    )
    assert "Got no body, but expected JSON." in client.post("/decide").text
    assert client.post("/promote").json() == {"detail": "There is no candidate."}
