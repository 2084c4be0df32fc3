# SPDX-License-Identifier: Apache-2.0
"""A client of ``limen serve``: holds the thresholds, answers without a call, sends in batches.

Standard library only. What is sent may be sent again: an id with the same score counts once, and
every label says when it was determined.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote, urlsplit
from weakref import WeakSet

if TYPE_CHECKING:
    from http.client import HTTPConnection

__all__ = ["Client", "NotAcknowledged", "Refused", "Unreachable"]

_log = logging.getLogger("limen.client")
_LONGEST_REST = 30.0  # seconds between two attempts while the server is away


class _Version(NamedTuple):
    number: int
    thresholds: dict[str, float]
    falling: bool  # lower scores are answered 1
    tag: str

    def find(self, segment: str | None) -> float:
        while segment:
            if segment in self.thresholds:
                return self.thresholds[segment]
            segment = segment.rpartition("/")[0]
        return self.thresholds[""]


class _Rest(NamedTuple):
    seconds: float
    until: float
    problem: str


class Unreachable(ConnectionError):  # noqa: N818 - reads as what happened
    """The server did not answer."""


class Refused(ConnectionError):  # noqa: N818 - reads as what happened
    """The server answered, and did not do what it was asked.

    Attributes
    ----------
    status
        The status of its answer, such as 401 where the token is wrong and 404 where no point has
        this name.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class NotAcknowledged(ConnectionError):  # noqa: N818 - reads as what happened
    """Events were not acknowledged in time; they still wait."""


