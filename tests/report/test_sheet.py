"""A rule's tables on the page: in Chromium, light, dark, on a phone, and on one sheet of paper."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from browsing import Opened
from evenhand import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import render, write_html
from evenhand.report.summary import check_summary

from .conftest import IMAGE

RACES = ["Hispanic or Latino", "White", "Black or African American", "Native Hawaiian or Pacific Islander",
         "Asian", "Native American or Alaska Native", IMAGE]  # fmt: skip


@pytest.fixture(scope="module")
def summaries():
    """As many categories as the rule's own examples have, one of them with a hostile name."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["Male", "Female"], 900), "race": rng.choice(RACES, 900)})
    found = audit(rng.integers(0, 2, 900), None, None, sensitive_features=people, n_bootstrap=2)
    how = made("python", seeds=[0], data=[])
    names = {"name": "people", "label": "hired", "sensitive": "sex & race", "how": how}
    return {
        preset: summary_of_audit(found, **names, filled=found.statutory(preset))
        for preset in ("nyc-ll144", "four-fifths")
    }


def test_a_sheet_is_part_of_the_summary_and_of_its_schema(summaries):
    whole = check_summary(summaries["nyc-ll144"])
    sheet = whole["studies"][0]["sheet"]
    assert [table["title"] for table in sheet["tables"]] == [
        "Sex Categories", "Race/Ethnicity Categories", "Intersectional Categories"
    ]  # fmt: skip
    assert sheet["tables"][2]["columns"][0] == "race · sex"
    assert len(sheet["tables"][2]["rows"]) == 14
    page = render(whole)
    assert IMAGE not in page.split("<script")[0]
    assert "Tables to file" in page
    without = whole["studies"][0] | {"sheet": None}
    assert "Tables to file" not in render(whole | {"studies": [without]})
    broken = whole["studies"][0] | {"sheet": {"title": "x", "tables": []}}
    with pytest.raises(ValueError, match="notes"):
        check_summary(whole | {"studies": [broken]})


def test_an_audit_s_page_in_python_takes_filled_tables(tmp_path):
    people = pd.DataFrame({"sex": ["f", "m"] * 20, "race": ["a"] * 20 + ["b"] * 20})
    found = audit([0, 1, 1, 1] * 10, None, None, sensitive_features=people, n_bootstrap=2)
    page = found.to_html(tmp_path / "a.html", filled=found.statutory("nyc-ll144")).read_text(encoding="utf-8")
    assert "Tables to file" in page
    assert "Tables to file" not in found.to_html(tmp_path / "b.html").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("preset", ["nyc-ll144", "four-fifths"])
def test_the_tables_are_printed_on_one_sheet(browser, summaries, tmp_path, preset):
    address = write_html(summaries[preset], tmp_path / "page.html").as_uri()
    opened = Opened(browser, f"{address}#s0-sheet")
    for paper in ("A4", "Letter"):
        margin = dict.fromkeys(("top", "bottom", "left", "right"), "1cm")
        printed = opened.page.pdf(format=paper, margin=margin)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 718, "height": 1000})
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 718
    assert not opened.page.locator("#made").is_visible()
    opened.page.goto("about:blank")
    opened.page.goto(address)
    assert opened.page.locator("#made").is_visible()  # without its link, the sheet is one part of the page
    opened.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_sheet_on_a_screen(browser, summaries, tmp_path, width, scheme):
    address = write_html(summaries["four-fifths"], tmp_path / "page.html").as_uri()
    opened = Opened(browser, address, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    page.get_by_role("link", name="Tables to file").click()
    assert page.locator("#s0-sheet").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    head = page.locator("#s0-sheet caption").first
    ink, ground = (
        sum(map(int, re.findall(r"\d+", where.evaluate(f"(node) => getComputedStyle(node).{what}"))[:3]))
        for where, what in ((head, "color"), (page.locator("#s0-sheet"), "backgroundColor"))
    )
    assert (ground > ink) == (scheme == "light")
    assert opened.wrong == []
    opened.context.close()
