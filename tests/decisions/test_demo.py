"""The demonstration: it starts without any download, decides, earns, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from sqlalchemy import select

from evenhand.decisions.schema import decisions, outcomes
from evenhand.decisions.serve import demo
from evenhand.decisions.serve.meters import Meters
from factories import evenhand


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    return demo.choose_story(tmp_path_factory.mktemp("empty"))


def test_without_data_there_are_simulated_students(story):
    assert story.people.name.startswith("simulated")
    assert "simulated" in story.told


def test_its_decisions_and_outcomes_are_metrics_too(story, tmp_path):
    now = 0.0
    with demo.begin(story, tmp_path / "log.db") as loop:
        loop.clock = lambda: now
        meters, stream = Meters(loop), demo.Stream(loop, story)
        for _ in range(50):
            now += demo.TICK
            stream.step()
        decided, told = (counted.collect()[0].samples for counted in (meters.decisions, meters.outcomes))
        assert sum(one.value for one in decided if one.name.endswith("_total")) == 50 * 20
        heard = [one.value for one in told if one.labels == {"status": "accepted"} and one.name.endswith("l")]
        assert heard == [len(loop._log.all(select(outcomes)))] != [0]


@pytest.mark.data
def test_with_german_credit_it_is_about_loans():
    from evenhand.datasets import load_german

    load_german()
    assert demo.choose_story().people.name == "german"


def test_outcomes_come_later_and_only_after_yes(story, tmp_path):
    now = 0.0
    with demo.begin(story, tmp_path / "log.db") as loop:
        loop.clock = lambda: now
        stream = demo.Stream(loop, story)
        stream.step()
        assert loop._log.all(select(outcomes)) == []
        for _ in range(100):
            now += demo.TICK
            stream.step()
        seen = {row.id: row.at for row in loop._log.all(select(outcomes))}
        made = loop._log.all(select(decisions))
        assert len(made) == 101 * 20
        assert {story.yes, story.no} == {row.action for row in made}
        assert all((row.id in seen) == (row.action == story.yes) for row in made if row.at < now - 8)
        assert all(
            row.action == story.yes and row.at + 1 <= seen[row.id] <= row.at + 7
            for row in made
            if row.id in seen
        )
        loop.learn()
        assert loop.candidate().outcomes > 0
        assert loop.replay().same


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command_decides_earns_and_cleans_up(end, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "EVENHAND_CACHE": str(tmp_path / "empty"), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "evenhand", "serve", "--demo", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        earned, until = 0.0, time.monotonic() + 180
        while not earned and time.monotonic() < until and process.poll() is None:
            time.sleep(0.3)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=30) as answer:
                    earned = json.load(answer)["counts"]["earned"]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                    assert "applicants and outcomes are simulated" in answer.read().decode()
            except urllib.error.URLError:
                continue
        assert list(temporary.glob("evenhand-demo-*/decisions.db"))
        process.send_signal(end)
        said = " ".join(process.communicate(timeout=60)[0].decode().split())
    assert earned != 0.0, said
    assert process.returncode == 0
    assert f"http://127.0.0.1:{port}/" in said
    assert said.endswith("its log has been deleted.")
    assert "Traceback" not in said
    assert not list(temporary.glob("evenhand-demo-*"))
    assert not (tmp_path / "empty").exists()


def test_it_takes_no_model_log_or_rules(tmp_path):
    ran = evenhand("serve", tmp_path / "model.skops", "--demo", "--explore", "0.1", code=2)
    assert "Got --demo with explore, model" in " ".join(ran.output.split())
    assert "--demo" in evenhand("serve", "--help").output
