"""The shorter way through the service answers as the usual one does, whatever is asked."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand import CooperativeBandits, LogUnavailableError
from evenhand.decisions.deciding import answers, as_decisions, ask
from evenhand.decisions.policy import Policy
from evenhand.decisions.serve import shapes
from evenhand.decisions.serve.quick import Answers, plainly
from evenhand.wording import as_plain

PERSON = {"id": "a", "context": [0.1, 0.2, 0.3], "group": "f"}
QUICKLY, USUALLY = "application/json", "application/json; charset=utf-8"

values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
contexts = (
    st.lists(st.floats(-9, 9), min_size=3, max_size=3)
    | st.lists(values, max_size=4)
    | st.dictionaries(st.text(max_size=3), values, max_size=3)
    | values
)
people = st.fixed_dictionaries(
    {"id": st.text(max_size=3) | values, "context": contexts},
    optional={"group": st.sampled_from(["f", "m", {"f": 1}]) | values, "more": values},
)
bodies = people | st.fixed_dictionaries({"people": st.lists(people, max_size=3) | values}) | values


def ask_both(client, content):
    """Return the answers of both ways; the same id gets the same one."""
    found = [
        client.post("/decide", content=content, headers={"Content-Type": way}) for way in (QUICKLY, USUALLY)
    ]
    return [(one.status_code, one.json()) for one in found]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies)
def test_both_ways_give_the_same_answer(client, body):
    quickly, usually = ask_both(client, json.dumps(body))
    assert quickly == usually


@pytest.mark.parametrize(
    "content",
    [
        b"", b"null", b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"id": "\\ud800", "context": [1, 2, 3]}',
        b'{"id": "a\xed\xa0\x80", "context": [1, 2, 3], "group": "f"}', '{"id": "é", "context": [1, 2, 3]}'.encode("utf-16"),
        b'{"id": "a", "context": [' + b"1" * 5000 + b', 2, 3], "group": "f"}',
        json.dumps({"people": [PERSON] * 1001}).encode(), json.dumps({**PERSON, "people": [PERSON]}).encode(),
    ],
)  # fmt: skip
def test_odd_bodies(client, content):
    quickly, usually = ask_both(client, content)
    assert quickly == usually
    assert quickly[0] in (400, 422)


def test_what_is_plain_takes_the_shorter_way(client, monkeypatch):
    assert plainly(json.dumps(PERSON).encode()).several is False
    asked = plainly(json.dumps({"people": [PERSON, {"id": "b", "context": {"x": "é", "y": None}}]}).encode())
    assert (asked.ids, asked.groups, asked.several) == (["a", "b"], ["f", None], True)

    def refuse(*arguments):
        raise LogUnavailableError("The log can't be used now.")

    with monkeypatch.context() as only:
        only.setattr(client.app.router, "middleware_stack", None)  # the usual way is closed
        with pytest.raises(TypeError, match="'NoneType' object is not callable"):
            client.post("/decide", content=json.dumps(PERSON), headers={"Content-Type": USUALLY})
        assert client.post("/decide", json=PERSON).json()["id"] == "a"
        assert client.post("/decide", json={**PERSON, "group": "m"}).status_code == 409
        only.setattr("evenhand.decisions.asking.decide", refuse)
        away = client.post("/decide", json=PERSON)
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")
    assert 'evenhand_failures_total{status="503"} 1.0' in client.get("/metrics").text


@pytest.mark.parametrize("labels", [[0, 1], ["50 %s", 'a "b", [c'], [False, True], [-1, 10**12]])
def test_answers_have_every_name_and_number_as_it_is(client, labels):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(60, 2)), rng.choice(["%d", '"é"]], [['], 60)
    fitted = CooperativeBandits(epochs=1, random_state=0)
    policy = Policy(fitted.fit(X, np.array(labels)[(X[:, 0] > 0).astype(int)], sensitive_features=s))
    asked = ask(policy, [f'"{at}"' for at in range(60)], X.tolist(), s.tolist(), 0.1)
    rows = answers(policy, client.loop.rules, asked, [0.02] * 60)
    wanted = [as_plain(shapes.Answer.of(one)) for one in as_decisions(rows, policy)]
    assert json.loads(Answers(policy).body(rows, several=True)) == {"decisions": wanted}
    assert json.loads(Answers(policy).body(rows[:1], several=False)) == wanted[0]
