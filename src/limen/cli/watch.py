# SPDX-License-Identifier: Apache-2.0
"""The command that follows a stream: rows in, one line of JSON for each change of the threshold.

Rows are folded as the service folds events. With a state, they are on disk before any line counts
them. After a kill, the first line says how many rows are known, and the sender goes on after them.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from codecs import BOM_UTF8
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from limen.cli.aims import aim_of, columns_of
from limen.cli.exits import INTERRUPTED, USAGE, Failure
from limen.cli.output import print_messages
from limen.cli.rows import LONGEST_LINE, as_utf8, heading_of, refuse_kind, refuse_long_line
from limen.cli.watch_model import Watched
from limen.cli.watch_options import as_moment, definition_of
from limen.cli.watch_output import Output
from limen.cli.watch_rows import Reader, StreamPlace
from limen.cli.watch_state import Book
from limen.digits import within
from limen.optimum import Gap
from limen.service.points.rows import Rows

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.service.points.point import Point

__all__ = ["watch"]

_CHUNK = 2**20
_STDIN = 0
_PATIENCE = 1.0  # seconds without a row, after which a message says so at a terminal


def watch(options: Namespace) -> int:
    """Follow the rows of standard input."""
    if sys.stdin is None:
        raise Failure("standard input is closed. Send rows to it.")
    stream = _Stream(options)
    gc.set_threshold(100_000, 50, 50)  # many small objects that live long and form no cycles
    try:
        stream.resume()
        with _signals() as ended:
            try:
                code = stream.follow(ended)
            except Failure:
                stream.finish()  # what came before the bad row is kept, and nothing after it
                raise
        stream.finish()
        return code
    finally:
        stream.close()


@contextmanager
def _signals() -> Iterator[int]:
    """Yield a file that becomes readable when the process is asked to end."""
    ended, end = os.pipe()
    os.set_blocking(end, False)
    asked = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    before = signal.set_wakeup_fd(end)
    try:
        for name in asked:
            signal.signal(name, lambda *_: None)
        yield ended
    finally:
        for name, handler in asked.items():
            signal.signal(name, handler)
        signal.set_wakeup_fd(before)
        os.close(ended)
        os.close(end)


class _Stream:
    """A stream of rows, the point that they change, and its state on disk."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.definition = definition_of(options)
        self.columns = columns_of(options)
        self.place = StreamPlace("standard input")
        self.book = Book(options.state, options.time_column is not None)
        self.reader: Reader | None = None  # None until a header came
        self.point: Point | None = None
        self._malformed = 0  # bad rows that no event counts yet
        self._failure: Failure | None = None  # what the memory said of a row

    # ---- the state ----------------------------------------------------------------------------

    def resume(self) -> None:
        """Continue the state on disk, or begin one."""
        self.book.open(self._observe)
        point = self.book.begun()
        if point is None:
            return  # until rows say what time it is
        if point is not self.point:
            self._use(point)
        self._require_same(point)
        self._continue(point)

    def _begin_point(self, rows: Rows | None = None) -> Point:
        """Return the point, which begins with the first rows."""
        if self.point is None:
            if rows is not None:
                self.book.look_at(rows)
            self._use(self.book.define(self.definition))
        assert self.point is not None
        return self.point

    def _observe(self, point: Point, seq: int) -> None:
        """Let alerts see the events that came after what was kept of them."""
        if self.options.alerts and point is not self.point:
            if seq <= self.book.kept.get("seq", 0):
                return
            self._use(point)

    def _use(self, point: Point) -> None:
        options = self.options
        self.point, self.place.number = point, point.taken
        self._follow_version(point)
        self.watched = Watched(point, options)
        alerts = None
        if options.alerts:
            from limen.cli.watch_alerts import Alerts

            alerts = Alerts(options, self.watched)
            if "alerts" in self.book.kept:
                alerts.restore(self.book.kept["alerts"])
        self.output = Output(options, self.watched, self.place, alerts, self._refuse)
        point.observer = self.output

    def _follow_version(self, point: Point) -> None:
        """Let the threshold in use be that of the version in effect, unless an option says it."""
        current = point.version.thresholds[""]
        if (
            not self.options.typed_current
            and current == current
            and self.options.current is not None
        ):
            self.options.current = current

    def _continue(self, point: Point) -> None:
        options = self.options
        if point.definition != self.definition:
            self.book.define(self.definition, point.name)
        if options.typed_current and options.current != point.version.thresholds[""]:
            self.book.deploy(point, {"": options.current}, "the threshold in use, by --current")
        self.book.commit()
        self.output.lines.clear()
        self._failure = None
        best, answer = self.watched.best(None), ""
        if isinstance(best, Gap):
            ends = best.threshold, best.lower, best.upper
            answer = f", threshold {within(*ends, direction=best.direction)}"
        print_messages(
            f"continuing after row {point.taken:,}: {self.watched.samples():,} samples{answer}",
            quiet=options.quiet,
        )
        self.output.written = {}
        self.output.add_all()  # also about the groups that did not change
        self.output.flush()

    def _require_same(self, point: Point) -> None:
        """Refuse a definition under which other samples count; none at all is that of the state."""
        options, kept = self.options, point.definition
        costs = (options.false_positive, options.false_negative)
        if options.definition is None and costs == (None, None):
            same = (kept.by_id, kept.segments is None, kept.model)
            asked = (
                self.definition.by_id,
                self.definition.segments is None,
                self.definition.model,
            )
            if same == asked:
                self.definition = kept
        self.definition = msgspec.structs.replace(self.definition, start=kept.start)
        if kept.counts_alike(self.definition):
            return
        first = next(
            each
            for each in kept.differences(self.definition)
            if each["field"].split(".")[0] not in ("start", "change", "words", "alerts")
        )
        now, then = (json.dumps(first[name]) for name in ("now", "then"))
        raise Failure(
            f"{options.state} was made with {first['field']} {now}, not {then}. Give the same, or "
            "name another folder.",
            USAGE,
        )

    def finish(self) -> None:
        """Write a snapshot, and the last line."""
        self._begin_point()
        self._count()
        self.book.commit()
        self._settle()
        if self.output.rows != self.place.number:
            self.output.add_all()
        self.output.flush()

    def _settle(self) -> None:
        alerts = self.output.alerts
        kept = {} if alerts is None else {"alerts": alerts.kept()}
        self.book.settle(self._begin_point(), kept)

    def close(self) -> None:
        """Let others use the state."""
        self.book.close()

    # ---- what comes in ------------------------------------------------------------------------

    def follow(self, ended: int) -> int:
        """Take rows as they come, until there are no more or a signal comes."""
        _widen(_STDIN)
        skipped = self.place.number if self.options.from_start else 0
        rest, patience = b"", self._patience()
        while True:
            ready, _, _ = select.select([_STDIN, ended], [], [], patience)
            if not ready:
                self._wait()
            patience = None
            if not ready:
                continue
            if ended in ready:
                return INTERRUPTED if os.read(ended, 1)[0] == signal.SIGINT else 143
            chunk = os.read(_STDIN, _CHUNK)
            content = rest + chunk
            if self.reader is None:
                content = content.removeprefix(BOM_UTF8)
                refuse_kind(content, self.place.name)
            complete, rest = _cut(content, last=not chunk)
            if len(rest) > LONGEST_LINE:
                refuse_long_line(rest, LONGEST_LINE, self.place)
            if self.reader is None:
                complete = self._begin(complete)
            if self.reader is not None and skipped:  # rows that were taken before the restart
                complete, skipped = self.reader.after(complete, skipped)
            if complete and not complete.isspace():
                self._take(complete)
            if not chunk:
                return 0

    def _patience(self) -> float | None:
        """How long to wait for rows before a message says what is awaited; None: for ever."""
        if self.options.quiet or sys.stderr is None or not sys.stderr.isatty():
            return None
        return 0.0 if os.isatty(_STDIN) else _PATIENCE

    def _wait(self) -> None:
        names = ", ".join(self.columns.named().values())
        print_messages(
            f"waiting for rows of CSV or NDJSON on standard input, with {names}; Ctrl-C ends"
        )

    def _begin(self, content: bytes) -> bytes:
        """Learn from the first line how to read the others; return the rows."""
        if not content or content.isspace():
            return b""
        content = content[len(content) - len(content.lstrip(b"\r\n")) :]
        line, _, rows = content.partition(b"\n")
        self.place.in_header = True
        first = as_utf8(line.removesuffix(b"\r"), self.place)
        if not first.strip():
            return self._begin(rows)
        heading = heading_of(first, self.columns, self.options.format, self.place)
        self.place.in_header = False
        self.reader = Reader(heading, self.options, aim_of(self.options), self.place)
        return rows if heading["format"] == "csv" else content

    def _take(self, content: bytes) -> None:
        """Fold rows, bring them to disk, then write about them."""
        assert self.reader is not None
        for found in self.reader.batches(content):
            if isinstance(found, Failure):
                self._skip(found)
                self._begin_point()
                self._malformed += 1
                self.place.number += 1
                if self.output.is_due():
                    self._count()
                    self.output.add_all()
                continue
            self._fold(*found)
            if self._failure is not None:
                raise self._failure
        self._count()
        self._tick()
        self.book.commit(len(content))
        self.output.flush()
        if self.book.grown:
            alerts = self.output.alerts
            self.book.settle(
                self._begin_point(), {} if alerts is None else {"alerts": alerts.kept()}
            )

    def _tick(self) -> None:
        """Let the policy and the alerts of the point decide, and say what they decided."""
        point = self._begin_point()
        if point.definition.alerts is not None or point.definition.change.policy != "manual":
            for event in self.book.tick(point):
                self.output.add_event(event)
            self._follow_version(point)

    def _fold(self, rows: Rows, ids: Any) -> None:
        point = self._begin_point(rows)
        options = self.options
        more = {"malformed": self._malformed, "skips": options.skip_malformed}
        if options.current is not None and point.ledger is not None:
            more["case"] = [options.current, as_moment(options.age), options.confidence]
        self._malformed = 0
        self.book.rows(point, more, rows, ids)
        self.place.number = point.taken

    def _count(self) -> None:
        """Let the state know of bad rows after the last good one."""
        if self._malformed:
            self._fold(Rows(), [] if self.definition.by_id else None)

    def _refuse(self, error: Exception) -> None:
        """Skip the row at hand, which the memory refuses, or end after the rows before it."""
        try:
            self.place.refuse(str(error))
        except Failure as failure:
            try:
                self._skip(failure)
            except Failure:
                self._failure = failure

    def _skip(self, failure: Failure) -> None:
        """Report the row at hand, which is bad, or end."""
        if not self.options.skip_malformed or failure.code == USAGE:
            raise failure
        print_messages(f"limen: {failure} Skipped.", quiet=self.options.quiet)


def _cut(content: bytes, last: bool) -> tuple[bytes, bytes]:
    """Split after the last complete line; at the end of the input all lines are complete."""
    if last and content and not content.endswith(b"\n"):
        content += b"\n"
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _widen(file: int) -> None:
    """Let a pipe hold more, so that more rows share one writing to disk."""
    with suppress(ImportError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(file, F_SETPIPE_SZ, _CHUNK)
