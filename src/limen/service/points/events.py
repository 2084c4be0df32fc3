# SPDX-License-Identifier: Apache-2.0
"""An event, the words of events, and times: whole microseconds inside, RFC 3339 outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from limen.service.points.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "KINDS",
    "Damaged",
    "Event",
    "Id",
    "Ids",
    "as_datetime",
    "as_microseconds",
    "decode_events",
    "decode_names",
    "encode",
    "renamed",
    "single_events",
]

# A forgotten id is the seq of the event that forgot it, so that the fold stays the same.
Id: TypeAlias = str | int | None
Ids: TypeAlias = Id | list[str | int]  # of an event of the kind "rows": an id for each row

KINDS = (
    "score",
    "label",
    "rows",
    "forget",
    "advance",
    "define",
    "propose",
    "decide",
    "deploy",
    "alert",
    "token",
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = (each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max))


class Damaged(Exception):  # noqa: N818 - reads as what happened
    """The data is not what was written; the message says what was found and what to do."""


class Event(msgspec.Struct, array_like=True, gc=False):
    """What happened. The seq is its place in the log; the id is stored beside it.

    Fields are only ever added, at the end and with a default: old logs are read for ever.
    `model`, `costs` and `propensity` are reserved: nothing fills or reads them yet.
    """

    kind: str
    at: int  # when the server took it, in microseconds; never decreasing
    point: str = ""
    time: int | None = None  # of a score: its own time; of a label: as_of
    value: float | None = None  # the score or the label
    weight: float | int | None = None
    answer: int | None = None
    segment: str | None = None
    version: int | None = None
    by: str = ""
    more: dict[str, Any] | None = None
    rows: Rows | None = None
    model: str = ""  # which model the score is of
    costs: dict[str, Any] | None = None  # what a mistake costs in this case
    propensity: float | None = None  # how probable the answer was, where it was drawn by lot


def single_events(event: Event) -> list[Event]:
    """Return what many rows are as an event for each score, or for each label.

    >>> rows = Rows.of(scores=[0.25, 0.5], answers=[0, 1], times=[7, 8])
    >>> [(each.time, each.value) for each in single_events(Event("rows", 9, "p", rows=rows))]
    [(7, 0.25), (8, 0.5)]
    """
    rows = event.rows
    assert rows is not None
    scores, labels, weights, times, answers = (
        [None] * len(rows) if (column := rows.column(name)) is None else column.tolist()
        for name in ("scores", "labels", "weights", "times", "answers")
    )
    if not rows.scores:
        return [
            Event("label", event.at, event.point, as_of, label, by=event.by)
            for label, as_of in zip(labels, times, strict=True)
        ]
    segments = rows.named_segments() or [None] * len(rows)
    return [
        Event("score", event.at, event.point, event.at if time is None else time, score, weight,
              answer, segment, by=event.by)
        for score, time, weight, answer, segment
        in zip(scores, times, weights, answers, segments, strict=True)
    ]  # fmt: skip


def renamed(id: Ids, names: Mapping[Any, str | int]) -> Ids:
    """Return the id of an event, or those of its rows, by other names where there are any.

    >>> renamed("a", {"a": 7}), renamed(["b", "a"], {"a": 7}), renamed(None, {"a": 7})
    (7, ['b', 7], None)
    """
    if isinstance(id, list):
        return [names.get(each, each) for each in id]
    return names.get(id, id)


encode = msgspec.msgpack.Encoder().encode
decode_events = msgspec.msgpack.Decoder(list[Event]).decode
decode_names = msgspec.msgpack.Decoder(list[str | int | list[str | int] | None]).decode


def as_microseconds(time: datetime) -> int:
    """Return the microseconds since 1970 of a time with a time zone.

    >>> as_microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    since = time - _EPOCH
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


def as_datetime(time: int) -> datetime:
    """Return the time of some microseconds since 1970.

    >>> as_datetime(86400000000).isoformat()
    '1970-01-02T00:00:00+00:00'
    >>> as_datetime(-(10**18)).isoformat()
    '0001-01-01T00:00:00+00:00'
    """
    try:
        return _EPOCH + time * _MICROSECOND
    except OverflowError:  # before the year 1 or after 9999: old logs may hold such a time
        return _FIRST if time < 0 else _LAST
