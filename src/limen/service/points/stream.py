# SPDX-License-Identifier: Apache-2.0
"""The rows of a stream: an event of the kind "rows" that says so is folded row by row.

A row may have a score, a label or both, in the order in which they came. What the memory refuses
is skipped, or is where the event ends, as the event says. So the same rows in one event or in
several make the same state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limen._core import add_rows
from limen.service.points.events import Event
from limen.service.points.rows import UNLABELLED

if TYPE_CHECKING:
    from limen.service.points.events import Ids
    from limen.service.points.point import Point
    from limen.service.points.rows import Rows

__all__ = ["Observer", "Written", "fold_stream"]


class Written(IntEnum):
    """How a time is written: a whole number, a float, or a date, in microseconds since 1970."""

    MISSING, WHOLE, REAL, LOCAL, ZONED = range(5)


class Observer(Protocol):
    """Reads the state between the rows of an event; changes nothing."""

    def begin(self, rows: Rows, ids: Ids, more: dict[str, Any]) -> None:
        """Look at an event, before any of its rows happens."""

    def before(self, row: int, size: int) -> tuple[int, Any, int]:
        """Return up to which row to go on, and a model whose other threshold stops before.

        None stands for no model. Also how many samples a threshold of the model needs.
        """

    def after(self, begin: int, end: int, refusal: Exception | None) -> None:
        """Look at the state after some rows, and at what the memory said of the next one."""


def fold_stream(point: Point, event: Event, ids: Ids) -> None:
    """Let the rows of a stream happen, one after the other.

    Where somebody asked the ledger for the case for a change, after some of them, that began or
    ended a trial: the event says after which, and it is asked again.
    """
    rows, more, observer = event.rows, event.more, point.observer
    assert rows is not None
    assert more is not None
    point.skipped += more["malformed"]
    point.taken += more["malformed"]
    done, size = 0, len(rows)
    if not size:
        return
    columns = _columns(point, rows, ids)
    asked = list(reversed(more.get("asked", ())))
    if observer is not None:
        observer.begin(rows, ids, more)
    while done < size:
        begin, end, model, least = done, size, None, 0
        if observer is not None:
            end, model, least = observer.before(begin, size)
        end = min(end, asked[-1]) if asked else end
        if point.shadow is not None:
            end = begin + 1
            _advance_judge(point, columns, begin)
        done, refusal = add_rows(point.memory, columns, begin, end, model, least)
        point.taken += done - begin
        if point.shadow is not None and done > begin:
            _judge(point, event, columns, begin)
        if asked and asked[-1] == done:
            asked.pop()
            current, age, confidence = more["case"]
            point.ledger.proposal(current, age=age, confidence=confidence)
        if observer is not None:
            observer.after(begin, done, refusal)
        if refusal is not None:
            if not more["skips"]:
                break
            point.skipped += 1
            point.taken += 1
            done += 1
    scored = columns["scores"][:done] == columns["scores"][:done]  # a missing score is nan
    point.scores += int(np.count_nonzero(scored))
    if columns["labels"] is not None:
        point.labels += int(np.count_nonzero(columns["labels"][:done] != UNLABELLED))
    if columns["answers"] is not None:
        point.ones += int(np.count_nonzero(columns["answers"][:done][scored]))


def _columns(point: Point, rows: Rows, ids: Ids) -> dict[str, Any]:
    """Return the columns as `add_rows` takes them."""
    names = ("scores", "labels", "weights", "times", "kinds", "below", "above")
    columns: dict[str, Any] = {name: rows.column(name) for name in names}
    columns["ids"] = ids if point.definition.by_id else None
    deployed = any(each == each for each in point.version.thresholds.values())
    columns["answers"] = None  # where nobody has deployed a threshold, a ledger gives its own
    if deployed and point.definition.by_id:
        columns["answers"] = point.answers(columns["scores"], rows.named_segments())
    if not (point.definition.by_id or point.timed):
        columns["times"] = None
    if point.definition.segments is not None:
        groups, new, beyond = point._places(rows.named_segments(), len(rows))
        columns["groups"] = groups
        point.segments.update(new)
        point.overflow += beyond
    return columns


def _advance_judge(point: Point, columns: dict[str, Any], row: int) -> None:
    """Let samples judge a proposal before the ledger may drop their ids."""
    assert point.shadow is not None
    if columns["times"] is not None:
        point.shadow.advance(int(columns["times"][row]))


def _judge(point: Point, event: Event, columns: dict[str, Any], row: int) -> None:
    """Let a row that the ledger has taken judge the proposal that is open."""
    id, score, shadow = columns["ids"][row], float(columns["scores"][row]), point.shadow
    assert shadow is not None
    assert event.rows is not None
    if score == score:
        time = event.at if columns["times"] is None else int(columns["times"][row])
        weight = None if columns["weights"] is None else float(columns["weights"][row])
        named = event.rows.named_segments()
        segment = None if named is None else named[row]
        made = Event("score", event.at, point.name, time, score, weight, segment=segment)
        shadow.score(made, id, point.label_of(id))
    if columns["labels"][row] != UNLABELLED:
        shadow.judge.label(id, point.label_of(id))
