"""Hostile requests to a decision service: which of them it fails on, or answers against its own schema.

    python experiments/reliability.py requests      # 10,000, one row of docs/generated/reliability.md
    python experiments/reliability.py schemathesis  # 5,000 made by Schemathesis of the service's OpenAPI document

Requests are bytes on a socket, so that they may break HTTP as well as JSON: wrong lengths, chunks, encodings and types,
packed bodies, a client that stops half-way, deep nesting, numbers of 5,000 digits, megabytes of text. Half of them go to
an estimator without tokens, half to a model with columns behind tokens, while both learn. What was decided is replayed.
Schemathesis is a command, `st`, to be installed in an environment of its own, since it brings plugins for pytest.
"""

from __future__ import annotations

import copy
import gzip
import http.client
import json
import random
import re
import socket
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from decision_kills import starting_model
from hostile import AGAINST_SCHEMA, BAD, NO_ANSWER, REFUSED, TRACEBACK, WORKED, damaged_json
from jsonschema import Draft202012Validator
from service import Service, service_of

CUT_OFF = "cut off"
_SILENCE = 60.0  # seconds without an answer
_MOST_SAID = 20_000  # bytes of a refusal: what came is not sent back

TEXTS = (
    "", "\0", "a\0b", "\ud800", "\udfff\ud800", "﷽" * 50, "\u202egrant", "ä" * 300, "a" * 1_000_000, "'; DROP TABLE decisions; --",
    "NaN", "-0", "1e999", "null", "true", "<script>alert(1)</script>", "../../etc/passwd", "%00", "\r\nX-Evil: 1", "\U0001f600", " ",
)  # fmt: skip
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-0.0", "9" * 400, "9" * 5000, "1" + "0" * 308, "0x10", "01", "+1", "1_000")  # fmt: skip


class Request(NamedTuple):
    """What is sent, piece by piece; whether it is all there, and is HTTP; and what the schema calls it."""

    pieces: list[bytes]
    whole: bool
    sound: bool
    method: str
    path: str


# What is sent ------------------------------------------------------------------------------------------


def _text(rng: random.Random) -> str:
    return rng.choice(TEXTS) if rng.random() < 0.8 else "".join(map(chr, rng.choices(range(0x3000), k=9)))


def _document(rng: random.Random, context: Any, group: Any) -> Any:
    """Return a body as a client means it."""
    people = [{"id": f"{rng.randrange(2000)}", "context": copy.copy(context), "group": group} for _ in range(3)]  # fmt: skip
    told = [{"id": f"{rng.randrange(2000)}", "reward": rng.choice([0, 1, 0.5]), "at": 1.0} for _ in range(3)]
    bodies = [
        people[0], {"people": people}, told[0], {"outcomes": told}, {"id": "1", "label": "grant"},
        {"force": True, "note": "x"}, {}, {"people": people * 400}, {"people": []},
    ]  # fmt: skip
    return rng.choice(bodies)


def _spoilt(document: Any, rng: random.Random) -> Any:
    """Return a document with hostile values or names somewhere."""
    document = damaged_json(document, np.random.default_rng(rng.getrandbits(32)))
    node = document
    while isinstance(node, (dict, list)) and node and rng.random() < 0.7:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if rng.random() < 0.4:
            node[key] = _text(rng) if rng.random() < 0.6 else rng.choice([-1, 2**63, -(2**64), 1e308, True, None, [], {}, [[]]])  # fmt: skip
        elif isinstance(node, dict) and rng.random() < 0.2:
            node[_text(rng)] = 1
        node = node[key]
    return document


def _content(rng: random.Random, context: Any, group: Any) -> bytes:
    """Return a body as bytes: mostly JSON of a kind."""
    document = _document(rng, context, group)
    if rng.random() < 0.75:
        document = _spoilt(document, rng)
    text = json.dumps(document, ensure_ascii=rng.random() < 0.7)
    how = rng.randrange(12)
    if how == 0:  # a number that Python writes otherwise
        digits = [at for at, mark in enumerate(text) if mark.isdigit()]
        at = rng.choice(digits) if digits else 0
        text = text[:at] + rng.choice(NUMBERS) + text[at + 1 :]
    elif how == 1:
        text = text.replace("{", '{"id": "twice", ', 1)  # a name that is there twice
    elif how == 2:
        depth = rng.choice([10, 1000, 100_000])
        text = rng.choice(["[", '{"a":', '{"context":']) * depth + "1" + rng.choice(["", "]" * depth])
    elif how == 3:
        text = text[: rng.randrange(len(text) + 1)]
    encoding = rng.choices(["utf-8", "utf-16", "utf-32-le", "utf-8-sig", "cp1252"], [20, 1, 1, 1, 1])[0]
    body = text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")
    if how == 4:
        spoilt = bytearray(body or b"x")
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        return bytes(spoilt)
    return rng.randbytes(rng.randrange(200)) if how == 5 else body


