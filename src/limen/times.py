# SPDX-License-Identifier: Apache-2.0
"""Times and periods: numbers or datetimes, never mixed, and a queue ordered by time.

A datetime with a time zone is held in UTC, where subtracting a period means what it says on
every day of the year. Everything here is exact to the microsecond, or to the number given.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from limen.arrays import readable
from limen.storage import number_column, plain_list, plain_number

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Period",
    "Time",
    "Timeline",
    "as_period",
    "as_time",
    "as_times",
    "plain_time",
    "require_one_kind",
    "time_column",
    "times_of",
]

Time: TypeAlias = int | float | datetime
Period: TypeAlias = int | float | timedelta

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_Thing = TypeVar("_Thing")


def _from_numpy(value: Any) -> Any:
    """Turn datetime64 and timedelta64 into datetime and timedelta, if nothing is lost."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        with suppress(TypeError):  # a month has no fixed number of microseconds
            coarse = value.astype(f"{value.dtype.kind}8[us]")
            if coarse == value:
                return coarse.item()
    return value


def _number(value: Any) -> int | float | None:
    """Turn a finite number into an int or float, and anything else into None."""
    if type(value) is float:
        number: int | float = value
    elif isinstance(value, bool | np.bool_ | np.datetime64 | np.timedelta64):
        return None
    elif isinstance(value, Integral):
        return int(value)
    elif isinstance(value, Real):
        number = float(value)
    else:
        return None
    return number if math.isfinite(number) else None


def as_period(period: Any, name: str = "period") -> Period:
    """Read a positive length of time: a number or a timedelta.

    >>> as_period(30), as_period(timedelta(days=30))
    (30, datetime.timedelta(days=30))
    """
    length = _from_numpy(period)
    if isinstance(length, timedelta):
        length = timedelta(length.days, length.seconds, length.microseconds)
        positive = length > timedelta(0)
    else:
        length = _number(length)
        positive = length is not None and length > 0
    if not positive:
        raise ValueError(f"{name} must be a positive number or timedelta, got {period!r}.")
    return length  # type: ignore[no-any-return]


def as_time(time: Any, dated: bool, name: str = "time") -> Time:
    """Read a time: a datetime where periods are timedeltas (`dated`), else a finite number.

    >>> as_time(3.5, dated=False)
    3.5
    >>> as_time(datetime(2026, 1, 1), dated=True)
    datetime.datetime(2026, 1, 1, 0, 0)
    """
    moment = _from_numpy(time)
    if not dated:
        number = _number(moment)
        if number is not None:
            return number
        if isinstance(moment, Real) and not isinstance(moment, bool):
            raise ValueError(f"{name} must be finite, got {time!r}. Nothing was changed.")
        raise TypeError(
            f"{name} must be a number, like the period or the earlier times; got {time!r}. "
            "Nothing was changed."
        )
    if not isinstance(moment, datetime) or moment != moment:  # NaT is not equal to itself
        raise TypeError(
            f"{name} must be a datetime, because the period is a timedelta or earlier times are "
            f"datetimes; got {time!r}. Nothing was changed."
        )
    if type(moment) is not datetime:
        moment = _plain(moment, name)
    if moment.tzinfo is None or moment.tzinfo is UTC:
        return moment
    return moment.astimezone(UTC)


def _plain(moment: Any, name: str) -> datetime:
    """Take the datetime out of a subclass, say of pandas."""
    if getattr(moment, "nanosecond", 0):
        raise ValueError(
            f"{name} is {moment!r}, which is finer than a microsecond. Round it, or use numbers "
            "as times. Nothing was changed."
        )
    day = (moment.year, moment.month, moment.day)
    hour = (moment.hour, moment.minute, moment.second, moment.microsecond)
    return datetime(*day, *hour, tzinfo=moment.tzinfo, fold=moment.fold)


def as_times(times: Any, dated: bool, name: str = "times") -> list[Time]:
    """Read one time per sample out of a sequence, array or frame column. O(n).

    >>> as_times(np.array(["2026-01-01"], "M8[D]"), dated=True)
    [datetime.datetime(2026, 1, 1, 0, 0)]
    """
    values = readable(times, name)
    if not isinstance(values, list | tuple):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(
                f"{name} must be one-dimensional, got shape {values.shape}. Pass one time per "
                "sample."
            )
        if not dated and values.dtype.kind in "iuf" and np.isfinite(values).all():
            return list(values.tolist())
        if dated and values.dtype.kind == "M":
            coarse = values.astype("M8[us]")
            if (coarse == values).all():  # and no NaT, which is not equal to itself
                return list(coarse.tolist())
        if values.dtype.kind != "M":
            values = values.tolist()
    return [as_time(value, dated, f"{name}[{at}]") for at, value in enumerate(values)]


