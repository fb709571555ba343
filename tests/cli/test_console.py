"""What holds for every command: help, version, exit codes, no traceback, nothing odd for a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from evenhand import __version__
from evenhand.wording import printable
from factories import evenhand


@pytest.mark.parametrize("command", ["fit", "predict", "audit", "reproduce", "datasets", "report"])
def test_every_command_has_help_with_an_example_and_json(command):
    out = evenhand(command, "--help")
    assert out.exit_code == 0
    assert f"evenhand {command}" in out.stdout
    assert "--json" in out.stdout


def test_version_and_unknown_commands():
    assert evenhand("--version").stdout.strip() == f"evenhand {__version__}"
    assert evenhand("fitt").exit_code == 2
    assert evenhand("fit", "--nothing").exit_code == 2


def test_python_runs_the_package():
    ran = subprocess.run(
        [sys.executable, "-m", "evenhand", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == f"evenhand {__version__}"


def test_debug_shows_where(tmp_path):
    out = evenhand("--debug", "report", tmp_path / "none.json")
    assert isinstance(out.exception, FileNotFoundError)


def test_a_closed_pipe_is_no_traceback(fitted):
    command = [sys.executable, "-c", "from evenhand.cli import main; main()"]
    command += ["predict", str(fitted.model), str(fitted.people), "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read().decode()
    assert "Traceback" not in said


def test_terminals_get_no_control_characters():
    assert printable("a\x1b[31m\u202eb\nc") == "a\\x1b[31m\\u202eb\nc"


@pytest.mark.parametrize("command", ["fit", "audit"])
def test_a_console_of_few_signs_shows_what_it_can(command):
    surroundings = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    ran = subprocess.run(
        [sys.executable, "-m", "evenhand", command, "--help"],
        capture_output=True,
        env=surroundings,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert b"--sensitive" in ran.stdout
