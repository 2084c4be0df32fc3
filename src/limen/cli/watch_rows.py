# SPDX-License-Identifier: Apache-2.0
"""The rows of ``limen watch``: from the text of a row to a change of the model."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.aims import columns_of
from limen.cli.exits import USAGE, Failure
from limen.cli.line_reader import native_rows
from limen.cli.option_values import period_text
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
from limen.service.points.rows import Rows
from limen.service.points.stream import Written

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limen.aim import Aim

__all__ = ["Reader", "StreamPlace"]

_NO_LABEL = 255
_NO_GROUP = 2**32 - 1
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class StreamPlace(Place):
    """The place in a stream: how many rows are done, so that the one at hand is the next."""

    in_header = False

    def at(self) -> str:
        """Name the row at hand."""
        return f"{self.name}, " + ("first line" if self.in_header else f"row {self.number + 1}")


class Reader:
    """Reads rows as a heading describes them."""

    def __init__(
        self, heading: dict[str, Any], options: Namespace, aim: Aim, place: StreamPlace
    ) -> None:
        self._place, self._prices = place, _prices(aim)
        self._columns = columns = columns_of(options)
        self._outcomes = [outcome for outcome, _ in columns.costs]
        self._blanks = blanks_of(heading)
        self._parts = {part: at for at, part in enumerate(columns.named())}
        self._label_of = labels_of(options.positive)
        self._periods: dict[str, Any] = options.periods
        dated = [isinstance(period, timedelta) for period in self._periods.values()]
        self._dated = dated[0] if dated else None  # None: numbers and dates are fine
        self._values = values_of(heading, columns, place)
        self._native = native_rows(heading, columns, self._dated)

    def after(self, content: bytes, skipped: int) -> tuple[bytes, int]:
        """Return the lines after so many rows, and how many of these are still to come."""
        begin = 0
        while skipped and begin < len(content):
            end = content.find(b"\n", begin) + 1
            skipped -= bool(_text(content[begin:end]).strip(self._blanks))
            begin = end
        return content[begin:], skipped

    def batches(self, content: bytes) -> Iterator[tuple[Rows, list[str] | None] | Failure]:
        """Yield rows of complete lines with their ids, and what is wrong with one in its place.

        Plain rows are read natively, and all others one by one.
        """
        begin, place, native = 0, self._place, self._native
        first = place.number  # which the place still says while rows are read ahead of it
        while True:
            begin += native.read(content, begin)[0]
            if begin == len(content):
                break
            end = content.find(b"\n", begin) + 1
            line = content[begin:end].removesuffix(b"\n").removesuffix(b"\r")
            begin = end
            if not _text(line).strip(self._blanks):
                continue
            place.number = first + len(native)
            try:
                self._add(self._values(as_utf8(line, place)))
            except Failure as failure:
                place.number = first
                if len(native):
                    yield self._batch()
                yield failure
                first = place.number
            place.number = first
        if len(native):
            yield self._batch()

    def _batch(self) -> tuple[Rows, list[str] | None]:
        scores, labels, weights, codes, ids, times, kinds, costs = self._native.take()
        below = above = None
        if self._prices is not None:
            known = dict(zip(self._outcomes, costs, strict=True))
            weight = 1 if weights is None else weights
            below, above = _losses(self._prices, labels, known, weight)
            weights = None
        rows = Rows.of(
            scores=scores, labels=labels, weights=weights, times=times, kinds=kinds, below=below,
            above=above,
        )  # fmt: skip
        if codes is not None:
            rows.segments, rows.places = self._named(codes)
        return rows, ids

    def _named(self, codes: NDArray[np.uint32]) -> tuple[list[str], bytes]:
        """Return the names of the groups that occur, and the place of each row's among them."""
        found, places = np.unique(codes, return_inverse=True)
        missing = len(found) > 0 and found[-1] == _NO_GROUP
        names = self._native.names
        listed = [names[code].decode() for code in found.tolist()[:-1]]
        if not missing:
            listed.append(names[found[-1]].decode())
        places = np.where(codes == _NO_GROUP, 0, places + 1)
        return listed, places.astype("<u4").tobytes()

    # ---- one row: what is wrong is found before anything changes ------------------------------

    def _add(self, row: list[Any]) -> None:
        columns, place, at, sparse = self._columns, self._place, self._parts, "id" in self._parts
        id, time, weight, group = b"", (0, int(Written.MISSING)), nan, b""
        if sparse:
            id = self._bytes(row[at["id"]], columns.id)
            if not id:
                place.refuse("the id is missing.", column=columns.id)
        scored, labelled = (not sparse or value not in ("", None) for value in row[:2])
        if not scored and not labelled:
            place.refuse("score and label are both missing.")
        if sparse and "time" in at and row[at["time"]] not in ("", None):
            time = self._time(row[at["time"]])
        score = as_number(row[0], place, columns.score, "score") if scored else nan
        label = self._label(row[1]) if labelled else _NO_LABEL
        if "weight" in at and not (sparse and row[2] in ("", None)):
            weight = as_weight(row[2], place, columns, columns.finest)
        costs = [nan] * len(columns.costs)
        if labelled and self._prices is not None:
            asked = [name for name, _ in self._prices[label]]
            for number, (outcome, name) in enumerate(columns.costs):
                if outcome in asked:
                    costs[number] = as_cost(row[at[outcome]], place, name, outcome)
        if "group" in at and scored:
            group = self._group(row[at["group"]])
        if not sparse and "time" in at:
            time = self._time(row[at["time"]])
        self._native.add(score, label, weight, group, id, time, costs)

    def _bytes(self, value: Any, column: str | None) -> bytes:
        """Return the bytes of a name; JSON has escapes for half characters, which have none."""
        try:
            return as_text(value).encode()
        except UnicodeEncodeError:
            self._place.refuse("the value has half a character, and is no text.", column=column)

    def _group(self, value: Any) -> bytes:
        """Read the name of a group, or refuse it."""
        name = self._bytes(value, self._columns.group)
        if not name:
            self._place.refuse(
                "the group is missing. Fill it or drop the row.", column=self._columns.group
            )
        return name

    def _label(self, value: Any) -> int:
        """Read a label, or refuse it."""
        label = self._label_of(as_text(value))
        if label is None:
            refuse_label(value, self._place, self._columns)
        return label

    def _time(self, value: Any) -> tuple[int, int]:
        """Read a number, or a date and time in ISO 8601, whichever the periods need."""
        moment = _moment(value)
        if moment is None:
            self._place.refuse(
                f"{quoted(value)} is neither a finite number nor a time such as "
                "2026-11-15T12:00:00.",
                column=self._columns.time,
            )
        if self._dated is not None and isinstance(moment, datetime) is not self._dated:
            name, period = next(iter(self._periods.items()))
            advice = (
                f"a number. Write {name} as a number too, not {period_text(period)}."
                if self._dated
                else f"a date. Write {name} with a unit, such as {period}d, "
                f"{period}h or {period}s, not {period}."
            )
            where = f"{self._place.at()}, column {self._columns.time}"
            raise Failure(f"{where}: the time {quoted(value)} is {advice}", USAGE)
        if isinstance(moment, datetime):
            zone = Written.LOCAL if moment.tzinfo is None else Written.ZONED
            return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MICROSECOND, zone
        if isinstance(moment, int) and -(2**63) <= moment < 2**63:
            return moment, Written.WHOLE
        return int(np.float64(moment).view(np.int64)), Written.REAL


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape")


def _losses(
    prices: dict[int, Any], labels: NDArray[Any], costs: dict[str, Any], weights: Any
) -> list[NDArray[np.float64]]:
    """Return what each row costs if it is answered 0, and if it is answered 1."""
    each = [
        [costs[name] if isinstance(price, str) else price for name, price in prices[label]]
        for label in (0, 1)
    ]
    return [
        np.ascontiguousarray(np.where(labels == 1, one, zero) * weights, np.float64)
        for zero, one in zip(*each, strict=True)
    ]


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
