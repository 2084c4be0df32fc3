# SPDX-License-Identifier: Apache-2.0
"""Windows in groups: one clock for all of them, and no group that is left behind.

Samples that leave by their time leave all groups at the same time, whichever group the time came
from. A group is brought to the time of the clock when it is looked at, so an event costs what it
costs in its own groups.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core
from limen.groups.models import Models
from limen.groups.paths import EVERYTHING, Path
from limen.groups.steps import Call
from limen.model import Held
from limen.times import as_time
from limen.units import exact_costs, exact_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Windows", "inner_of"]


def inner_of(model: Any) -> Any:
    """Return the model that holds the samples, out of the windows around it."""
    while hasattr(model, "model"):
        model = model.model
    return model


class Windows(Models):
    """One window for each group, by key.

    A window takes nothing back, and need not: the largest group comes first, and where it takes a
    sample in, no smaller one refuses it. With a clock, a smaller group holds a part of what the
    larger one holds. Without one, a weight so large that sums might not fit is refused.
    """

    __slots__ = ("_heaviest", "_waiting", "clocked")

    def __init__(self, empty: Any) -> None:
        super().__init__(empty)
        self.clocked: bool = hasattr(empty, "advance") and empty.settings.get("by") != "samples"
        self._heaviest = math.inf if self.clocked else _heaviest(empty)
        self._waiting: list[Hashable] = []  # groups to be looked at in this round

    @property
    def newest(self) -> Any:
        """The time of the clock: the latest that was seen in any group."""
        return self.held[EVERYTHING].newest if self.clocked else None

    def count(self, key: Hashable) -> int:
        """Return how many samples a group holds at the time of the clock."""
        held = self.held.get(key)
        if not held:
            return 0
        if self.clocked and held.newest != self.newest:
            held.advance(self.newest)
        return len(held)

    def advance(self, time: Any) -> None:
        """Let it be this late in all groups."""
        if not self.clocked:
            super().advance(time)
        self.held[EVERYTHING].advance(time)
        self._look_around(1)

    def begun(self) -> Any:
        """Return the window of a new group, at the time of the clock."""
        window = super().begun()
        if self.newest is not None:
            window.advance(self.newest)
        return window

    def one(
        self, do: str, undo: str, path: Path, sample: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Add a sample to all groups that contain it, or on an error to none."""
        if not self.clocked and (named or len(sample) > 2):
            self._require_light([*sample[1:], *named.values()])
        if self._too_old(named.get("time")):
            path = EVERYTHING  # which refuses it, and counts that
        return super().one(do, undo, path, sample, named)

    def _too_old(self, time: Any) -> bool:
        """Whether a window of this period refuses an event of this time, by the clock of all."""
        period, newest = self.empty.settings.get("period"), self.newest
        if period is None or newest is None:
            return False
        try:
            return bool(as_time(time, isinstance(period, timedelta)) <= newest - period)
        except (TypeError, ValueError, OverflowError):
            return False  # the window says what is wrong with it

    def counted(
        self, length: int, columns: tuple[Any, ...], named: dict[str, Any]
    ) -> NDArray[np.bool_] | None:
        """Find which of many samples are not too old when they come, by the one clock."""
        if not self.clocked:
            self._require_light([*columns[1:], *named.values()])
        if "period" not in self.empty.settings:
            return None
        return np.asarray(self.begun().update_many(*columns, **named), np.bool_)

    def reversal(self, held: Any, undo: str, given: tuple[Any, ...], named: dict[str, Any]) -> Call:
        """Return a call that does nothing."""
        return bool

    def commit(
        self,
        changes: list[Call],
        reversals: list[Call],
        after: dict[Hashable, Any],
        touched: list[Hashable],
    ) -> Any:
        """As for models; also look at as many other groups."""
        done = super().commit(changes, reversals, after, touched)
        self._look_around(len(touched))
        return done

    def _look_around(self, groups: int) -> None:
        """Look at so many groups, so that what has become empty does not stay in memory."""
        if not self.clocked:
            return
        for _ in range(min(groups, len(self.held))):
            if not self._waiting:
                self._waiting = list(self.held)  # O(groups), once in a round
            key = self._waiting.pop()
            if key != EVERYTHING and self.count(key) == 0:
                self.held.pop(key, None)

    def require_alike(self, model: Any) -> None:
        """Raise ValueError unless a window that was stored may be that of a group."""
        super().require_alike(model)
        timed = self.newest is not None and model.newest is not None
        if timed and model.newest > self.newest:
            raise ValueError("a group that is ahead of the clock")

    def _require_light(self, numbers: Iterable[Any]) -> None:
        for each in numbers:
            try:
                largest = float(np.abs(np.asarray(each, np.float64)).max(initial=0))
            except (TypeError, ValueError, OverflowError):
                continue  # the window says what is wrong with it
            if self._heaviest < largest < math.inf:
                raise OverflowError(
                    f"a weight or loss of {largest:g} is too large for groups of "
                    f"{type(self.empty).__name__}, where it may be {self._heaviest:g} at most, so "
                    "that sums fit in every group. Give smaller ones, or a model with a larger "
                    "unit. Nothing was added."
                )


def _heaviest(window: Any) -> float:
    """Return how much a sample may weigh so that sums fit in a window of any samples."""
    settings, inner = window.settings, inner_of(window)
    samples = settings.get("n", settings.get("half_life"))
    if samples is None or not isinstance(inner, Held):
        return math.inf
    costs, largest = inner.settings, 1
    if "false_positive" in costs:
        largest = max(exact_costs(costs["false_positive"], costs["false_negative"])[:2])
    unit = exact_unit(costs["unit"]) or Fraction(1, 2**_core.finest_bits)
    together = largest * (4 * Fraction(samples) + 4)  # also of what has faded to a half, a fourth
    heaviest = float(_core.most_units * unit / together)
    if heaviest < 1:
        raise ValueError(
            f"{settings!r} and {costs!r} make sums that might not fit in a group. Give smaller "
            "numbers."
        )
    return heaviest