_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "post", "X" * 300]
_TYPES = [
    "application/json; charset=utf-16", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "application/vnd.api+json", "", "application/json, text/html", "\xff", "application/octet-stream", "application/json;" * 50,
]  # fmt: skip
_NO_HTTP = ("no colon", "folded", "\0", "Transfer-Encoding: gzip", "Transfer-Encoding: identity", "Content-Length: 5", "Host: 127.0.0.1\r\nHost", "\xff", " x HTTP", "Upgrade")  # fmt: skip
_BOMB = gzip.compress(b"0" * 50_000_000, mtime=0)


def _oddities(rng: random.Random) -> list[str]:
    """Return header lines of no use."""
    many = [
        "Expect: 100-continue", "Range: bytes=0-1", "Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c", "TE: trailers",
        "Accept: application/xml", "Accept-Encoding: gzip;q=0", "Cookie: " + "a=b; " * 500, "Cookie: session=\xff", "X-Forwarded-For: 127.0.0.1",
        "X-HTTP-Method-Override: DELETE", "Authorization: Bearer", "Authorization: Basic \xff\xfe", "Origin: null", "Origin: http://evil.example",
        "Sec-Fetch-Site: cross-site", "If-None-Match: *", "X: " + "y" * 60_000, "no colon", " folded: 1", "Nul: \0", "Host: 127.0.0.1",
        "Content-Length: 5", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
    ]  # fmt: skip
    return rng.sample(many, rng.choice([0, 0, 0, 1, 1, 2]))


def _target(rng: random.Random, paths: list[str]) -> str:
    path = rng.choices([*paths, "/"], [6 if path in ("/decide", "/outcome") else 1 for path in [*paths, "/"]])[0]  # fmt: skip
    odd = [
        f"{path}?id={quote(_text(rng)[:5000].encode('utf-8', 'replace'))}", f"{path}/", f"/{path}", f"{path}?%ff=%00&id", f"{path}#x",
        f"http://127.0.0.1{path}", f"{path}/../health", path.upper(), f"{path}%00", f"{path}?{'a=1&' * 9000}", f"{path} x", "*", "",
    ]  # fmt: skip
    return rng.choice(odd) if rng.random() < 0.15 else f"{path}?id={rng.randrange(2000)}" if path == "/decision" else path  # fmt: skip


