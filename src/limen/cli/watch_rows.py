# SPDX-License-Identifier: Apache-2.0
"""The rows of ``limen watch``: from the text of a row to a change of the model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from limen.cli.aims import columns_of
from limen.cli.exits import USAGE, Failure
from limen.cli.option_values import period_text
from limen.cli.output import print_messages
from limen.cli.rows import (
    Place,
    as_number,
    as_text,
    as_utf8,
    as_weight,
    blanks_of,
    labels_of,
    quoted,
    refuse_label,
    values_of,
)
from limen.cli.watch_options import PERIODS, given, option_name
from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.windows import LastPeriod

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from limen.cli.watch_output import Output

__all__ = ["Rows", "StreamPlace", "as_bytes"]


class StreamPlace(Place):
    """The place in a stream: how many rows are done, so that the one at hand is the next."""

    in_header = False

    def at(self) -> str:
        """Name the row at hand."""
        return f"{self.name}, " + ("first line" if self.in_header else f"row {self.number + 1}")


def as_bytes(text: str) -> bytes:
    """Return the bytes that text was decoded from, UTF-8 or not."""
    return text.encode(errors="surrogateescape")


class Rows:
    """Reads rows as a heading describes them, and updates the model by each.

    Attributes
    ----------
    blanks
        What a blank line consists of, as `str.strip` takes it.
    """

    def __init__(
        self,
        heading: dict[str, Any],
        options: Namespace,
        model: Any,
        place: StreamPlace,
        output: Output,
    ) -> None:
        self._options, self._model, self._place, self._output = options, model, place, output
        self._columns = columns = replace(columns_of(options), **heading["columns"])
        self.blanks = blanks_of(heading)
        self._skips = heading["skips"]
        self._parts = {part: at for at, part in enumerate(columns.named())}
        self._label_of = labels_of(options.positive)
        self._periods = given(options, PERIODS)
        self._dated = any(isinstance(getattr(options, name), timedelta) for name in self._periods)
        self._values = values_of(heading, columns, place)
        self._apply = self._joined() if isinstance(model, Ledger) else self._in_one_row()
        self._at_once: Callable[[list[str]], bool] | None = None
        plain = options.every is None and not self._skips
        if heading["format"] == "csv" and plain and set(self._parts) == {"score", "label"}:
            header = heading["header"]
            places = header.index(columns.score), header.index(columns.label)
            self._at_once = self._by_columns(*places, len(header), heading["delimiter"])

    def take(self, lines: list[str], clean: bool) -> None:
        """Update the model by rows; `clean` where all of them are UTF-8."""
        if clean and self._at_once is not None and self._at_once(lines):
            return
        values, apply, place, every = self._values, self._apply, self._place, self._options.every
        for line in lines:
            try:
                if not clean:
                    as_utf8(as_bytes(line), place)
                apply(values(line))
            except Failure as failure:
                if not self._skips or failure.code == USAGE:
                    raise
                print_messages(f"limen: {failure} Skipped.", quiet=self._options.quiet)
                if every is not None and (place.number + 1) % every == 0:
                    self._output.add(ahead=1)
            place.number += 1

    def _by_columns(
        self, score: int, label: int, width: int, delimiter: str
    ) -> Callable[[list[str]], bool]:
        """Make the short way for many plain rows; it does nothing where one of them is not.

        Three times as fast as row by row, because Python does less for each of them.
        """
        place, label_of, model, output = self._place, self._label_of, self._model, self._output

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
            first, update, last = place.number, model.update, output.threshold
            for number, sample in enumerate(zip(scores, labels, strict=True), start=first + 1):
                try:
                    update(*sample)
                except (ValueError, OverflowError) as error:
                    place.number = number - 1
                    place.refuse(str(error))
                threshold = model.threshold
                if threshold != last and (threshold == threshold or last == last):
                    place.number = number
                    output.add()
                    last = threshold
            place.number = first + len(lines)
            return True

        return at_once

    # ---- one row: what is wrong is found before the model changes ----------------------------

    def _in_one_row(self) -> Callable[[list[Any]], None]:
        """Make the function for rows that hold both score and label."""
        model, place, output, columns = self._model, self._place, self._output, self._columns
        finest, known = columns.finest, self._known
        weighted, timed = "weight" in self._parts, "time" in self._parts
        aging = isinstance(model, LastPeriod) or (isinstance(model, Fading) and timed)
        by_period = self._options.each_period is not None

        def apply(row: list[Any]) -> None:
            score = as_number(row[0], place, columns.score, "score")
            sample: tuple[Any, ...] = (score, known(row[1]))
            if weighted:
                sample += (as_weight(row[2], place, columns, finest),)
            time = self._time(row[-1]) if timed else None
            period = output.period_of(time) if by_period else None
            try:
                model.update(*sample, time=time) if aging else model.update(*sample)
            except (TypeError, ValueError, OverflowError) as error:
                place.refuse(str(error))
            output.time = time
            output.after_row(model.threshold, period)

        return apply

    def _joined(self) -> Callable[[list[Any]], None]:
        """Make the function for rows that hold a score, a label or both, joined by id."""
        model, place, output, columns = self._model, self._place, self._output, self._columns
        finest, known, id_at = columns.finest, self._known, self._parts["id"]
        weighted, timed = "weight" in self._parts, "time" in self._parts
        by_period = self._options.each_period is not None

        def apply(row: list[Any]) -> None:
            score_text, label_text, id = row[0], row[1], row[id_at]
            weight, time_text = row[2] if weighted else None, row[-1] if timed else None
            name = id if type(id) is str else as_text(id)
            if name == "":
                place.refuse("the id is missing.", column=columns.id)
            scored, labelled = score_text not in ("", None), label_text not in ("", None)
            if not scored and not labelled:
                place.refuse("score and label are both missing.")
            time = self._time(time_text) if time_text not in ("", None) else None
            score = as_number(score_text, place, columns.score, "score") if scored else 0.0
            label = known(label_text) if labelled else 0
            size = 1 if weight in ("", None) else as_weight(weight, place, columns, finest)
            period, new = output.period_of(time) if by_period else None, name not in model
            try:
                if scored:
                    model.score(name, score, time, size)
                elif time is not None:
                    model.advance(time)
                if labelled:
                    model.label(name, label)
            except (TypeError, ValueError, OverflowError) as error:
                if new:
                    model.forget(name)  # a score whose label cannot count
                place.refuse(str(error))
            if time is not None:
                output.time = time
            output.after_row(model.threshold, period)

        return apply

    def _known(self, text: Any) -> int:
        """Read a label, or refuse it."""
        label = self._label_of(text if type(text) is str else as_text(text))
        if label is None:
            refuse_label(text, self._place, self._columns)
        return label

    def _time(self, text: Any) -> Any:
        """Read a number, or a date and time in ISO 8601, whichever the periods need."""
        moment = _moment(text)
        if moment is None:
            self._place.refuse(
                f"{quoted(text)} is neither a finite number nor a time such as "
                "2026-11-15T12:00:00.",
                column=self._columns.time,
            )
        if self._periods and isinstance(moment, datetime) is not self._dated:
            name, period = self._periods[0], getattr(self._options, self._periods[0])
            advice = (
                f"a number. Write {option_name(name)} as a number too, not {period_text(period)}."
                if self._dated
                else f"a date. Write {option_name(name)} with a unit, such as {period}d, "
                f"{period}h or {period}s, not {period}."
            )
            where = f"{self._place.at()}, column {self._columns.time}"
            raise Failure(f"{where}: the time {quoted(text)} is {advice}", USAGE)
        return moment


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
