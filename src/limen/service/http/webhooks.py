# SPDX-License-Identifier: Apache-2.0
"""Webhooks: alerts are posted to the addresses of the settings, in order, for up to a day.

What is still to be sent follows from the log and from one number for each address, which is kept
in a file: so a restart sends what waits, and at worst one alert twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limen.service.http.app import encode, place_of
from limen.service.points.events import as_datetime
from limen.storage.files import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.service.log.writer import Writer
    from limen.service.settings import Webhook

__all__ = ["Sender", "signature"]

_DAY = 86_400_000_000
_SLOWEST = 600.0  # seconds between two attempts
_TIMEOUT = 10.0


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what proves that an alert is ours and of its time.

    >>> signature("secret", "1700000000", b"{}")[:15]
    'sha256=b8569b78'
    """
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


class Sender:
    """Posts alerts to one address."""

    def __init__(
        self, writer: Writer, hook: Webhook, write: Callable[[dict[str, Any]], None]
    ) -> None:
        self._writer, self._hook, self._write = writer, hook, write
        name = hashlib.sha256(hook.url.encode()).hexdigest()[:16]
        self._path = writer.folder / f"webhook-{name}"
        self._first = 0.25  # seconds before the second attempt
        # A receiver that hangs holds up a thread of its own, and nobody who asks the server.
        self._thread = ThreadPoolExecutor(1, "webhook")
        self._kept: int | None
        try:
            self._sent = int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            self._sent = writer.on_disk  # a new address is not sent the past
            self._kept = None  # what the file says
        else:
            self._kept = self._sent

    async def run(self) -> None:
        """Send what there is, for as long as the server runs."""
        wait = self._first
        while True:
            try:
                failed = await self._turn()
            except Exception as error:  # a full disk, most often
                failed = True
                self._write({"level": "error", "message": f"webhook: {place_of(error)}"})
            await asyncio.sleep(wait if failed else 0)
            wait = min(2 * wait, _SLOWEST) if failed else self._first

    async def _turn(self) -> bool:
        """Send one alert, or wait a little where there is none; return whether that failed."""
        if self._kept != self._sent:
            await self._writer.aside(replace, self._path, str(self._sent).encode())
            self._kept = self._sent
        found = self._next()
        if found is None:
            await asyncio.sleep(0.25)
            return False
        seq, at, shown = found
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._thread, self._post, seq, shown)
        if problem is not None and self._writer.now() - at < _DAY:
            self._write({"level": "warning", "message": f"webhook: {problem}", "seq": seq})
            return True
        if problem is not None:
            self._write({"level": "error", "message": "webhook: given up", "seq": seq})
        self._sent = seq
        return False

    def _next(self) -> tuple[int, int, dict[str, Any]] | None:
        """Return the oldest alert on disk that was not sent."""
        state, wanted = self._writer.state, self._hook.points
        found = [("", note) for note in state.notes]
        for name, point in state.points.items():
            if wanted is None or name in wanted:
                found += [(name, note) for note in point.notes if note.kind == "alert"]
        due = [each for each in found if self._sent < each[1].seq <= self._writer.on_disk]
        if not due:
            return None
        name, note = min(due, key=lambda each: each[1].seq)
        shown = {
            "point": name or None,
            "seq": note.seq,
            "at": as_datetime(note.at),
            "name": note.name,
            "state": "ended" if note.ended else "begun",
            "text": note.text,
        }
        return note.seq, note.at, shown

    def _post(self, seq: int, shown: dict[str, Any]) -> str | None:
        """Send one alert; return what went wrong. No redirect is followed."""
        body, stamp, address = encode(shown), str(int(time.time())), urlsplit(self._hook.url)
        headers = {
            "Content-Type": "application/json",
            "Limen-Delivery": str(seq),
            "Limen-Timestamp": stamp,
            "Limen-Signature": signature(self._hook.secret, stamp, body),
        }
        host = address.hostname or ""
        connection: http.client.HTTPConnection | None = None
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        try:
            if address.scheme == "https":
                connection = http.client.HTTPSConnection(
                    host, address.port, timeout=_TIMEOUT, context=ssl.create_default_context()
                )
            else:
                connection = http.client.HTTPConnection(host, address.port, timeout=_TIMEOUT)
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        except (OSError, ValueError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            if connection is not None:
                connection.close()
        return None if 200 <= status < 300 else f"status {status}"
