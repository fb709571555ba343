"""The page as a person meets it: Chromium, the network off, no console errors."""

from __future__ import annotations

import pytest

from browsing import Opened
from evenhand.report.render import write_html

from .conftest import FORMULA, HOSTILE

pytestmark = pytest.mark.browser


def test_above_the_fold_are_sentence_figure_and_groups(opened):
    for chosen in (".sentence", '[data-plot="trade"] .scatterlayer', ".groups tbody tr"):
        box = opened.page.locator(chosen).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, chosen
    assert "95 % intervals" in opened.page.locator(".sentence").inner_text()


def test_the_slider_moves_the_highlighted_model(opened):
    page = opened.page
    said = page.locator('[data-role="said"]')
    assert said.inner_text().startswith("λ = 1:")

    def ring():
        return page.evaluate(
            """() => { const p = document.querySelector('[data-plot="trade"]');
                       const t = p.data.find((t) => t.name === 'highlighted'); return [t.x[0], t.y[0]]; }"""
        )

    before = ring()
    slider = page.locator('[data-role="weight"]')
    slider.focus()
    page.keyboard.press("End")
    assert said.inner_text().startswith("λ = 10:")
    assert slider.get_attribute("aria-valuetext") == "λ = 10"
    assert ring() != before
    page.keyboard.press("Home")
    assert said.inner_text().startswith("λ = 0:")


def test_the_other_axis_is_the_flip_rate(opened):
    page = opened.page
    page.get_by_role("button", name="flip rate").click()
    assert page.locator('[data-role="against"]').inner_text() == "flip rate"
    assert "flip rate" in page.locator('[data-plot="trade"] .xtitle').text_content()


def test_people_are_searched_sorted_and_paged(opened):
    page = opened.page
    rows = page.locator('[data-role="people"] tbody tr')
    assert rows.count() == 25
    assert page.locator('[data-role="page"]').inner_text() == "1 to 25"
    page.get_by_role("button", name="Next").click()
    assert page.locator('[data-role="page"]').inner_text() == "26 to 50"
    person = rows.nth(3).locator("th").inner_text()
    page.get_by_label("Search").fill(f"{person} hyperlink")
    assert all("HYPERLINK" in text for text in rows.all_inner_texts())
    page.get_by_label("Search").fill("nobody is called this")
    assert (rows.count(), page.locator('[data-role="page"]').inner_text()) == (0, "nobody")
    page.get_by_label("Search").fill("")
    page.get_by_role("button", name="person", exact=True).click()
    numbers = [int(text) for text in page.locator('[data-role="people"] tbody th').all_inner_texts()]
    assert numbers == sorted(numbers)
    assert page.locator("th[aria-sort='ascending']").inner_text().startswith("person")
    page.get_by_role("button", name="gap", exact=True).click()
    gaps = [
        float(text)
        for text in page.locator('[data-role="people"] tbody tr td:nth-last-child(2)').all_inner_texts()
    ]
    assert gaps == sorted(gaps, reverse=True)
    page.get_by_label("only changing decisions").check()
    assert rows.count() == page.locator('[data-role="people"] tbody tr:has(.differs)').count()


def test_hostile_names_run_nothing_and_appear_as_text(opened):
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert FORMULA in page.locator('[data-role="people"]').inner_text()
    page.locator('[data-plot="trade"] .points path').first.hover(force=True)
    assert page.evaluate("window.hacked") is None


