# SPDX-License-Identifier: Apache-2.0
"""Windows in groups: one clock for all of them, and no group that is left behind.

Samples that leave by their time leave all groups at the same time, whichever group the time came
from. A group is brought to the time of the clock when it is looked at, so an event costs what it
costs in its own groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core
from limen.groups.models import Models, key_of, rows_of
from limen.groups.paths import EVERYTHING, Path
from limen.groups.steps import Call
from limen.model import ModelBase
from limen.times import as_time, as_times
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
    larger one holds, at the same time: where that matters, it is given the time between the rows of
    a batch. Without one, a weight so large that sums might not fit is refused.
    """

    __slots__ = ("_ahead", "_by_time", "_heaviest", "_period", "_waiting", "clocked")

    def __init__(self, empty: Any) -> None:
        super().__init__(empty)
        given = empty.settings
        self._period, self._ahead = given.get("period"), given.get("max_ahead")
        self._by_time: bool = given.get("by") == "time"
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
        if self._refuses(named.get("time")):
            path = EVERYTHING  # which refuses it, and counts that
        if self._by_time and any(map(_heavy, [*sample[1:], named.get("weight")])):
            with self._kept([path]):
                return super().one(do, undo, path, sample, named)
        return super().one(do, undo, path, sample, named)

    def many(
        self,
        do: str,
        undo: str,
        groups: tuple[list[Path], NDArray[np.int64]],
        columns: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Add many samples to all groups that contain them, or on an error to none."""
        if self._by_time and any(map(_heavy, [*columns[1:], named.get("weights")])):
            with self._kept(groups[0]):
                return super().many(do, undo, groups, columns, named)
        return super().many(do, undo, groups, columns, named)

    @contextmanager
    def _kept(self, paths: list[Path]) -> Iterator[None]:
        """Bring back these groups on an error, where a weight is so large that one may refuse it.

        Groups that fade have divided their sums at different times, so that a large weight may
        fit in one and not in another. O(n).
        """
        keys = {key_of(path[:depth]) for path in paths for depth in range(len(path) + 1)}
        before = {key: self.held[key].copy() for key in keys if key in self.held}
        try:
            yield
        except BaseException:
            self.held.update(before)
            raise

    def _refuses(self, time: Any) -> bool:
        """Whether a window refuses an event of this time, by the clock of all."""
        period, ahead = self._period, self._ahead
        if (period is None and ahead is None) or (newest := self.newest) is None:
            return False
        try:
            moment: Any = as_time(time, isinstance(period or ahead, timedelta))
            late = period is not None and moment <= newest - period
            return bool(late or (ahead is not None and moment - ahead > newest))
        except (TypeError, ValueError, OverflowError):
            return False  # the window says what is wrong with it

    def counted(
        self, length: int, columns: tuple[Any, ...], named: dict[str, Any]
    ) -> NDArray[np.bool_] | None:
        """Find which of many samples are not refused for their time, by the one clock."""
        if not self.clocked:
            self._require_light([*columns[1:], *named.values()])
        times = named.get("times")
        if times is None or (self._period is None and self._ahead is None):
            return None
        nothing = np.zeros(length)  # samples that weigh nothing still move the clock
        return np.asarray(self.begun().update_many(*[nothing] * 3, times=times), np.bool_)

    def clock(
        self, newest: Any, counted: NDArray[np.bool_] | None, named: dict[str, Any]
    ) -> list[Any]:
        """List the time of the clock before each of many samples, and the time of each."""
        length = self._period or self.empty.settings["half_life"]
        times: list[Any] = as_times(named["times"], isinstance(length, timedelta))
        found = []
        for at, time in enumerate(times):
            found.append((newest, time))
            if (counted is None or counted[at]) and (newest is None or newest < time):
                newest = time
        return found

    def change(
        self,
        held: Any,
        do: str,
        part: tuple[Any, ...],
        named: dict[str, Any],
        rows: NDArray[np.int64],
        clock: Callable[[], list[Any]],
    ) -> Call:
        """Return the call that adds these rows of many to a group; the clock of all goes on."""
        change = super().change(held, do, part, named, rows, clock)
        if not self.clocked:
            return change
        ahead = self._ahead

        def in_time(places: NDArray[np.int64], apart: Any) -> None:
            moments = [clock()[at] for at in rows[places].tolist()]
            for time, run in _runs(held.newest, moments, apart):
                if time is not None:
                    held.advance(time)
                add(places[run], apart)

        def add(places: NDArray[np.int64], apart: Any) -> None:
            some = {name: rows_of(column, places) for name, column in named.items()}
            try:
                getattr(held, do)(*(rows_of(column, places) for column in part), **some)
            except (ValueError, OverflowError):
                if apart is None:
                    raise
                in_time(places, None)  # what has left by the clock of all makes room

        def at_once() -> None:
            try:
                change()
            except (ValueError, OverflowError):
                in_time(np.arange(len(rows)), None)

        if ahead is None:
            return at_once
        return partial(in_time, np.arange(len(rows)), ahead // 2)

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


def _heavy(numbers: Any) -> bool:
    """Whether there is a weight or loss of which few fit into the sums of what fades."""
    if numbers is None:
        return False
    if type(numbers) in (int, float):
        return abs(numbers) > 2**20  # type: ignore[no-any-return]
    try:
        return bool(np.abs(np.asarray(numbers, np.float64)).max(initial=0) > 2**20)
    except (TypeError, ValueError, OverflowError):
        return False  # the window says what is wrong with it


def _runs(newest: Any, moments: list[Any], apart: Any) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Split the rows of a group where it must be given the time before: that, or None, and rows.

    `moments` are the time of the clock before each row, and the time of the row; `apart` is how
    far a row may be after the newest time of the group, None where it must be given any time.
    """
    begin, given = 0, None
    for at, (clock, time) in enumerate(moments):
        behind = clock is not None and (newest is None or newest < clock)
        if behind and (apart is None or newest is None or time - newest > apart):
            if begin < at:
                yield given, np.arange(begin, at)
            begin, given, newest = at, clock, clock
        if newest is None or newest < time:
            newest = time
    yield given, np.arange(begin, len(moments))


def _heaviest(window: Any) -> float:
    """Return how much a sample may weigh so that sums fit in a window of any samples."""
    settings, inner = window.settings, inner_of(window)
    samples = settings.get("n", settings.get("half_life"))
    if samples is None or not isinstance(inner, ModelBase):
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
