"""Kills, full disks and servers that go away: nothing acknowledged is lost, nothing is half-written."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from decision_kills import kill_deciders
from sqlalchemy import func, select

from evenhand import DecisionLoop, LogUnavailableError
from evenhand.decisions.commits import GroupCommit
from evenhand.decisions.schema import decisions


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_sigkill(where):
    found = kill_deciders(2, seed=1, where=where, longest=1.0)
    assert all(name.startswith("nothing lost") for name in found), found
    assert any("replay identical" in name for name in found), found


FULL = """
import json, resource, sys
from pathlib import Path
from evenhand import DecisionLoop, LogUnavailableError

where = Path(sys.argv[1])
loop = DecisionLoop(None, where)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))  # which the log reaches soon
decided, errors = [], set()
for at in range(400):
    try:
        decided += [one.id for one in loop.decide_many([(f"{at} {i}", [0.0, float(i), 1.0], "f") for i in range(20)])]
    except LogUnavailableError as error:
        errors.add(str(error))
        if len(errors) and at % 50 == 49:
            break
try:
    loop.learn()
except LogUnavailableError as error:
    errors.add(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
after = loop.decide("after", [0.0, 0.0, 0.0], "m").id
print(json.dumps([decided, sorted(errors), after]))
loop.close()
"""


@pytest.mark.slow
def test_a_full_disk_is_an_error_in_words_and_the_log_goes_on_when_there_is_room(begin, tmp_path):
    where = tmp_path / "log.db"
    begin(where).close()
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(where)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    acknowledged, errors, after = json.loads(ran.stdout)
    assert errors
    assert all("nothing was written" in error for error in errors)
    assert len(acknowledged) >= 20
    with DecisionLoop(None, where) as loop:
        there = {row[0] for row in loop._log.all(select(decisions.c.id))}
        assert there == {*acknowledged, after}
        assert loop.replay().same


def test_postgresql_goes_away_and_comes_back(server, database, begin, crowd):
    loop = begin(database)
    acknowledged, refused, going = [], [], True

    def decide(thread):
        for at in range(thread, len(crowd), 4):
            if not going:
                return
            try:
                acknowledged.append(loop.decide(*crowd[at]))
            except LogUnavailableError as error:
                refused.append(str(error))
                time.sleep(0.05)

    threads = [threading.Thread(target=decide, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    server.stop()
    time.sleep(0.5)
    server.start()
    before = len(acknowledged)
    for _ in range(200):
        if len(acknowledged) > before + 20:
            break
        time.sleep(0.1)
    going = False
    for thread in threads:
        thread.join()
    assert refused
    assert len(acknowledged) > before + 20
    count, distinct = loop._log.all(select(func.count(), func.count(func.distinct(decisions.c.id))))[0]
    assert count == distinct
    assert all(loop.decide(*person) == one for person, one in _by_id(crowd, acknowledged))
    assert loop.replay().same


def _by_id(crowd, made):
    people = {person[0]: person for person in crowd}
    return [(people[one.id], one) for one in made]


def test_jobs_that_gather_go_together_and_a_failing_one_fails_alone():
    commits, gate, sizes = GroupCommit(), threading.Event(), []

    def work(payloads):
        gate.wait(10)
        sizes.append(len(payloads))
        if "bad" in payloads:
            raise ZeroDivisionError("bad")
        return [payload.upper() for payload in payloads]

    asked = [commits.submit(work, name) for name in ("a", "b", "bad", "c")]
    time.sleep(0.1)
    gate.set()
    assert [one.result(10) for one in asked if one is not asked[2]] == ["A", "B", "C"]
    with pytest.raises(ZeroDivisionError):
        asked[2].result(10)
    assert max(sizes) >= 3
    commits.close()
    with pytest.raises(LogUnavailableError):
        commits.submit(work, "late")


def test_the_script_of_kills_notices_what_is_lost(begin, tmp_path):
    from decision_kills import _compared

    where = tmp_path / "log.db"
    found = begin(where).decide("person 1", [0.0, 0.0, 0.0], "f")
    answer = [found.action, found.probability, found.version]
    nothing = {"decision": {}, "outcome": {}}
    assert _compared(str(where), nothing, {"decision": {1: answer}, "outcome": {}}) == "nothing lost"
    assert _compared(str(where), nothing, {"decision": {1: answer, 2: answer}, "outcome": {}}) == "lost"
    assert _compared(str(where), nothing, {"decision": {}, "outcome": {1: [1.0]}}) == "lost"
    assert Path(where).exists()
