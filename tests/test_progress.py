from __future__ import annotations

import io

import pytest
from rich.console import Console

from evenhand import progress
from evenhand.progress import Bar, Lines, Progress


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_say_what_runs_how_many_and_the_time_left(time_passes: list[float]) -> None:
    file = io.StringIO()
    lines = Lines(file)
    lines.start("Trials", 4, work=100.0)
    lines.done("too soon to tell", 5.0)
    time_passes[0] = 20.0
    lines.done("LR on adult", 20.0)  # a quarter of the work in 20 s: a minute is left, though two trials are
    lines.stop()
    assert file.getvalue().splitlines() == [
        "Trials: 4 to do",
        "Trials: 2 of 4, about 1:00 min left · LR on adult",
        "Trials: 2 of 4 in 20 s",
    ]


def test_the_last_piece_has_no_time_left(time_passes: list[float]) -> None:
    file = io.StringIO()
    lines = Lines(file)
    lines.start("Trials", 1, work=1.0)
    time_passes[0] = 30.0
    lines.done("LR", 1.0)
    assert "Trials: 1 of 1 · LR" in file.getvalue()


def test_a_terminal_gets_a_bar() -> None:
    file = io.StringIO()
    bar = Bar(Console(file=file, force_terminal=True, width=120))
    bar.start("Trials", 2, work=2.0)
    bar.say("a note")
    bar.done("LR on adult", 1.0)
    bar.stop()
    assert "1/2" in file.getvalue()
    assert "LR on adult" in file.getvalue()
    assert "a note" in file.getvalue()


def test_labels_are_text_not_markup_nor_control_codes() -> None:
    file = io.StringIO()
    bar = Bar(Console(file=file, force_terminal=True, width=120))
    with bar.stage("[b]Trials", 1) as done:
        done("[red]x\x1b]0;title\x07")
    assert "[b]Trials" in file.getvalue()
    assert r"[red]x\x1b]0;title\x07" in file.getvalue()


def test_a_stage_may_not_know_its_end_and_pieces_may_come_together(time_passes: list[float]) -> None:
    file = io.StringIO()
    with Lines(file).stage("Deciding") as done:
        time_passes[0] = 11.0
        done("people.csv", pieces=500)
    assert file.getvalue().splitlines() == ["Deciding: 500 · people.csv", "Deciding: 500 in 11 s"]
    drawn = io.StringIO()
    with Bar(Console(file=drawn, force_terminal=True, width=120)).stage("Deciding") as done:
        done("people.csv", pieces=500)
    assert "500/?" in drawn.getvalue()


def test_pieces_are_the_work_where_none_is_told(time_passes: list[float]) -> None:
    file = io.StringIO()
    with Lines(file).stage("Along λ", 4) as done:
        time_passes[0] = 20.0
        done("λ = 1")
    assert "Along λ: 1 of 4, about 1:00 min left · λ = 1" in file.getvalue()


def test_a_pipe_gets_lines_and_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(progress.to_stderr(), Lines)
    silent = progress.to_stderr(lines=False)
    assert type(silent) is Progress
    silent.say("x")
    with silent.stage("x", 1, 1.0) as done:
        done("x", 1.0)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_that_stays_or_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    for lines in (True, False):
        bar = progress.to_stderr(lines=lines)
        assert isinstance(bar, Bar)
        assert bar._transient is not lines
