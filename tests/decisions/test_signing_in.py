"""The live page behind a token: a form, a cookie that may look but not change, and nothing for strangers."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from browsing import chromium, served
from evenhand import DecisionLoop
from evenhand.decisions.serve.app import make_app
from evenhand.report.api import api_page
from evenhand.report.live import live_page, sign_in_page

TOKENS = {"deciding": "d" * 20, "administering": "ä" + "a" * 20}


@pytest.fixture
def app(model, tmp_path):
    loop = DecisionLoop(model, tmp_path / "log.db")
    yield make_app(
        loop, host="0.0.0.0", tokens=TOKENS, page=live_page, sign_in=sign_in_page, describe=api_page
    )
    loop.close()


def test_the_cookie_may_look_but_not_change(app):
    with TestClient(app, base_url="http://service.example") as client:
        asked = client.get("/")
        assert (asked.url.path, asked.status_code) == ("/login", 200)
        for wrong in ("", "a" * 20, TOKENS["deciding"], "\0", "é"):
            assert client.post("/login", data={"token": wrong}).status_code == 401
        assert client.post("/login", content=b"token=%ff%00&token").status_code == 401
        assert client.get("/status").status_code == 401
        signed = client.post("/login", data={"token": TOKENS["administering"]}, follow_redirects=False)
        assert (signed.status_code, signed.headers["location"]) == (303, "/")
        cookie = signed.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert "aaaa" not in cookie
        assert "Secure" not in cookie
        assert "Version 1 decides" in client.get("/").text
        assert client.get("/decision", params={"id": "nobody"}).status_code == 404
        assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 200
        for path in ("/status", "/metrics", "/policies"):
            assert client.get(path).status_code == 401
        for path in ("/promote", "/rollback", "/decide", "/outcome"):
            assert client.post(path, json={}).status_code == 401
        stranger = {"Sec-Fetch-Site": "cross-site"}
        assert (
            client.post("/login", data={"token": TOKENS["administering"]}, headers=stranger).status_code
            == 403
        )
        client.cookies.clear()
        assert client.get("/", headers={"Cookie": "evenhand=; a=b"}).url.path == "/login"


def test_behind_tls_the_cookie_is_secure(app):
    with TestClient(app, base_url="https://service.example") as client:
        client.post("/login", data={"token": TOKENS["administering"]})
        assert [one.secure for one in client.cookies.jar] == [True]


def test_without_tokens_there_is_no_form(client):
    assert client.get("/login").status_code == 404
    assert client.get("/").url.path == "/"


@pytest.mark.browser
def test_signing_in_with_a_browser(app):
    from playwright.sync_api import expect

    with served(app) as address, chromium() as browser:
        page = browser.new_page()
        page.goto(address)
        page.get_by_label("Administering token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("status")).to_have_text("That is not the administering token.")
        page.get_by_label("Administering token").fill(TOKENS["administering"])
        page.keyboard.press("Enter")
        expect(page.locator(".sentence")).to_contain_text("Version 1 decides")
        assert page.url == address
        assert page.evaluate("document.cookie") == ""
        page.context.clear_cookies()  # as if the token had been changed
        expect(page.get_by_label("Administering token")).to_be_visible(timeout=15_000)
