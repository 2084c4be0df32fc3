# SPDX-License-Identifier: Apache-2.0
"""The command that follows a stream: rows in, one line of JSON for each change of the threshold.

With a state file, rows are on disk before any line tells of them. A line counts the rows it
knows of; after a kill, whoever sends rows goes on after the count of the first line.
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
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from limen.cli.exits import BAD_INPUT, INTERRUPTED, USAGE, Failure
from limen.cli.journal import Journal
from limen.cli.options import period_text
from limen.cli.output import as_line, print_messages
from limen.cli.rows import (
    LONGEST_LINE,
    Columns,
    Place,
    as_number,
    as_text,
    as_utf8,
    as_weight,
    blanks_of,
    heading_of,
    labels_of,
    refuse_kind,
    refuse_label,
    refuse_long_line,
    shown,
    values_of,
)
from limen.digits import within
from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.windows import LastN, LastPeriod
from limen.online import OnlineThreshold
from limen.storage import load

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

__all__ = ["watch"]

_CHUNK = 2**20
_STDIN = 0
_ROWS, _HEADER = b"R", b"H"
_LEDGER = ("time_to_live", "maturity", "correctable")
_WINDOWS = ("last_n", "last_period", "half_life")
_PERIODS = ("last_period", "half_life", *_LEDGER, "each_period")
_PARTS = ("score", "label", "weight", "id", "time")
_MODEL = ("false_positive", "false_negative", "unit", *_WINDOWS, *_LEDGER)


def watch(options: Namespace) -> int:
    """Follow the rows of standard input."""
    _require_consistent(options)
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


def _require_consistent(options: Namespace) -> None:
    windows = _given(options, _WINDOWS)
    if len(windows) > 1:
        listed = " and ".join(map(_option, windows))
        raise Failure(f"{listed} are two windows. Give one of them.", USAGE)
    if options.every is not None and options.each_period is not None:
        raise Failure("--every and --each-period are two rhythms. Give one of them.", USAGE)
    dated = {
        name: isinstance(getattr(options, name), timedelta) for name in _given(options, _PERIODS)
    }
    for name in dated:
        if options.time_column is None and (dated[name] or name in ("last_period", "each_period")):
            raise Failure(f"{_typed(options, (name,))} needs --time-column.", USAGE)
    joined = _given(options, _LEDGER)
    if joined and options.id_column is None:
        raise Failure(f"{_option(joined[0])} needs --id-column.", USAGE)
    if len(set(dated.values())) > 1:
        raise Failure(
            f"{_typed(options, _PERIODS)}: write all periods as numbers, or all with a unit such "
            "as 30d.",
            USAGE,
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(options: Namespace, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(options, name) is not None]


def _typed(options: Namespace, names: tuple[str, ...]) -> str:
    """Write options as they were typed."""
    given = _given(options, names)
    return " ".join(f"{_option(name)} {period_text(getattr(options, name))}" for name in given)


def _new_model(options: Namespace) -> Any:
    given = {name: getattr(options, name) for name in ("false_positive", "false_negative")}
    costs = {name: 1 if value is None else value for name, value in given.items()}
    try:
        model: Any = OnlineThreshold(**costs, unit=options.unit)
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), USAGE) from None
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
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(f"{_typed(options, (*_WINDOWS, *_LEDGER))}: {error}", USAGE) from None
    return model


def _settings(options: Namespace) -> dict[str, str | None]:
    """Tell by what the state was made, to refuse to go on with something else."""
    given = {name: getattr(options, name) for name in (*_MODEL, "id_column", "positive")}
    given["id_column"] = None if options.id_column is None else "given"
    if options.half_life is not None and options.time_column is not None:
        given["time_column"] = "given"
    return {name: None if value is None else period_text(value) for name, value in given.items()}


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

    in_header = False

    def at(self) -> str:
        """Name the row at hand."""
        return f"{self.name}, " + ("first line" if self.in_header else f"row {self.number + 1}")


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
            options.unit,
            options.id_column,
            options.time_column,
        )
        self.place = _Rows("standard input")
        self.journal = None if options.state is None else Journal(options.state)
        self.model: Any = None
        self.label_of = labels_of(options.positive)
        self.lines: list[str] = []
        self.told: tuple[float, int] = (float("inf"), 0)  # threshold and rows of the last line
        self.turn: Any = None  # of the period that the last line was for
        self.time: Any = None
        self.warned = False
        self.periods = _given(options, _PERIODS)
        self.dated = any(isinstance(getattr(options, name), timedelta) for name in self.periods)
        self.heading: dict[str, Any] | None = None  # how rows are read
        self.values: Callable[[str], list[Any]] | None = None
        self.at_once: Callable[[list[str]], bool] | None = None

    # ---- the state ----------------------------------------------------------------------------

    def resume(self) -> None:
        """Take up the model where it was left, or make a new one."""
        journal = self.journal
        self._follow_by(_new_model(self.options))
        if journal is None:
            return
        journal.lock()
        if journal.is_there():
            self._replay(journal)
        else:
            journal.begin(self.model, self._beginning())

    def _follow_by(self, model: Any) -> None:
        """Use a model; learn who counts what came too late for it, or never got its other half."""
        self.model = model
        window = model.model if isinstance(model, Ledger) else model
        self.uncounted = {"expired": model} if isinstance(model, Ledger) else {}
        fading = isinstance(window, Fading) and self.options.time_column is not None
        if isinstance(window, LastPeriod) or fading:
            self.uncounted["refused"] = window

    def _replay(self, journal: Journal) -> None:
        try:
            self._follow_by(load(journal.path))
        except ValueError as error:
            raise Failure(str(error), BAD_INPUT) from None
        pieces = journal.resume()
        first = next(pieces, None)  # which also reads how the journal begins
        self._require_same(journal.beginning["settings"])
        self.place.number = journal.beginning["rows"]
        if journal.beginning["heading"] is not None:
            self._read_by(journal.beginning["heading"])
        for kind, payload in chain([] if first is None else [first], pieces):
            if kind == _HEADER:
                self._read_by(json.loads(payload))
                continue
            try:
                self._rows(*_lines(payload))
            except Failure as failure:
                if failure.code != USAGE:  # the row was bad then, too; nothing after it counts
                    self.finish()
                raise
            self.lines.clear()
        self.values = None  # the rows to come bring a header of their own
        if journal.dropped:
            print_messages(
                f"limen: {journal.dropped:,} bytes at the end of {journal.beside} were cut off "
                "when it was killed, before any line told of them. They are dropped.",
                quiet=self.options.quiet,
            )
        best = self.model.optimum
        print_messages(
            f"going on after row {self.place.number:,}: {self._samples():,} samples, threshold "
            f"{within(best.threshold, best.lower, best.upper)}",
            quiet=self.options.quiet,
        )
        self._tell()
        self._flush()

    def _require_same(self, kept: dict[str, Any]) -> None:
        asked = _settings(self.options)
        for name in {**asked, **kept}:
            if kept.get(name) != asked.get(name):
                raise Failure(
                    f"{self.options.state} was kept with {_option(name)} {kept.get(name)}, not "
                    f"{asked.get(name)}. Give the same, or name another file.",
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
            content = rest + chunk
            if self.values is None:
                content = content.removeprefix(BOM_UTF8)
                refuse_kind(content, self.place.name)
            whole, rest = _cut(content, last=not chunk)
            if len(rest) > LONGEST_LINE:
                refuse_long_line(rest, LONGEST_LINE, self.place)
            lines, clean = _lines(whole)
            if self.values is None:
                lines = self._begin(lines, clean)
            if self.values is not None:
                blanks = self.blanks
                lines = [line for line in lines if line.strip(blanks)]
                passed = min(skipped, len(lines))  # rows that were taken before the restart
                skipped -= passed
                if len(lines) > passed:
                    self._take(lines[passed:] if passed else lines, clean)
            if not chunk:
                return 0

    def _begin(self, lines: list[str], clean: bool) -> list[str]:
        """Learn from the first line how to read the others; give the rows."""
        first = next((at for at, line in enumerate(lines) if line.strip()), None)
        if first is None:
            return []
        self.place.in_header = True
        if not clean:
            as_utf8(_raw(lines[first]), self.place)
        heading = heading_of(lines[first], self.columns, self.options.format, self.place)
        heading |= {
            "columns": {part: getattr(self.columns, part) for part in _PARTS},
            "skips": self.options.skip_malformed,
        }
        self.place.in_header = False
        self._read_by(heading)
        if self.journal is not None:
            self.journal.append(_HEADER, json.dumps(heading).encode())
        return lines[first + (heading["format"] == "csv") :]

    def _read_by(self, heading: dict[str, Any]) -> None:
        """Read rows as a heading tells, with the options of when it was met."""
        columns = replace(self.columns, **heading["columns"])
        self.heading, self.blanks, self.skips = heading, blanks_of(heading), heading["skips"]
        self.values = values_of(heading, columns, self.place)
        self.apply = self._applier(columns)
        self.at_once = None
        plain = self.options.every is None and not self.skips
        if heading["format"] == "csv" and plain and set(columns.named()) == {"score", "label"}:
            header = heading["header"]
            places = header.index(columns.score), header.index(columns.label)
            self.at_once = self._by_columns(*places, len(header), heading["delimiter"])

    def _by_columns(
        self, score: int, label: int, width: int, delimiter: str
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
            if None in labels or any(len(row) != width for row in rows):
                return False
            together = "".join(lines)
            if '"' in together or "\r" in together or any(map(isnan, scores)):
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

    def _take(self, lines: list[str], clean: bool) -> None:
        """Write rows to disk, let the model have them, then tell."""
        if self.journal is not None:
            self.journal.append(_ROWS, _raw("\n".join(lines)))
        self._rows(lines, clean)
        self._flush()
        if self.journal is not None and self.journal.grown:
            self.journal.settle(self.model, self._beginning())

    def _rows(self, lines: list[str], clean: bool) -> None:
        if self.values is None:
            raise Failure(f"{self.options.state}: the journal has no header.", BAD_INPUT)
        if clean and self.at_once is not None and self.at_once(lines):
            return
        values, apply, place, every = self.values, self.apply, self.place, self.options.every
        for line in lines:
            try:
                if not clean:
                    as_utf8(_raw(line), place)
                apply(values(line))
            except Failure as failure:
                if not self.skips or failure.code == USAGE:
                    raise
                print_messages(f"limen: {failure} Skipped.", quiet=self.options.quiet)
                if every is not None and (place.number + 1) % every == 0:
                    self._tell(ahead=1)
            place.number += 1

    # ---- what the model is told ---------------------------------------------------------------

    def _applier(self, columns: Columns) -> Callable[[list[Any]], None]:
        """Choose what is done with a row. What is wrong is found before the model changes."""
        model, place, label_of, finest = self.model, self.place, self.label_of, columns.finest
        parts = {part: at for at, part in enumerate(columns.named())}
        weighted, timed = "weight" in parts, "time" in parts
        aging = isinstance(model, LastPeriod) or (isinstance(model, Fading) and timed)
        by_period = self.options.each_period is not None

        def score_of(text: Any) -> float:
            return as_number(text, place, columns.score, "score")

        def known(text: Any) -> int:
            label = label_of(text if type(text) is str else as_text(text))
            if label is None:
                refuse_label(text, place, columns)
            return label

        def plain_sample(row: list[Any]) -> None:
            sample: tuple[Any, ...] = (score_of(row[0]), known(row[1]))
            if weighted:
                sample += (as_weight(row[2], place, columns, finest),)
            moment = self._time(row[-1], columns) if timed else None
            turn = self._turn(moment) if by_period else None
            try:
                model.update(*sample, time=moment) if aging else model.update(*sample)
            except (TypeError, ValueError, OverflowError) as error:
                place.refuse(str(error))
            self.time = moment
            self._after(model.threshold, turn)

        def joined(row: list[Any]) -> None:
            text, label, id = row[0], row[1], row[parts["id"]]
            weight, time = row[2] if weighted else None, row[-1] if timed else None
            name = id if type(id) is str else as_text(id)
            if name == "":
                place.refuse("the id is missing.", column=columns.id)
            scored, labelled = text not in ("", None), label not in ("", None)
            if not scored and not labelled:
                place.refuse("neither a score nor a label is there.")
            moment = self._time(time, columns) if time not in ("", None) else None
            score = score_of(text) if scored else 0.0
            outcome = known(label) if labelled else 0
            size = 1 if weight in ("", None) else as_weight(weight, place, columns, finest)
            turn, new = self._turn(moment) if by_period else None, name not in model
            try:
                if scored:
                    model.score(name, score, moment, size)
                elif moment is not None:
                    model.advance(moment)
                if labelled:
                    model.label(name, outcome)
            except (TypeError, ValueError, OverflowError) as error:
                if new:
                    model.forget(name)  # a score whose label cannot count
                place.refuse(str(error))
            if moment is not None:
                self.time = moment
            self._after(model.threshold, turn)

        return joined if isinstance(model, Ledger) else plain_sample

    def _time(self, text: Any, columns: Columns) -> Any:
        """Read a number, or a date and time in ISO 8601, whichever the periods ask for."""
        moment = _moment(text)
        if moment is None:
            self.place.refuse(
                f"{shown(text)} is neither a finite number nor a time such as 2026-11-15T12:00:00.",
                column=columns.time,
            )
        if self.periods and isinstance(moment, datetime) is not self.dated:
            name, period = self.periods[0], getattr(self.options, self.periods[0])
            advice = (
                f"a number. Write {_option(name)} as a number too, not {period_text(period)}."
                if self.dated
                else f"a date. Write {_option(name)} with a unit, such as {period}d, {period}h or "
                f"{period}s, not {period}."
            )
            where = f"{self.place.at()}, column {columns.time}"
            raise Failure(f"{where}: the time {shown(text)} is {advice}", USAGE)
        return moment

    def _turn(self, time: Any) -> Any:
        """Tell in which --each-period a time lies, counted from the epoch."""
        period = self.options.each_period
        if time is None:
            return None
        if isinstance(time, datetime):
            return (time - datetime(1970, 1, 1, tzinfo=time.tzinfo)) // period
        return time // period

    # ---- what is told -------------------------------------------------------------------------

    def _after(self, threshold: float, turn: Any) -> None:
        """Tell the state after a row, if it is time to."""
        options = self.options
        if options.every is not None:
            due = (self.place.number + 1) % options.every == 0
        elif options.each_period is not None:
            due = turn is not None and self.turn is not None and turn != self.turn
            self.turn = self.turn if turn is None else turn
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
        for name, keeper in self.uncounted.items():
            facts[name] = getattr(keeper, name)
        if self.time is not None:
            facts["time"] = self.time.isoformat() if isinstance(self.time, datetime) else self.time
        self.lines.append(as_line(facts))
        self.told = (optimum.threshold, rows)

    def _samples(self) -> int:
        return len(self.model.model) if isinstance(self.model, Ledger) else len(self.model)

    def _warn(self) -> None:
        """Say once that nothing counts, if all that came was too late."""
        if self.warned or self._samples():
            return
        found = {name: getattr(keeper, name) for name, keeper in self.uncounted.items()}
        for name, problem, asked in (
            ("refused", "labels came later than the window keeps their scores", _WINDOWS),
            ("expired", "scores got no label, or labels no score, in time", ("time_to_live",)),
        ):
            if found.get(name):
                self.warned = True
                print_messages(
                    f"limen: no sample counts: {found[name]:,} {problem} "
                    f"({_typed(self.options, asked)}). Choose a longer period.",
                    quiet=self.options.quiet,
                )
                return

    def _flush(self) -> None:
        self._warn()
        if self.lines:
            sys.stdout.write("".join(self.lines))
            sys.stdout.flush()
            self.lines.clear()


def _lines(content: bytes) -> tuple[list[str], bool]:
    """Split whole lines, whichever way they end; tell whether all of them are UTF-8."""
    try:
        text, clean = content.decode(), True
    except UnicodeDecodeError:
        text, clean = content.decode(errors="surrogateescape"), False
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return text.split("\n"), clean


def _raw(text: str) -> bytes:
    """Give back the bytes that `_lines` read, UTF-8 or not."""
    return text.encode(errors="surrogateescape")


def _cut(content: bytes, last: bool) -> tuple[bytes, bytes]:
    """Split after the last end of a line; at the end of the input all lines are whole."""
    end = len(content) if last else content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _moment(text: Any) -> Any:
    """Read a time; None if it is none."""
    moment = text
    if type(text) is str:
        for read in (int, float, datetime.fromisoformat):
            try:
                moment = read(text)
            except ValueError:
                continue
            break
    if isinstance(moment, datetime):
        return moment
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        with suppress(OverflowError):  # a whole number beyond all floats
            return moment if isfinite(moment) else None
    return None


def _widen(file: int) -> None:
    """Let a pipe hold more, so that more rows share one writing to disk."""
    with suppress(ImportError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(file, F_SETPIPE_SZ, _CHUNK)
