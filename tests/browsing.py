"""A service to look at, and a browser to look with."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
OPTIONS = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
           "disable-component-update", "disable-sync")  # fmt: skip


@contextmanager
def served(app):
    """Let uvicorn serve an app in a thread; return its address."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="error", ws="none", timeout_graceful_shutdown=2)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


class Opened:
    """A page in Chromium without a network, once it is drawn: what goes wrong in it, and what it asks for."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(offline=True, **context)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")


@contextmanager
def chromium():
    """Open a browser."""
    api = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright")
    if shutil.which(CHROMIUM) is None:
        pytest.skip("the page is tested in Chromium, which is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[f"--{option}" for option in OPTIONS]
        )
        yield browser
        browser.close()
