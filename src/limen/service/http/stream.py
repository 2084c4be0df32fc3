# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: figures at most four times a second, and every change.

One loop looks at the points, writes each event once, and hands the same bytes to all who listen. A
listener holds the newest tick of each point and some changes, never more: a slow reader skips
ticks, and one that missed changes is asked to reload.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from limen.service.http.app import SAFE, Call, encode
from limen.service.http.deciding import open_proposal
from limen.service.http.overview import tiles
from limen.service.http.routes import Route, Text
from limen.service.points.events import as_datetime
from limen.service.points.judging import evaluate
from limen.service.problems import Refused

if TYPE_CHECKING:
    from limen.service.log.writer import Writer
    from limen.service.points.point import Point

__all__ = ["STREAM", "Hub"]

_PERIOD = 0.25
_HEARTBEAT = 15.0
_REMEMBERED = 256
_HELD = 64
_RATE = 5.0  # seconds over which events are counted


def _event(name: str, seq: int, data: Any) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, name.encode(), encode(data))


class _Listener:
    """Who listens: what waits to be sent to them."""

    def __init__(self, call: Call, point: str | None) -> None:
        self.call, self.point = call, point
        self.ticks: dict[str, bytes] = {}
        self.changes: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.gone = False

    def hears(self, name: str) -> bool:
        """Whether they asked for a point and may see it."""
        token = self.call.token
        allowed = token is None or token.points is None or name in token.points
        return allowed and self.point in (None, name)

    def may_stay(self) -> bool:
        """Whether the session and the token still hold."""
        now, token, writer = self.call.writer.now(), self.call.token, self.call.writer
        if token is None:
            return self.call.control or not writer.state.tokens
        cookie = self.call.headers.get(b"cookie", b"")
        if self.call.ends is not None and self.call.app.sessions.find(cookie) is None:
            return False  # signed out
        ends = min(self.call.ends or now + 1, token.expires or now + 1)
        return now < ends and writer.state.tokens.get(token.name) == token

    def put(self, body: bytes) -> None:
        """Let a change wait; where too many do, all that is known is that some were missed."""
        self.changes.append(body)
        if len(self.changes) > _HELD:
            self.changes.clear()
            self.changes.append(b"event: reset\ndata: {}\n\n")
        self.wake.set()

    def end(self, last: bytes = b"") -> None:
        """Let them go after what waits."""
        if last:
            self.put(last)
        self.gone = True
        self.wake.set()

    def taken(self) -> bytes:
        """Return all that waits."""
        body = b"".join([*self.changes, *self.ticks.values()])
        self.changes.clear()
        self.ticks.clear()
        self.wake.clear()
        return body


