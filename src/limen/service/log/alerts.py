# SPDX-License-Identifier: Apache-2.0
"""Alerts: what people should look at although nobody asked. Each beginning and end is an event."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from limen.service.points.events import Event
from limen.times import length_of

if TYPE_CHECKING:
    from limen.service.log.account import Accounts
    from limen.service.log.writer import Writer
    from limen.service.points.definitions import Alerts
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
        self._say("", "disk", share < self._disk_low, f"the disk has {share:.0%} left", at)
        wrong = writer.clock.trouble(writer.state.at)
        self._say("", "clock", wrong is not None, wrong or "", at)
        for name in list(writer.state.points):
            point = writer.state.points[name]
            self._warn(point)
            wanted = point.definition.alerts
            if wanted is not None:
                for alert, holds, text in await self._found(point, wanted, at):
                    self._say(name, alert, holds, text, at)
            for alert in [each for each in point.alerts if wanted is None]:
                self._say(name, alert, False, "no longer configured", at)
        await writer.flushed()

    async def _found(self, point: Point, wanted: Alerts, at: int) -> list[tuple[str, bool, str]]:
        found = []
        lasting = point.lasting
        if wanted.answered is not None and (shares := lasting.shares(point, at)) is not None:
            before, now = shares
            text = f"{now:.2%} of the last day's scores were answered 1, {before:.2%} before that"
            found.append(("answered", abs(now / before - 1) > wanted.answered, text))
        if wanted.labels_late is not None:
            late = lasting.labels >= 0 and at - lasting.since >= length_of(wanted.labels_late)
            text = f"no label for {wanted.labels_late}, while scores kept coming"
            found.append(("labels", late and point.scores > lasting.scores, text))
        if wanted.regret is not None and point.samples():
            held = lasting.regret is not None and at - lasting.regret >= length_of(
                wanted.regret_for
            )
            text = (
                f"regret per 1,000 decisions is {point.regret_rate():.3g}, "
                f"more than {wanted.regret:g}"
            )
            found.append(("regret", held, text))
        if wanted.recall is not None or wanted.precision is not None:
            answers = (await self._accounts.of(self._writer, point))["answers"]
            floors = (
                ("recall", "missed", wanted.recall),
                ("precision", "false_1", wanted.precision),
            )
            for name, wrong, floor in floors:
                of = answers["right_1"] + answers[wrong]
                if floor is not None and of:
                    value = answers["right_1"] / of
                    text = f"{name} of the answers is {value:.1%}, below the floor of {floor:.1%}"
                    found.append((name, value < floor, text))
        return found

    def _warn(self, point: Point) -> None:
        """Write once that a point is asked and cannot answer; where another system does, not."""
        undecided = point.undecided()
        if undecided and point.scores and not point.ones and point.name not in self._warned:
            self._warned.add(point.name)
            self._writer._complain(f"point {point.name!r}: {undecided}")

    def _say(self, point: str, name: str, holds: bool, text: str, at: int) -> None:
        state = self._writer.state
        open_ones = state.points[point].alerts if point else state.alerts
        if holds != (name in open_ones):
            more: dict[str, Any] = {"name": name, "ended": not holds, "text": text}
            if not holds:
                more["text"] = f"over: {open_ones[name].text}"
            self._writer._fold(Event("alert", at, point, by="limen", more=more))
