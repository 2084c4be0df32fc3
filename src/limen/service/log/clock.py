# SPDX-License-Identifier: Apache-2.0
"""The time of the service: what the clock says, unless it has jumped.

As time passes, samples, ids and events are deleted for good, so a clock that is wrong for a
second must not be believed. What has passed since is known without it: another clock of the system
counts on, whatever the time of day is set to. Where the two differ far, time goes on by that one,
until they agree again or an operator confirms.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from limen.service.points.events import as_datetime
from limen.times import length_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AT_A_START", "FAR", "Clock"]

FAR = length_of("15m")  # by how much the clock may differ from what has passed since the last tick
AT_A_START = "7d"  # by how much it may lie after the last event on disk, which may be long ago

# Counts while the machine sleeps, too; the second one does so where there is no first one.
_COUNTING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def counted() -> int:
    """Return the microseconds since some moment, whatever the time of day is set to."""
    return time.clock_gettime_ns(_COUNTING) // 1000


def shown() -> int:
    """Return what the clock shows, in microseconds since 1970."""
    return time.time_ns() // 1000


class Clock:
    """Follows the clock as long as it agrees with the time that has passed.

    Parameters
    ----------
    last
        The time of the last event on disk, 0 where there is none: then any clock is believed.
    ahead
        By how much the clock may lie after it.
    accepted
        Up to which last event an operator has accepted that it lies in the future.
    """

    def __init__(
        self, last: int, ahead: int, accepted: int, complain: Callable[[str], None]
    ) -> None:
        self._since = last, counted(), ahead  # one value: a thread that rebuilds reads it too
        self._complain = complain
        self.held = False  # as of the last look
        if not last or shown() < last <= accepted:
            self.accept()
        self.look()

    def now(self) -> int:
        """Return the time: that of the clock, or where it has jumped what it would be without."""
        clock, expected, agrees = self._read()
        return clock if agrees else expected

    def _read(self) -> tuple[int, int, bool]:
        """Return what the clock shows, what it would show by what has passed, and if they agree."""
        then, began, ahead = self._since
        clock, expected = shown(), then + counted() - began
        return clock, expected, -FAR <= clock - expected <= ahead

    def look(self) -> bool:
        """Say whether the clock is followed; from a clock that is, counting starts again."""
        clock, expected, agrees = self._read()
        if not agrees and not self.held:
            self._complain(_jumped(clock, expected))
        elif self.held and agrees:
            self._complain("the clock agrees again, and is followed")
        self.held = not agrees
        if agrees:
            self._since = clock, counted(), FAR
        return agrees

    def would_reach(self, moment: int) -> bool:
        """Whether a time lies in the future only because the clock is not followed."""
        clock, _, agrees = self._read()
        return not agrees and moment <= clock

    def accept(self) -> None:
        """Follow the clock from now on, whatever it shows."""
        self._since, self.held = (shown(), counted(), FAR), False

    def trouble(self, last: int) -> str | None:
        """Say what is wrong with the clock, given the time of the last event, and what to do."""
        clock, expected, agrees = self._read()
        if not agrees:
            return _jumped(clock, expected)
        if last > clock + FAR:
            return (
                f"the clock says {_text(clock)}, and the last event is of {_text(last)}: time "
                "stands still until then"
            )
        return None

    def require_present(self, last: int) -> None:
        """Refuse a log whose end lies in the future, unless an operator has accepted that end."""
        clock = shown()
        if self.held and last > clock + FAR:
            raise ValueError(
                f"the log lies in the future: its last event is of {_text(last)}, and the clock "
                f"says {_text(clock)}. Set the clock, and start again. If the clock is right, the "
                "log was written under a wrong one: restore a backup from before, or go on with "
                "`limen serve clock accept`: time then stands still until the last event."
            )


def _jumped(clock: int, expected: int) -> str:
    return (
        f"the clock says {_text(clock)}, and by the time that has passed it is about "
        f"{_text(expected)}: the clock is not followed, and nothing expires. Set the clock; if it "
        "is right, confirm it with `limen serve clock accept`"
    )


def _text(time: int) -> str:
    return as_datetime(time).isoformat(timespec="seconds")
