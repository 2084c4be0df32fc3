# SPDX-License-Identifier: Apache-2.0
"""What to remember: the last n samples, or those of the last period by their own time."""

from __future__ import annotations

from datetime import timedelta
from operator import index
from typing import TYPE_CHECKING, Any

from limen import _core
from limen.memory.base import Window, require_plain
from limen.model import Held_co
from limen.times import Period, as_period, require_one_kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LastN", "LastPeriod", "in_window"]

_MOST = 2**63 - 1  # samples that any memory holds


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


class LastN(Window[Held_co], _core.LastN, kind="LastN"):
    """Keep a model exact for the last n samples, in the order in which they came.

    Parameters
    ----------
    model
        An empty model: `OnlineThreshold`, `OnlineCut` or `OnlineCalibrator`. From now on it
        belongs to the window: add samples through the window only.
    n
        How many samples to remember, at least 1.

    Notes
    -----
    Answers are read from the window as from the model: `threshold`, `loss`, `optimum`,
    `predict`, `curve`. A sample of weight 0 is the same as none and takes no place.

    `update` takes what one update and one revert of the model take, O(log n), and about 50 bytes
    for each sample. Several threads may share one window: calls take turns.

    Examples
    --------
    >>> from limen import LastN, OnlineThreshold
    >>> window = LastN(OnlineThreshold(), n=3)
    >>> for score, label in [(0.9, 0), (0.2, 0), (0.4, 1), (0.6, 1)]:
    ...     window.update(score, label)
    >>> len(window), window.threshold, window.loss
    (3, 0.30000000000000004, 0.0)
    """

    __slots__ = ()

    _native = _core.LastN

    _settings = ("n",)

    def __init__(self, model: Held_co, n: int) -> None:
        number = None if isinstance(n, bool) or not hasattr(n, "__index__") else index(n)
        if number is None or number < 1:
            raise ValueError(f"n must be a whole number of at least 1, got {n!r}.")
        require_plain(model)
        self._begin(model, {"n": number})

    def _begin(self, model: Any, settings: dict[str, Any]) -> None:
        n = settings["n"]
        if type(n) is not int or n < 1:
            raise ValueError(f"n is {n!r}")
        _core.LastN.__init__(self, model, min(n, _MOST))
        self._given = {"n": n}

    @property
    def n(self) -> int:
        """How many samples the window remembers at most."""
        n: int = self._given["n"]
        return n

    def update_many(self, *columns: Any, **named: Any) -> None:
        """Add many samples, as the model's `update_many` does: all of them, or on an error none.

        The same as `update` one by one. O(m) to sort m samples, then O(m log n), or O(n + m).

        >>> from limen import LastN, OnlineThreshold
        >>> window = LastN(OnlineThreshold(), n=3)
        >>> window.update_many([0.9, 0.2, 0.4, 0.6], [0, 0, 1, 1])
        >>> len(window), window.loss
        (3, 0.0)
        """
        self._add(columns, named, None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(n={self.n}) of {self.model!r}>"


class LastPeriod(Window[Held_co], _core.LastPeriod, kind="LastPeriod"):
    """Keep a model exact for the events of the last period, in any order of arrival.

    An event counts exactly while its own time t satisfies ``newest - period < t <= newest``,
    where `newest` is the latest time seen in `update` or `advance`. A late event inside the
    period counts from its arrival and leaves at its own time; one that is older is refused.

    Parameters
    ----------
    model
        An empty model, as for `LastN`.
    period
        How far to look back: a timedelta for datetimes, or a number for times that are numbers.
    max_ahead
        How far after `newest` an event may be; one that is later is refused. None: any time is
        taken, and a single event from the far future sends all others away.

    Notes
    -----
    Datetimes are all with a time zone or all without; those with one are compared in UTC.
    Time runs forward only: an earlier `advance` changes nothing.

    `update` takes what one update of the model takes and one revert for each event that
    leaves, plus O(log n) for an event that comes late; about 50 bytes for each event. Several
    threads may share one window: calls take turns.

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

    __slots__ = ()

    _native = _core.LastPeriod

    _settings = ("period", "max_ahead")

    def __init__(self, model: Held_co, period: Period, *, max_ahead: Period | None = None) -> None:
        as_period(period)
        require_plain(model)
        self._begin(model, {"period": period, "max_ahead": max_ahead})

    def _begin(self, model: Any, settings: dict[str, Any]) -> None:
        period, ahead = as_period(settings["period"]), settings["max_ahead"]
        if ahead is not None:
            ahead = as_period(ahead, "max_ahead")
        require_one_kind(period=period, max_ahead=ahead)
        _core.LastPeriod.__init__(self, model, (period, ahead))
        self._given = {"period": period, "max_ahead": ahead}

    @property
    def period(self) -> Period:
        """How far the window looks back."""
        period: Period = self._given["period"]
        return period

    @property
    def _dated(self) -> bool:
        return isinstance(self.period, timedelta)

    def update_many(self, *columns: Any, times: Any, **named: Any) -> NDArray[np.bool_]:
        """Add many events, as the model's `update_many` does: all of them, or on an error none.

        The same as `update` one by one, in the order given. Return for each whether it counts, or
        has counted until a later one came. O(m) to sort m samples, then O(m log n), or O(n + m).

        >>> from limen import LastPeriod, OnlineThreshold
        >>> window = LastPeriod(OnlineThreshold(), 10)
        >>> window.update_many([0.3, 0.7, 0.5], [0, 1, 1], times=[1, 20, 5])
        array([ True,  True, False])
        >>> len(window)
        1
        """
        return self._add(columns, named, times)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(period={self.period!r}) of {self.model!r}>"
