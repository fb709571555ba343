"""Axes, legends, small numbers and rows of the page: in Chromium."""

from __future__ import annotations

import pytest

from browsing import Opened
from evenhand.report.render import write_html

pytestmark = pytest.mark.browser


def test_where_nothing_is_chosen_the_slider_begins_at_its_start(browser, summary, tmp_path):
    study = summary["studies"][0]
    best = {"accuracy": {"value": 1.0}, "discrimination": {"value": 0.0}}
    models = [model | {"chosen": False} for model in study["models"]]
    models[-1] |= {"metrics": best}
    path = write_html(summary | {"studies": [study | {"models": models}]}, tmp_path / "r.html")
    seen = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
    assert (
        seen.page.locator('[data-role="said"]').inner_text().startswith("λ = 0:")
    )  # not the best of the test part
    seen.context.close()


def test_the_axis_of_training_says_what_is_counted(browser, summary, tmp_path):
    study, titles = summary["studies"][0], []
    rounds = [curve | {"counted": "rounds of trees"} for curve in study["convergence"]]
    for curves in (study["convergence"], rounds):
        path = write_html(summary | {"studies": [study | {"convergence": curves}]}, tmp_path / "r.html")
        seen = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
        titles.append(seen.page.locator('[data-plot="curves"] .xtitle').text_content())
        seen.context.close()
    assert titles == ["people seen in training", "rounds of trees"]


FAMILIES = ["networks and trees", "networks and trees, with parity", "networks", "networks, with parity",
            "trees", "trees, with parity", "blind to the group"]  # fmt: skip


@pytest.mark.parametrize("width", [1280, 400])
def test_the_legend_stays_within_its_figure_for_either_axis(browser, summary, tmp_path, width):
    study = summary["studies"][0]
    many = [study["models"][0] | {"family": family, "front": True} for family in FAMILIES]
    path = write_html(summary | {"studies": [study | {"models": many, "published": []}]}, tmp_path / "r.html")
    seen = Opened(browser, path.as_uri(), viewport={"width": width, "height": 844})
    for axis in ("discrimination", "flip rate"):
        seen.page.get_by_role("button", name=axis).click()
        title, figure, *entries = (
            one.bounding_box()
            for one in (
                seen.page.locator('[data-plot="trade"] .xtitle'),
                seen.page.locator('[data-plot="trade"]'),
                *seen.page.locator('[data-plot="trade"] .legend .traces').all(),
            )
        )
        assert len(entries) == len(FAMILIES) + (axis == "discrimination")
        ends = [entry["y"] + entry["height"] for entry in entries]
        assert max(ends) <= figure["y"] + figure["height"] <= max(ends) + 15  # and no empty room below it
        assert title["y"] + title["height"] <= min(entry["y"] for entry in entries)
    seen.context.close()


def test_small_gaps_are_told_apart_in_the_list(browser, summary, tmp_path):
    study = summary["studies"][0]
    rows = [
        row | {"gap": gap}
        for row, gap in zip(study["persons"]["rows"], (0.51234, 0.0002134, 2.134e-7, 0.0), strict=False)
    ]
    people = study["persons"] | {"rows": rows}
    path = write_html(summary | {"studies": [study | {"persons": people}]}, tmp_path / "r.html")
    seen = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
    gaps = seen.page.locator('[data-role="people"] tbody tr td:nth-last-child(2)').all_inner_texts()
    seen.context.close()
    assert gaps == ["0.512", "0.000213", "2.1e-7", "0"]


def test_rows_of_people_and_pairs_stay_low_on_a_phone(browser, summary, tmp_path):
    study = summary["studies"][0]
    values = {"columns": [f"a longer name {n}" for n in range(6)]}
    rows = [row | {"features": ["something"] * 6} for row in study["persons"]["rows"]]
    differ = ", ".join(f"name {n} 3042.3 | 3015.3" for n in range(3))
    table = {"title": "Alike", "caption": "c", "columns": ["person", "differ in"], "rows": [["1", differ]]}
    changed = study | {"persons": study["persons"] | values | {"rows": rows}, "tables": [table]}
    path = write_html(summary | {"studies": [changed]}, tmp_path / "r.html")
    seen = Opened(browser, path.as_uri(), viewport={"width": 400, "height": 844})
    heights = [
        seen.page.locator(cell).first.bounding_box()["height"] for cell in ("td.long", "td.who summary")
    ]
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 400
    seen.context.close()
    assert max(heights) < 60  # two lines


def test_how_it_was_made_has_a_heading_like_every_card(opened):
    look = "(node) => { const s = getComputedStyle(node); return [s.fontSize, s.lineHeight, s.marginTop, s.marginBottom]; }"
    made, card = (opened.page.locator(chosen).first.evaluate(look) for chosen in ("#made h2", "article h3"))
    assert made == card