class Hub:
    """Watches the points and notifies all listeners."""

    def __init__(self, writer: Writer, most: int) -> None:
        self._writer, self._most = writer, most
        self.listeners: set[_Listener] = set()
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._counts: dict[str, deque[tuple[float, int]]] = {}
        self._ring: deque[tuple[int, str, bytes]] = deque(maxlen=_REMEMBERED)
        self._floor = self._last = writer.on_disk

    def rate(self, name: str) -> float:
        """Return how many events a second a point had lately."""
        counts = self._counts.get(name)
        if not counts or counts[-1][0] == counts[0][0]:
            return 0.0
        (begin, before), (end, after) = counts[0], counts[-1]
        return (after - before) / (end - begin)

    def join(self, call: Call, point: str | None) -> _Listener:
        """Let someone listen; what they missed since Last-Event-ID waits for them."""
        if len(self.listeners) >= self._most:
            raise Refused("busy", f"{self._most} listen already, the most there may be.")
        made = _Listener(call, point)
        made.put(b"retry: 2000\n\n")
        text = call.headers.get(b"last-event-id", b"")
        if text.isdigit() and len(text) < 19:
            if int(text) < self._floor:
                made.put(_event("reset", self._last, {}))
            for seq, name, body in self._ring:
                if seq > int(text) and made.hears(name):
                    made.put(body)
        for name, each in self._writer.state.points.items():
            if made.hears(name) and each.published is not None:
                made.ticks[name] = self._tick(each)
        self.listeners.add(made)
        return made

    async def run(self) -> None:
        """Look at the points four times a second, for as long as the server runs."""
        beat = time.monotonic()
        while True:
            await asyncio.sleep(_PERIOD)
            self.look()
            if time.monotonic() - beat >= _HEARTBEAT:
                beat = time.monotonic()
                for each in list(self.listeners):
                    if each.may_stay():
                        each.put(b":\n\n") if not each.changes else None
                    else:
                        each.end()

    def stop(self) -> None:
        """Say goodbye to all."""
        for each in list(self.listeners):
            each.end(_event("bye", self._last, {}))

    def look(self) -> None:
        """Send what has changed since the last look."""
        on_disk, now = self._writer.on_disk, time.monotonic()
        for name, point in list(self._writer.state.points.items()):
            counts = self._counts.setdefault(name, deque())
            counts.append((now, point.scores + point.labels))
            while counts[0][0] < now - _RATE and len(counts) > 2:
                counts.popleft()
            if point.changed > self._last or (point.notes and point.notes[-1].seq > self._last):
                for seq, body in sorted(self._changes(point, on_disk)):
                    self._send(seq, name, body)
            self._measure(point)
        self._last = on_disk

    def _measure(self, point: Point) -> None:
        listening = [each for each in self.listeners if each.hears(point.name)]
        if not listening or point.published is None:
            return
        shadow = point.shadow
        waiting = None if shadow is None else (shadow.judge.waiting, shadow.scored)
        ready = self._writer.broken is None
        seen = (point.scores, point.labels, point.published.number, point.changed, waiting, ready)
        if self._seen.get(point.name) == seen:
            return
        self._seen[point.name] = seen
        body = self._tick(point)
        for each in listening:
            each.ticks[point.name] = body
            each.wake.set()

    def _tick(self, point: Point) -> bytes:
        assert point.published is not None
        writer = self._writer
        proposal = open_proposal(point, writer.on_disk)
        brief = None
        if proposal is not None:
            found, _, status = evaluate(point, proposal, writer.now())
            brief = {
                "number": proposal.number,
                "status": status,
                "samples": found.samples,
                "value": min(found.evidence.value, 1e300),
            }
        shown = {
            "point": point.name,
            "seq": writer.on_disk,
            "at": as_datetime(writer.now()),
            "version": point.published.number,
            **tiles(point),
            "rate": round(self.rate(point.name), 1),
            "ready": writer.broken is None,
            "proposal": brief,
            "redefinition": open_proposal(point, writer.on_disk, definition=True) is not None,
        }
        return _event("tick", writer.on_disk, shown)

    def _changes(self, point: Point, on_disk: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, str, dict[str, Any]]] = [
            (each.seq, "version", {"version": each.shown(point.direction)})
            for each in point.versions
        ]
        for each in point.proposals:
            what = {"number": each.number, "kind": each.kind}
            status = "shadow" if each.definition is None else "waiting"
            begun = {**what, "status": status, "by": each.by, "reason": each.reason}
            found.append((each.seq, "proposal", begun))
            if (end := each.closed) is not None:
                ended = {**what, "status": end.verdict, "by": end.by, "reason": end.reason}
                found.append((end.seq, "proposal", ended))
        for note in point.notes:
            if note.kind == "alert":
                state = "ended" if note.ended else "begun"
                alert = {"name": note.name, "state": state, "text": note.text}
                found.append((note.seq, "alert", alert))
        return [
            (seq, _event(name, seq, {"point": point.name, "seq": seq, **data}))
            for seq, name, data in found
            if self._last < seq <= on_disk
        ]

    def _send(self, seq: int, name: str, body: bytes) -> None:
        if len(self._ring) == _REMEMBERED:
            self._floor = self._ring[0][0]
        self._ring.append((seq, name, body))
        for each in self.listeners:
            if each.hears(name):
                each.put(body)


async def stream(call: Call) -> Any:
    """Send figures and changes as server-sent events, until the caller goes."""
    name, hub = call.asked("point"), call.app.hub
    if name is not None:
        call.path["point"] = name
        call.point()
    if hub is None or not call.app.ready:
        raise Refused("not-ready", "The server is stopping.")
    listener = hub.join(call, name)

    async def run(scope: Any, receive: Any, send: Any) -> None:
        watch = asyncio.create_task(_until_gone(receive, listener))
        try:
            scope["status"] = 200
            kind = (b"content-type", b"text/event-stream")
            headers = [kind, *SAFE, (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while True:
                await listener.wake.wait()
                body = listener.taken()
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                if listener.gone:
                    break
            await send({"type": "http.response.body", "body": b""})
        finally:
            hub.listeners.discard(listener)
            watch.cancel()

    return run


async def _until_gone(receive: Any, listener: _Listener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()


STREAM = (
    Route("GET", "/v1/stream", "read", stream,
          answer="text/event-stream", query={"point": Text(64)}),
)  # fmt: skip
