# SPDX-License-Identifier: Apache-2.0
"""What to remember: the last n samples, or those of the last period by their own time.

A window feeds a model and takes back what has left. Any model will do that has `update`,
`revert` and a length; a sample is whatever its `update` takes.
"""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import chain, islice
from operator import index
from sys import maxsize
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from limen.columns import require_same_length
from old_memory.timeline import Timeline
from old_memory.wrapping import (
    Row,
    Window,
    by_position,
    emptied,
    parameters,
    refuse_use,
    require_empty,
    rows_of,
    sample_columns,
    samples_of,
    sorted_columns,
)
from limen.storage.packing import plain_time, time_column, times_of, whole_number
from limen.times import Period, Time, as_period, as_time, as_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["LastN", "LastPeriod", "in_window"]


def in_window(model: Any, window: Any) -> Any:
    """Wrap an empty model in the window that a parameter names.

    A whole number stands for the last n samples, a timedelta for the last period, a function
    is given the model, and None leaves it as it is.

    >>> from limen import OnlineThreshold
    >>> in_window(OnlineThreshold(), 100).n
    100
    """
    if window is None:
        return model
    if isinstance(window, timedelta):
        return LastPeriod(model, window)
    return window(model) if callable(window) else LastN(model, window)


class LastN(Window):
    """Keep a model right for the last n samples, in the order in which they came.

    Parameters
    ----------
    model
        An empty model: `OnlineThreshold`, `OnlineCut`, `OnlineCalibrator`, or anything with
        `update`, `revert` and a length. From now on it belongs to the window.
    n
        How many samples to remember, at least 1.

    Notes
    -----
    Answers are read from the window as from the model: `threshold`, `loss`, `optimum`,
    `predict`, `curve`. A sample of weight 0 is the same as none and takes no place.

    `update` takes what one update and one revert of the model take, O(log n), and O(n) memory.
    Let one thread at a time update a window; others may read.

    Examples
    --------
    >>> from limen import LastN, OnlineThreshold
    >>> window = LastN(OnlineThreshold(), n=3)
    >>> for score, label in [(0.9, 0), (0.2, 0), (0.4, 1), (0.6, 1)]:
    ...     window.update(score, label)
    >>> len(window), window.threshold, window.loss
    (3, 0.30000000000000004, 0.0)
    """

    __slots__ = ("_added", "_blanks", "_n", "_queue")

    _by_arrival = True
    _period = None

    def __init__(self, model: Any, n: int) -> None:
        number = None if isinstance(n, bool) or not hasattr(n, "__index__") else index(n)
        if number is None or number < 1:
            raise ValueError(f"n must be a whole number of at least 1, got {n!r}.")
        require_empty(model)
        self._start(model, number, [])

    def _start(self, model: Any, n: int, rows: list[Row]) -> None:
        self._feed(model)
        self._n = n
        self._queue: deque[Any] = deque(rows, maxlen=min(n, maxsize))
        self._added = 0
        self._blanks = 0  # places in line whose entry is held no longer

    @property
    def n(self) -> int:
        """How many samples the window remembers at most."""
        return self._n

    @property
    def settings(self) -> dict[str, Any]:
        """The length of the window, by name."""
        return {"n": self._n}

    def update(self, *sample: Any, **named: Any) -> None:
        """Add one sample, as the model's `update` does, and let the oldest one leave. O(log n).

        An error is the model's own and changes nothing.

        >>> from limen import LastN, OnlineThreshold
        >>> window = LastN(OnlineThreshold(), n=1)
        >>> window.update(0.3, 0)
        >>> window.update(0.7, 1, weight=2)
        >>> len(window), window.threshold
        (1, -inf)
        """
        if named:
            sample = by_position(self._names, sample, named)
        queue = self._queue
        try:
            self._update(*sample)
        except OverflowError:
            return self._instead_of_the_oldest(sample)
        if len(sample) > 2 and len(self._model) == len(queue):  # it has no loss
            return None
        if len(queue) == self._n:
            oldest = queue[0]
            queue.append(sample)  # and the oldest is out
            self._revert(*oldest)
        else:
            queue.append(sample)
        return None

    def _instead_of_the_oldest(self, sample: Row) -> None:
        """There may be room for the new sample only where the oldest was."""
        queue = self._queue
        if len(queue) < self._n:
            self._update(*sample)  # which tells why not
        self._revert(*queue[0])
        try:
            self._update(*sample)
        except OverflowError:
            self._update(*queue[0])
            raise
        queue.append(sample)

    def update_many(self, *columns: Any, **named: Any) -> None:
        """Add many samples, as the model's `update_many` does: all of them, or on an error none.

        The same as `update` one by one. O(m) to sort m samples, then O(m log n), or O(n + m).

        >>> from limen import LastN, OnlineThreshold
        >>> window = LastN(OnlineThreshold(), n=3)
        >>> window.update_many([0.9, 0.2, 0.4, 0.6], [0, 0, 1, 1])
        >>> len(window), window.loss
        (3, 0.0)
        """
        columns = self._columns(columns, named)
        queue, before = self._queue, len(self._model)
        try:
            self._model.update_many(*columns)
        except OverflowError:
            return self._one_by_one(rows_of(columns))
        rows = self._counted(rows_of(columns), before)
        leaving = list(islice(chain(queue, rows), max(0, len(queue) + len(rows) - self._n)))
        queue.extend(rows)
        self._take_back(leaving)
        return None

    def _one_by_one(self, rows: list[Row]) -> None:
        """There may be room for all samples one after the other, but not at the same time."""
        before = list(self._queue)
        try:
            for row in rows:
                self.update(*row)
        except BaseException:
            self._go_back(list(self._queue), before)
            self._start(self._model, self._n, before)
            raise

    def _described(self) -> dict[str, Any]:
        model, rows = emptied(self._model), list(self._queue) if self._leave is None else []
        columns = sample_columns(rows, self._names[1] == "label")
        return {"model": model, "n": self._n, "samples": columns}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a window of a `snapshot`. O(n)."""
        rows = samples_of(snapshot["samples"], snapshot["model"])
        window = cls.__new__(cls)
        n = whole_number(snapshot, "n", least=max(1, len(rows)))
        window._start(snapshot["model"], n, rows)
        return window

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(n={self._n}) of {self._model!r}>"

    # For a ledger.

    def _adopt(self, leave: Callable[[Any], None]) -> None:
        super()._adopt(leave)
        self._queue = deque()  # of places and entries

    def _enter(self, entry: Any, time: Any) -> None:
        self._added = entry.place = self._added + 1
        queue = self._queue
        queue.append((entry.place, entry))
        while len(queue) - self._blanks > self._n:
            place, oldest = queue.popleft()
            if place == oldest.place:
                self._leave(oldest)
            else:
                self._blanks -= 1

    def _blank(self, entry: Any) -> None:
        # The place in line is cleared when it is the oldest, or with many others.
        entry.place = 0
        self._blanks += 1
        if self._blanks > self._n:
            self._queue = deque(pair for pair in self._queue if pair[0] == pair[1].place)
            self._blanks = 0

    def _entries(self) -> list[Any]:
        return [entry for place, entry in self._queue if place == entry.place]


class _BeforeAll:
    """Earlier than any datetime, with or without a time zone."""

    def __lt__(self, other: object) -> bool:
        return True

    def __ge__(self, other: object) -> bool:
        return False


_BEFORE_ALL = _BeforeAll()


class LastPeriod(Window):
    """Keep a model right for the events of the last period, in any order of arrival.

    An event counts exactly while its own time t satisfies ``newest - period < t <= newest``,
    where `newest` is the latest time seen in `update` or `advance`. A late event inside the
    period counts from its arrival and leaves at its own time; one that is older is refused.

    Parameters
    ----------
    model
        An empty model, as for `LastN`.
    period
        How far to look back: a timedelta for datetimes, or a number for times that are numbers.

    Notes
    -----
    Datetimes are all with a time zone or all without; those with one are compared in UTC.
    Time runs forward only: an earlier `advance` changes nothing. A single event from the far
    future sends all others away, so look at the clocks of your sources.

    `update` takes what one update of the model takes and one revert for each event that
    leaves, plus O(log n) for an event that comes late; O(n) memory for n events in the period.
    Let one thread at a time update a window; others may read.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> from limen import LastPeriod, OnlineThreshold
    >>> window = LastPeriod(OnlineThreshold(), timedelta(days=3))
    >>> window.update(0.9, 1, time=datetime(2026, 1, 10))
    True
    >>> window.update(0.2, 0, time=datetime(2026, 1, 8))  # late, but inside
    True
    >>> window.update(0.1, 1, time=datetime(2026, 1, 7))  # just too old
    False
    >>> len(window), window.threshold, window.refused
    (2, 0.55, 1)
    >>> window.advance(datetime(2026, 1, 11))
    >>> len(window), window.threshold
    (1, -inf)
    """

    __slots__ = (
        "_added",
        "_edge",
        "_late",
        "_newest",
        "_period",
        "_plain",
        "_refused",
        "_samples",
        "_timeline",
        "_times",
    )

    _newest: Any
    _edge: Any
    _plain: type | None

    def __init__(self, model: Any, period: Period) -> None:
        length = as_period(period)
        require_empty(model)
        self._start(model, length, None, 0, [])

    def _start(
        self,
        model: Any,
        period: Period,
        newest: Time | None,
        refused: int,
        events: list[tuple[Any, Row]],
    ) -> None:
        self._feed(model)
        self._period: Period = period
        self._refused = refused
        self._plain = None
        self._timeline: Timeline[Any] = Timeline()  # of a ledger's entries
        self._times: deque[Any] = deque()  # ascending
        self._samples: deque[Row] = deque()
        self._late: list[tuple[Any, int, Row]] = []
        self._added = 0
        self._newest = self._edge = _BEFORE_ALL if isinstance(period, timedelta) else -math.inf
        if newest is not None:
            self._newest, self._edge = newest, self._edge_at(newest)
        for time, sample in events:
            self._hold(time, sample)

    @property
    def period(self) -> Period:
        """How far the window looks back."""
        return self._period

    @property
    def settings(self) -> dict[str, Any]:
        """The length of the window, by name."""
        return {"period": self._period}

    @property
    def newest(self) -> Time | None:
        """The latest time seen, where the period ends; None before the first."""
        return None if self._newest is _BEFORE_ALL or self._newest == -math.inf else self._newest

    @property
    def refused(self) -> int:
        """How many events were too old when they came."""
        return self._refused

    def update(self, *sample: Any, time: Any, **named: Any) -> bool:
        """Add one event, as the model's `update` does, unless its time is too old. O(log n).

        Return whether it counts. An error is the model's own, or about the time, and changes
        nothing, not even the newest time.

        >>> from limen import LastPeriod, OnlineThreshold
        >>> window = LastPeriod(OnlineThreshold(), 10)
        >>> window.update(0.3, 0, time=1), window.update(0.7, 1, time=11)
        (True, True)
        >>> len(window)
        1
        """
        if named:
            sample = by_position(self._names, sample, named)
        if time.__class__ is not self._plain:
            time = self._checked(time)
        if not time > self._newest:
            return self._update_late(sample, time)
        try:
            edge = time - self._period
        except OverflowError:
            edge = self._edge_at(time)
        if not edge < time:
            self._refuse_far(time)
        try:
            self._update(*sample)
        except OverflowError:
            return self._once_the_old_have_left(sample, time)
        self._newest = time
        self._edge = edge
        times = self._times
        if len(sample) > 2 and len(self._model) == len(times) + len(self._late):  # no loss
            self._take_back([old for _, old in self._leaving(edge)])
            return True
        times.append(time)
        self._samples.append(sample)
        while times[0] <= edge:
            times.popleft()
            self._revert(*self._samples.popleft())
        while self._late and self._late[0][0] <= edge:
            self._revert(*heappop(self._late)[2])
        return True

    def _update_late(self, sample: Row, time: Any) -> bool:
        if time != time or time == -math.inf:
            as_time(time, dated=False)  # which tells what is wrong with it
        if time <= self._edge:
            if self._leave is not None:
                refuse_use()
            self._refused += 1
            return False
        self._update(*sample)
        if len(self._model) > len(self._times) + len(self._late):  # else it has no loss
            self._hold(time, sample)
        return True

    def _hold(self, time: Any, sample: Row) -> None:
        """Put an event in at its time: what came in order stands in line, the rest in a heap."""
        if not self._times or time >= self._times[-1]:
            self._times.append(time)
            self._samples.append(sample)
        else:
            self._added += 1  # so that no two samples are ever compared
            heappush(self._late, (time, self._added, sample))

    def _leaving(self, edge: Any) -> list[tuple[Any, Row]]:
        """Take the events that are too old out of the window, but not yet out of the model."""
        leaving = []
        while self._times and self._times[0] <= edge:
            leaving.append((self._times.popleft(), self._samples.popleft()))
        while self._late and self._late[0][0] <= edge:
            time, _, sample = heappop(self._late)
            leaving.append((time, sample))
        return leaving

    def _once_the_old_have_left(self, sample: Row, time: Any) -> bool:
        """There may be room for the new event only where the old ones were."""
        edge = self._edge_at(time)
        leaving = self._leaving(edge)
        self._take_back([old for _, old in leaving])
        try:
            self._update(*sample)
        except OverflowError:
            for when, old in leaving:
                self._update(*old)
                self._added += 1
                heappush(self._late, (when, self._added, old))
            raise
        self._hold(time, sample)
        self._newest, self._edge = time, edge
        return True

    def _checked(self, time: Any, name: str = "time") -> Any:
        """Read a time; raise unless it can be compared with those before."""
        if time.__class__ is datetime and time.tzinfo is self._zone:
            return time
        if not isinstance(self._period, timedelta):
            number = as_time(time, False, name)
            self._plain = type(number)  # the next one of this type needs no look
            return number
        moment: Any = as_time(time, True, name)
        try:
            moment > self._newest  # noqa: B015 - whether they can be compared
        except TypeError:
            _refuse_zone(name, time, self._newest)
        return moment

    @property
    def _zone(self) -> Any:
        """The time zone of all datetimes, once there is one; else something that none has."""
        return getattr(self._newest, "tzinfo", self)

    def _edge_at(self, time: Any) -> Any:
        """Find where a period begins that ends at this time."""
        try:
            edge = time - self._period
        except OverflowError:
            if isinstance(time, datetime):  # before the first of all days
                return _BEFORE_ALL
            self._refuse_far(time)
        if not edge < time:
            self._refuse_far(time)
        return edge

    def _refuse_far(self, time: Any) -> NoReturn:
        if time == math.inf:
            as_time(time, dated=False)  # which tells what is wrong with it
        raise ValueError(
            f"time is {time!r}, from where no period of {self._period!r} can be told. Give "
            "times that are nearer to zero, or a longer period. Nothing was changed."
        )

    def advance(self, time: Any) -> None:
        """Let the period end at this time, if it is the latest so far. O(log n) per leaving.

        >>> from limen import LastPeriod, OnlineThreshold
        >>> window = LastPeriod(OnlineThreshold(), 10)
        >>> window.update(0.3, 0, time=1)
        True
        >>> window.advance(10.5)
        >>> len(window)
        1
        >>> window.advance(11)
        >>> len(window)
        0
        """
        if self._leave is not None:
            refuse_use()
        self._advance(self._checked(time))

    def _advance(self, time: Any) -> None:
        if not time > self._newest:
            return
        self._newest, self._edge = time, self._edge_at(time)
        if self._leave is None:
            self._take_back([sample for _, sample in self._leaving(self._edge)])
        else:
            for entry in self._timeline.until(self._edge):
                if entry.held:
                    self._leave(entry)

    def update_many(self, *columns: Any, times: Any, **named: Any) -> NDArray[np.bool_]:
        """Add many events, as the model's `update_many` does: all of them, or on an error none.

        The same as `update` one by one, in the order given. Return for each whether it was
        counted; those that were too old when they came are not looked at any further. O(m) to
        sort m samples, then O(m log n), or O(n + m).

        >>> from limen import LastPeriod, OnlineThreshold
        >>> window = LastPeriod(OnlineThreshold(), 10)
        >>> window.update_many([0.3, 0.7, 0.5], [0, 1, 1], times=[1, 20, 5])
        array([ True,  True, False])
        >>> len(window)
        1
        """
        columns = self._columns(columns, named)
        moments = as_times(times, isinstance(self._period, timedelta))
        arrays = [None if column is None else np.asarray(column) for column in columns]
        if all(array is None or array.ndim for array in arrays):  # else the model tells
            given = dict(zip(parameters(self._model.update_many), arrays, strict=False))
            require_same_length(**given, times=np.empty(len(moments)))
        newest, edge, counted = self._in_turn(moments)
        if not counted.all():
            columns = tuple(None if array is None else array[counted] for array in arrays)
        before = len(self._model)
        try:
            self._model.update_many(*columns)
        except OverflowError:
            self._one_by_one(rows_of(arrays), moments)
            return counted
        kept = [time for time, counts in zip(moments, counted, strict=True) if counts]
        self._hold_rows(kept, rows_of(columns), before)
        self._newest, self._edge = newest, edge
        self._refused += len(moments) - len(kept)
        self._take_back([sample for _, sample in self._leaving(edge)])
        return counted

    def _in_turn(self, moments: list[Any]) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Find the newest time and the edge after all of these, and which were not too old."""
        newest, edge = self._newest, self._edge
        counted = np.ones(len(moments), np.bool_)
        for at, time in enumerate(moments):
            try:
                if time > newest:
                    newest, edge = time, self._edge_at(time)
                elif time <= edge:
                    counted[at] = False
            except TypeError:
                _refuse_zone(f"times[{at}]", time, newest)
        return newest, edge, counted

    def _hold_rows(self, times: list[Any], rows: list[Row], before: int) -> None:
        if len(self._model) - before == len(rows):
            for time, row in zip(times, rows, strict=True):
                self._hold(time, row)
            return
        for time, row in zip(times, rows, strict=True):
            if self._counted([row], len(self._model)):
                self._hold(time, row)

    def _one_by_one(self, rows: list[Row], times: list[Any]) -> None:
        """There may be room for all events one after the other, but not at the same time."""
        newest, refused, before = self.newest, self._refused, self._events()
        try:
            for row, time in zip(rows, times, strict=True):
                self.update(*row, time=time)
        except BaseException:
            held, kept = ([sample for _, sample in events] for events in (self._events(), before))
            self._go_back(held, kept)
            self._start(self._model, self._period, newest, refused, before)
            raise

    def _events(self) -> list[tuple[Any, Row]]:
        """List the samples with their times. O(n)."""
        late = ((time, sample) for time, _, sample in self._late)
        return [*zip(self._times, self._samples, strict=True), *late]

    def _described(self) -> dict[str, Any]:
        model, events = emptied(self._model), self._events()
        kind, times = time_column([time for time, _ in events])
        samples = sample_columns([sample for _, sample in events], self._names[1] == "label")
        times, *columns = sorted_columns((times, *samples))
        return {
            "model": model,
            "period": plain_time(self._period),
            "newest": plain_time(self.newest),
            "refused": self._refused,
            "times": (kind, times),
            "samples": tuple(columns),
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a window of a `snapshot`. O(n)."""
        period = as_period(snapshot["period"])
        newest: Any = snapshot["newest"]
        if newest is not None:
            newest = as_time(newest, isinstance(period, timedelta))
        times = times_of(snapshot["times"])
        samples = samples_of(snapshot["samples"], snapshot["model"])
        window = cls.__new__(cls)
        events = list(zip(times, samples, strict=True))
        window._start(snapshot["model"], period, newest, whole_number(snapshot, "refused"), events)
        if times and not (window._edge < min(times) and max(times) <= newest):
            raise ValueError("an event is not of this period")
        return window

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(period={self._period!r}) of {self._model!r}>"

    # For a ledger.

    def _require_counted_at(self, age: Any) -> None:
        if age >= self._period:
            raise ValueError(
                f"maturity={age!r} must be less than period={self._period!r} of the window: a "
                "negative would be too old for the window by the time it counts, and only "
                "positives would ever count. Give a longer period or a shorter maturity."
            )

    def _admits(self, time: Any) -> bool:
        if time > self._edge:
            return True
        self._refused += 1
        return False

    def _enter(self, entry: Any, time: Any) -> None:
        if not entry.place:  # else it was here before, and its time is the same
            entry.place = 1
            self._timeline.add(time, entry)

    def _entries(self) -> list[Any]:
        return [entry for _, entry in self._timeline.in_order() if entry.held]


def _refuse_zone(name: str, time: Any, newest: Any) -> NoReturn:
    raise TypeError(
        f"{name} is {time!r}, but the newest is {newest!r}. Give all datetimes with a time zone, "
        "or all without. Nothing was changed."
    ) from None
