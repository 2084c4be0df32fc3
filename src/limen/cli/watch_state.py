# SPDX-License-Identifier: Apache-2.0
"""The state of ``limen watch``: a point, and where it is kept the log that it is the fold of.

The folder is one of `limen serve`: a log of events, and snapshots. What was folded is on disk when
`commit` returns, and only then is anything said about it. Killed at any moment, the state is the
fold of what is in the log.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from limen.cli.exits import BAD_INPUT, FAILED, USAGE, Failure
from limen.service.log import snapshots
from limen.service.log.store import Damaged, InUse, Log
from limen.service.points import alerts, policy
from limen.service.points.account import passed
from limen.service.points.definitions import as_rules
from limen.service.points.events import Event
from limen.service.points.state import State
from limen.service.points.stream import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limen.service.points.definitions import Definition
    from limen.service.points.events import Ids
    from limen.service.points.point import Point
    from limen.service.points.rows import Rows

__all__ = ["Book"]

_MINUTE = 60_000_000
_LEAST = 2**26  # bytes of events before a snapshot is written again
_NAME = "stream"
_BY = "limen watch"


class Book:
    """One point, the events that it is the fold of, and their log.

    Attributes
    ----------
    kept
        What was written beside the last snapshot, about what is no part of the point.
    """

    def __init__(self, folder: str | None, dated: bool) -> None:
        self._dated = dated  # whether time passes by the rows
        self._named = folder
        self.folder = None if folder is None else Path(folder).resolve()  # where a link leads
        self.state = State(lambda upto: ())
        self.log: Log | None = None
        self.kept: dict[str, Any] = {}
        self._events: list[Event] = []
        self._names: list[Ids] = []
        self._newest = 0  # the latest date of a row
        self._ticked = 0
        self._grown = self._saved = 0  # bytes of events since the last snapshot, and of that one

    def open(self, observe: Callable[[Point, int], None]) -> None:
        """Continue what is on disk, or begin it; `observe` is called before each later event."""
        if self.folder is None:
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise Failure(f"{self._named} is a file. Name a folder for the state.", USAGE)
        with self._refusing():
            self.log = Log(self.folder, create=True)
            self.kept = json.loads(self.log.meta("watch") or b"{}")
            snapshots.tidy(self.folder)

            def before(state: State, seq: int) -> None:
                for point in state.points.values():
                    observe(point, seq)

            self.state = snapshots.recovered(self.log, self.folder, before=before)
            self._measure()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say what is wrong with the folder in the words of the command."""
        try:
            yield
        except InUse:
            raise Failure(
                f"{self._named} is in use by another process of limen. Wait until it ends, or name "
                "another folder.",
                FAILED,
            ) from None
        except Damaged as error:
            raise Failure(f"{self._named}: {error}", BAD_INPUT) from None
        except (OSError, sqlite3.Error) as error:
            text = getattr(error, "strerror", None) or str(error)
            raise Failure(f"{self._named} cannot be used: {text}.", FAILED) from None

    def begun(self) -> Point | None:
        """Return the point that the folder has; None where it is new."""
        points = list(self.state.points.values())
        if len(points) > 1:
            named = ", ".join(sorted(self.state.points))
            raise Failure(
                f"{self._named} has {len(points)} points: {named}. A stream is one of them, and "
                "limen watch follows folders of one point.",
                USAGE,
            )
        return points[0] if points else None

    def define(self, definition: Definition, name: str = _NAME) -> Point:
        """Define the point, or give it another definition under which the same samples count."""
        self.fold(Event("define", self._now(), name, by=_BY, more=msgspec.to_builtins(definition)))
        return self.state.points[name]

    def deploy(self, point: Point, thresholds: dict[str, float], reason: str) -> None:
        """Let other thresholds be those in use."""
        rules = msgspec.to_builtins(as_rules(thresholds, point.direction))
        more = {"thresholds": rules, "reason": reason}
        self.fold(Event("deploy", self._now(), point.name, by=_BY, more=more))

    def fold(self, event: Event, ids: Ids = None) -> None:
        """Let an event happen; it is on disk after `commit`."""
        self.state.fold(self.state.seq + 1, event, ids)
        if self.log is not None:
            self._events.append(event)
            self._names.append(ids)

    def rows(self, point: Point, more: dict[str, Any], rows: Rows, ids: Ids) -> None:
        """Fold rows of the stream."""
        self.look_at(rows)
        self.fold(Event("rows", self._now(), point.name, by=_BY, more=more, rows=rows), ids)

    def look_at(self, rows: Rows) -> None:
        """Let it be as late as the latest of some rows."""
        times, kinds = rows.column("times"), rows.column("kinds")
        if times is not None and kinds is not None and (dated := kinds >= Written.LOCAL).any():
            self._newest = max(self._newest, int(times[dated].max()))

    def tick(self, point: Point) -> list[Event]:
        """Let time pass and the policy and the alerts of the point decide, once a minute."""
        at, wanted = self._now(), point.definition.alerts
        if at - self._ticked < _MINUTE:
            return []
        self._ticked = at
        course = point.sample_course(at)
        more = None if course is None else {point.name: course}
        self.fold(Event("advance", at, time=at, by=_BY, more=more))
        answers = None
        if wanted is not None and not wanted.recall is wanted.precision is None and point.ledger:
            answers = passed(point, float(point.of_all().threshold), at, 0)[1]["answers"]
        events = [*policy.due(point, at), *alerts.due(point, at, answers)]
        for event in events:
            self.fold(event)
        return events

    def _now(self) -> int:
        """Return the time of the stream, where rows have dates, and else that of the clock."""
        clock = time.time_ns() // 1000
        if self._dated and (self._newest or self.state.at):
            clock = min(self._newest, clock)
        return max(clock, self.state.at)

    def commit(self, size: int = 0) -> None:
        """Bring to disk what was folded, about so many bytes."""
        if self.log is None or not self._events:
            return
        with self._refusing():
            self.log.append(self._events, self._names)
        self._events, self._names = [], []
        self._grown += size

    @property
    def grown(self) -> bool:
        """Whether a snapshot should be written again: seldom enough to cost little."""
        return self._grown > max(_LEAST, 4 * self._saved)

    def settle(self, point: Point, kept: dict[str, Any]) -> None:
        """Write a snapshot, and the model alone for Python, so that a start reads little."""
        if self.log is None:
            return
        with self._refusing():
            self.log.keep("watch", json.dumps({"seq": self.state.seq, **kept}).encode())
            before = [seq for seq, _ in snapshots.stored(self.log.folder)]
            snapshots.write(self.log.folder, self.state, self.log)
            point.memory.save(str(self.log.folder / "model.limen"))
            if self.grown and before and not self.state.tokens:
                self.log.delete_until(before[0], 2**62)  # what no start reads any more
            self._grown = 0
            self._measure()

    def _measure(self) -> None:
        assert self.folder is not None
        newest = snapshots.stored(self.folder)[:1]
        self._saved = sum(path.stat().st_size for _, path in newest)

    def close(self) -> None:
        """Let others use the folder."""
        if self.log is not None:
            self.log.close()
