"""The service: what it answers, whom it refuses, and that nothing it is sent makes it fail."""

from __future__ import annotations

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape
from service import Service

from evenhand import DecisionLoop, LogUnavailableError
from evenhand.decisions.serve.app import make_app
from evenhand.decisions.serve.guards import LARGEST, check_tokens, is_loopback
from evenhand.report.api import api_page
from factories import evenhand

HERE = {"base_url": "http://127.0.0.1"}
PERSON = {"id": "a", "context": [0.1, 0.2, 0.3], "group": "f"}


def test_deciding_and_outcomes(client):
    first = client.post("/decide", json=PERSON)
    assert first.status_code == 200
    found = first.json()
    assert found["probability"] == found["by_group"]["f"][found["action"]]
    assert client.post("/decide", json=PERSON).json() == found
    kept = client.get("/decision", params={"id": "a"}).json()
    assert kept.items() >= found.items()
    assert kept["with_same_draw"]["f"] == found["action"]
    assert (kept["revealed"], kept["reward"]) == (True, None)
    assert client.get("/decision", params={"id": "b"}).status_code == 404
    assert client.post("/decide", json={**PERSON, "group": "m"}).status_code == 409
    many = [{**PERSON, "id": f"{at}"} for at in range(50)]
    decided = client.post("/decide", json={"people": many}).json()["decisions"]
    assert [one["id"] for one in decided] == [one["id"] for one in many]
    assert client.post("/outcome", json={"id": "a", "reward": 1.0}).json() == {"status": "accepted"}
    told = [{"id": one["id"], "label": "grant"} for one in many]
    assert client.post("/outcome", json={"outcomes": told}).json() == {"statuses": ["accepted"] * 50}
    assert client.loop.replay().same


def test_administering(client):
    people = [{**PERSON, "id": f"{at}"} for at in range(100)]
    client.post("/decide", json={"people": people})
    client.post("/outcome", json={"outcomes": [{"id": one["id"], "reward": 1.0} for one in people]})
    assert client.post("/promote", json={}).json() == {"detail": "There is no candidate."}
    client.loop.learn()
    assert client.get("/candidate").json()["candidate"]["version"] == 2
    held = client.post("/promote", json={})
    assert (held.status_code, held.json()["promoted"]) == (409, False)
    assert client.post("/promote", json={"force": True, "note": "test"}).json()["promoted"]
    assert client.get("/health").json() == {"status": "ok", "version": 2}
    policies = client.get("/policies").json()["policies"]
    assert [one["in_force"] for one in policies] == [False, True]
    told = client.get("/metrics").text
    assert 'evenhand_outcomes_total{status="accepted"} 100.0' in told
    assert "evenhand_policy_version 2.0" in told
    page = client.get("/").text
    assert "Version 2 decides" in page
    assert "100" in page
    assert "forced" in page
    assert client.post("/rollback", json={"note": "too many complaints"}).json() == {"version": 1}
    assert client.get("/policies").json()["policies"][0]["promotions"][-1]["note"] == "too many complaints"
    counts = client.get("/status").json()["counts"]
    assert (counts["decisions"], counts["known"], counts["awaited"]) == (100, 100, 0)


def test_the_addresses_are_described_without_anything_from_elsewhere(client):
    page = client.get("/docs").text
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, told in methods.items():
            described = escape(told["description"])
            assert f"<code>{method.upper()} {path}</code></th><td>{described}</td>" in page
    assert "<td>Person or People</td><td>Answer or Answers</td><td>deciding</td>" in page
    assert "<code>people</code></th><td>list of Person</td>" in page
    assert "<dt>503</dt><dd>The log can&#39;t be written now" in page
    assert not re.search("<script|(src|href)=.?(http|//)|@import|url\\(", page)


