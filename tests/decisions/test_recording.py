"""A log as a record of events, with hashes in place of inputs."""

from __future__ import annotations

import hashlib
import json

import pytest

from factories import evenhand


def read(files):
    events, record = files
    assert (events.name, record.name) == ("events.jsonl", "record.json")
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    return lines, json.loads(record.read_text(encoding="utf-8"))


@pytest.fixture
def loop(where, begin, crowd):
    ticks = iter(range(1_000, 100_000))
    loop = begin(where, clock=lambda: float(next(ticks)))
    made = loop.decide_many(crowd[:60])
    loop.outcome_many([{"id": one.id, "reward": 1.0} for one in made])
    loop.learn()
    loop.promote(force=True, note="by Ada")
    loop.decide_many(crowd[60:80])
    loop.outcome(made[0].id, reward=0.0)
    loop.erase(crowd[1][0])
    return loop


def test_events_say_what_was_decided_by_which_version_on_what_input(loop, crowd, tmp_path):
    files = loop.export(tmp_path / "record", preset="eu-ai-act-12")
    events, record = read(files)
    kinds = [event["event"] for event in events]
    assert record["events"] == {kind: kinds.count(kind) for kind in set(kinds)}
    assert record["events"] == {
        "decision": 79, "outcome": 59, "policy learned": 2, "policy put in force": 2,
        "contradicting outcome": 1, "erasure": 1,
    }  # fmt: skip
    times = [event["at"] for event in events]
    assert times == sorted(times)
    decided = {event["id"]: event for event in events if event["event"] == "decision"}
    for name, context, group in (crowd[0], crowd[70]):
        canonical = json.dumps({"context": context, "group": group}, sort_keys=True, separators=(",", ":"))
        assert decided[name]["input_sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    policies = {one["version"]: one["fingerprint"] for one in loop.policies()}
    assert (
        decided[crowd[70][0]]["fingerprint"]
        == policies[2]
        != policies[1]
        == decided[crowd[0][0]]["fingerprint"]
    )
    forced = [event for event in events if event["event"] == "policy put in force"][-1]
    assert (forced["why"], forced["note"], forced["version"]) == ("forced", "by Ada", 2)
    assert isinstance(forced["evidence"], dict)


def test_the_summary_has_each_version_s_period_of_use_and_the_file_s_hash(loop, tmp_path):
    files = loop.export(tmp_path / "record", preset="eu-ai-act-12")
    events, record = read(files)
    assert record["files"]["events.jsonl"]["sha256"] == hashlib.sha256(files[0].read_bytes()).hexdigest()
    for version in record["versions"]:
        of = [
            event["at"]
            for event in events
            if event["event"] == "decision" and event["version"] == version["version"]
        ]
        assert (version["first_decision"], version["last_decision"]) == (min(of), max(of))
        assert version["decisions"] == len(of)
    assert any("Who checked a decision" in text for text in record["not_recorded"])


def test_no_input_is_in_the_record(loop, crowd, tmp_path):
    files = loop.export(tmp_path / "record", preset="eu-ai-act-12")
    text = files[0].read_text(encoding="utf-8")
    assert crowd[0][0] in text
    assert crowd[1][0] + '"' not in text  # erased
    assert str(crowd[0][1][0]) not in text
    assert '"context"' not in text


def test_from_the_command_line(loop, where, tmp_path):
    out = evenhand("export", where, "-o", tmp_path / "record", "--preset", "eu-ai-act-12", "--json")
    written = json.loads(out.stdout)["written"]
    assert [path.rpartition("/")[2] for path in written] == ["events.jsonl", "record.json"]
    evenhand("export", where, "-o", tmp_path / "all")
    assert (tmp_path / "all" / "decisions.parquet").is_file()
    with pytest.raises(ValueError, match="Got preset='eu', but expected one of 'eu-ai-act-12'"):
        loop.export(tmp_path, preset="eu")


def test_no_log_is_made_where_there_is_none(tmp_path):
    out = evenhand("export", tmp_path / "none.db", "-o", tmp_path / "all", code=2)
    assert "There is no file" in out.stderr
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text").write_text("no database, but long enough to look like one " * 5)
    out = evenhand("export", tmp_path / "text", "-o", tmp_path / "all", code=2)
    assert "not a decision log" in " ".join(out.stderr.split())
