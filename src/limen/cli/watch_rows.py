# SPDX-License-Identifier: Apache-2.0
"""The rows of ``limen watch``: from the text of a row to a change of the model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any

from limen._core import numbers_of
from limen.cli.aims import columns_of
from limen.cli.exits import USAGE, Failure
from limen.cli.option_values import period_text
from limen.cli.output import print_messages
from limen.cli.parsing import option_name
from limen.cli.rows import (
    Place,
    as_cost,
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
from limen.cli.watch_options import PERIODS, given
from limen.memory.fading import Fading
from limen.memory.windows import LastPeriod

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable

    from limen.aim import Aim
    from limen.cli.watch_model import Watched
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
        watched: Watched,
        place: StreamPlace,
        output: Output,
    ) -> None:
        self._options, self._watched, self._place, self._output = options, watched, place, output
        self._model, self._prices = watched.stored, _prices(watched.aim)
        self._columns = columns = replace(columns_of(options), **heading["columns"])
        self.blanks = blanks_of(heading)
        self._skips = heading["skips"]
        self._parts = {part: at for at, part in enumerate(columns.named())}
        self._label_of = labels_of(options.positive)
        self._periods = given(options, PERIODS)
        self._dated = any(isinstance(getattr(options, name), timedelta) for name in self._periods)
        self._values = values_of(heading, columns, place)
        self._apply = self._in_one_row() if watched.ledger is None else self._joined()
        self._at_once: Callable[[list[list[str]]], bool] | None = None
        rhythm = options.every is not None or options.each_period is not None
        plain = not (rhythm or self._skips or options.alerts or self._prices)
        if heading["format"] == "csv" and plain and watched.groups is None:
            self._delimiter, self._width = heading["delimiter"], len(heading["header"])
            places = {part: heading["header"].index(name) for part, name in columns.named().items()}
            if watched.ledger is not None and "weight" not in places:
                self._at_once = self._joined_by_columns(places)
            elif set(places) == {"score", "label"}:
                self._at_once = self._by_columns(places["score"], places["label"])

    def take(self, lines: list[str], clean: bool) -> None:
        """Update the model by rows; `clean` where all of them are UTF-8."""
        if clean and self._at_once is not None:
            rows = self._plain_rows(lines)
            if rows is not None and self._at_once(rows):
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
                self._output.skipped += 1
                if every is not None and (place.number + 1) % every == 0:
                    self._output.add_all(ahead=1)
            place.number += 1

    # ---- the short way for many plain rows, which does nothing where one of them is not ---------
    # Several times as fast as row by row, because Python does less for each of them.

    def _plain_rows(self, lines: list[str]) -> list[list[str]] | None:
        """Split rows without quotes into fields; None where a row has more or fewer of them."""
        together = "".join(lines)
        if '"' in together or "\r" in together:
            return None
        rows = [line.split(self._delimiter) for line in lines]
        return rows if {*map(len, rows)} <= {self._width} else None

    def _by_columns(self, score: int, label: int) -> Callable[[list[list[str]]], bool]:
        """Make the short way for rows that hold both score and label."""
        label_of, model = self._label_of, self._model

        def at_once(rows: list[list[str]]) -> bool:
            scores = numbers_of([row[score] for row in rows])
            if scores is None or None in scores:
                return False
            known = {text: label_of(text) for text in {row[label] for row in rows}}
            if None in known.values():
                return False
            labels = [known[row[label]] for row in rows]
            self._each(zip(scores, labels, strict=True), model.update)
            return True

        return at_once

    def _joined_by_columns(self, places: dict[str, int]) -> Callable[[list[list[str]]], bool]:
        """Make the short way for rows that hold a score, a label or both, joined by id."""
        model, output, label_of = self._model, self._output, self._label_of
        score, label, id = places["score"], places["label"], places["id"]
        when = places.get("time")
        add_score, add_label, advance = model.score, model.label, model.advance

        def apply(name: str, value: float | None, known: int | None, time: Any) -> None:
            if value is None:
                if time is not None:
                    advance(time)
                add_label(name, known)
            elif known is None:
                add_score(name, value, time)
            else:
                new = name not in model
                add_score(name, value, time)
                try:
                    add_label(name, known)
                except BaseException:
                    if new:
                        model.forget(name)  # a score whose label cannot count
                    raise
            if time is not None:
                output.time = time

        def at_once(rows: list[list[str]]) -> bool:
            names = [row[id] for row in rows]
            known = {text: label_of(text) for text in {row[label] for row in rows} - {""}}
            if "" in names or None in known.values():
                return False
            values = numbers_of([row[score] for row in rows])
            if values is None:
                return False
            labels = [known.get(row[label]) for row in rows]
            if (None, None) in zip(values, labels, strict=True):
                return False
            times = [None] * len(rows)
            if when is not None:
                times = [self._plain_time(row[when]) for row in rows]
                if any(time is False for time in times):
                    return False
            self._each(zip(names, values, labels, times, strict=True), apply)
            return True

        return at_once

    def _plain_time(self, text: str) -> Any:
        """Read a time as `_time` does: None where it is missing, False where it is refused."""
        if not text:
            return None
        moment = _moment(text)
        if moment is None or (self._periods and isinstance(moment, datetime) is not self._dated):
            return False
        return moment

    def _each(self, rows: Iterable[tuple[Any, ...]], apply: Callable[..., Any]) -> None:
        """Apply rows one by one, and add a line after each that changes the threshold."""
        place, output, inner = self._place, self._output, self._watched.innermost()
        last, number, few = output.written[None], place.number, self._watched.at_least
        for row in rows:
            try:
                apply(*row)
            except (TypeError, ValueError, OverflowError) as error:
                place.number = number
                place.refuse(str(error))
            number += 1
            threshold = None if few and len(inner) < few else inner.threshold
            if threshold != last and (threshold == threshold or last == last):
                place.number = number
                output.add()
                last = threshold
        place.number = number

    # ---- one row: what is wrong is found before the model changes ----------------------------

    def _in_one_row(self) -> Callable[[list[Any]], None]:
        """Make the function for rows that hold both score and label."""
        model, place, output, columns = self._model, self._place, self._output, self._columns
        finest, known, prices = columns.finest, self._known, self._prices
        at, after_row = self._parts, output.after_row
        weighted, timed, grouped = "weight" in at, "time" in at, "group" in at
        group_at, time_at = at.get("group", 0), at.get("time", 0)
        inner = self._watched.model(None)
        aging = isinstance(inner, LastPeriod) or (isinstance(inner, Fading) and timed)
        by_period, alerts = self._options.each_period is not None, output.alerts

        def apply(row: list[Any]) -> None:
            score = as_number(row[0], place, columns.score, "score")
            label = known(row[1])
            sample: tuple[Any, ...] = (score, label)
            if weighted:
                sample += (as_weight(row[2], place, columns, finest),)
            if prices is not None:
                sample = (score, *self._losses(row, label, sample[2] if weighted else 1))
            group = None
            if grouped:
                group = self._group_of(row[group_at])
                sample = (group, *sample)
            time = self._time(row[time_at]) if timed else None
            period = output.period_of(time) if by_period else None
            try:
                model.update(*sample, time=time) if aging else model.update(*sample)
            except (TypeError, ValueError, OverflowError) as error:
                place.refuse(str(error))
            output.time = time
            if alerts is not None:
                alerts.sample(score, label)
            after_row(period, group)

        return apply

    def _joined(self) -> Callable[[list[Any]], None]:
        """Make the function for rows that hold a score, a label or both, joined by id."""
        model, place, output, columns = self._model, self._place, self._output, self._columns
        finest, known, prices, at = columns.finest, self._known, self._prices, self._parts
        weighted, timed, grouped = "weight" in at, "time" in at, "group" in at
        by_period, alerts = self._options.each_period is not None, output.alerts
        members, after_row = _Members(model), output.after_row
        id_at, time_at = at["id"], at.get("time", 0)

        def apply(row: list[Any]) -> None:
            score_text, label_text, id = row[0], row[1], row[id_at]
            weight, time_text = row[2] if weighted else None, row[time_at] if timed else None
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
            group = self._group_of(row[at["group"]]) if grouped and scored else None
            outcome: tuple[Any, ...] = (label,)
            if prices is not None and labelled:
                outcome = self._losses(row, label, 1)
            period, new = output.period_of(time) if by_period else None, name not in model
            before = None if alerts is None else model._known(name)
            try:
                if grouped and scored:
                    model.score(name, score, time, size, group=group)
                elif scored:
                    model.score(name, score, time, size)
                elif time is not None:
                    model.advance(time)
                if labelled:
                    model.label(name, *outcome)
            except (TypeError, ValueError, OverflowError) as error:
                if new:
                    model.forget(name)  # a score whose label cannot count
                place.refuse(str(error))
            if time is not None:
                output.time = time
            if alerts is not None:
                alerts.joined(
                    name, score if scored else None, label if labelled else None, time, before
                )
            after_row(period, members.of(name, group) if grouped else None)

        return apply

    def _losses(self, row: list[Any], label: int, weight: Any) -> tuple[Any, Any]:
        """Return what a row costs if it is answered 0, and if it is answered 1."""
        assert self._prices is not None
        below, above = self._prices[label]
        return self._price(row, below) * weight, self._price(row, above) * weight

    def _price(self, row: list[Any], of: tuple[str, Any]) -> Any:
        """Return what an outcome costs: the number of an option, or that in a column."""
        outcome, price = of
        if isinstance(price, str):
            return as_cost(row[self._parts[outcome]], self._place, price, outcome)
        return price

    def _group_of(self, text: Any) -> str:
        """Read the name of a group, or refuse it."""
        name = text if type(text) is str else as_text(text)
        if name == "":
            self._place.refuse(
                "the group is missing. Fill it or drop the row.", column=self._columns.group
            )
        return name

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


class _Members:
    """The groups that ids of a ledger were scored in, by name."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self._names: dict[int, str] = {}

    def of(self, id: str, group: str | None) -> str | None:
        """Name the group of an id; `group` where the row says so."""
        number = self._ledger._group_of(id)
        if group is not None:
            self._names[number] = group
            return group
        if number is not None and number not in self._names:
            groups = self._ledger.model
            self._names = {self._ledger._number(path[0]): path[0] for path in groups if path}
        return self._names.get(number)


def _prices(aim: Aim) -> dict[int, Any] | None:
    """Return what a row of each label costs below and above the cut; None for plain costs.

    >>> from limen.aim import Aim
    >>> _prices(Aim.of(false_negative=5, true_positive=-2))
    {0: (('true_negative', 0), ('false_positive', 1)), \
1: (('false_negative', 5), ('true_positive', -2))}
    """
    if not aim.priced:
        return None
    each = {
        outcome: price if isinstance(price, str | int) else float(price)
        for outcome, price in (aim.costs | aim.by_row).items()
    }
    sides = {0: ("true_negative", "false_positive"), 1: ("false_negative", "true_positive")}
    return {
        label: tuple((outcome, each[outcome]) for outcome in outcomes)
        for label, outcomes in sides.items()
    }


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
