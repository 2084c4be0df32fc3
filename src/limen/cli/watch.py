# SPDX-License-Identifier: Apache-2.0
"""The command that follows a stream: rows in, one line of JSON for each change of the threshold.

With a state file, rows are on disk before any line counts them. After a kill, the first line says
how many rows are known, and the sender continues after them.
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
from itertools import chain
from typing import TYPE_CHECKING, Any

from limen.cli.aims import columns_of
from limen.cli.exits import BAD_INPUT, FAILED, INTERRUPTED, USAGE, Failure
from limen.cli.output import print_messages
from limen.cli.parsing import option_name
from limen.cli.rows import LONGEST_LINE, as_utf8, heading_of, refuse_kind, refuse_long_line
from limen.cli.watch_model import Watched
from limen.cli.watch_options import model_of, require_consistent, settings_of
from limen.cli.watch_output import Output
from limen.cli.watch_rows import Rows, StreamPlace
from limen.digits import within
from limen.optimum import Gap
from limen.storage import load
from limen.storage.journal import Damaged, Journal

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

__all__ = ["watch"]

_CHUNK = 2**20
_STDIN = 0
_ROWS, _HEADER = b"R", b"H"
_PARTS = ("score", "label", "weight", "group", "id", "time", "costs")
_PATIENCE = 1.0  # seconds without a row, after which a message says so at a terminal


def watch(options: Namespace) -> int:
    """Follow the rows of standard input."""
    require_consistent(options)
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
    """A stream of rows, the model that follows it, and the state on disk."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.columns = columns_of(options)
        self.place = StreamPlace("standard input")
        self.journal = None if options.state is None else Journal(options.state)
        self.heading: dict[str, Any] | None = None  # how rows are read
        self.rows: Rows | None = None  # None until a header came
        self._use(model_of(options))

    # ---- the state ----------------------------------------------------------------------------

    def resume(self) -> None:
        """Continue the state on disk, or begin one."""
        journal = self.journal
        if journal is None:
            return
        try:
            journal.lock()
            if journal.is_there():
                self._replay(journal)
            else:
                journal.begin(self.model, self._beginning())
        except Damaged as error:
            raise Failure(str(error), BAD_INPUT) from None
        except OSError as error:
            if error.errno is not None:  # else it is the journal's own message
                raise
            code = USAGE if isinstance(error, IsADirectoryError) else FAILED
            raise Failure(str(error), code) from None

    def _use(self, model: Any) -> None:
        options = self.options
        self.model: Any = model
        self.watched = Watched(model, options)
        alerts = None
        if options.alerts:
            from limen.cli.watch_alerts import Alerts

            alerts = Alerts(options, self.watched)
        self.output = Output(options, self.watched, self.place, alerts)

    def _replay(self, journal: Journal) -> None:
        try:
            self._use(load(journal.path))
        except ValueError as error:
            raise Failure(str(error), BAD_INPUT) from None
        pieces = journal.resume()
        first = next(pieces, None)  # which also reads how the journal begins
        self._require_same(journal.beginning["settings"])
        self.place.number = journal.beginning["rows"]
        self.output.restore(journal.beginning.get("kept", {}))
        if journal.beginning["heading"] is not None:
            self._read_by(journal.beginning["heading"])
        for kind, payload in chain([] if first is None else [first], pieces):
            if kind == _HEADER:
                self._read_by(json.loads(payload))
                continue
            try:
                self._update(payload)
            except Failure as failure:
                if failure.code != USAGE:  # the row was bad then, too; nothing after it counts
                    self.finish()
                raise
            self.output.lines.clear()
        self.rows = None  # the rows to come bring a header of their own
        if journal.dropped:
            print_messages(
                f"limen: {journal.dropped:,} bytes at the end of {journal.beside} were cut off "
                "when it was killed, before any line counted them. They are dropped.",
                quiet=self.options.quiet,
            )
        best, answer = self.watched.best(None), ""
        if isinstance(best, Gap):
            ends = best.threshold, best.lower, best.upper
            answer = f", threshold {within(*ends, direction=best.direction)}"
        print_messages(
            f"continuing after row {self.place.number:,}: {self.watched.samples():,} samples"
            f"{answer}",
            quiet=self.options.quiet,
        )
        self.output.written = {}
        self.output.add_all()  # also about the groups that did not change
        self.output.flush()

    def _require_same(self, kept: dict[str, Any]) -> None:
        asked = settings_of(self.options)
        for name in {**asked, **kept}:
            if kept.get(name) != asked.get(name):
                raise Failure(
                    f"{self.options.state} was made {_with(name, kept.get(name))}, not "
                    f"{_with(name, asked.get(name))}. Give the same, or name another file.",
                    USAGE,
                )

    def _beginning(self) -> dict[str, Any]:
        return {
            "rows": self.place.number,
            "heading": self.heading,
            "settings": settings_of(self.options),
            "kept": self.output.kept(),
        }

    def finish(self) -> None:
        """Save the model, and write the last line."""
        if self.journal is not None:
            self.journal.settle(self.model, self._beginning())
        if self.output.rows != self.place.number:
            self.output.add_all()
        self.output.flush()

    def close(self) -> None:
        """Let others use the state."""
        if self.journal is not None:
            self.journal.close()

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
            if self.rows is None:
                content = content.removeprefix(BOM_UTF8)
                refuse_kind(content, self.place.name)
            complete, rest = _cut(content, last=not chunk)
            if len(rest) > LONGEST_LINE:
                refuse_long_line(rest, LONGEST_LINE, self.place)
            if self.rows is None:
                complete = self._begin(complete)
            if self.rows is not None and skipped:  # rows that were taken before the restart
                complete, skipped = self.rows.after(complete, skipped)
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
        heading |= {
            "columns": {part: getattr(self.columns, part) for part in _PARTS},
            "skips": self.options.skip_malformed,
        }
        self.place.in_header = False
        self._read_by(heading)
        if self.journal is not None:
            self.journal.append(_HEADER, json.dumps(heading).encode())
        return rows if heading["format"] == "csv" else content

    def _read_by(self, heading: dict[str, Any]) -> None:
        """Read rows as a heading describes, with the options of when it came."""
        self.heading = heading
        self.rows = Rows(heading, self.options, self.watched.aim, self.place)

    def _take(self, content: bytes) -> None:
        """Write rows to disk, update the model, then write about it."""
        if self.journal is not None:
            self.journal.append(_ROWS, content)
        self._update(content)
        self.output.flush()
        if self.journal is not None and self.journal.grown:
            self.journal.settle(self.model, self._beginning())

    def _update(self, content: bytes) -> None:
        if self.rows is None:
            raise Failure(f"{self.options.state}: the journal has no header.", BAD_INPUT)
        for found in self.rows.batches(content):
            if isinstance(found, Failure):
                self._skip(found)
            else:
                self.output.take(found, self._refuse)

    def _refuse(self, error: Exception) -> None:
        """Skip the row at hand, which the model refuses, or end."""
        try:
            self.place.refuse(str(error))
        except Failure as failure:
            self._skip(failure)

    def _skip(self, failure: Failure) -> None:
        """Skip the row at hand, which is bad, or end."""
        assert self.rows is not None
        if not self.rows.skips or failure.code == USAGE:
            raise failure
        print_messages(f"limen: {failure} Skipped.", quiet=self.options.quiet)
        self.output.skipped += 1
        self.place.number += 1
        if self.output.is_due():
            self.output.add_all()


def _with(name: str, value: str | None) -> str:
    if value is None:
        return f"without {option_name(name)}"
    return f"with {option_name(name)}" + ("" if value == "given" else f" {value}")


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
