from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.render import (
    embedded,
    in_numbers,
    interval,
    published_names,
    render,
    small_enough,
    visible,
)

from .conftest import HOSTILE


class _Page(HTMLParser):
    """The page's scripts and tags, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._inside = False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "script"

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def page(summary):
    return render(summary)


@pytest.fixture(scope="module")
def parsed(page):
    parser = _Page()
    parser.feed(page)
    return parser


def test_it_is_one_file_under_six_megabytes_with_plotly_once(page, parsed):
    assert len(page.encode()) < 6_000_000
    assert len(parsed.scripts) == 3
    assert page.count("plotly.js v") == 1


def test_nothing_is_loaded_from_anywhere(parsed):
    for tag, attributes in parsed.tags:
        for name in ("src", "href", "action", "data", "poster"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("#", "data:")), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]


def test_hostile_names_open_no_tag(parsed):
    assert "img" not in {tag for tag, _ in parsed.tags}
    assert json.loads(parsed.scripts[0])["studies"][0]["pos_label"] == HOSTILE


def test_the_policy_names_the_very_scripts(page, parsed):
    policy = next(a["content"] for t, a in parsed.tags if t == "meta" and "http-equiv" in a)
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in parsed.scripts[1:]]
    assert allowed == digests
    script_rule = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert "unsafe" not in script_rule
    assert "default-src 'none'" in policy


def test_marks_that_turn_writing_are_shown_as_text(page):
    assert "\u202e" not in page
    assert "abc⟨U+202E⟩dcba" in page


def test_tables_can_be_read_aloud(page):
    assert page.count("<table") == page.count("<caption")
    assert re.search(r"<th(?![^>]*scope)[ >]", page.split("<script")[0]) is None
    assert '<html lang="en">' in page


@given(st.text())
def test_embedded_text_comes_back_and_closes_nothing(text):
    made = embedded({"text": text})
    assert json.loads(made) == {"text": text}
    assert not set(made) & set("<>&\u2028\u2029")


@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_visible_keeps_what_is_visible(value):
    assert visible(visible(value)) == visible(value)


def test_a_page_that_would_be_too_large_lists_fewer_people(summary):
    assert small_enough(summary) == summary
    few = small_enough(summary, most=30_000)
    assert 0 < len(few["studies"][0]["persons"]["rows"]) < 100
    assert len(summary["studies"][0]["persons"]["rows"]) == 300
    assert small_enough(summary, most=1)["studies"][0]["persons"]["rows"] == []


def test_numbers_on_the_page():
    assert in_numbers(None) == "–"
    assert in_numbers({"value": None}) == "–"
    assert in_numbers({"value": 0.12345}) == "0.123"
    assert interval({"value": 0.5, "low": 0.25, "high": 0.75}, "flip_rate") == "25.0 to 75.0"
    assert interval({"value": 0.5, "low": None}) == ""


def test_no_word_says_that_a_label_is_deserved(page, summary):
    text = page.split("<script")[0]
    assert "deserv" not in text.lower()
    assert "of those labelled &lt;/script&gt;" in text


def test_the_people_listed_are_counted(summary):
    study = summary["studies"][0]
    people = study["persons"]
    changing = [row for row in people["rows"] if row["flips"]]
    assert 1 < len(changing) < 299

    def told(rows):
        shorter = study | {"persons": people | {"rows": rows}}
        return " ".join(render(summary | {"studies": [shorter]}).split("<script")[0].split())

    assert "then those with the largest gaps: 299" in told(people["rows"][:299])
    assert "The table lists 1 people, 1 of those among them." in told(changing[:1])


@pytest.fixture(scope="module")
def compared(comparison):
    return render(comparison)


def test_a_comparison_has_its_overview_its_words_and_its_grid_points(comparison, compared):
    text = compared.split("<script")[0]
    assert (
        text.index("For all.")
        < text.index('id="s0"')
        < text.index("What is seen.")
        < text.index('id="s0-models"')
    )
    assert text.index("Said before the table.") < text.rindex("<table")
    assert text.count("What is seen.") == 1
    assert "What each method chooses" in text
    assert "All models" not in text
    assert text.count('title="on the front of its method"') == 4
    assert "<td>0.8123<small>0.8023 to 0.8223</small></td>" in text
    held = json.loads(re.search(r'id="data">(.*?)</script>', compared)[1])
    assert (held["digits"], len(held["studies"][0]["points"])) == (4, 5)


def test_published_measures_are_those_that_the_paper_tells(comparison, compared, summary, page):
    assert published_names(comparison["studies"][0]) == ["accuracy", "discrimination", "delta"]
    assert "<i>0.6000</i>" in compared
    assert published_names(summary["studies"][0]) == ["accuracy", "discrimination", "consistency"]
    assert "<i>0.9999</i>" in page


def test_a_comparison_lets_in_nothing_hostile(compared):
    parser = _Page()
    parser.feed(compared)
    assert len(parser.scripts) == 3
    assert "img" not in {tag for tag, _ in parser.tags}
    assert compared.count("<table") == compared.count("<caption")
    assert re.search(r"<th(?![^>]*scope)[ >]", compared.split("<script")[0]) is None


def test_a_summary_from_before_there_were_grid_points_still_makes_a_page(summary, page):
    older = summary | {"studies": [{k: v for k, v in summary["studies"][0].items() if k != "points"}]}
    del older["overview"]
    assert render(older).split("<script")[0] == page.split("<script")[0]


def test_a_study_without_a_positive_label_speaks_of_none(summary):
    study = dict(summary["studies"][0])
    rates = {"base_rate", "positive_rate", "true_positive_rate", "false_positive_rate"}
    study["pos_label"] = ""
    study["groups"] = [{k: v for k, v in row.items() if k not in rates} for row in study["groups"]]
    page = render({**summary, "studies": [study]})
    body = page[page.index("<body") :].split("<script")[0]
    assert 'data-plot="groups"' not in body
    assert ", positive" not in body
    assert "Share of <bdi>" not in body


def test_a_small_gap_has_digits():
    small = {"value": 0.000213, "low": 0.0000213, "high": 0.5}
    assert (in_numbers(small, "gap"), interval(small, "gap")) == ("0.000213", "2.1e-05 to 0.500")


@pytest.mark.parametrize(
    ("bare", "words"), [(0, ", with 95 % intervals."), (1, ", some with 95 % intervals."), (9, "tried.")]
)
def test_a_caption_promises_only_the_intervals_that_are_there(summary, bare, words):
    study = summary["studies"][0]
    models = [
        {**model, "metrics": {k: {**v, "low": None, "high": None} for k, v in model["metrics"].items()}}
        if at < bare
        else model
        for at, model in enumerate(study["models"])
    ]
    assert len(models) > 1
    made = render({**summary, "studies": [{**study, "models": models}]})
    assert re.search(r"Every model that was tried[^.]*\.", made)[0].endswith(words)
