"""People found by a search on the page: in Chromium, light, dark and on a phone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from browsing import Opened
from evenhand import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import render, write_html
from evenhand.report.summary import check_summary

from .conftest import IMAGE, TURNED

TITLE = "People found whose decision changes with the group"


@pytest.fixture(scope="module")
def whole() -> Any:
    """An audit with a search; categories and a group have hostile names."""
    rng = np.random.default_rng(0)
    towns = [IMAGE, TURNED, "x"]
    people = pd.DataFrame({name: rng.choice(towns, 200) for name in ("town", "birthplace")})
    people["group"] = rng.choice([IMAGE, "m"], 200)
    hired = np.where((people["town"] == IMAGE) * 1 + (people["group"] == "m") > 0, "yes", "no")
    model = make_pipeline(OneHotEncoder(), LogisticRegression(C=0.1)).fit(people, hired)
    found = audit(model, people, hired, sensitive_features="group", n_bootstrap=2, search=True)
    how = made("python", seeds=[0], data=[])
    return found, summary_of_audit(found, name="people", label="hired", sensitive="group", how=how)


def test_the_table_holds_whom_they_were_made_from_and_both_decisions(whole):
    found, summary = whole
    table = next(table for table in check_summary(summary)["studies"][0]["tables"] if table["title"] == TITLE)
    assert "nothing is proven" in table["caption"]
    first = dict(zip(table["columns"], table["rows"][0], strict=True))
    best = found.search.people.iloc[0]
    assert first["made from person"] == str(best["person"] + 1)
    assert {first[f"decided as {IMAGE}"], first["decided as m"]} == {"no", "yes"}
    assert first["gap"] == f"{best['gap']:.3f}"
    assert "town" not in first
    assert IMAGE not in render(summary).split("<script")[0]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_people_found_on_a_screen(browser, whole, tmp_path, width, scheme):
    address = write_html(whole[1], tmp_path / "page.html").as_uri()
    opened = Opened(browser, address, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    heading = page.get_by_role("heading", name=TITLE)
    heading.scroll_into_view_if_needed()
    assert heading.is_visible()
    assert page.get_by_role("columnheader", name="made from person").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    opened.context.close()