class Client:
    """Answer scores by the thresholds of a ``limen serve``, and send scores and labels to it.

    Parameters
    ----------
    url
        Where the server is, such as ``"http://127.0.0.1:8787"``.
    token
        A token with the scopes read, score and label; None where the server needs none.
    timeout
        How many seconds one request may take.
    refresh
        After how many seconds the thresholds are asked for again.
    every
        After how many seconds at most events are sent.
    most_waiting
        How many events wait at most while the server is away; more are dropped, counted in
        `dropped`.

    Notes
    -----
    `answer` and `label` return at once: a thread of the client's sends what waits, and sends it
    again until the server acknowledges it, which is safe. What the server refuses for good, say an
    id with another score or an event of a point that does not exist, is counted in `refused` and
    logged as ``limen.client``, without the id. No point waits for another one.
    Events that wait live in this process only: call `flush` or `close` before it ends. Several
    threads may share one client. A process that is forked may go on with the client that it was
    given: it has a connection of its own and nothing that waits, which the other process sends,
    and it asks for the thresholds again when it first needs them.

    Examples
    --------
    >>> from limen import Client
    >>> with Client("http://127.0.0.1:8787") as client:  # doctest: +SKIP
    ...     if client.answer("fraud", "order 1", 0.93):
    ...         ...  # hold the order
    ...     client.label("fraud", "order 1", 1)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        refresh: float = 5.0,
        every: float = 1.0,
        most_waiting: int = 100_000,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https://, got {url!r}.")
        self._parts, self._token, self._timeout = parts, token, timeout
        self._refresh, self._every, self._most = refresh, every, most_waiting
        self._versions: dict[str, _Version] = {}
        self._held_before: dict[str, _Version] = {}  # by the process that was forked
        self._closed = False
        self._connection: HTTPConnection | None = None
        self._start_over()
        _clients.add(self)

    def _start_over(self) -> None:
        """Hold nothing that belongs to a thread or to another process: also after a fork."""
        self._held_before |= self._versions
        self._versions = {}
        self._waiting: dict[str, deque[bytes]] = {}  # by point
        self._count = 0  # of all of them
        self._rests: dict[str, _Rest] = {}  # points of which the server took nothing for now
        self._largest: dict[str, int] = {}  # events in a batch, of points with long events
        self._changed = threading.Condition()
        self._wire = threading.Lock()
        if self._connection is not None and self._connection.sock is not None:
            # The other process goes on with it: not closed here by HTTP or TLS, and not by its
            # file, whose lock a thread that is not here any more may hold.
            with suppress(OSError):
                os.close(self._connection.sock.detach())
        self._connection = None
        self._thread: threading.Thread | None = None
        self._hurry = False
        self._problem: str | None = None
        self.dropped = 0
        self.refused = 0

    # What is asked of it.

    def threshold(self, point: str, segment: str | None = None) -> float:
        """Return the threshold in effect: answer 1 where ``score >= threshold``; nan is never.

        Where the point is defined with the direction ``"<="``, 1 where ``score <= threshold``.
        The first call for a point asks the server; later ones read what is held.
        """
        return self._version(point).find(segment)

    def answer(
        self,
        point: str,
        id: str,
        score: float,
        *,
        segment: str | None = None,
        time: datetime | None = None,
        weight: float | None = None,
    ) -> int:
        """Answer a score by the threshold held, and let it be sent with the answer.

        Where no threshold is held yet, `limen.client.Unreachable` and `limen.client.Refused`, both
        a ConnectionError, say that the server cannot be asked.
        """
        _require_id(id, "answer(point, id, score)")
        try:
            value = nan if isinstance(score, str) else float(score)
        except (TypeError, ValueError):
            value = nan
        if value != value:
            raise ValueError(
                f"score must be a number, got {score!r}. The order is answer(point, id, score)."
            )
        version = self._version(point)
        threshold = version.find(segment)
        answer = int(value <= threshold if version.falling else value >= threshold)
        row: dict[str, Any] = {
            "type": "score",
            "id": id,
            "score": value if isfinite(value) else str(value),
            "time": _text(time),
            "answer": answer,
            "version": version.number,
        }
        if segment is not None:
            row["segment"] = segment
        if weight is not None:
            row["weight"] = weight
        self._add(point, row)
        return answer

    def label(self, point: str, id: str, label: int, as_of: datetime | None = None) -> None:
        """Let a label be sent; `as_of` is when it was determined, by default now."""
        _require_id(id, "label(point, id, label)")
        if label not in (0, 1):
            raise ValueError(f"label must be 0 or 1, got {label!r}.")
        self._add(point, {"type": "label", "id": id, "label": int(label), "as_of": _text(as_of)})

    @property
    def waiting(self) -> int:
        """How many events are not acknowledged yet."""
        return self._count

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until all that waits is acknowledged.

        `limen.client.NotAcknowledged`, a ConnectionError, says why it is not in time.
        """
        end = time.monotonic() + timeout
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            while self._count:
                left = end - time.monotonic()
                if left <= 0:
                    raise NotAcknowledged(
                        f"{self._count:,} events are not acknowledged: "
                        f"{self._problem or 'the time was too short'}. They still wait."
                    )
                self._changed.wait(left)

    def close(self, timeout: float = 30.0) -> None:
        """Flush, and end the thread; errors are those of `flush`."""
        try:
            self.flush(timeout)
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join(self._timeout + 1)
            with self._wire:
                self._hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # How it is done.

    def _add(self, point: str, row: dict[str, Any]) -> None:
        line = json.dumps(row, allow_nan=False).encode()
        with self._changed:
            if self._closed:
                raise RuntimeError("the client is closed.")
            if self._count >= self._most:
                self.dropped += 1
                return
            self._waiting.setdefault(point, deque()).append(line)
            self._count += 1
            self._begin()
            if self._count == 1000:
                self._changed.notify_all()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="limen-client", daemon=True)
            self._thread.start()

    def _version(self, point: str) -> _Version:
        version = self._versions.get(point)
        if version is None:
            try:
                self._fetch(point)
            except ConnectionError as error:
                if point not in self._held_before:
                    raise
                _log.warning("the thresholds held are kept: %s", error)
                self._versions[point] = self._held_before[point]
            version = self._versions[point]
            with self._changed:
                self._begin()
        return version

    def _fetch(self, point: str) -> None:
        held = self._versions.get(point)
        headers = {} if held is None else {"If-None-Match": held.tag}
        path = f"/v1/points/{quote(point, safe='')}/thresholds"
        status, body, tag = self._ask("GET", path, None, headers)
        if status == 304:
            return
        if status != 200:
            raise Refused(_detail(status, body), status)
        found = json.loads(body)
        falling = found["direction"] == "<="
        thresholds = {name: _number(rule, falling) for name, rule in found["thresholds"].items()}
        self._versions[point] = _Version(found["version"], thresholds, falling, tag)

    def _work(self) -> None:
        """Send and refresh until the client is closed."""
        rest, fetched = 0.0, time.monotonic()
        while True:
            with self._changed:
                if self._closed:
                    return
                if rest or not (self._hurry and self._due()):
                    self._changed.wait(rest or self._every)
                if self._closed:
                    return
            try:
                for point in self._due():
                    self._send_all(point)
                if time.monotonic() - fetched >= self._refresh:
                    self._fetch_all()
                    fetched = time.monotonic()
                rest = 0.0
                with self._changed:
                    self._problem = next((each.problem for each in self._rests.values()), None)
                    self._hurry = self._count > 0
                    self._changed.notify_all()
            except Exception as error:  # the server is away
                self._problem = str(error) or type(error).__name__
                rest = min(max(2 * rest, 0.1), _LONGEST_REST)

    def _due(self) -> list[str]:
        """Return the points of which something waits and may be sent now."""
        now = time.monotonic()
        with self._changed:
            return [
                point
                for point in self._waiting
                if point not in self._rests or self._rests[point].until <= now
            ]

    def _send_all(self, point: str) -> None:
        """Send what waits of a point; where the server does not take it, let the point rest."""
        try:
            while point in self._waiting and not self._closed:
                self._send(point)
            self._rests.pop(point, None)
        except Refused as error:
            last = self._rests[point].seconds if point in self._rests else 0.0
            rest = min(max(2 * last, 0.1), _LONGEST_REST)
            self._rests[point] = _Rest(rest, time.monotonic() + rest, str(error))

    def _fetch_all(self) -> None:
        """Ask for the thresholds of all points; one that is refused is no reason not to."""
        for point in list(self._versions):
            try:
                self._fetch(point)
            except Refused as error:
                _log.warning("the thresholds held are kept: %s", error)

    def _send(self, point: str) -> None:
        """Send the first events of a point; drop those that are acknowledged or refused."""
        batch: list[bytes] = []
        size, most = 0, self._largest.get(point, 1000)
        with self._changed:
            for line in self._waiting[point]:
                size += len(line) + 1
                if len(batch) == most or (batch and size > 4_000_000):
                    break
                batch.append(line)
        path = f"/v1/points/{quote(point, safe='')}/events"
        body = b"".join(line + b"\n" for line in batch)
        status, found, _ = self._ask("POST", path, body, {"Content-Type": "application/x-ndjson"})
        if status == 413 and len(batch) > 1:
            self._largest[point] = len(batch) // 2
            return
        name = _problem(found)
        if status == 413 or (status in (403, 404, 422) and name):  # not by a proxy in between
            _log.warning("refused: %s", name or status)
            self._drop(point, len(batch), [], len(batch))
            return
        if status != 200:
            raise Refused(_detail(status, found), status)
        try:
            answers = [json.loads(line) for line in found.splitlines()]
            statuses = [int(each["status"]) for each in answers]
        except (ValueError, KeyError, TypeError):
            statuses = []
        if len(statuses) != len(batch):
            raise Refused("the answer of the server is incomplete", status)
        again = [at for at, each in enumerate(statuses) if each >= 500 or each == 429]
        refused = [at for at, each in enumerate(statuses) if 200 != each < 500 and each != 429]
        for at in refused:
            _log.warning("refused: %s", answers[at].get("type"))
        self._drop(point, len(batch), [batch[at] for at in again], len(refused))
        if again:
            raise Refused(str(answers[again[0]].get("detail")), statuses[again[0]])

    def _drop(self, point: str, sent: int, again: list[bytes], refused: int) -> None:
        """Drop the first events of a point but for those that are to be sent again."""
        with self._changed:
            lines = self._waiting[point]
            for _ in range(sent):
                lines.popleft()
            lines.extendleft(reversed(again))
            if not lines:
                del self._waiting[point]
            self._count -= sent - len(again)
            self.refused += refused
            self._changed.notify_all()

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, str]:
        """Make one request; a connection that was closed meanwhile is opened again, once."""
        from http.client import HTTPException

        if self._token is not None:
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        with self._wire:
            for attempt in (0, 1):
                fresh = self._connection is None
                try:
                    connection = self._connected()
                    connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
                    response = connection.getresponse()
                    found = response.read()
                    if response.will_close:
                        self._hang_up()
                    return response.status, found, response.headers.get("etag", "")
                except (OSError, HTTPException) as error:
                    self._hang_up()
                    if fresh or attempt:
                        raise Unreachable(f"{self._parts.netloc}: {error}") from None
        raise AssertionError  # not reached

    def _connected(self) -> HTTPConnection:
        import http.client

        if self._connection is None:
            kind = http.client.HTTPSConnection
            if self._parts.scheme == "http":
                kind = http.client.HTTPConnection  # type: ignore[assignment]
            host = self._parts.hostname or ""
            self._connection = kind(host, self._parts.port, timeout=self._timeout)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_clients: WeakSet[Client] = WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client._start_over()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _require_id(id: Any, call: str) -> None:
    if not isinstance(id, str):
        raise TypeError(f"id must be a string, got {id!r}. The order is {call}.")


def _text(moment: datetime | None) -> str:
    if moment is None:
        moment = datetime.now(UTC)
    elif moment.tzinfo is None:
        raise ValueError(f"time must have a time zone, got {moment!r}.")
    return moment.isoformat()


def _number(rule: dict[str, Any], falling: bool) -> float:
    if "threshold" in rule:
        return float(rule["threshold"])
    everybody = inf if falling else -inf
    return everybody if rule["rule"] == "all" else nan


def _detail(status: int, body: bytes) -> str:
    try:
        return f"{status}: {json.loads(body)['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"the server answered {status}"


def _problem(body: bytes) -> str | None:
    """Return the name of a refusal of limen; None for what is none."""
    try:
        name = str(json.loads(body)["type"])
    except (ValueError, KeyError, TypeError):
        return None
    return name if name.startswith("/problems/") else None
