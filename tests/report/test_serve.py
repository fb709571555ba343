from __future__ import annotations

import http.client
import threading

import pytest

from evenhand.report.serve import LOOPBACK, server_of


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
