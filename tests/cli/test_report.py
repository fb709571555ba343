from __future__ import annotations

import json

from .conftest import evenhand


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
