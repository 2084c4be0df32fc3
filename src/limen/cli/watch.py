# SPDX-License-Identifier: Apache-2.0
"""The command that follows a stream: rows in, one line of JSON for each change of the threshold.

With a state file, rows are on disk before any line tells of them. A line counts the rows it
knows of; after a kill, whoever sends rows goes on after the count of the first line.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import select
import signal
import sys
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Any, NoReturn

from limen.cli.journal import Journal
from limen.cli.outcome import BAD_INPUT, INTERRUPTED, USAGE, Failure
from limen.cli.telling import as_line, plain, say
from limen.cli.text import (
    LONGEST_LINE,
    Columns,
    Place,
    as_number,
    as_text,
    as_weight,
    delimiter_of,
    labels_of,
    refuse_column,
    refuse_label,
    shown,
)
from limen.fading import Fading
from limen.ledger import Ledger
from limen.online import OnlineThreshold
from limen.storage import load
from limen.windows import LastN, LastPeriod

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

__all__ = ["watch"]

_CHUNK = 2**20
_STDIN = 0
_ROWS, _HEADER = b"R", b"H"
_LEDGER = ("time_to_live", "maturity", "correctable")
_WINDOWS = ("last_n", "last_period", "half_life")
_MODEL = ("false_positive", "false_negative", "unit", *_WINDOWS, *_LEDGER)


def watch(options: Namespace) -> int:
    """Follow the rows of standard input."""
    _require_consistent(options)
    stream = _Stream(options)
    gc.set_threshold(100_000, 50, 50)  # many small objects that live long and form no cycles
    try:
        stream.resume()
        with _signals() as ended:
            code = stream.follow(ended)
        stream.finish()
        return code
    finally:
        stream.close()


def _require_consistent(options: Namespace) -> None:
    windows = [_option(name) for name in _WINDOWS if getattr(options, name) is not None]
    if len(windows) > 1:
        raise Failure(f"{' and '.join(windows)} are two windows. Give one of them.", USAGE)
    if options.every is not None and options.each_period is not None:
        raise Failure("--every and --each-period are two rhythms. Give one of them.", USAGE)
    timed = [name for name in ("last_period", "each_period") if getattr(options, name) is not None]
    if timed and options.time_column is None:
        raise Failure(f"{_option(timed[0])} needs --time-column.", USAGE)
    joined = [name for name in _LEDGER if getattr(options, name) is not None]
    if joined and options.id_column is None:
        raise Failure(f"{_option(joined[0])} needs --id-column.", USAGE)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _new_model(options: Namespace) -> Any:
    given = {name: getattr(options, name) for name in ("false_positive", "false_negative")}
    costs = {name: 1 if value is None else value for name, value in given.items()}
    model: Any = OnlineThreshold(**costs, unit=options.unit)
    try:
        if options.last_n is not None:
            model = LastN(model, options.last_n)
        elif options.last_period is not None:
            model = LastPeriod(model, options.last_period)
        elif options.half_life is not None:
            by: Any = "samples" if options.time_column is None else "time"
            model = Fading(model, options.half_life, by=by)
        if options.id_column is not None:
            model = Ledger(model, **{name: getattr(options, name) for name in _LEDGER})
    except (TypeError, ValueError) as error:
        raise Failure(str(error), USAGE) from None
    return model


def _settings(options: Namespace) -> dict[str, str | None]:
    """Tell by what the state was made, to refuse to go on with something else."""
    given = {name: getattr(options, name) for name in (*_MODEL, "id_column", "positive")}
    given["id_column"] = None if options.id_column is None else "given"
    return {name: None if value is None else str(value) for name, value in given.items()}


@contextmanager
def _signals() -> Iterator[int]:
    """Give a file that becomes readable when the process is asked to end."""
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


class _Rows(Place):
    """The place in a stream: how many rows are done, so that the one at hand is the next."""

    counted = "row"

    def refuse(self, problem: str, ahead: int = 0, column: str | None = None) -> NoReturn:
        """Raise a `Failure` that names the row at hand."""
        super().refuse(problem, ahead + 1, column)


class _Stream:
    """A stream of rows, the model that follows it, and what is told about it."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.columns = Columns(
            options.score_column,
            options.label_column,
            options.weight_column,
            None,
            options.positive,
            options.delimiter,
        )
        self.place = _Rows("standard input")
        self.journal = None if options.state is None else Journal(options.state)
        self.model: Any = None
        self.label_of = labels_of(options.positive)
        self.lines: list[str] = []
        self.told: tuple[float, int] = (float("inf"), 0)  # threshold and rows of the last line
        self.turn: Any = None  # of the period that the last line was for
        self.time: Any = None
        self.heading: dict[str, Any] | None = None
        self.parse: Callable[[str], list[Any]] | None = None
        self.at_once: Callable[[list[str]], bool] | None = None

    # ---- the state ----------------------------------------------------------------------------

    def resume(self) -> None:
        """Take up the model where it was left, or make a new one."""
        journal = self.journal
        self.model = _new_model(self.options)
        if journal is not None:
            journal.lock()
        if journal is not None and journal.is_there():
            self._replay(journal)
        elif journal is not None:
            journal.begin(self.model, self._beginning())
        self.apply: Callable[[list[Any]], None] = self._applier()

    def _replay(self, journal: Journal) -> None:
        try:
            self.model = load(journal.path)
        except ValueError as error:
            raise Failure(str(error), BAD_INPUT) from None
        pieces = journal.resume()
        first = next(pieces, None)  # which also reads how the journal begins
        self._require_same(journal.beginning["settings"])
        self.place.number = journal.beginning["rows"]
        self.apply = self._applier()
        if journal.beginning["heading"] is not None:
            self._header(journal.beginning["heading"])
        for kind, payload in chain([] if first is None else [first], pieces):
            if kind == _HEADER:
                self._header(json.loads(payload))
            else:
                try:
                    self._rows(payload.decode().split("\n"))
                except Failure:
                    self.finish()
                    raise
        self.parse = None  # the rows to come bring a header of their own
        self.lines.clear()
        if journal.dropped:
            say(
                f"limen: {journal.dropped:,} bytes at the end of {journal.beside} were cut off "
                "when it was killed, before any line told of them. They are dropped.",
                quiet=self.options.quiet,
            )
        say(
            f"going on after row {self.place.number:,}: {self._samples():,} samples, threshold "
            f"{plain(self.model.threshold)}",
            quiet=self.options.quiet,
        )
        self._tell()
        self._flush()

    def _require_same(self, kept: dict[str, Any]) -> None:
        for name, value in _settings(self.options).items():
            if kept.get(name) != value:
                raise Failure(
                    f"{self.options.state} was kept with {_option(name)} {kept.get(name)}, not "
                    f"{value}. Give the same, or name another file.",
                    USAGE,
                )

    def _beginning(self) -> dict[str, Any]:
        return {
            "rows": self.place.number,
            "heading": self.heading,
            "settings": _settings(self.options),
        }

    def finish(self) -> None:
        """Tell the end, and save the model."""
        if self.journal is not None:
            self.journal.settle(self.model, self._beginning())
        if self.told[1] != self.place.number:
            self._tell()
        self._flush()

    def close(self) -> None:
        """Let others use the state."""
        if self.journal is not None:
            self.journal.close()

    # ---- what comes in ------------------------------------------------------------------------

    def follow(self, ended: int) -> int:
        """Take rows as they come, until there are no more or a signal comes."""
        _widen(_STDIN)
        skipped = self.place.number if self.options.from_start else 0
        rest = b""
        while True:
            ready, _, _ = select.select([_STDIN, ended], [], [])
            if ended in ready:
                return INTERRUPTED if os.read(ended, 1)[0] == signal.SIGINT else 143
            chunk = os.read(_STDIN, _CHUNK)
            whole, rest = _cut(rest + chunk, last=not chunk)
            if len(rest) > LONGEST_LINE:
                self.place.refuse(f"the line is longer than {LONGEST_LINE:,} bytes.")
            lines = self._decoded(whole)
            if lines and self.parse is None:
                lines = self._begin(lines)
            if skipped:
                skipped, lines = self._skip(lines, skipped)
            if lines:
                self._take(lines)
            if not chunk:
                return 0

    def _decoded(self, whole: bytes) -> list[str]:
        try:
            text = whole.decode()
        except UnicodeDecodeError as error:
            ahead = whole.count(b"\n", 0, error.start) - (self.parse is None)
            self.place.refuse(f"byte {whole[error.start]:#04x} is not UTF-8.", ahead)
        return [line for line in text.split("\n") if line and not line.isspace()]

    def _skip(self, lines: list[str], skipped: int) -> tuple[int, list[str]]:
        """Pass over rows that were taken before the restart."""
        gone = min(skipped, len(lines))
        return skipped - gone, lines[gone:]

    def _begin(self, lines: list[str]) -> list[str]:
        """Read the header, or see that there is none to read."""
        first = lines[0].lstrip("\ufeff")
        format = self.options.format or ("ndjson" if first.lstrip()[:1] == "{" else "csv")
        heading: dict[str, Any] = {"format": format}
        if format == "csv":
            delimiter = delimiter_of(first, self.columns, "")
            header = next(csv.reader([first], delimiter=delimiter))
            heading |= {"header": header, "delimiter": delimiter}
            lines = lines[1:]
        elif format != "ndjson":
            raise Failure("a stream is CSV or NDJSON.", USAGE)
        self._header(heading)
        self.heading = heading
        if self.journal is not None:
            self.journal.append(_HEADER, json.dumps(heading).encode())
        return lines

    def _header(self, heading: dict[str, Any]) -> None:
        """Learn where the parts of a row stand."""
        options = self.options
        parts = {
            "score": options.score_column,
            "label": options.label_column,
            "weight": options.weight_column,
            "id": options.id_column,
            "time": options.time_column,
        }
        self.names = {part: name for part, name in parts.items() if name is not None}
        self.at_once = None
        if heading["format"] == "ndjson":
            self.parse = self._object
            return
        header = heading["header"]
        for part, name in self.names.items():
            if header.count(name) != 1:
                refuse_column(part, name, header, "standard input")
        places = [None if name is None else header.index(name) for name in parts.values()]
        width, delimiter = len(header), heading["delimiter"]

        def fields(line: str) -> list[Any]:
            if '"' in line:
                try:
                    (row,) = csv.reader([line], delimiter=delimiter, strict=True)
                except csv.Error as error:
                    self.place.refuse(f"{error}. A row is one line.")
            else:
                row = line.removesuffix("\r").split(delimiter)
            if len(row) != width:
                self.place.refuse(f"{len(row)} fields, but the header has {width}.")
            return [None if place is None else row[place] for place in places]

        self.parse = fields
        plain = self.options.every is None and not self.options.skip_malformed
        if plain and {"score", "label"} == set(self.names):
            self.at_once = self._by_columns(places[0], places[1], width, delimiter)

    def _by_columns(
        self, score: Any, label: Any, width: int, delimiter: str
    ) -> Callable[[list[str]], bool]:
        """Make the short way for many plain rows; it does nothing where one of them is not.

        Three times as fast as row by row, because Python does less for each of them.
        """
        place, label_of = self.place, self.label_of

        def at_once(lines: list[str]) -> bool:
            rows = [line.split(delimiter) for line in lines]
            try:
                scores = [float(row[score]) for row in rows]
                labels = [label_of(row[label]) for row in rows]
            except (ValueError, IndexError):
                return False
            if None in labels or any(len(row) != width for row in rows) or '"' in "".join(lines):
                return False
            if any(map(isnan, scores)):
                return False
            first, model = place.number, self.model
            update, last = model.update, self.told[0]
            for number, sample in enumerate(zip(scores, labels, strict=True), start=first + 1):
                try:
                    update(*sample)
                except (ValueError, OverflowError) as error:
                    place.number = number - 1
                    place.refuse(str(error))
                threshold = model.threshold
                if threshold != last and (threshold == threshold or last == last):
                    place.number = number
                    self._tell()
                    last = threshold
            place.number = first + len(lines)
            return True

        return at_once

    def _object(self, line: str) -> list[Any]:
        options = self.options
        asked = (options.score_column, options.label_column, options.weight_column)
        try:
            values = json.loads(line).get
        except (ValueError, AttributeError, RecursionError):
            self.place.refuse(f"{shown(line)} is not a JSON object.")
        return [
            None if name is None else values(name)
            for name in (*asked, options.id_column, options.time_column)
        ]

    def _take(self, lines: list[str]) -> None:
        """Write rows to disk, let the model have them, then tell."""
        if self.journal is not None:
            self.journal.append(_ROWS, "\n".join(lines).encode())
        try:
            self._rows(lines)
        except Failure:
            self.finish()  # what came before the bad row is kept, and nothing after it
            raise
        self._flush()
        if self.journal is not None and self.journal.grown:
            self.journal.settle(self.model, self._beginning())

    def _rows(self, lines: list[str]) -> None:
        if self.parse is None:
            raise Failure(f"{self.options.state}: the journal has no header.", BAD_INPUT)
        if self.at_once is not None and self.at_once(lines):
            return
        parse, apply, place = self.parse, self.apply, self.place
        for line in lines:
            try:
                apply(parse(line))
            except Failure as failure:
                if not self.options.skip_malformed:
                    raise
                say(f"limen: {failure} Skipped.", quiet=self.options.quiet)
            place.number += 1

    # ---- what the model is told ---------------------------------------------------------------

    def _applier(self) -> Callable[[list[Any]], None]:
        """Choose what is done with a row: score, label, weight, id and time."""
        model, columns, place = self.model, self.columns, self.place
        label_of, timed = self.label_of, self.options.time_column is not None
        aging = isinstance(model, LastPeriod) or (isinstance(model, Fading) and timed)

        def score_of(text: Any) -> float:
            return as_number(text, place, columns.score, "score")

        def known(text: Any) -> int:
            label = label_of(text if type(text) is str else as_text(text))
            if label is None:
                refuse_label(text, place, columns)
            return label

        def weight_of(text: Any) -> float:
            return as_weight(text, place, str(columns.weight))

        def plain_sample(row: list[Any]) -> None:
            text, label, weight, _, time = row
            sample: tuple[Any, ...] = (score_of(text), known(label))
            if weight is not None:
                sample += (weight_of(weight),)
            moment = self._time(time) if timed else None
            try:
                model.update(*sample, time=moment) if aging else model.update(*sample)
            except (TypeError, ValueError, OverflowError) as error:
                place.refuse(str(error))
            self.time = moment if timed else None
            self._after(model.threshold)

        def joined(row: list[Any]) -> None:
            text, label, weight, id, time = row
            name = id if type(id) is str else as_text(id)
            if name == "":
                place.refuse("the id is missing.", column=self.options.id_column)
            scored, labelled = text not in ("", None), label not in ("", None)
            if not scored and not labelled:
                place.refuse("neither a score nor a label is there.")
            moment = self._time(time) if time not in ("", None) else None
            score = score_of(text) if scored else 0.0
            outcome = known(label) if labelled else 0
            size = 1 if weight in ("", None) else weight_of(weight)
            try:
                if scored:
                    model.score(name, score, moment, size)
                elif moment is not None:
                    model.advance(moment)
                if labelled:
                    model.label(name, outcome)
            except (TypeError, ValueError, OverflowError) as error:
                place.refuse(str(error))
            if moment is not None:
                self.time = moment
            self._after(model.threshold)

        return joined if isinstance(model, Ledger) else plain_sample

    def _time(self, text: Any) -> Any:
        """Read a number, or a date and time in ISO 8601."""
        if isinstance(text, int | float) and not isinstance(text, bool):
            return text
        with suppress(ValueError):
            return int(text)
        with suppress(ValueError):
            return float(text)
        try:
            return datetime.fromisoformat(text)
        except (TypeError, ValueError):
            self.place.refuse(
                f"{shown(text)} is neither a number nor a time such as 2026-11-15T12:00:00.",
                column=self.options.time_column,
            )

    # ---- what is told -------------------------------------------------------------------------

    def _after(self, threshold: float) -> None:
        """Tell the state after a row, if it is time to."""
        options = self.options
        if options.every is not None:
            due = (self.place.number + 1) % options.every == 0
        elif options.each_period is not None:
            turn = _turn(self.time, options.each_period)
            due, self.turn = self.turn is not None and turn != self.turn, turn
        else:
            last = self.told[0]
            due = threshold != last and (threshold == threshold or last == last)
        if due:
            self._tell(ahead=1)

    def _tell(self, ahead: int = 0) -> None:
        optimum = self.model.optimum
        rows = self.place.number + ahead
        facts = {
            "rows": rows,
            "samples": self._samples(),
            "threshold": optimum.threshold,
            "lower": optimum.lower,
            "upper": optimum.upper,
            "loss": optimum.loss,
        }
        if isinstance(self.model, Ledger):
            facts |= {"cost": self.model.cost, "regret": self.model.regret}
        if self.time is not None:
            facts["time"] = self.time.isoformat() if isinstance(self.time, datetime) else self.time
        self.lines.append(as_line(facts))
        self.told = (optimum.threshold, rows)

    def _samples(self) -> int:
        return len(self.model.model) if isinstance(self.model, Ledger) else len(self.model)

    def _flush(self) -> None:
        if self.lines:
            sys.stdout.write("".join(self.lines))
            sys.stdout.flush()
            self.lines.clear()


def _cut(content: bytes, last: bool) -> tuple[bytes, bytes]:
    """Split after the last end of a line; at the end of the input all lines are whole."""
    end = len(content) if last else content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _turn(time: Any, period: Any) -> Any:
    """Tell in which period a time lies, counted from the epoch."""
    if isinstance(time, datetime) and isinstance(period, timedelta):
        return (time - datetime(1970, 1, 1, tzinfo=time.tzinfo)) // period
    try:
        return time // period
    except TypeError:
        raise Failure(
            "times and --each-period must be of one kind: numbers, or dates and a period such as "
            "1h.",
            USAGE,
        ) from None


def _widen(file: int) -> None:
    """Let a pipe hold more, so that more rows share one writing to disk."""
    with suppress(ImportError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(file, F_SETPIPE_SZ, _CHUNK)
