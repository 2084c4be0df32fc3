# SPDX-License-Identifier: Apache-2.0
"""Accounts of points: made when someone asks, at most so often that it takes 1/20 of the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from limen.service.points.account import by_segment, passed

if TYPE_CHECKING:
    from limen.service.log.writer import Writer
    from limen.service.points.point import Point

__all__ = ["Accounts"]

_IDLE = 20  # how many times longer than an account takes it is used


class Accounts:
    """The accounts of points that were asked for last."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Point, int, float, dict[str, Any]]] = {}

    async def of(self, writer: Writer, point: Point) -> dict[str, Any]:
        """Return the account of a point, made again if it is old enough."""
        found = self._made.get(point.name)
        if found is not None and found[0] is point:
            unchanged = found[1] == writer.state.seq
            if unchanged or time.monotonic() < found[2]:
                return found[3]
        begun, seq, now = time.monotonic(), writer.state.seq, writer.now()
        best, age = float(point.of_all().threshold), point.definition.age()
        made: dict[str, Any]
        columns, made = await writer.aside(passed, point, best, now, age)
        made["segments"] = by_segment(columns, point)
        end = time.monotonic()
        self._made[point.name] = (point, seq, end + _IDLE * (end - begun), made)
        return made
