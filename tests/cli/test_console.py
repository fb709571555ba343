"""What holds for every command: help, version, exit codes, no traceback, nothing odd for a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

from evenhand import __version__
from evenhand.cli.console import print_table
from evenhand.wording import printable
from evenhand.workflow import candidates, deciding
from factories import evenhand


@pytest.mark.parametrize("command", ["fit", "predict", "audit", "reproduce", "datasets", "report"])
def test_every_command_has_help_with_an_example_and_json(command):
    out = evenhand(command, "--help")
    assert f"evenhand {command}" in out.stdout
    assert "--json" in out.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit", "Column with the true labels."),
        ("serve", "LOWEST HIGHEST"),
        ("serve", "any other address than this machine's own needs tokens"),
        ("fit", "How many times networks see each person."),
        ("export", "events in chronological order"),
    ],
)
def test_help_says_what_an_option_is(command, said):
    shown = " ".join(evenhand(command, "--help").stdout.replace("│", " ").split())
    assert said in shown
    assert "<float,float>" not in shown
    assert (command == "fit") == ("Column to predict. Guessed if left out." in shown)


def test_version_and_unknown_commands():
    assert evenhand("--version").stdout.strip() == f"evenhand {__version__}"
    evenhand("fitt", code=2)
    evenhand("fit", "--nothing", code=2)


def test_python_runs_the_package():
    ran = subprocess.run(
        [sys.executable, "-m", "evenhand", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == f"evenhand {__version__}"


def test_debug_shows_where(tmp_path):
    out = evenhand("--debug", "report", tmp_path / "none.json", code=1)
    assert isinstance(out.exception, FileNotFoundError)


def test_a_closed_pipe_is_no_traceback(fitted):
    command = [sys.executable, "-c", "from evenhand.cli import main; main()"]
    command += ["predict", str(fitted.model), str(fitted.people), "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read().decode()
    assert (running.returncode, said) == (1, "")


def test_a_table_in_a_pipe_has_one_line_per_row(capsys):
    columns = ["", "accuracy", "balanced accuracy", "discrimination", "flip rate", "positive rate"]
    print_table("What fairness costs", columns, [["logistic regression, blind", *["0.856"] * 5]])
    _, head, row = capsys.readouterr().out.splitlines()
    assert head.split() == " ".join(columns).split()
    assert "logistic regression, blind  " in row


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


def interrupted(*_arguments, **_options):
    raise KeyboardInterrupt


def test_a_stopped_fit_says_that_it_can_continue_and_nothing_of_the_loop_inside(
    fitted, tmp_path, monkeypatch
):
    monkeypatch.setattr(candidates.TrainedSoFar, "keep", interrupted)
    command = ("fit", fitted.people, "-o", tmp_path / "m.skops", "--weights", "0,1,3", "--epochs", "1")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        out = evenhand(*command, "--jobs", "2", code=130)
    assert "Stopped. Run the same command again to continue where it stopped." in out.stderr
    assert not [str(each.message) for each in warned if "input task" in str(each.message)]


def test_a_command_that_begins_anew_says_only_that_it_stopped(fitted, monkeypatch):
    monkeypatch.setattr(deciding, "decide_file", interrupted)
    assert evenhand("predict", fitted.model, fitted.people, code=130).stderr == "Stopped.\n"
