"""What a `fit` that fails leaves behind: the model if it was chosen, and a hidden folder if work can go on."""

from __future__ import annotations

import pytest

from evenhand import CooperativeBandits, TrainingDivergedError, load
from evenhand.report import read_summary
from evenhand.workflow import candidates
from evenhand.workflow.frontier import Frontier
from factories import FIT, evenhand

OPTIONS = ("--label", "hired", "--sensitive", "sex", *FIT)


def test_a_users_own_report_has_no_model_of_the_published_reward(fitted, tmp_path, monkeypatch):
    def published(*_, **__):
        raise TrainingDivergedError("diverged")

    monkeypatch.setattr(CooperativeBandits, "published", published)
    evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *OPTIONS, "--summary", tmp_path / "s.json")
    assert read_summary(tmp_path / "s.json")["studies"][0]["published_reward"] is None
    assert "published reward" not in fitted.report.read_text(encoding="utf-8")


def test_a_report_that_fails_costs_neither_the_model_nor_its_card(fitted, tmp_path, monkeypatch):
    def summary(*_, **__):
        raise ValueError("no report today")

    monkeypatch.setattr(Frontier, "summary", summary)
    out = evenhand(
        "fit", fitted.people, "-o", tmp_path / "m.skops", *OPTIONS, "--report", tmp_path / "r.html", code=2
    )
    assert "no report today" in out.stderr
    assert load(tmp_path / "m.skops").card == load(fitted.model).card | {
        "made": load(tmp_path / "m.skops").card["made"]
    }
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m.card.json", "m.card.md", "m.skops"]


def test_models_outside_the_bounds_are_kept_for_other_bounds(fitted, tmp_path, monkeypatch):
    command = ("fit", fitted.people, "-o", tmp_path / "m.skops", *OPTIONS, "--policies", "networks")
    out = evenhand(*command, "--max-flip", 0, code=1)
    assert "No model kept flip rate ≤ 0" in out.stderr
    unfinished = tmp_path / ".m.skops.unfinished"
    assert f"The models stay in {unfinished} for a run with other bounds" in out.stderr.replace("\n", " ")
    for slip in (("--sensitive", "sexx"), ("--threshold", 2)):
        evenhand(*command, *slip, code=2)
    train, trained = candidates._train, []
    monkeypatch.setattr(candidates, "_train", lambda *point: trained.append(point) or train(*point))
    out = evenhand(*command, "--max-flip", 1)
    assert trained == []
    assert "Resumed with 4 of 4 models trained before." in out.stderr
    assert not unfinished.exists()


@pytest.mark.parametrize(
    ("error", "stays"), [(TrainingDivergedError("it diverged"), False), (OSError("disk full"), True)]
)
def test_a_run_that_ended_leaves_no_hidden_folder(fitted, tmp_path, monkeypatch, error, stays):
    train, trained = candidates._train, []

    def failing(*point):
        if trained:
            raise error
        trained.append(point)
        return train(*point)

    monkeypatch.setattr(candidates, "_train", failing)
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *OPTIONS, code=1)
    assert str(error) in out.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == [".m.skops.unfinished"] * stays
