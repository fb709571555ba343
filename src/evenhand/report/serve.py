"""Serve a page on this machine, and on no other."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.1"


def server_of(page: str, port: int = 0) -> ThreadingHTTPServer:
    """Return a server that answers one address with one page, bound to loopback only."""
    body = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another site can point its own host name at this machine; only these names are answered.
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if host not in (LOOPBACK, "localhost"):
                self.send_error(403)
            elif self.path != "/":
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)


def serve(page: str, *, port: int = 0, tell: Callable[[str], None]) -> None:
    """Serve a page until interrupted; `tell` is called with its address."""
    with server_of(page, port) as server:
        tell(f"http://{LOOPBACK}:{server.server_address[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