def plain_time(time: Any) -> Any:
    """Write a whole number as int, so that 1 and 1.0 are stored alike; None stays None.

    >>> plain_time(1.0), plain_time(None)
    (1, None)
    """
    return plain_number(time) if isinstance(time, Real) else time


def time_column(times: list[Any]) -> tuple[str, Any]:
    """Make numbers of times of one kind, and name the kind. O(n).

    >>> time_column([datetime(1970, 1, 1, 0, 0, 1)])
    ('naive', array([1000000]))
    """
    if not times or not isinstance(times[0], datetime):
        return "number", number_column(times)
    naive = times[0].tzinfo is None
    epoch = _EPOCH if naive else _EPOCH_UTC
    numbers = [(time - epoch) // _MICROSECOND for time in times]
    return "naive" if naive else "utc", np.array(numbers, np.int64)


def times_of(column: tuple[str, Any]) -> list[Any]:
    """Read the times that `time_column` made numbers of. O(n).

    >>> times_of(("number", np.array([1, 2])))
    [1, 2]
    """
    kind, numbers = column
    if kind == "number":
        if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
            raise ValueError("a time that is not finite")
        return plain_list(numbers)
    if kind not in ("naive", "utc"):
        raise ValueError(f"no times are {kind!r}")
    times = numbers.view("M8[us]").tolist()
    if not all(isinstance(time, datetime) for time in times):
        raise ValueError("a time beyond the calendar")
    return times if kind == "naive" else [_EPOCH_UTC + (time - _EPOCH) for time in times]


def require_one_kind(**periods: Period | None) -> bool | None:
    """Return True if the periods are timedeltas, False if numbers, None if there are none.

    >>> require_one_kind(time_to_live=30, maturity=None)
    False
    """
    given = {name: period for name, period in periods.items() if period is not None}
    kinds = {isinstance(period, timedelta) for period in given.values()}
    if len(kinds) > 1:
        listed = ", ".join(f"{name}={period!r}" for name, period in given.items())
        raise TypeError(f"periods must be all numbers or all timedeltas, got {listed}.")
    return next(iter(kinds), None)


class Timeline(Generic[_Thing]):
    """A queue of things ordered by their times, added in any order.

    `add` takes O(1) for a thing that is not older than all before, else O(log n). Things of
    the same time leave in the order in which they were added.

    >>> line = Timeline()
    >>> for time, thing in [(1, "a"), (4, "b"), (2, "late")]:
    ...     line.add(time, thing)
    >>> list(line.until(3)), len(line)
    (['a', 'late'], 1)
    """

    __slots__ = ("_added", "_late", "_line")

    def __init__(self) -> None:
        self._line: deque[tuple[Any, int, _Thing]] = deque()
        self._late: list[tuple[Any, int, _Thing]] = []  # a heap
        self._added = 0

    def add(self, time: Any, thing: _Thing) -> None:
        """Put a thing in at its time."""
        line = self._line
        self._added = number = self._added + 1
        if not line or time >= line[-1][0]:
            line.append((time, number, thing))
        else:
            heappush(self._late, (time, number, thing))

    def first(self) -> tuple[Any, _Thing] | None:
        """Look at the earliest thing and its time; None when there is none. O(1)."""
        line, late = self._line, self._late
        if late and (not line or late[0] < line[0]):
            return late[0][0], late[0][2]
        return (line[0][0], line[0][2]) if line else None

    def pop(self) -> _Thing:
        """Take out the earliest thing."""
        line, late = self._line, self._late
        if late and (not line or late[0] < line[0]):
            return heappop(late)[2]
        return line.popleft()[2]

    def until(self, edge: Any) -> Iterator[_Thing]:
        """Take out, in order, the things whose time is not after the edge."""
        while (found := self.first()) is not None and found[0] <= edge:
            yield self.pop()

    def in_order(self) -> list[tuple[Any, _Thing]]:
        """List everything with its time, in order; nothing is taken out. O(n log n)."""
        return [(time, thing) for time, _, thing in sorted([*self._line, *self._late])]

    def __len__(self) -> int:
        return len(self._line) + len(self._late)
