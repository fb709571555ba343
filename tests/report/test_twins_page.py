"""Counterparts on the page: as data, as words, and in Chromium."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from browsing import Opened
from evenhand import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import render, write_html

from .conftest import FORMULA, HOSTILE, IMAGE, TURNED

QUICK = {"n_null": 19, "n_pairs": 40}


class Rule:
    """Says yes to those with a high proxy, with a probability."""

    classes_ = np.array(["no", HOSTILE])

    def predict_proba(self, X: pd.DataFrame) -> Any:
        likely = 1 / (1 + np.exp(-3 * (X[HOSTILE] + 0.3 * (X["town"] == TURNED) - 1)))
        return np.stack([1 - likely, likely], axis=1)

    def predict(self, X: pd.DataFrame) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _audited(edges: list[str] | None = None) -> Any:
    rng = np.random.default_rng(0)
    n = 240
    group = np.where(rng.random(n) < 0.5, IMAGE, "f")
    X = pd.DataFrame(
        {
            HOSTILE: rng.normal(1.5 * (group == "f")).round(2),
            "town": rng.choice([TURNED, FORMULA], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3, n)),
        }
    )
    options = QUICK | ({"edges": edges} if edges else {})
    return audit(
        Rule(), X, None, sensitive_features=pd.Series(group, name="sex"), n_bootstrap=20, twins=options
    )


def _summary(found: Any) -> Any:
    how = made("python", seeds=[0], data=[])
    return summary_of_audit(found, name="people", label="hired", sensitive="sex", how=how)


@pytest.fixture(scope="module")
def audited() -> Any:
    return _audited()


@pytest.fixture(scope="module")
def address(audited: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_html(_summary(audited), tmp_path_factory.mktemp("twins") / "page.html").as_uri()


def test_the_summary_holds_the_directions_that_are_clear(audited: Any) -> None:
    shown = _summary(audited)["studies"][0]["twins"]
    [one] = shown["directions"]
    assert (one["group"], one["counterpart_group"]) == (IMAGE, "f")
    assert one["columns"][0] == HOSTILE
    assert one["clear"][0]
    assert len(shown["flips"]["rows"]) == 2
    pair = one["pairs"][0]
    assert pair["decisions"] == ["no", HOSTILE]
    assert {step["column"] for step in pair["steps"]} == {HOSTILE, "town", "since", "gap"}
    last = [step for step in pair["steps"] if step["changed"]][-1]
    assert last["probability"] == pair["probabilities"][1]
    assert any("Of the counterparts of" in note for note in _summary(audited)["studies"][0]["notes"])


def test_an_audit_without_twins_has_no_place_for_them(people: Any) -> None:
    X, y = people
    page = render(_summary(audit(y, X, y, sensitive_features="man", n_bootstrap=20)))
    assert "Counterparts in other groups" not in page.split("<script")[0]


def test_counterparts_of_a_graph_have_no_number() -> None:
    [one] = _summary(_audited([f"sex->{HOSTILE}"]))["studies"][0]["twins"]["directions"]
    assert one["pairs"][0]["counterpart"] is None


@pytest.mark.browser
def test_bars_have_intervals_and_a_table_with_the_same_numbers(opened: Opened) -> None:
    bars = opened.page.locator('[data-plot="carriers"] .barlayer .point')
    rows = opened.page.locator('[id$="-twins"] details tbody tr')
    assert bars.count() == rows.count() == 4
    assert opened.page.locator('[data-plot="carriers"] .barlayer .errorbar').count() == 4
    assert "clearly above chance" in opened.page.locator('[data-plot="carriers"] .legend').text_content()
    assert opened.page.locator('[data-role="which"]').inner_text() == f"{IMAGE}, counterparts in f"


@pytest.mark.browser
def test_a_pair_is_shown_side_by_side_and_can_be_chosen(opened: Opened, audited: Any) -> None:
    page = opened.page
    pairs = _summary(audited)["studies"][0]["twins"]["directions"][0]["pairs"]
    table = page.locator('[data-role="twins"]')
    for number in (0, len(pairs) - 1):
        pair = pairs[number]
        page.locator('[data-role="pair"]').select_option(str(number))
        assert f"person {pair['person']}," in table.locator("thead").inner_text()
        assert f"counterpart {pair['counterpart']}, f" in table.locator("thead").inner_text()
        changed = sum(step["changed"] for step in pair["steps"])
        assert table.locator(".differs").count() == changed
        last = table.locator("tbody tr").nth(changed).inner_text()
        assert f"{100 * pair['probabilities'][1]:.1f}" in last
    assert page.evaluate("window.hacked") is None


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_sideways_scrolling(browser: Any, address: str, width: int, scheme: str) -> None:
    opened = Opened(browser, address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink = page.locator('[data-plot="carriers"] .xtitle').evaluate("e => getComputedStyle(e).fill")
    assert (sum(map(int, ink[4:-1].split(","))) > 380) == (scheme == "dark")
    opened.context.close()
    assert opened.wrong == []


@pytest.mark.browser
def test_on_paper_the_pair_and_the_figure_stay(opened: Opened) -> None:
    page = opened.page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator('[data-role="direction"]').is_hidden()
    assert page.locator('[data-role="twins"]').is_visible()
    box = page.locator('[data-plot="carriers"] .main-svg').first.bounding_box()
    assert box is not None
    assert box["width"] <= 640
    page.evaluate("dispatchEvent(new Event('afterprint'))")


@pytest.mark.browser
def test_a_legend_of_unclear_columns_alone_says_what_they_do_not(
    browser: Any,
    audited: Any,
    tmp_path: Any,
) -> None:
    summary = _summary(audited)
    study = summary["studies"][0]
    [one] = study["twins"]["directions"]
    unclear = study["twins"] | {"directions": [one | {"clear": [False] * len(one["columns"])}]}
    path = write_html(summary | {"studies": [study | {"twins": unclear}]}, tmp_path / "page.html")
    opened = Opened(browser, path.as_uri())
    assert opened.page.locator('[data-plot="carriers"] .legend').text_content() == "not clearly above chance"
    opened.context.close()
