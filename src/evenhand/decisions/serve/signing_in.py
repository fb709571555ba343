"""Signing in: a browser sends the administering token once, for a cookie that can read but not change."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

LOGIN = "/login"
_COOKIE = "evenhand"


def session_of(token: str) -> str:
    """Return the content of the cookie: not the token, but a code that only its holder can have got."""
    return hmac.digest(token.encode(), b"evenhand: the live page", "sha256").hex()


def holds_session(cookies: bytes, token: str) -> bool:
    """Return whether one of a request's cookies is the session of a token."""
    wanted = f"{_COOKIE}={session_of(token)}".encode()
    return True in [hmac.compare_digest(one.strip(), wanted) for one in cookies.split(b";")]


def add_signing_in(app: FastAPI, token: str, page: Callable[[str], str]) -> None:
    """Add the addresses of the form. `page` shows the form under a sentence."""

    @app.get(LOGIN, include_in_schema=False)
    def ask() -> HTMLResponse:
        """Show the form."""
        return HTMLResponse(page("The page is for those who administer the service."))

    @app.post(LOGIN, include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        """Give the cookie if the token is right."""
        told = parse_qs((await request.body()).decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(told.encode(), token.encode()):
            return HTMLResponse(page("That is not the administering token."), 401)
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(_COOKIE, session_of(token), httponly=True, samesite="strict", secure=secure)
        return answer
