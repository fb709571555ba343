"""The live page as a person meets it: Chromium, a real service, names that strangers chose."""

from __future__ import annotations

import numpy as np
import pytest

from browsing import chromium, served
from evenhand import CooperativeBandits, DecisionLoop
from evenhand.decisions.exploration import draw
from evenhand.decisions.serve.app import make_app
from evenhand.decisions.status import Status, find
from evenhand.decisions.watching import Watch
from evenhand.report.live import live_page
from evenhand.wording import as_plain

HOSTILE = "<img src=x onerror=document.title='bad'>"


@pytest.fixture
def loop(tmp_path):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(400, 3)), rng.choice([HOSTILE, "m"], 400)
    y = np.where(X[:, 0] + 1.5 * (s == "m") > 0.5, "grant", "refuse")
    model = CooperativeBandits(epochs=5, random_state=0).fit(X, y, sensitive_features=s)
    loop = DecisionLoop(model, tmp_path / "log.db", reveals={"grant"}, explore=0.1, seed="0" * 32)
    decide(loop, 300)
    yield loop
    loop.close()


def decide(loop, n, begin=0, shift=0.0):
    rng = np.random.default_rng(begin)
    groups = rng.choice([HOSTILE, "m"], n)
    return loop.decide_many(
        (f"{HOSTILE} {begin + at}", rng.normal([0, shift, 0]), groups[at]) for at in range(n)
    )  # fmt: skip


def test_rates_and_flips_are_those_of_the_log(loop, monkeypatch):
    made = decide(loop, 300)  # the same ids again: the same answers
    found = Watch(loop).look()
    numbers = loop.rules.draws([one.id for one in made])[0]
    said = np.array([[list(chances.values()) for chances in one.by_group.values()] for one in made])
    drawn = draw(said, np.repeat(np.array(numbers)[:, None], 2, axis=1))
    for at, row in enumerate(found["groups"]):
        here = np.array([one.group == row["group"] for one in made])
        assert row["people"] == here.sum()
        assert row["flip_rate"]["value"] == pytest.approx((drawn[here, 0] != drawn[here, 1]).mean())
        for action, rate in enumerate(row["rates"]):
            assert rate["value"] == pytest.approx(said[here, at, action].mean())
            assert rate["low"] <= rate["value"] <= rate["high"]
    monkeypatch.setattr("evenhand.decisions.watching.AT_ONCE", 70)
    watch = Watch(loop)  # in pieces, the same
    for people in (70, 140, 210, 280, 300, 300):
        assert watch.look()["people"] == people
    for one, other in zip(watch.look()["groups"], found["groups"], strict=True):
        assert one["flip_rate"] == pytest.approx(other["flip_rate"])
    loop.outcome(f"{HOSTILE} 1", reward=1.0)
    loop.learn()
    loop.promote(force=True)
    assert watch.look()["people"] == 0  # a new policy, about which nothing is known yet
    decide(loop, 5, begin=1000)
    assert watch.look()["people"] == 5


def test_exploration_is_counted_by_group(begin, where, crowd):
    loop = begin(where, explore=0.35)
    made = loop.decide_many(crowd[:500])
    status = Status(loop).look()
    for group in ("f", "m"):
        cells = [cell for cell in status["cells"] if cell["group"] == group]
        rare = sum(one.probability < 0.3501 for one in made if one.group == group)
        assert 0 < sum(cell["explored"] for cell in cells) <= rare  # some of them the policy itself decided
        assert sum(cell["floors"] for cell in cells) == pytest.approx(
            0.35 * sum(one.group == group for one in made)
        )
    assert Watch(loop).look()["people"] == 500
    found, more = find(loop, made[3].id)
    assert (found, more["reward"]) == (made[3], None)
    assert find(loop, "nobody") is None
    assert "500 decisions" in live_page(as_plain(status))


@pytest.fixture
def page(loop):
    with served(make_app(loop, page=live_page)) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        wrong, asked = [], []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wrong = wrong
        yield page
        assert page.title() == "Decisions · evenhand"  # no name was run
        assert page.locator("img").count() == 0
        assert all(url.startswith(address) for url in asked)


