# SPDX-License-Identifier: Apache-2.0
"""Limits that uvicorn lacks: how many connections, how long a head, and how long anything takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limen.service.http.app import from_control

if TYPE_CHECKING:
    from limen.service.settings import Settings

__all__ = ["guarded", "sweep"]

_NEVER = float("inf")
_TOO_LARGE = b"431 Request Header Fields Too Large"


def _size(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) for name, value in headers)


def guarded(settings: Settings) -> type[HttpToolsProtocol]:
    """Return the protocol of connections under these limits."""
    taken: set[Guarded] = set()  # by the network; those of the control socket are not counted
    strangers: dict[Guarded, None] = {}  # those without a valid token so far, the oldest first

    class Guarded(HttpToolsProtocol):
        deadline = _NEVER
        head = 0
        unread = _NEVER  # by when what was sent is to be read

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if not from_control({"server": self.server}):
                taken.add(self)
                strangers[self] = None
                if len(taken) > settings.most_connections:
                    self._make_room()
                    if self.transport.is_closing():
                        return
            self._await_head()

        def _make_room(self) -> None:
            """End the stranger that has waited longest; where there is none, this connection."""
            idle = (each for each in strangers if each.head >= 0 and each is not self)
            next(idle, self)._end(b"503 Service Unavailable")

        def known(self) -> None:
            """Let others go first: a valid token came by this connection."""
            strangers.pop(self, None)

        def connection_lost(self, exc: Exception | None) -> None:
            taken.discard(self)
            strangers.pop(self, None)
            super().connection_lost(exc)

        def _await_head(self) -> None:
            self.head = 0
            self.deadline = self.loop.time() + settings.head_seconds

        def data_received(self, data: bytes) -> None:
            waiting = self.head >= 0
            if waiting:
                self.head += len(data)
            super().data_received(data)
            if waiting and self.head > settings.most_head and not self.transport.is_closing():
                self._end(_TOO_LARGE)

        def on_headers_complete(self) -> None:
            # What follows a head may come in one piece with it: only the head is limited.
            large = self.head > settings.most_head
            self.head = -1
            self.deadline = self.loop.time() + settings.body_seconds
            if large and _size(self.url, self.headers) > settings.most_head:
                self._end(_TOO_LARGE)
                return
            self.scope["limen.known"] = self.known  # type: ignore[typeddict-unknown-key]
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.deadline = _NEVER
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                self._await_head()

        def overdue(self, now: float) -> None:
            """End the connection if what was to come or to be read by now was not."""
            if self.transport.get_write_buffer_size() == 0:
                self.unread = _NEVER
            elif self.unread == _NEVER:
                self.unread = now + settings.answer_seconds
            if now > self.unread:
                self.transport.abort()  # to close it would wait for the reader
            elif now > self.deadline and not self.transport.is_closing():
                self._end(b"408 Request Timeout")

        def _end(self, status: bytes) -> None:
            self.deadline = _NEVER
            strangers.pop(self, None)
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
            self.transport.close()

    return Guarded


async def sweep(connections: set[Any]) -> None:
    """End overdue connections, once a second: a timer for each would cost more."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(1)
        now = loop.time()
        for connection in list(connections):
            connection.overdue(now)
