"""Static figures and the loopback server."""

from __future__ import annotations

import http.client
import threading

import pytest

from evenhand.report.serve import LOOPBACK, server_of
from evenhand.report.static import write_figures


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_each_kind_is_written_and_the_same_twice(summary, tmp_path, kind, start):
    pytest.importorskip("matplotlib", reason="static figures need Matplotlib")
    (one,) = write_figures(summary, tmp_path / "a", kind)
    (two,) = write_figures(summary, tmp_path / "b", kind)
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()
    assert one.name == f"01-abc-dcba.{kind}"


def test_an_unknown_kind_is_refused(summary, tmp_path):
    with pytest.raises(ValueError, match="expected one of 'svg', 'pdf', 'png'"):
        write_figures(summary, tmp_path, "gif")


@pytest.fixture
def port():
    with server_of("<p>é</p>") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert server.server_address[0] == LOOPBACK
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/", None, 200), ("/", "localhost:1", 200), ("/etc/passwd", None, 404), ("/", "evil.example:80", 403)],
)
def test_it_answers_one_address_to_this_machine_only(port, path, host, status):
    connection = http.client.HTTPConnection(LOOPBACK, port)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    assert answer.status == status
    if status == 200:
        assert answer.read().decode() == "<p>é</p>"
    connection.close()
