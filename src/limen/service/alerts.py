# SPDX-License-Identifier: Apache-2.0
"""Alerts: what people should look at although nobody asked. Each beginning and end is an event."""

from __future__ import annotations

import shutil
from collections import deque
from typing import TYPE_CHECKING, Any

from limen.service.events import Event, period

if TYPE_CHECKING:
    from limen.service.account import Accounts
    from limen.service.definitions import Alerts
    from limen.service.desk import Desk
    from limen.service.points import Point

__all__ = ["Watch"]

_DAY = 86_400_000_000
_APART = 600_000_000  # between two counts of answers that are kept


class Watch:
    """Looks at all points once a minute. A restart forgets how long something has lasted."""

    def __init__(self, desk: Desk, accounts: Accounts, disk_low: float) -> None:
        self._desk, self._accounts, self._disk_low = desk, accounts, disk_low
        self._since: dict[tuple[str, str], int] = {}
        self._counts: dict[str, deque[tuple[int, int, int]]] = {}
        self._labels: dict[str, tuple[int, int, int]] = {}

    async def look(self) -> None:
        """Begin and end alerts."""
        desk, at = self._desk, self._desk.now()
        if desk.broken is not None:
            return
        usage = shutil.disk_usage(desk.folder)
        share = usage.free / usage.total
        self._say("", "disk", share < self._disk_low, f"the disk has {share:.0%} left", at)
        for name in list(desk.state.points):
            point = desk.state.points[name]
            wanted = point.definition.alerts
            if wanted is not None:
                for alert, holds, text in await self._found(point, wanted, at):
                    self._say(name, alert, holds, text, at)
            for alert in [each for each in point.alerts if wanted is None]:
                self._say(name, alert, False, "no longer asked for", at)
        await desk.flushed()

    async def _found(self, point: Point, wanted: Alerts, at: int) -> list[tuple[str, bool, str]]:
        found = [self._answered(point, wanted.answered, at), self._late(point, wanted, at)]
        samples = point.samples()
        if wanted.regret is not None and samples:
            regret = 1000 * float(point.ledger.regret) / samples
            lasted = self._lasted(point.name, "regret", regret > wanted.regret, at)
            text = f"regret per 1,000 decisions is {regret:.3g}, more than {wanted.regret:g}"
            found.append(("regret", lasted >= period(wanted.regret_for), text))
        if wanted.recall is not None or wanted.precision is not None:
            answers = (await self._accounts.of(self._desk, point))["answers"]
            floors = (
                ("recall", "missed", wanted.recall),
                ("precision", "false_1", wanted.precision),
            )
            for name, wrong, floor in floors:
                of = answers["right_1"] + answers[wrong]
                if floor is not None and of:
                    value = answers["right_1"] / of
                    text = f"{name} of the answers is {value:.1%}, less than {floor:.1%}"
                    found.append((name, value < floor, text))
        return [each for each in found if each is not None]

    def _lasted(self, name: str, alert: str, holds: bool, at: int) -> int:
        if not holds:
            self._since.pop((name, alert), None)
            return -1
        return at - self._since.setdefault((name, alert), at)

    def _answered(self, point: Point, shift: float | None, at: int) -> tuple[str, bool, str] | None:
        """Compare the share answered 1 of the last day with that of the week before it."""
        counts = self._counts.setdefault(point.name, deque())
        if not counts or at - counts[-1][0] >= _APART:
            counts.append((at, point.scores, point.ones))
        while len(counts) > 2 and counts[1][0] <= at - 8 * _DAY:
            counts.popleft()
        middle = next((each for each in reversed(counts) if each[0] <= at - _DAY), None)
        if shift is None or middle is None or middle is counts[0]:
            return None
        (_, scored_0, ones_0), (_, scored_1, ones_1) = counts[0], middle
        if scored_1 == scored_0 or point.scores == scored_1 or ones_1 == ones_0:
            return None
        before = (ones_1 - ones_0) / (scored_1 - scored_0)
        now = (point.ones - ones_1) / (point.scores - scored_1)
        text = f"{now:.2%} of the last day are answered 1, {before:.2%} before"
        return "answered", abs(now / before - 1) > shift, text

    def _late(self, point: Point, wanted: Alerts, at: int) -> tuple[str, bool, str] | None:
        labels, since, scores = self._labels.get(point.name, (-1, at, point.scores))
        if labels != point.labels:
            since, scores = at, point.scores
        self._labels[point.name] = point.labels, since, scores
        if wanted.labels_late is None:
            return None
        late = at - since >= period(wanted.labels_late) and point.scores > scores
        return "labels", late, f"no label came for {wanted.labels_late}, while scores did"

    def _say(self, point: str, name: str, holds: bool, text: str, at: int) -> None:
        state = self._desk.state
        open_ones = state.points[point].alerts if point else state.alerts
        if holds != (name in open_ones):
            more: dict[str, Any] = {"name": name, "ended": not holds, "text": text}
            if not holds:
                more["text"] = f"over: {open_ones[name].text}"
            self._desk._fold(Event("alert", at, point, by="limen", more=more))
