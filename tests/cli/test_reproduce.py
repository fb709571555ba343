from __future__ import annotations

import json
import sys

import pytest

from evenhand.report import read_summary
from factories import evenhand


@pytest.mark.data
def test_a_small_reproduction_makes_tables_figure_and_report(tmp_path):
    options = ("--datasets", "german", "--methods", "LR,CCB", "--out", tmp_path / "r", "--figures", "svg")
    out = evenhand("reproduce", *options, "--json")
    written = json.loads(out.stdout)["written"]
    assert [path.rpartition("/")[2] for path in written] == ["summary.json", "report.html", "01-german.svg"]
    study = read_summary(tmp_path / "r" / "summary.json")["studies"][0]
    assert {model["method"] for model in study["models"] if model["criterion"] == "delta"} == {"LR", "CCB"}
    assert {entry["method"] for entry in study["published"]} >= {"LR", "CCB"}
    assert len({m["divergence_weight"] for m in study["models"]} - {None}) == 4
    assert study["groups"]
    assert study["persons"]["rows"]
    evenhand("report", tmp_path / "r" / "summary.json", "-o", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "r" / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [(("--engine", "nope"), "one of 'threads'"), (("--address", "tcp://here"), "expected 'dask' or 'ray'")],
)
def test_an_engine_is_checked_before_any_data_is_loaded(tmp_path, monkeypatch, options, wanted):
    monkeypatch.setattr("evenhand.protocol.reproduce.load_public", lambda *_: pytest.fail("loaded too early"))
    out = evenhand("reproduce", *options, "--out", tmp_path / "r", code=2)
    assert wanted in out.stderr.replace("\n", " ")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("options", "module", "wanted"),
    [
        (("--figures", "pdf"), "matplotlib", "--figures needs Matplotlib: pip install 'evenhand[figures]'"),
        (("--engine", "dask"), "distributed", "--engine dask needs: pip install 'evenhand[dask]'"),
        (("--engine", "ray"), "ray", "--engine ray needs: pip install 'evenhand[ray]'"),
        (("--engine", "cuda"), "cupy", "engine='cuda' needs: pip install 'evenhand[cuda]'"),
    ],
)
def test_what_is_not_installed_is_said_before_any_data_is_loaded(
    tmp_path, monkeypatch, options, module, wanted
):
    monkeypatch.setattr("evenhand.protocol.reproduce.load_public", lambda *_: pytest.fail("loaded too early"))
    monkeypatch.setitem(sys.modules, module, None)
    out = evenhand("reproduce", *options, "--out", tmp_path / "r", code=2)
    assert wanted in out.stderr.replace("\n", " ")
    assert not (tmp_path / "r").exists()


def test_unknown_names_are_messages(tmp_path):
    for options, wanted in ((("--datasets", "germn"), "german"), (("--figures", "gif"), "svg")):
        out = evenhand("reproduce", *options, "--out", tmp_path, code=2)
        assert wanted in out.stderr
