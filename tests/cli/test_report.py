from __future__ import annotations

import copy
import json
import shutil

import pytest
from typer.testing import CliRunner

from evenhand.cli import app
from factories import evenhand


def test_report_makes_page_and_figures_of_a_summary(fitted, tmp_path):
    out = evenhand("report", fitted.summary, "-o", tmp_path / "r.html", "--figures", "svg", "--figures-dir",
                   tmp_path / "f", "--json")  # fmt: skip
    written = json.loads(out.stdout)["written"]
    assert written == [str(tmp_path / "r.html"), str(tmp_path / "f" / "01-people.svg")]
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == fitted.report.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["s.json", "s.html"])
def test_a_summary_is_not_replaced_by_its_page(fitted, tmp_path, name):
    kept = tmp_path / name
    shutil.copy(fitted.summary, kept)
    (tmp_path / "link.json").symlink_to(kept)
    # Without -o, the page of s.html would be s.html.
    for options in [("-o", kept), ("-o", tmp_path / "link.json"), *[()] * (name == "s.html")]:
        out = evenhand("report", kept, *options, code=2)
        assert "which is an input" in out.stderr.replace("\n", " ")
    assert kept.read_bytes() == fitted.summary.read_bytes()


def test_report_says_what_is_wrong_with_a_summary(fitted, tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"schema": "else"}')
    for path, wanted in (
        ("a.json", "is not JSON"),
        ("b.json", "schema 'else'"),
        ("c.json", "There is no file"),
    ):
        out = evenhand("report", tmp_path / path, code=2)
        assert wanted in out.stderr.replace("\n", " ")
    out = evenhand("report", fitted.summary, "--figures", "bmp", code=2)
    assert "expected one of 'svg'" in out.stderr


@pytest.mark.parametrize("name", ["decided_by", "persons", "published_reward", "groups", "notes"])
def test_a_study_without_a_part_is_told_and_no_traceback(fitted, tmp_path, name):
    whole = json.loads(fitted.summary.read_text())
    del whole["studies"][0][name]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(whole))
    out = evenhand("report", path, "-o", tmp_path / "r.html", code=2)
    assert f"study 1 has no '{name}'" in out.stderr


def places(node, path=()):
    """Every key of a document, one for each kind of place: lists are gone into by their first item."""
    items = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, inner in items:
        if isinstance(node, dict):
            yield *path, key
        yield from places(inner, (*path, key))


def test_no_missing_key_of_a_summary_is_a_traceback(fitted, tmp_path):
    whole = json.loads(fitted.summary.read_text())
    found = list(places(whole))
    assert len(found) > 50
    for *path, key in found:
        damaged = node = copy.deepcopy(whole)
        for step in path:
            node = node[step]
        del node[key]
        (tmp_path / "s.json").write_text(json.dumps(damaged))
        out = CliRunner().invoke(app, ["report", str(tmp_path / "s.json"), "-o", str(tmp_path / "r.html")])
        told = {"schema": "has the schema None", "kind": "Got kind=None"}.get(key, f"has no '{key}'")
        # Some can be missing: measures, intervals, versions of packages.
        assert (out.exit_code, told in out.stderr) in ((0, False), (2, True)), (path, key, out.exception)


def test_the_curve_of_a_model_with_trees_counts_rounds(fitted):
    [curve] = json.loads(fitted.summary.read_text())["studies"][0]["convergence"]
    assert curve["counted"] == "rounds of trees"
    assert max(curve["steps"]) < 1000
