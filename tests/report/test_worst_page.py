"""The largest possible gap on the page: in Chromium, light, dark and on a phone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from browsing import Opened
from evenhand import CooperativeBandits, audit, tabular
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import render, write_html
from evenhand.report.summary import check_summary

from .conftest import IMAGE, TURNED


@pytest.fixture(scope="module")
def whole() -> Any:
    """An audit with a certificate; a category and a group have hostile names."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(18, 40, 200), "town": rng.choice([IMAGE, TURNED, "x"], 200)})
    group = rng.choice([IMAGE, "m"], 200)
    hired = np.where(people["age"] + 12 * (group == "m") > 34, "yes", "no")
    model = tabular(CooperativeBandits(2.0, hidden=3, epochs=10, random_state=0))
    model.fit(people, hired, sensitive_features=group)
    ranges = {"town": [IMAGE]}
    found = audit(
        model,
        people,
        hired,
        sensitive_features=group,
        n_bootstrap=2,
        certify={"tolerance": 0.01, "ranges": ranges},
    )
    how = made("python", seeds=[0], data=[])
    return found, summary_of_audit(found, name="people", label="hired", sensitive="sex", how=how)


def test_the_table_holds_the_person_both_probabilities_and_the_bound(whole):
    found, summary = whole
    tables = check_summary(summary)["studies"][0]["tables"]
    table = next(table for table in tables if table["title"] == "The largest possible gap")
    cells = {row[0]: row[1] for row in table["rows"]}
    worst = found.worst.worst
    assert cells["age"] == str(worst.person["age"])
    assert cells["town"] == IMAGE
    for group, probability in worst.probabilities.items():
        assert cells[f"P(yes) as {group}"] == f"{probability:.4f}"
        assert cells[f"decided as {group}"] == worst.decisions[group]
    assert float(cells["no possible person differs by more than"].split()[0]) >= 100 * worst.bound
    assert cells["certified"] == "yes"
    assert IMAGE not in render(summary).split("<script")[0]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_worst_person_on_a_screen(browser, whole, tmp_path, width, scheme):
    address = write_html(whole[1], tmp_path / "page.html").as_uri()
    opened = Opened(browser, address, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    heading = page.get_by_role("heading", name="The largest possible gap")
    heading.scroll_into_view_if_needed()
    assert heading.is_visible()
    row = page.get_by_role("row", name="no possible person differs by more than")
    assert row.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    opened.context.close()