def test_what_a_stranger_wrote_is_shown_as_text(client):
    client.loop.decide("a", [0.0, 0.0, 0.0], "f")
    client.loop.outcome("a", reward=1.0)
    client.loop.learn()
    client.loop.promote(force=True, note="<script>alert(1)</script>")
    page = client.get("/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_errors_are_words_and_never_a_trace(client, monkeypatch):
    refused = client.post("/decide", json={**PERSON, "context": [1.0]})
    assert refused.status_code == 422
    assert "expected 3" in refused.json()["detail"]
    assert client.post("/decide", json={"id": "a"}).status_code == 422
    nan = client.post("/decide", content='{"id": "a", "context": [NaN, 0, 0], "group": "f", "more": NaN}')
    assert nan.status_code == 422
    many = client.post("/decide", json={"people": [PERSON] * 1001})
    assert many.status_code == 422
    large = client.post("/decide", content=b" " * (LARGEST + 1))
    assert large.status_code == 413

    def pieces():
        for _ in range(LARGEST // 1000 + 2):
            yield b" " * 1000

    assert client.post("/decide", content=pieces()).status_code == 413

    def full(*arguments):
        raise LogUnavailableError("The log can't be used now (disk full); nothing was written.")

    monkeypatch.setattr("evenhand.decisions.asking.decide", full)
    away = client.post("/decide", json=PERSON)
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")

    def bug(*arguments):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("evenhand.decisions.asking.decide", bug)
    with TestClient(client.app, raise_server_exceptions=False, **HERE) as other:
        broken = other.post("/decide", json=PERSON)
        assert broken.status_code == 500
        assert "secret" not in broken.text


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/outcome", {"reward": 1.0}, [("id", "Got no 'id', but expected one.")]),
        ("/outcome", {"id": "a", "rewrad": 1}, [("rewrad", "Got 'rewrad', which is not a field here.")]),
        ("/outcome", {"outcomes": [{"id": "a"}, {}]}, [("outcomes.1.id", "Got no 'id', but expected one.")]),
        ("/outcome", {"outcomes": {}}, [("outcomes", "Got an object, but expected a list.")]),
        ("/outcome", [], [("body", "Got a list, but expected an object.")]),
        ("/decide", {**PERSON, "context": ["1"]}, [("context.0", "Got text, but expected a number.")]),
        (
            "/decide", {**PERSON, "context": {"age": []}},
            [("context.age", "Got a list, but expected text, a number or true or false.")],
        ),
        ("/promote", {"force": "yes"}, [("force", "Got text, but expected true or false.")]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_told_by_its_own_fields(client, path, body, told):
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert [(one["where"], one["what"]) for one in answer.json()["detail"]] == told


def test_tokens_and_roles(model, tmp_path):
    tokens = {"deciding": "d" * 20, "administering": "a" * 20}
    loop = DecisionLoop(model, tmp_path / "log.db")
    app = make_app(loop, host="0.0.0.0", tokens=tokens, describe=api_page)
    with TestClient(app, base_url="http://service.example") as client:

        def status(path, token=None, method="get", **more):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            return client.request(method, path, headers=headers, **more).status_code

        assert status("/health") == 200
        for path in ("/policies", "/metrics", "/status", "/docs", "/openapi.json"):
            assert [status(path, token) for token in (None, "x", "d" * 20, "a" * 20)] == [401, 401, 401, 200]
        for token, wanted in ((None, 401), ("d" * 19, 401), ("d" * 20, 200), ("a" * 20, 200)):
            assert status("/decide", token, "post", json=PERSON) == wanted
        assert status("/promote", "d" * 20, "post", json={}) == 401


def test_names_of_strangers_are_refused_on_loopback(client):
    assert client.get("/health", headers={"Host": "evil.example"}).status_code == 403
    for name in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/health", headers={"Host": name}).status_code == 200


def test_binding_elsewhere_needs_tokens(fitted, tmp_path):
    none = {"deciding": None, "administering": None}
    check_tokens("127.0.0.1", none)
    for host in ("0.0.0.0", "192.168.1.1", "::", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(ValueError, match="without tokens"):
            check_tokens(host, none)
    with pytest.raises(ValueError, match="expected at least 16"):
        check_tokens("0.0.0.0", {"deciding": "short", "administering": "a" * 20})
    ran = evenhand("serve", fitted.model, "--log", tmp_path / "log.db", "--host", "0.0.0.0", code=2)
    assert "EVENHAND_DECIDING_TOKEN" in ran.output
    assert not (tmp_path / "log.db").exists()


def test_learning_beside_deciding(model, tmp_path, crowd):
    loop = DecisionLoop(model, tmp_path / "log.db")
    with TestClient(make_app(loop, learn_every=0.05, promotes=True), **HERE) as client:
        people = [{"id": id, "context": context, "group": group} for id, context, group in crowd[:200]]
        client.post("/decide", json={"people": people})
        client.post("/outcome", json={"outcomes": [{"id": one["id"], "reward": 1.0} for one in people]})
        for _ in range(200):
            if len(loop.policies()) > 1:
                break
            time.sleep(0.05)
    with DecisionLoop(None, tmp_path / "log.db") as again:
        assert len(again.policies()) > 1
        assert again.replay().same


def test_the_command_serves_and_ends_gracefully(fitted, tmp_path):
    person = {"skill": 0.3, "born": "01.02.1980", "job": "clerk", "branch": 2, "sex": "f"}
    with Service(str(tmp_path / "log.db"), str(fitted.model)) as service, ThreadPoolExecutor(8) as threads:
        asked = [{"id": f"{at}", "context": person} for at in range(40)]
        found = [answer for _, answer in threads.map(lambda body: service.ask("/decide", body), asked)]
        assert service.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        assert service.said == b""
    with DecisionLoop(None, tmp_path / "log.db") as loop:
        assert loop.replay().decisions == 40
        assert all(loop.decide(one["id"], person).probability == one["probability"] for one in found)
