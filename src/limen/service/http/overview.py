# SPDX-License-Identifier: Apache-2.0
"""One read for the page: the rule, what it costs, how sure that is, and what is proposed."""

from __future__ import annotations

from math import isinf, isnan
from typing import TYPE_CHECKING, Any

from limen.digits import difference
from limen.service.http.app import Answer, Call, encode
from limen.service.http.deciding import open_proposal
from limen.service.http.routes import Route
from limen.service.points.definitions import as_rule
from limen.service.points.events import as_datetime
from limen.service.points.judging import shown_proposal

if TYPE_CHECKING:
    from limen.optimum import Direction
    from limen.service.points.point import Point

__all__ = ["OVERVIEW", "plain"]

_STEPS = 1000


def plain(value: float, direction: Direction) -> float | str:
    """Write a threshold as a number for a chart: JSON has no infinity.

    What no score reaches lies beyond all scores, on the side of those that are answered 0.

    >>> plain(0.5, ">="), plain(float("nan"), ">="), plain(float("nan"), "<=")
    (0.5, 'inf', '-inf')
    """
    if isnan(value):
        return "inf" if direction == ">=" else "-inf"
    if isinf(value):
        return "-inf" if value < 0 else "inf"
    return value


async def overview(call: Call) -> Answer:
    """Describe a point for people, in one answer."""
    point, writer = call.point(), call.writer
    account = await call.app.accounts.of(writer, point)
    shown = _rule(call.point(), writer.on_disk, writer.now(), writer.ticked)
    shown["alerts"] = [
        {"name": note.name, "since": as_datetime(note.at), "seq": note.seq, "text": note.text}
        for note in (*call.point().alerts.values(), *writer.state.alerts.values())
    ]
    shown["ready"] = writer.broken is None  # whether writes are taken
    rate = 0.0 if call.app.hub is None else call.app.hub.rate(point.name)
    return Answer(encode({**shown, **account, "events_per_second": round(rate, 1)}))


def _rule(point: Point, seq: int, now: int, ticked: int) -> dict[str, Any]:
    version, whole, direction = point.published or point.version, point.of_all(), point.direction
    threshold = version.thresholds[""]
    interval, proposal = point.interval(), open_proposal(point, seq)
    other = open_proposal(point, seq, definition=True)
    found = None if interval is None else whole.recommended
    return {
        "point": point.name,
        "seq": seq,
        "at": as_datetime(now),
        "words": point.definition.words,
        "definition": point.definition,
        "version": version.shown(direction),
        "versions": version.number,
        "proposal": None if proposal is None else shown_proposal(point, proposal, now),
        "redefinition": None if other is None else shown_proposal(point, other, now),
        "tiles": tiles(point),
        "optimum": as_rule(float(whole.threshold), direction),
        "recommended": None if found is None else as_rule(float(found), direction),
        "interval": None
        if interval is None
        else {
            "low": plain(interval[0], direction),
            "high": plain(interval[1], direction),
            "confidence": 0.95,
        },
        "keeps": None if interval is None else bool(whole.keeps(threshold)),
        "over_time": [
            {
                "at": as_datetime(at),
                "optimum": plain(best, direction),
                "low": None if isnan(low) and isnan(high) else plain(low, direction),
                "high": None if isnan(low) and isnan(high) else plain(high, direction),
            }
            for at, best, low, high in point.course
            if at <= ticked
        ],
        "steps": [
            {
                "at": as_datetime(each.at),
                "version": each.number,
                "threshold": plain(each.thresholds[""], direction),
            }
            for each in point.versions[-_STEPS:]
            if each.seq <= version.seq
        ],
    }


def tiles(point: Point) -> dict[str, Any]:
    """Return the figures that change with every event. O(log n)."""
    cost, regret = point.cost(), point.regret()
    return {
        "scored": point.scores,
        "answered_1": point.ones,
        "labels": point.labels,
        "samples": point.samples(),
        "cost": cost,
        "cheapest": difference(cost, regret),
        "regret": regret,
    }


OVERVIEW = (Route("GET", "/v1/points/{point}/overview", "read", overview),)