def make_request(rng: random.Random, paths: list[str], context: Any, group: Any, token: str) -> Request:
    """Return a request, hostile in one or several ways."""
    target = _target(rng, paths)
    posts = any(target.startswith(path) for path in ("/decide", "/outcome", "/promote", "/rollback", "/login"))  # fmt: skip
    method = rng.choice(_METHODS) if rng.random() < 0.08 else "POST" if posts else "GET"
    body = _content(rng, context, group) if posts or rng.random() < 0.1 else b""
    headers = ["Host: 127.0.0.1"] if rng.random() < 0.97 else rng.choice([[], ["Host: evil.example"], ["Host: \xff"]])  # fmt: skip
    if token and rng.random() < 0.9:
        headers.append(f"Authorization: Bearer {token}")
    kind = "application/json" if rng.random() < 0.85 else rng.choice(_TYPES)
    headers += [f"Content-Type: {kind}", *(_oddities(rng) if rng.random() < 0.3 else [])]
    if rng.random() < 0.06:
        name, body = rng.choice([("gzip", _BOMB), ("deflate", zlib.compress(body)), ("gzip", body), ("br", body)])  # fmt: skip
        headers.append(f"Content-Encoding: {name}")
    whole, pieces = True, [body]
    how = rng.randrange(20)
    if how == 0:
        headers.append("Transfer-Encoding: chunked")
        size = rng.choice([1, 7, 4096]) if len(body) < 5000 else 4096
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        pieces = [*(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n"]
    elif how == 1:  # a length that is none, or not true
        length = rng.choice([len(body) + 10, "-1", "9" * 30, "1e3", "0x10", 9 << 20, ""])
        headers.append(f"Content-Length: {length}")
        whole = False
    elif how == 2:
        headers.append("Transfer-Encoding: chunked")
        pieces = [rng.choice([b"zz\r\n", b"-5\r\n", b"ffffffffffffffff\r\n", b"5\r\nab"]), body]
        whole = False
    else:
        headers.append(f"Content-Length: {len(body)}")
    version = rng.choice(["HTTP/1.0", "HTTP/2.0", "HTTP/9", ""]) if rng.random() < 0.03 else "HTTP/1.1"
    head = "\r\n".join([f"{method} {target} {version}", *headers, "Connection: close", "", ""])
    pieces.insert(0, head.encode("latin-1", "replace"))
    sound = whole and version == "HTTP/1.1" and method in _METHODS[:7] and target.startswith("/") and len(head) < 2000  # fmt: skip
    sound = sound and not any(line in head for line in _NO_HTTP)
    if rng.random() < 0.03:  # a slow client, which may give up
        joined = b"".join(pieces)[:400]
        pieces, whole = [joined[at : at + 40] for at in range(0, len(joined), 40)], False
    return Request(pieces, whole, whole and sound, method, target.partition("?")[0])


# What comes back ---------------------------------------------------------------------------------------


def refused_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def judge_answer(document: Any, method: str, path: str, status: int, kind: str, content: bytes) -> str:
    """Return what an answer is: one that the service's own description allows, or a failure."""
    if status >= 500:
        return TRACEBACK
    said = REFUSED if status >= 400 else WORKED
    if said == REFUSED and len(content) > _MOST_SAID:
        return AGAINST_SCHEMA
    operation = document["paths"].get(path, {}).get(method.lower()) if method.isupper() else None
    if operation is None or not kind.startswith("application/json"):
        # No operation of the schema; or HTTP that is none, which is answered in plain text.
        return said if operation is None or status in (400, 413) or path == "/metrics" else AGAINST_SCHEMA
    described = operation["responses"].get(str(status))
    if described is None:
        return AGAINST_SCHEMA
    schema = described.get("content", {}).get("application/json", {}).get("schema", {})
    try:
        answer = json.loads(content, parse_constant=refused_constant)
    except ValueError:
        return AGAINST_SCHEMA
    fits = Draft202012Validator({**schema, "components": document["components"]}).is_valid(answer)
    return said if fits else AGAINST_SCHEMA


def send(port: int, request: Request, judge: Callable[[int, str, bytes], str]) -> str:
    """Send a request, and return what became of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=_SILENCE) as connection:
        answer = http.client.HTTPResponse(connection, method=request.method)
        try:
            for piece in request.pieces:
                connection.sendall(piece)
                if not request.whole:
                    time.sleep(0.002)
            if not request.whole:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was refused before all of it was sent
        try:
            answer.begin()
            return judge(answer.status, answer.getheader("Content-Type") or "", answer.read())
        except TimeoutError:
            return NO_ANSWER
        except (OSError, http.client.HTTPException):
            # What is no HTTP, or is refused while it still comes, may end without an answer.
            return CUT_OFF if not request.sound or sum(map(len, request.pieces)) > 60_000 else NO_ANSWER


def attack(n: int, seed: int, service: Service, context: Any, group: Any, token: str = "") -> Counter[str]:
    """Send n requests to a service; return how many ended in which way."""
    rng, found = random.Random(seed), Counter[str]()
    document = service.ask("/openapi.json", Authorization=f"Bearer {token}")[1]
    for _ in range(n):
        request = make_request(rng, [*document["paths"], "/login"], context, group, token)
        became = send(service.port, request, partial(judge_answer, document, request.method, request.path))
        found[became] += 1
        if became in BAD:
            print(became, b"".join(request.pieces)[:2000])
    return found


def attack_services(n: int, seed: int, deployed: Any, row: dict[str, Any]) -> Counter[str]:
    """Attack an estimator's service, and a deployed model's, which has tokens."""
    secret = "administering-token"
    tokens = {"EVENHAND_DECIDING_TOKEN": "deciding-token-16", "EVENHAND_ADMINISTERING_TOKEN": secret}
    with service_of(starting_model()) as service:
        found = attack(n // 2, seed, service, [0.1, 0.2, 0.3], "f")
    with service_of(deployed, tokens) as service:
        return found + attack(n - n // 2, seed, service, row, None, secret)


def run_schemathesis(n: int, seed: int) -> Counter[str]:
    """Let Schemathesis make about n requests, and check every answer against the document."""
    found = Counter[str]()
    with service_of(starting_model()) as service:
        address = f"http://127.0.0.1:{service.port}/openapi.json"
        while found.total() < n:
            # Rows of numbers of the right length can't be described: what is valid may be refused.
            how = [
                "--max-examples",
                "600",
                "--seed",
                str(seed),
                "--exclude-checks",
                "positive_data_acceptance",
            ]
            ran = subprocess.run(["st", "run", address, *how, "--no-color"], capture_output=True, text=True, check=False)  # fmt: skip
            counted = re.search(r"(\d+) generated, (\d+) passed", ran.stdout)  # fmt: skip
            if counted is None:
                print(ran.stdout[-5000:], ran.stderr[-2000:])
                return found + Counter({AGAINST_SCHEMA: 1})
            made, passed = map(int, counted.groups())
            found += Counter({WORKED: passed, AGAINST_SCHEMA: made - passed})
            seed += 1
    return found
