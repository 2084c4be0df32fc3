# SPDX-License-Identifier: Apache-2.0
"""The state: the fold of the events. It reads no clock, no randomness and no configuration."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from limen.service.points.alert_timers import AlertTimers
from limen.service.points.definitions import Definition
from limen.service.points.events import KINDS, Damaged, Event, Ids
from limen.service.points.point import OF_SAMPLES, Note, Point
from limen.service.points.proposals import Proposal, Shadow, StoredShadow
from limen.service.points.versions import Version
from limen.storage import from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["State", "Token", "refolded"]

_MAGIC = b"limen snapshot 5"


class Token(msgspec.Struct):
    """Who may do what: only the SHA-256 of the secret is kept."""

    name: str
    digest: bytes
    scopes: list[str]
    points: list[str] | None = None  # None: all
    expires: int | None = None


class _Stored(msgspec.Struct):
    """A point in a snapshot."""

    definition: Definition
    memory: bytes
    versions: list[Version]
    forgotten: dict[bytes, int]
    counts: tuple[int, int, int, int, int, int]
    segments: list[str]
    course: list[tuple[int, float, float, float]]
    proposals: list[Proposal]
    shadow: StoredShadow | None
    notes: list[Note]
    alerts: list[Note]
    lasting: AlertTimers
    defined_by: int


class _Snapshot(msgspec.Struct):
    seq: int
    chain: bytes
    at: int
    refolded: int
    forgot: int
    points: dict[str, _Stored]
    tokens: list[Token]
    alerts: list[Note]
    notes: list[Note]


class State:
    """All that the service knows.

    Parameters
    ----------
    history
        Gives the events of the log up to some seq, for a point whose definition is replaced.
    """

    def __init__(self, history: Callable[[int], Iterable[tuple[int, Event, Ids]]]) -> None:
        self.seq = 0
        self.at = 0
        self.refolded = 0  # the last event that needed all of the history
        self.forgot = 0  # the last event that deleted an id
        self.points: dict[str, Point] = {}
        self.tokens: dict[str, Token] = {}
        self.alerts: dict[str, Note] = {}  # of the server itself
        self.notes: list[Note] = []
        # Points that were refolded meanwhile, each for the definition that is folded next.
        self.prepared: dict[str, Point] = {}
        self._history = history

    def fold(self, seq: int, event: Event, id: Ids) -> None:
        """Let one event happen: each exactly once, in their order.

        This is the only way by which the state changes, live and replayed. Where the memory of a
        point refuses a value, by a ValueError or an OverflowError, all is as it was.
        """
        kind = event.kind
        of_samples = OF_SAMPLES.get(kind)
        if of_samples is not None:
            of_samples(self.points[event.point], seq, event, id)
            if kind == "forget":
                self.forgot = seq
        elif kind in ("deploy", "propose", "decide"):
            self.points[event.point].fold(seq, event, id)
        elif kind == "alert":
            self._alert(seq, event)
        elif kind == "advance":
            for point in self.points.values():
                point.fold(seq, event, id)
        elif kind == "define":
            self._define(seq, event)
        elif kind == "token":
            self._token(event)
        else:
            raise Damaged(
                f"event {seq} is of the kind {kind!r}, which this limen does not know "
                f"(it knows {', '.join(KINDS)}). Install the newer one that wrote it."
            )
        self.seq = seq
        self.at = event.at

    def _define(self, seq: int, event: Event) -> None:
        given = {name: each for name, each in (event.more or {}).items() if name != "decided"}
        definition = msgspec.convert(given, Definition)
        point = self.points.get(event.point)
        made = self.prepared.pop(event.point, None)
        if point is None:
            self.points[event.point] = point = Point(event.point, definition)
            start = {"thresholds": {"": msgspec.to_builtins(definition.start)}}
            point.fold(seq, Event("deploy", event.at, by=event.by, more=start), None)
        elif not point.definition.counts_alike(definition):
            if made is None:
                made = refolded(point, definition, self._history(seq - 1))
            made.take_over_history(point)
            self.points[event.point] = point = made
            self.refolded = seq
            more = {"verdict": "superseded", "reason": "the definition of the point was replaced"}
            point.fold(seq, Event("decide", event.at, by=event.by, more=more), None)
        point.defined(definition)
        point.redefined(seq, event)

    def _alert(self, seq: int, event: Event) -> None:
        if event.point:
            self.points[event.point].fold(seq, event, None)
            return
        assert event.more is not None
        name, text, ended = (event.more[each] for each in ("name", "text", "ended"))
        note = Note(seq, event.at, "alert", event.by, name, text, ended)
        self.alerts.pop(name, None)
        if not ended:
            self.alerts[name] = note
        self.notes = [*self.notes[-99:], note]

    def _token(self, event: Event) -> None:
        assert event.more is not None
        name = event.more["name"]
        if event.more.get("revoked"):
            self.tokens.pop(name, None)
        else:
            self.tokens[name] = msgspec.convert(event.more, Token)

    # A snapshot is a cache of the fold: equal states give equal bytes.

    def to_bytes(self, chain: bytes) -> bytes:
        """Describe all of it, with the end of the chain that it is the fold of. O(n log n)."""
        points = {
            name: _Stored(
                point.definition,
                point.memory.to_bytes(),
                point.versions,
                dict(sorted(point.forgotten.items())),
                (
                    *(point.scores, point.labels, point.ones, point.overflow),
                    *(point.taken, point.skipped),
                ),
                sorted(point.segments),
                point.course,
                point.proposals,
                None if point.shadow is None else point.shadow.stored(),
                point.notes,
                sorted(point.alerts.values(), key=lambda note: note.seq),
                point.lasting,
                point.defined_by,
            )
            for name, point in sorted(self.points.items())
        }
        tokens = [self.tokens[name] for name in sorted(self.tokens)]
        body = msgspec.msgpack.encode(
            _Snapshot(
                self.seq,
                chain,
                self.at,
                self.refolded,
                self.forgot,
                points,
                tokens,
                sorted(self.alerts.values(), key=lambda note: note.seq),
                self.notes,
            )
        )
        return _MAGIC + hashlib.sha256(body).digest() + body

    def restore(self, stored: bytes) -> bytes:
        """Become what bytes describe, and return the chain; ValueError where they are damaged."""
        end = len(_MAGIC)
        body = memoryview(stored)[end + 32 :]
        if stored[:end] != _MAGIC:
            raise ValueError("it was not written by this version of limen")
        if stored[end : end + 32] != hashlib.sha256(body).digest():
            raise ValueError("it is damaged: the checksum differs")
        found = msgspec.msgpack.decode(body, type=_Snapshot)
        self.seq, self.at = found.seq, found.at
        self.refolded, self.forgot = found.refolded, found.forgot
        for name, each in found.points.items():
            self.points[name] = point = Point(name, each.definition)
            point.hold(each.definition, from_bytes(each.memory))
            point.versions, point.forgotten = each.versions, each.forgotten
            point.scores, point.labels, point.ones, point.overflow, *stream = each.counts
            point.taken, point.skipped = stream
            point.segments = set(each.segments)
            point.course, point.proposals, point.notes = each.course, each.proposals, each.notes
            point.alerts = {note.name: note for note in each.alerts}
            point.lasting = each.lasting
            point.defined_by = each.defined_by
            if each.shadow is not None:
                assert point.proposal is not None
                point.shadow = Shadow(point.proposal, point.version, point.direction)
                point.shadow.restore(each.shadow)
        self.tokens = {token.name: token for token in found.tokens}
        self.alerts = {note.name: note for note in found.alerts}
        self.notes = found.notes
        return found.chain

    def publish(self) -> None:
        """Let readers see every version: all of it is on disk."""
        for point in self.points.values():
            point.published = point.version

    def shown(self) -> dict[str, Any]:
        """Describe what two runs over the same events must have in common."""
        return {name: point.memory.to_bytes() for name, point in self.points.items()}


def refolded(
    point: Point, definition: Definition, history: Iterable[tuple[int, Event, Ids]]
) -> Point:
    """Return the point as if it had been defined so from the beginning; versions stay."""
    made = Point(point.name, definition)
    for seq, event, id in history:
        if event.kind == "advance" or (event.point == point.name and event.kind in OF_SAMPLES):
            made.fold(seq, event, id)
    return made
