# SPDX-License-Identifier: Apache-2.0
"""Limits that uvicorn lacks: how long a head may be, and how long anything may take."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from limen.service.settings import Settings

__all__ = ["guarded", "sweep"]

_NEVER = float("inf")
_TOO_LARGE = b"431 Request Header Fields Too Large"


def _size(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) for name, value in headers)


def guarded(settings: Settings) -> type[HttpToolsProtocol]:
    """Return the protocol of connections under these limits."""

    class Guarded(HttpToolsProtocol):
        deadline = _NEVER
        head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.most_connections:
                self._end(b"503 Service Unavailable")
                return
            self._await_head()

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
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.deadline = _NEVER
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                self._await_head()

        def overdue(self, now: float) -> None:
            """End the connection if what was to come by now did not come."""
            if now > self.deadline and not self.transport.is_closing():
                self._end(b"408 Request Timeout")

        def _end(self, status: bytes) -> None:
            self.deadline = _NEVER
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
