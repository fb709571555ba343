"""A decision service in a process of its own, for the experiments that mistreat it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from evenhand import DecisionLoop


class Service:
    """`evenhand serve` on a log that exists, on a port that stays the same when it is started again."""

    def __init__(self, where: str, *options: str, environment: Mapping[str, str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._command = [sys.executable, "-m", "evenhand", "serve", "--log", where, "--port", str(self.port), *options]  # fmt: skip
        self._environment = {**os.environ, **(environment or {})}
        self.said = b""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, seconds: float = 120.0) -> Self:
        """Start it, and wait until it answers."""
        # A pipe that nobody reads would stop the service.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=self._errors, env=self._environment
        )
        until = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < until:
            try:
                if self.ask("/health")[0] == 200:
                    return self
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
        self.end(signal.SIGKILL)
        raise RuntimeError(f"The service did not begin: {self.said.decode(errors='replace')[-500:]}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal; return its exit code. `said` is what it wrote to stderr."""
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait()
        with self._errors as errors:
            errors.seek(0)
            self.said = errors.read()
        return code

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; POST if there is a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            method, content = ("GET", None) if body is None else ("POST", json.dumps(body))
            sent = {"Content-Type": "application/json", **headers}
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end()


@contextmanager
def service_of(model: Any, tokens: Mapping[str, str] | None = None) -> Iterator[Service]:
    """Serve a model that learns; raise in the end if the service failed, or its log can't be replayed."""
    with tempfile.TemporaryDirectory() as folder:
        where = f"{folder}/log.db"
        DecisionLoop(model, where).close()
        with Service(where, "--learn-every", "2", environment=tokens) as service:
            yield service
        with DecisionLoop(None, where) as loop:
            if not loop.replay().same:
                raise RuntimeError("the replay differs")
    if b"Exception in ASGI application" in service.said:
        raise RuntimeError(service.said.decode(errors="replace"))