def test_everything_can_be_reached_by_keyboard(opened):
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.role || document.activeElement.tagName"))
    assert {"weight", "family", "search", "only", "next", "SUMMARY"} <= reached


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")]
)
def test_no_sideways_scrolling_in_light_dark_and_on_a_phone(browser, address, tmp_path, name, width, scheme):
    opened = Opened(browser, address, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
    ground, ink = page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    light, dark = (sum(map(int, c[4:-1].split(","))) for c in (ground, ink))
    assert (light > dark) == (scheme == "light")
    opened.context.close()
    assert opened.wrong == []


def test_the_figures_follow_a_change_of_scheme(opened):
    page = opened.page
    colour = "document.querySelector('[data-plot=\"trade\"]').layout.font.color"
    before = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    # The page's policy forbids evaluating text, so that Playwright can't wait for an expression.
    for _ in range(50):
        if page.evaluate(colour) != before:
            break
        page.wait_for_timeout(100)
    assert page.evaluate(colour) != before


def test_a_legend_of_many_rows_stays_below_the_axis(browser, comparison, tmp_path):
    study = comparison["studies"][0]
    many = [study["models"][0] | {"family": f"one of many families, number {n}"} for n in range(9)]
    crowded = comparison | {"studies": [study | {"models": many, "points": []}]}
    opened = Opened(
        browser, write_html(crowded, tmp_path / "r.html").as_uri(), viewport={"width": 390, "height": 844}
    )
    ticks, axis, legend = (
        opened.page.locator(f'[data-plot="trade"] {part}').first.bounding_box()
        for part in (".xtick", ".xtitle", ".legend")
    )
    opened.context.close()
    assert ticks["y"] + ticks["height"] <= axis["y"]
    assert axis["y"] + axis["height"] <= legend["y"]


@pytest.mark.parametrize("width", [390, 1200, 1280, 1920])
def test_no_table_is_cut_without_a_sign_and_on_a_wide_window_none_is_cut(browser, address, width):
    opened = Opened(browser, address, viewport={"width": width, "height": 844})
    page = opened.page
    boxes = page.evaluate(
        """() => [...document.querySelectorAll(".scroll")].map((box) =>
             [box.scrollWidth > box.clientWidth + 1, box.dataset.more || null, box.tabIndex])"""
    )
    assert {tuple(box) for box in boxes} <= {(False, None, -1), (True, "right", 0)}
    assert any(cut for cut, *_ in boxes) == (width == 390)
    if width == 390:
        page.evaluate("() => { const box = document.querySelector('.scroll'); box.scrollLeft = 9999; }")
        page.wait_for_selector('.scroll[data-more="left"]')
    opened.context.close()
    assert opened.wrong == []


def test_a_table_of_long_texts_stays_low_on_a_phone(browser, summary, tmp_path):
    row = [
        "1",
        "2",
        "a",
        "b",
        "neighbour",
        "decision",
        "skill -0.1089 | -0.1061, born 1998-01-01 | 1994-03-18",
    ]
    table = {
        "title": "Alike",
        "caption": "c",
        "columns": [f"column {n}" for n in range(7)],
        "rows": [row] * 3,
    }
    path = write_html(
        summary | {"studies": [summary["studies"][0] | {"tables": [table]}]}, tmp_path / "r.html"
    )
    opened = Opened(browser, path.as_uri(), viewport={"width": 390, "height": 844})
    height = opened.page.locator("td.long").first.bounding_box()["height"]
    opened.context.close()
    assert height < 80  # two lines, not a word in each


def test_there_is_room_for_a_legend_only_where_there_is_one(browser, summary, tmp_path):
    study = summary["studies"][0]
    decided = [{k: v for k, v in row.items() if k != "base_rate"} for row in study["groups"]]
    rooms = []
    for groups in (study["groups"], decided):
        path = write_html(summary | {"studies": [study | {"groups": groups}]}, tmp_path / "r.html")
        opened = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
        plot = opened.page.locator('[data-plot="groups"]')
        rooms.append((plot.locator(".legend").count(), plot.evaluate("(box) => box.layout.margin.b")))
        opened.context.close()
    assert rooms == [(1, 85), (0, 56)]


def test_people_without_labels_have_no_column_for_them(browser, summary, tmp_path):
    study = summary["studies"][0]
    people = study["persons"] | {"rows": [row | {"label": ""} for row in study["persons"]["rows"]]}
    path = write_html(summary | {"studies": [study | {"persons": people}]}, tmp_path / "r.html")
    opened = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
    heads = opened.page.locator(".people thead th").all_inner_texts()
    opened.context.close()
    assert heads[:2] == ["person", "group"]
    assert "label" not in heads


def _beyond(page, plot: str) -> list[str]:
    """The bars of a plot that end outside its axes."""
    return page.evaluate(
        """(plot) => { const box = document.querySelector(`[data-plot="${plot}"]`), beyond = [];
             for (const trace of box.data) for (const [axis, bars] of [["xaxis", trace.error_x], ["yaxis", trace.error_y]]) {
               if (!bars) continue;
               const [low, high] = box.layout[axis].range.toSorted((a, b) => a - b);
               trace[axis[0]].forEach((at, i) => {
                 if (at - bars.arrayminus[i] < low || at + bars.array[i] > high) beyond.push(trace.name); });
             }
             return beyond; }""",
        plot,
    )


def test_bars_end_within_the_plot_and_those_of_many_models_are_left_to_the_table(browser, summary, tmp_path):
    study = summary["studies"][0]
    wide = {
        "accuracy": {"value": 0.8, "low": 0.1, "high": 1.0},
        "discrimination": {"value": 0.1, "low": 0.0, "high": 0.9},
    }
    crowd = [study["models"][0] | {"name": f"m{n}", "chosen": n == 0, "metrics": wide} for n in range(9)]
    for models, drawn in ((study["models"], 3), (crowd, 1)):
        path = write_html(summary | {"studies": [study | {"models": models}]}, tmp_path / "r.html")
        opened = Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 800})
        assert _beyond(opened.page, "trade") == []
        assert _beyond(opened.page, "groups") == []
        bars = opened.page.evaluate(
            """() => document.querySelector('[data-plot="trade"]').data
                 .filter((trace) => trace.error_x).flatMap((trace) => trace.x).length"""
        )
        assert bars == drawn
        opened.context.close()


