"""Access to the service: tokens, host names and the size of requests."""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

from evenhand.decisions.serve.signing_in import LOGIN, holds_session

LARGEST = 8 << 20  # bytes of a request
OPEN = ("/health", LOGIN)
DECIDING = ("/decide", "/outcome")
LOOKING = ("/", "/decision", "/docs", "/openapi.json")  # also for browsers with the cookie of a sign-in

_App = Callable[[Any, Any, Any], Awaitable[None]]
_Shortcut = Callable[[Any, Mapping[bytes, bytes], bytes], Awaitable[_App | None]]


@lru_cache(maxsize=100)
def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_tokens(host: str, tokens: Mapping[str, str | None]) -> None:
    """Raise if other machines could reach the service without a token, or if a token is too short."""
    for role, token in tokens.items():
        if token is not None and len(token) < 16:
            raise ValueError(f"Got a token for {role} of {len(token)} characters, but expected at least 16.")
    if not is_loopback(host) and not (tokens["deciding"] and tokens["administering"]):
        raise ValueError(
            f"Got host {host!r}, which other machines can reach, without tokens: expected "
            "EVENHAND_DECIDING_TOKEN and EVENHAND_ADMINISTERING_TOKEN in the environment."
        )


class Guard:
    """Refuses requests that are too large, lack the right token, or use a host name that isn't ours."""

    def __init__(
        self, app: _App, host: str, tokens: Mapping[str, str | None], shortcut: _Shortcut | None = None
    ) -> None:
        self.app, self.host, self.tokens, self.shortcut = app, host, tokens, shortcut

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        if not self.tokens["administering"] and not is_loopback(_name(headers.get(b"host", b""))):
            # A page of another site can point its own host name at this machine.
            return await _refuse(send, 403, "Use the address 127.0.0.1 or localhost.")
        if not self._allowed(scope, headers):
            if scope["path"] == "/" and self.tokens["administering"]:  # a browser can't send a token
                return await _refuse(send, 303, "Sign in.", (b"location", LOGIN.encode()))
            return await _refuse(send, 401, "Give the token of your role: 'Authorization: Bearer …'.")
        if scope["method"] not in ("GET", "HEAD") and _from_elsewhere(headers):
            return await _refuse(send, 403, "Send this from a page of this service, or not from a page.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > LARGEST:
            return await _refuse(send, 413, f"Send at most {LARGEST:,} bytes.")
        body = bytearray()  # read here, so that a false length is noticed before parsing
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > LARGEST:
                return await _refuse(send, 413, f"Send at most {LARGEST:,} bytes.")
            if not message.get("more_body"):
                break
        answer = await self.shortcut(scope, headers, bytes(body)) if self.shortcut else None
        if answer is not None:
            return await answer(scope, receive, send)
        given = False

        async def again() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return await self.app(scope, again, send)

    def _allowed(self, scope: Any, headers: Mapping[bytes, bytes]) -> bool:
        if scope["path"] in OPEN or not any(self.tokens.values()):
            return True
        roles = ("deciding", "administering") if scope["path"] in DECIDING else ("administering",)
        sent = headers.get(b"authorization", b"")
        kept = [token for role in roles if (token := self.tokens[role])]
        # Every token is compared, in a time that does not depend on where it differs.
        same = [hmac.compare_digest(sent, b"Bearer " + token.encode()) for token in kept]
        looks = scope["method"] == "GET" and scope["path"] in LOOKING
        if looks and (token := self.tokens["administering"]):
            same.append(holds_session(headers.get(b"cookie", b""), token))
        return True in same


def _name(host: bytes) -> str:
    text = host.decode("latin-1")
    return text if text.endswith("]") or ":" not in text else text.rpartition(":")[0]


def _from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a page of another site sends the request: it could roll back a policy unnoticed."""
    if (site := headers.get(b"sec-fetch-site")) is not None:
        return site not in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is not None and origin.rpartition(b"//")[2] != headers.get(b"host")


async def _refuse(send: Any, status: int, why: str, *more: tuple[bytes, bytes]) -> None:
    body = json.dumps({"detail": why}).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
