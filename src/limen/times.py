# SPDX-License-Identifier: Apache-2.0
"""Times and periods: plain numbers or datetimes, never mixed.

A datetime with a time zone is held in UTC, where subtracting a period means what it says on
every day of the year. Everything here is exact to the microsecond, or to the number given.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limen.arrays import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LENGTH",
    "Period",
    "Time",
    "as_period",
    "as_time",
    "as_time_column",
    "as_times",
    "is_dated",
    "length_of",
    "length_text",
    "require_one_kind",
    "require_one_zone",
]

_FIRST, _LAST = np.datetime64(datetime.min, "us"), np.datetime64(datetime.max, "us")

Time: TypeAlias = int | float | datetime
Period: TypeAlias = int | float | timedelta


# A length of time as it is typed, and what its units are in microseconds.
LENGTH = "^(?=.*[1-9])([0-9]{1,18})([.][0-9]{1,9})?([smhdw])$"
_UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
}
_LONGEST = timedelta.max // timedelta(microseconds=1)


def length_of(text: str, name: str = "period") -> int:
    """Read a length of time such as 90d as microseconds, the nearest whole number of them.

    >>> length_of("90s"), length_of("1.5h"), length_of("2w") == 14 * length_of("1d")
    (90000000, 5400000000, True)
    """
    found = re.fullmatch(LENGTH, text)
    length = 0
    if found is not None:
        whole, part, unit = found[1], found[2] or ".0", _UNITS[found[3]]
        length = int(whole) * unit + round(int(part[1:]) * unit / 10 ** (len(part) - 1))
    if not 0 < length <= _LONGEST:
        raise ValueError(
            f"{name} must be a length of time: a number and one of s, m, h, d, w, such as 90s, "
            f"12h or 30d; got {text!r}."
        )
    return length


def length_text(length: timedelta) -> str:
    """Write a length of time as it may be typed.

    >>> length_text(timedelta(hours=36)), length_text(timedelta(days=90))
    ('36h', '90d')
    """
    for unit in "dhm":
        many, rest = divmod(length, timedelta(microseconds=_UNITS[unit]))
        if not rest:
            return f"{many}{unit}"
    return f"{length.total_seconds():f}".rstrip("0").rstrip(".") + "s"


def _from_numpy(value: Any) -> Any:
    """Turn datetime64 and timedelta64 into datetime and timedelta, if nothing is lost."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        with suppress(TypeError):  # a month has no fixed number of microseconds
            coarse = value.astype(f"{value.dtype.kind}8[us]")
            # There and back, because NumPy lets numbers that are too large wrap around.
            if coarse == value and coarse.astype(value.dtype) == value:
                found = coarse.item()
                if isinstance(found, datetime | timedelta):  # an int where the year is too far
                    return found
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


def is_dated(time: Any) -> bool:
    """Whether this is a datetime, of Python or of NumPy."""
    return isinstance(time, datetime | np.datetime64)


def as_times(times: Any, dated: bool, name: str = "times") -> list[Time]:
    """Read one time per sample out of a sequence, array or frame column. O(n).

    >>> as_times(np.array(["2026-01-01"], "M8[D]"), dated=True)
    [datetime.datetime(2026, 1, 1, 0, 0)]
    """
    values = readable(times, name)
    return [as_time(value, dated, f"{name}[{at}]") for at, value in enumerate(values)]


def as_time_column(
    times: Any, dated: bool | None, name: str = "times"
) -> tuple[list[Any] | tuple[bool, NDArray[Any]], int]:
    """Make a list of times, or an array and whether it holds datetimes; also how many there are.

    Datetimes in an array are microseconds since 1970. A list is checked by its reader. O(n).

    >>> as_time_column(np.array(["1970-01-02"], "M8[D]"), dated=True)
    ((True, array([86400000000])), 1)
    >>> as_time_column([1, 2.5], dated=False)
    ([1, 2.5], 2)
    """
    values = readable(times, name)
    if not isinstance(values, list | tuple):
        values = np.asarray(values)
        if values.ndim != 1:
            raise ValueError(
                f"{name} must be one-dimensional, got shape {values.shape}. Pass one time per "
                "sample."
            )
        found = _plain_array(values, dated)
        if found is not None:
            return found, len(values)
        values = list(values) if values.dtype.kind == "M" else values.tolist()
    return list(values), len(values)


def _plain_array(values: NDArray[Any], dated: bool | None) -> tuple[bool, NDArray[Any]] | None:
    """Return finite numbers or whole microseconds in one piece; None where they are others."""
    if dated is not True and values.dtype.kind in "iuf" and np.isfinite(values).all():
        kind = np.float64 if values.dtype.kind == "f" else np.int64
        if values.dtype.itemsize <= 8 and (
            values.dtype.kind != "u" or values.max(initial=0) < 2**63
        ):
            return False, np.ascontiguousarray(values, kind)
    if dated is not False and values.dtype.kind == "M":
        coarse = values.astype("M8[us]")
        same = (coarse == values) & (coarse.astype(values.dtype) == values)
        # No NaT, which is not equal to itself, nothing that wrapped around, no year 20000.
        if same.all() and (not len(coarse) or (coarse.min() >= _FIRST and coarse.max() <= _LAST)):
            return True, np.ascontiguousarray(coarse).view(np.int64)
    return None


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


def require_one_zone(moment: Any, earlier: Any, name: str = "time") -> None:
    """Raise TypeError where one of two datetimes has a time zone and the other has none.

    >>> require_one_zone(3, 2.5)
    """
    if isinstance(moment, datetime) and (moment.tzinfo is None) != (earlier.tzinfo is None):
        raise TypeError(
            f"{name} is {moment!r}, but earlier ones are of another kind. Give all datetimes with "
            "a time zone, or all without. Nothing was changed."
        )
