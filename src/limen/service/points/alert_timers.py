# SPDX-License-Identifier: Apache-2.0
"""How long something has lasted, for alerts: folded as time passes, and so kept over a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from limen.service.points.point import Point

__all__ = ["AlertTimers"]

_DAY = 86_400_000_000
_APART = 600_000_000  # between two counts of answers that are kept


class AlertTimers(msgspec.Struct):
    """Since when the regret is high and no label has come, and the answers of the last days."""

    regret: int | None = None  # since when it is above what the alert says
    labels: int = -1  # how many there were, since when, and how many scores there were then
    since: int = 0
    scores: int = 0
    counts: list[tuple[int, int, int]] = []  # time, scores, answers 1

    def advance(self, point: Point, time: int) -> None:
        """Look at a point after time has gone by. O(log n)."""
        wanted = point.definition.alerts
        if wanted is None:
            if self.counts:
                self.regret, self.labels, self.counts = None, -1, []
            return
        if wanted.regret is None or not point.regret_rate() > wanted.regret:
            self.regret = None
        elif self.regret is None:
            self.regret = time
        if self.labels != point.labels:
            self.labels, self.since, self.scores = point.labels, time, point.scores
        if not self.counts or time - self.counts[-1][0] >= _APART:
            self.counts.append((time, point.scores, point.ones))
        while len(self.counts) > 2 and self.counts[1][0] <= time - 8 * _DAY:
            del self.counts[0]

    def shares(self, point: Point, time: int) -> tuple[float, float] | None:
        """Return the shares answered 1 in the week before the last day, and in the last day."""
        middle = next((each for each in reversed(self.counts) if each[0] <= time - _DAY), None)
        if middle is None or middle is self.counts[0]:
            return None
        (_, scored_0, ones_0), (_, scored_1, ones_1) = self.counts[0], middle
        if scored_1 == scored_0 or point.scores == scored_1 or ones_1 == ones_0:
            return None
        before = (ones_1 - ones_0) / (scored_1 - scored_0)
        return before, (point.ones - ones_1) / (point.scores - scored_1)