def test_figures_fit_on_paper_and_come_back(opened):
    page = opened.page
    widths = "() => [...document.querySelectorAll('.plot')].map((box) => box._fullLayout.width)"
    before = page.evaluate(widths)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert set(page.evaluate(widths)) == {640}
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(widths) == pytest.approx(before, abs=1)


def test_tables_fit_on_paper(opened):
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 718, "height": 1000})  # A4 within Chromium's margins
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 718


def test_print_leaves_out_what_only_works_on_a_screen(opened):
    opened.page.emulate_media(media="print")
    assert not opened.page.locator('[data-role="slide"]').is_visible()
    assert opened.page.locator(".sentence").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_comparison_draws_grid_points_a_front_a_method_and_the_chosen(browser, comparison, tmp_path, width):
    address = write_html(comparison, tmp_path / "report.html").as_uri()
    opened = Opened(browser, address, viewport={"width": width, "height": 844})
    page = opened.page
    traces = page.evaluate(
        """() => document.querySelector('[data-plot="trade"]').data
             .map((t) => [t.mode, t.x.length, t.showlegend !== false, t.name])"""
    )
    assert [trace[:3] for trace in traces] == [
        ["lines", 2, False], ["markers", 3, False], ["lines", 2, False], ["markers", 2, False],
        ["markers", 1, True], ["markers", 1, True], ["markers", 1, True],
    ]  # fmt: skip
    assert traces[-1][3] == "published CCB"
    axis, legend = (
        page.locator(f'[data-plot="trade"] {part}').bounding_box() for part in (".xtitle", ".legend")
    )
    assert axis["y"] + axis["height"] <= legend["y"]
    page.get_by_role("button", name="flip rate").click()
    assert page.locator('[data-plot="trade"] .js-line').count() == 0
    page.get_by_text("All grid points", exact=True).click()
    assert page.locator("details[open] tbody tr").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.hacked") is None
    opened.context.close()
    assert opened.wrong == []
