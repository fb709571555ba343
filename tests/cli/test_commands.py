"""The commands that only show: datasets, report, help, version, and what goes wrong everywhere."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from evenhand import __version__
from evenhand.cli.console import printable

from .conftest import evenhand


def test_datasets_are_listed():
    assert "adult" in evenhand("datasets").stdout
    records = json.loads(evenhand("datasets", "--json").stdout)
    assert {"name", "people", "source", "licence", "ready"} <= set(records[0])


def test_report_makes_page_and_figures_of_a_summary(fitted, tmp_path):
    out = evenhand("report", fitted.summary, "-o", tmp_path / "r.html", "--figures", "svg", "--figures-dir",
                   tmp_path / "f", "--json")  # fmt: skip
    assert out.exit_code == 0, out.output
    written = json.loads(out.stdout)["written"]
    assert written == [str(tmp_path / "r.html"), str(tmp_path / "f" / "01-people.svg")]
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == fitted.report.read_text(encoding="utf-8")


def test_report_says_what_is_wrong_with_a_summary(fitted, tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"schema": "else"}')
    for path, wanted in (
        ("a.json", "is no JSON"),
        ("b.json", "schema 'else'"),
        ("c.json", "There is no file"),
    ):
        out = evenhand("report", tmp_path / path)
        assert out.exit_code == 2
        assert wanted in out.stderr.replace("\n", " ")
    out = evenhand("report", fitted.summary, "--figures", "bmp")
    assert (out.exit_code, "expected one of 'svg'" in out.stderr) == (2, True)


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