@pytest.mark.browser
@pytest.mark.slow
def test_it_moves_by_itself_and_shows_names_as_text(loop, page):
    from playwright.sync_api import expect

    expect(page.locator(".sentence")).to_contain_text("300 decisions")
    assert HOSTILE in page.locator("#treated tbody").inner_text()
    assert page.locator("#explored tbody tr").count() == 2
    answer = decide(loop, 100, begin=500)[0]
    expect(page.locator(".sentence")).to_contain_text("400 decisions", timeout=15_000)
    loop.learn()
    loop.promote(force=True, note=HOSTILE)
    expect(page.locator("#policies tbody tr.chosen")).to_contain_text("forced", timeout=15_000)
    assert HOSTILE in page.locator("#policies").inner_text()
    assert "although its value is not proven to be above" in page.locator("#policies").inner_text()

    page.get_by_label("Id").fill(answer.id)
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("#found p")).to_contain_text(f"{answer.id}: {answer.action}")
    rows = page.locator("#found tbody tr")
    assert rows.count() == 2
    own = page.locator("#found tr.chosen")
    assert f"{answer.group}, their own" in own.inner_text()
    assert own.locator("td").last.inner_text() == answer.action
    decide(loop, 1, begin=900)
    expect(page.locator(".sentence")).to_contain_text("401 decisions", timeout=15_000)
    expect(page.locator("#found tbody tr")).to_have_count(2)  # who was looked up stays
    assert page.wrong == []
    page.get_by_label("Id").fill(HOSTILE)
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("#found")).to_have_text(f"There is no decision with the id {HOSTILE}.")


def test_a_demonstration_says_that_its_people_are_simulated(loop):
    status = as_plain(Status(loop).look())
    assert "simulated" not in live_page(status)
    page = live_page(status, simulated=f"loans, {HOSTILE}")
    assert "A demonstration: loans, &lt;img" in page
    assert "applicants and outcomes are simulated" in page


def test_it_says_nothing_of_rewards_and_candidates_that_there_are_not(loop):
    status = as_plain(Status(loop).look())
    status["counts"]["known"] = 0  # otherwise those of refusals are known at once
    page = live_page(status)
    assert "no reward is known yet" in page
    assert "never put in force" not in page
    granted = next(one for one in decide(loop, 300) if one.action == "grant")
    loop.outcome(granted.id, reward=1.0)
    loop.learn()
    page = live_page(as_plain(Status(loop).look()))
    assert "of them have a known reward, 0.0" in page
    assert "1 candidate was learned but never put in force." in page
    for name in ("Who applies", "mean lowest probability", "gain over the previous policy"):
        assert name in page


@pytest.mark.browser
def test_on_a_phone_a_cut_table_is_marked_and_stays_where_it_was_scrolled(loop, page):
    from playwright.sync_api import expect

    page.set_viewport_size({"width": 400, "height": 844})
    page.get_by_label("Id").fill(f"{HOSTILE} 1")
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("#found tbody tr")).to_have_count(2)
    cut = """() => [...document.querySelectorAll(".scroll")].map((box) =>
        [box.scrollWidth > box.clientWidth + 1, "more" in box.dataset, box.tabIndex === 0])"""
    assert page.locator(".scroll").count() == 6
    assert all(len(set(box)) == 1 for box in page.evaluate(cut))
    assert page.locator("#policies").evaluate("(table) => table.parentNode.dataset.more") == "right"
    assert "sideways" in page.locator("#policies caption span").evaluate(
        "(s) => getComputedStyle(s, '::after').content"
    )
    page.locator("#policies").evaluate(
        "(table) => { table.parentNode.scrollLeft = 60; table.parentNode.focus(); }"
    )
    decide(loop, 1, begin=900)
    expect(page.locator(".sentence")).to_contain_text("301 decisions", timeout=15_000)
    now = page.locator("#policies").evaluate(
        "(t) => [t.parentNode.scrollLeft, document.activeElement === t.parentNode]"
    )
    assert now == [60, True]
    assert all(len(set(box)) == 1 for box in page.evaluate(cut))
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.wrong == []


@pytest.mark.browser
@pytest.mark.slow
def test_it_says_that_the_service_is_away(loop, page):
    from playwright.sync_api import expect

    page.context.set_offline(True)
    expect(page.locator("#state")).to_have_text("the service is away", timeout=15_000)
    assert "300 decisions" in page.locator(".sentence").inner_text()
    page.context.set_offline(False)
    expect(page.locator("#state")).to_have_text("live", timeout=15_000)


@pytest.mark.browser
def test_it_says_when_other_people_come(loop, page):
    from playwright.sync_api import expect

    expect(page.locator("#drift p")).to_contain_text("who applied first: no column has shifted beyond chance")
    decide(loop, 300, begin=1000, shift=1.5)
    expect(page.locator("#drift p")).to_contain_text("number 2 has shifted", timeout=15_000)
    assert page.locator("#drift tbody tr").count() == 4
    assert page.locator("#drift tr.chosen").count() == 1
    assert "middle half:" in page.locator("#drift tr.chosen").inner_text()
    assert not page.wrong
