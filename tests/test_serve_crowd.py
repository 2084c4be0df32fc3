# SPDX-License-Identifier: Apache-2.0
"""A crowd at the door: who has no token goes first, and the operator always gets in."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from serving import Server, folder, limen, until

from limen.service.http.guard import guarded
from limen.service.settings import settings_of

MOST = 20


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with folder() as made:
        config = made / "limen.toml"
        config.write_text(
            f"most_connections = {MOST}\nhead_seconds = 600\nkeep_alive_seconds = 600\n"
        )
        data = made / "d"
        add = ("serve", "token", "add", "bot", "--scope", "read", "--data", str(data))
        token = limen(*add).stdout.strip()
        running = Server(data, "--config", str(config))
        running.token = token
        yield running
        running.kill()


@pytest.fixture
def crowd(server: Server) -> Iterator[list[socket.socket]]:
    """More connections than there may be, none of which says anything."""
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(MOST + 5)]
    held[0].settimeout(20)
    assert b" 503 " in held[0].recv(4096)  # the oldest goes: all have been taken
    yield held
    for connection in held:
        connection.close()


def test_who_has_a_token_is_answered_in_a_crowd_without(server, crowd):
    for _ in range(MOST + 5):
        assert 200 == server.ask("GET", "/v1/points")[0]
    crowd[-1].setblocking(False)
    with pytest.raises(BlockingIOError):  # each time another one went, or the one that had come
        crowd[-1].recv(1)


class Known(http.client.HTTPConnection):
    """A connection that shows its token, and stays."""

    def __init__(self, server: Server) -> None:
        super().__init__("127.0.0.1", server.port, timeout=20)
        self._token = server.token
        self.connect()
        self.first = self.sock

    def asked(self) -> None:
        self.request("GET", "/v1/points", headers={"Authorization": f"Bearer {self._token}"})
        response = self.getresponse()
        assert (200, b"[]") == (response.status, response.read())
        assert self.first is self.sock


def test_a_connection_that_showed_its_token_is_not_the_one_to_go(server, crowd):
    mine = Known(server)
    mine.asked()
    more = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(MOST + 5)]
    more[0].settimeout(20)
    assert b" 503 " in more[0].recv(4096)
    mine.asked()
    mine.close()
    for connection in more:
        connection.close()


def test_too_many_connections_end_whatever_they_showed(server):
    held = []
    for _ in range(MOST):
        held.append(Known(server))
        held[-1].asked()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as late:
        assert b" 503 " in late.recv(4096)
    for connection in held:
        connection.close()
    until(lambda: server.ask("GET", "/healthz")[0] == 200)


def test_the_operator_is_not_locked_out_by_a_crowd(server, crowd):
    done = limen("serve", "token", "list", "--data", str(server.data))
    assert (0, "") == (done.returncode, done.stderr)
    assert '"bot"' in done.stdout


@pytest.mark.parametrize(
    ("answer", "why"), [(b"", "did not answer"), (b"HTTP/1.1 503 No\r\n\r\n", "status 503")]
)
def test_a_server_that_does_not_answer_is_named(answer, why):
    with folder() as made, socket.socket(socket.AF_UNIX) as listening:
        (made / "d").mkdir()
        listening.bind(str(made / "d" / "control.sock"))
        listening.listen()

        def refuse() -> None:
            with listening.accept()[0] as connection:
                if answer:
                    connection.recv(65536)
                    connection.sendall(answer)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        done = limen("serve", "token", "list", "--data", str(made / "d"))
        refusing.join()
    assert 1 == done.returncode
    assert why in done.stderr
    assert "try again." in done.stderr


def test_who_does_not_read_an_answer_is_cut_off():
    class Transport(SimpleNamespace):
        unread, aborted = 0, False

        def get_write_buffer_size(self) -> int:
            return self.unread

        def is_closing(self) -> bool:
            return True  # for as long as bytes wait

        def abort(self) -> None:
            self.aborted = True

    kind = guarded(settings_of(None, {"answer_seconds": 5}))
    connection: Any = kind.__new__(kind)
    transport = connection.transport = Transport()
    for now, unread, aborted in [
        (100, 0, False),
        (101, 10**6, False),
        (105, 10**6, False),
        (105.5, 0, False),  # it was read
        (106, 10**6, False),
        (110, 10**5, False),
        (111.5, 10**5, True),
    ]:
        transport.unread = unread
        connection.overdue(now)
        assert aborted == transport.aborted
