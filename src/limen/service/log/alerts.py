# SPDX-License-Identifier: Apache-2.0
"""Alerts: what people should look at although nobody asked. Each beginning and end is an event."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from limen.service.points.alerts import alert, due

if TYPE_CHECKING:
    from limen.service.log.account import Accounts
    from limen.service.log.writer import Writer
    from limen.service.points.point import Point

__all__ = ["Watch"]


class Watch:
    """Looks at all points once a minute, after time has gone by in them."""

    def __init__(self, writer: Writer, accounts: Accounts, disk_low: float) -> None:
        self._writer, self._accounts, self._disk_low = writer, accounts, disk_low
        self._warned: set[str] = set()  # points whose answers are all 0, as nobody decided

    async def look(self) -> None:
        """Begin and end alerts."""
        writer, at = self._writer, self._writer.now()
        if writer.broken is not None:
            return
        usage = shutil.disk_usage(writer.folder)
        share = usage.free / usage.total
        self._say("disk", share < self._disk_low, f"the disk has {share:.0%} left", at)
        wrong = writer.clock.trouble(writer.state.at)
        self._say("clock", wrong is not None, wrong or "", at)
        for name in list(writer.state.points):
            point = writer.state.points[name]
            self._warn(point)
            wanted, answers = point.definition.alerts, None
            if wanted is not None and (wanted.recall, wanted.precision) != (None, None):
                answers = (await self._accounts.of(writer, point))["answers"]
            for event in due(point, at, answers):
                writer._fold(event)
        await writer.flushed()

    def _warn(self, point: Point) -> None:
        """Write once that a point is asked and cannot answer; where another system does, not."""
        undecided = point.undecided()
        if undecided and point.scores and not point.ones and point.name not in self._warned:
            self._warned.add(point.name)
            self._writer._complain(f"point {point.name!r}: {undecided}")

    def _say(self, name: str, holds: bool, text: str, at: int) -> None:
        event = alert(self._writer.state.alerts, name, holds, text, at)
        if event is not None:
            self._writer._fold(event)
