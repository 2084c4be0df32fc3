# SPDX-License-Identifier: Apache-2.0
"""Forgetting little by little: what is older counts less, by a half-life.

The cheapest cut does not change when all losses are multiplied alike. So nothing old is touched
as it ages; newer samples are added with larger weights instead, and when these have become large
everything held is divided by a power of two.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self

from limen import _core
from limen.errors import Infeasible
from limen.hull import Blocks, RocHull
from old_memory.wrapping import (
    Row,
    Window,
    by_position,
    refuse_use,
    require_empty,
    rows_of,
)
from limen.metrics import BestCut, Confusion, Metric
from limen.model import Held
from limen.optimum import LossCurve, Optimum
from limen.storage.packing import plain_time
from limen.times import Period, Time, as_period, as_time, as_times
from limen.units import exact_unit

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fading"]

# The weight of the newest sample is held as 2**_LOW to 2**_HIGH times itself.
_LOW, _HIGH = 10, 20
_FINEST = 2.0**-_core.finest_bits
_NEAR, _FAR = 2**20, 2**52  # half-lives, up to which doubles tell parts of one, and one at all
_MICROSECOND = timedelta(microseconds=1)

_STATE = ("half_life", "by", "base", "count", "newest", "origin", "refused", "spent", "spent_at")


class Fading(Window):
    """Keep a model right for samples that count half as much after each half-life.

    Parameters
    ----------
    model
        An empty model: `OnlineThreshold`, `OnlineCut` or `OnlineCalibrator`. From now on it
        belongs to this object.
    half_life
        After how many samples, or after how much time, a sample counts half: a number, or a
        timedelta for datetimes.
    by
        ``"samples"`` or ``"time"``; None for time where the half-life is a timedelta, and for
        samples otherwise.

    Notes
    -----
    The newest sample, or one of the newest time, counts its own weight; `loss` and all other
    sums are in these terms. Every other weight is held to within 2**-30 of that of a new sample
    of weight 1 (with ``unit=None``), and what has faded below that, after some thirty
    half-lives, is dropped: memory is O(samples in thirty to forty half-lives). So the cut is
    worse than the best by at most 2**-29 per distinct score held, times the larger cost. A
    sample may come late and counts by its own time; one that would count nothing is refused.

    `update` takes what one update of the model takes, and O(n) every ten half-lives. There is
    no `revert`; a `Ledger` around it can correct labels and forget. Let one thread at a time
    update it; others may read.

    Examples
    --------
    >>> from limen import Fading, OnlineThreshold
    >>> fading = Fading(OnlineThreshold(), half_life=2)
    >>> fading.update_many([0.9, 0.9, 0.2, 0.9, 0.2, 0.9], [0, 0, 0, 1, 0, 1])
    [True, True, True, True, True, True]
    >>> fading.threshold, round(fading.loss, 6)  # the old errors at 0.9 have faded
    (0.55, 0.426777)
    """

    __slots__ = (*(f"_{name}" for name in _STATE), "_length", "_trial", "_unit")

    _refilled = False

    if TYPE_CHECKING:
        _half_life: Period
        _length: tuple[int, int]  # the same, exactly: microseconds or a number, and its denominator
        _by: str
        _base: float | None
        _count: int
        _newest: Any
        _origin: Any
        _refused: int
        _spent: float
        _spent_at: float
        _trial: Any

    def __init__(
        self, model: Any, half_life: Period, *, by: Literal["samples", "time"] | None = None
    ) -> None:
        length = as_period(half_life, "half_life")
        dated = isinstance(length, timedelta)
        if by not in (None, "samples", "time") or (dated and by == "samples"):
            raise ValueError(
                f'by must be "samples" or "time", and "time" for a timedelta; got {by!r} with '
                f"half_life={half_life!r}."
            )
        require_empty(model)
        if not isinstance(model, Held):
            raise TypeError(f"model must be one of limen, which can fade; got {model!r}.")
        self._start(
            {
                "model": model,
                "half_life": length,
                "by": by or ("time" if dated else "samples"),
                "base": None,
                "count": 0,
                "newest": None,
                "origin": None,
                "refused": 0,
                "spent": 0.0,
                "spent_at": 0.0,
            }
        )

    def _start(self, state: dict[str, Any]) -> None:
        self._feed(state["model"])
        self._become(state)
        unit = exact_unit(self._model.settings["unit"])
        self._unit = _FINEST if unit is None else float(unit)
        length: Any = self._half_life
        if isinstance(length, timedelta):
            self._length = length // _MICROSECOND, 1
        else:
            self._length = length.as_integer_ratio()
        self._trial = self._model.empty()

    def _become(self, state: dict[str, Any]) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", state[name])

    @property
    def half_life(self) -> Period:
        """After how many samples, or how much time, a sample counts half."""
        return self._half_life

    @property
    def settings(self) -> dict[str, Any]:
        """The half-life, and what it is counted by."""
        return {"half_life": self._half_life, "by": self._by}

    @property
    def newest(self) -> Time | None:
        """The latest time seen; None before the first, and where samples are counted."""
        newest: Time | None = self._newest
        return newest

    @property
    def refused(self) -> int:
        """How many samples were too old to count anything when they came."""
        return self._refused

    # What comes in.

    def update(self, *sample: Any, time: Any = None, **named: Any) -> bool:
        """Add one sample, as the model's `update` does; all others have aged. O(log n).

        Return whether it counts. An error changes nothing.

        >>> from limen import Fading, OnlineThreshold
        >>> fading = Fading(OnlineThreshold(), half_life=10, by="time")
        >>> fading.update(0.3, 0, time=100), fading.update(0.7, 1, time=0)
        (True, True)
        >>> fading.update(0.9, 1, time=-900)
        False
        """
        if self._leave is not None:
            refuse_use()
        if named:
            sample = by_position(self._names, sample, named)
        moment = self._checked(time)
        plain = len(sample) == 2 and self._names[1] == "label"
        if not plain and not self._weighs_something(sample):
            self._advance(moment)
            return True
        counted = self._hold(sample, self._count, moment)
        if counted:
            self._count += 1
        else:
            self._refused += 1
        return counted

    def _weighs_something(self, sample: Row) -> bool:
        """Let an empty model look at it, because the other will see it with another weight."""
        self._trial.update(*sample)
        if len(self._trial) == 0:
            return False
        self._trial.revert(*sample)
        return True

    def update_many(self, *columns: Any, times: Any = None, **named: Any) -> list[bool]:
        """Add many samples, as `update` one by one: all of them, or on an error none.

        Return for each whether it counts. O(n) besides the updates.

        >>> from limen import Fading, OnlineThreshold
        >>> fading = Fading(OnlineThreshold(), half_life=100)
        >>> fading.update_many([0.3, 0.7], [0, 1])
        [True, True]
        """
        columns = self._columns(columns, named)
        self._trial.update_many(*columns)  # which tells what is wrong, and where
        self._trial = self._model.empty()
        rows = rows_of(columns)
        dated = isinstance(self._half_life, timedelta)
        moments: list[Any] = [None] * len(rows) if times is None else as_times(times, dated)
        if len(moments) != len(rows):
            raise ValueError(
                f"times has {len(moments)} values for {len(rows)} samples. Nothing was added."
            )
        held, before = self._model._state(), {name: getattr(self, f"_{name}") for name in _STATE}
        try:
            return [
                self.update(*row, time=moment) for row, moment in zip(rows, moments, strict=True)
            ]
        except BaseException:
            self._model._restore(held)
            self._become(before)
            raise

    def advance(self, time: Any) -> None:
        """Let it be this late, if it is the latest time so far: all samples have aged.

        O(1), and O(n) when ten half-lives have gone by since everything was divided.

        >>> from limen import Fading, OnlineThreshold
        >>> fading = Fading(OnlineThreshold(), half_life=10, by="time")
        >>> fading.update(0.3, 1, time=0), fading.update(0.7, 0, time=0)
        (True, True)
        >>> fading.advance(10)
        >>> fading.loss
        0.5
        """
        if self._leave is not None:
            refuse_use()
        if time is None:
            raise TypeError("advance() needs a time. Nothing was changed.")
        self._advance(self._checked(time))

    def _checked(self, time: Any) -> Any:
        if self._by == "samples":
            if time is not None:
                raise ValueError(
                    f'time is {time!r}, but samples fade by their number here. Say by="time" when '
                    "making this object. Nothing was changed."
                )
            return None
        if time is None:
            raise TypeError("time is missing: samples fade by it here. Nothing was changed.")
        moment: Any = as_time(time, isinstance(self._half_life, timedelta))
        try:
            if self._newest is not None:
                moment > self._newest  # noqa: B015 - whether they can be compared
        except TypeError:
            raise TypeError(
                f"time is {time!r}, but the newest is {self._newest!r}. Give all datetimes with a "
                "time zone, or all without. Nothing was changed."
            ) from None
        return moment

    # Positions are counted in half-lives; a sample at `_base` is held with its own weight.

    def _position(self, count: int, moment: Any, base: float = 0.0) -> float:
        """Tell how many half-lives after the base a sample stands."""
        length: Any = self._half_life
        about = count / length if self._by == "samples" else self._about(moment)
        if abs(about) < _NEAR:
            return about - base
        top, bottom = self._since_the_first(count, moment)
        over, under = base.as_integer_ratio()
        top, bottom = top * under - over * bottom, bottom * under
        if abs(top) < _FAR * bottom:
            return top / bottom
        if top < 0:
            return -float(_FAR)
        raise ValueError(
            f"time is {moment!r}, too many times half_life={self._half_life!r} after the first. "
            "Give times that are nearer, or a longer half-life. Nothing was changed."
        )

    def _about(self, moment: Any) -> float:
        """Tell how many half-lives lie between the first time and this one, as a double."""
        length: Any = self._half_life
        try:
            return 0.0 if self._origin is None else float((moment - self._origin) / length)
        except OverflowError:
            return math.inf

    def _since_the_first(self, count: int, moment: Any) -> tuple[int, int]:
        """Tell the same as an exact fraction."""
        length, parts = self._length
        if self._by == "samples":
            return count * parts, length
        if isinstance(self._half_life, timedelta):
            return (moment - self._origin) // _MICROSECOND, length
        (top, bottom), (over, under) = (t.as_integer_ratio() for t in (moment, self._origin))
        return (top * under - over * bottom) * parts, bottom * under * length

    def _now(self, base: float = 0.0) -> float:
        """Where a sample counts its own weight: at the newest one."""
        return self._position(max(self._count - 1, 0), self._newest, base)

    def _scale(self) -> float:
        """How many times itself the weight of the newest sample is held as."""
        return 1.0 if self._base is None else float(2.0 ** self._now(self._base))

    def _advance(self, moment: Any) -> None:
        if self._by == "samples" or (self._newest is not None and moment <= self._newest):
            return
        base = self._base if self._base is not None else self._position(0, moment) - _LOW
        base += self._fade_for(self._position(0, moment, base))
        self._origin = moment if self._origin is None else self._origin
        self._newest, self._base = moment, base

    def _fade_for(self, ahead: float) -> int:
        """Divide everything held when the weight of a sample would be held as too large."""
        bits = math.floor(ahead) - _LOW if ahead >= _HIGH else 0
        if bits:
            self._model._fade(min(bits, 63))
        return bits

    def _hold(self, sample: Row, count: int, moment: Any) -> bool:
        """Let the model hold a sample that was checked, unless it would count nothing."""
        base = self._base if self._base is not None else self._position(count, moment) - _LOW
        ahead = self._position(count, moment, base)
        late = self._newest is not None and moment < self._newest
        before: bytes | None = None
        held_by = self._base
        try:
            if not late and ahead >= _HIGH:
                before = self._model._state()
                base += self._fade_for(ahead)
                self._base = base  # what is held is in these terms, whatever becomes of the sample
                ahead = self._position(count, moment, base)
            scaled = self._scaled(sample, ahead)
            if scaled is None:
                return False
            try:
                self._model.update(*scaled)
            except OverflowError:
                bits = math.floor(self._now(base) if late else ahead)
                if bits < 1:
                    raise
                before = before or self._model._state()
                self._model._fade(bits)
                base += bits
                scaled = self._scaled(sample, self._position(count, moment, base))
                if scaled is not None:
                    self._model.update(*scaled)
        except BaseException:
            if before is not None:
                self._model._restore(before)
                self._base = held_by
            raise
        self._base = base
        if self._by == "time" and not late:
            self._newest = moment
            self._origin = moment if self._origin is None else self._origin
        return True

    def _scaled(self, sample: Row, ahead: float) -> Row | None:
        """Give the sample 2**ahead times its weight; None when that rounds to nothing."""
        factor, least = 2.0**ahead, self._unit / 2
        if self._names[1] == "label":
            score, label, *weight = sample
            scaled = float(weight[0] if weight else 1) * factor
            return (score, label, scaled) if scaled > least else None
        losses = [float(loss) * factor for loss in sample[1:]]
        kept = [loss if abs(loss) > least else 0.0 for loss in losses]
        return (sample[0], *kept) if any(kept) else None

    # What is asked of it: sums in terms of the newest sample.

    @property
    def loss(self) -> float:  # type: ignore[override]
        """The loss of the cheapest cut, by weights that have faded. O(1)."""
        return float(self._model.loss) / self._scale()

    @property
    def optimum(self) -> Any:
        """The optimum of the model, by weights that have faded."""
        found = self._model.optimum
        if self._model.takes_costs:
            return lambda **costs: self._lighter(found(**costs))
        return self._lighter(found)

    def curve(self, **costs: Any) -> LossCurve:
        """Compute the loss of every cut, by weights that have faded. O(n)."""
        curve = self._model.curve(**costs)
        return LossCurve(curve.thresholds, curve.losses / self._scale())

    @property
    def confusion(self) -> Callable[[float], Confusion]:  # type: ignore[override]
        """The `confusion` of the model, by weights that have faded."""
        ask = self._model.confusion
        return lambda threshold: self._lighter_weights(ask(threshold))

    @property
    def roc_hull(self) -> Callable[[], RocHull]:  # type: ignore[override]
        """The `roc_hull` of the model, by weights that have faded."""
        ask = self._model.roc_hull

        def lighter() -> RocHull:
            hull, scale = ask(), self._scale()
            weights = (getattr(hull, name) / scale for name in ("tp", "fp", "fn", "tn"))
            return RocHull(hull.thresholds, *weights)

        return lighter

    @property
    def blocks(self) -> Callable[[], Blocks]:  # type: ignore[override]
        """The `blocks` of the model, by weights that have faded."""
        ask = self._model.blocks

        def lighter() -> Blocks:
            blocks: Blocks = ask()
            return replace(blocks, _unit=blocks._unit / Fraction(self._scale()))

        return lighter

    @property
    def best(self) -> Callable[..., BestCut]:  # type: ignore[override]
        """The `best` of the model, by weights that have faded."""
        ask, scale = self._model.best, self._scale()

        def lighter(metric: Any, **demands: Any) -> BestCut:
            counts = isinstance(metric, Metric) and metric.scale is not None
            if not isinstance(metric, str | Metric) and callable(metric):
                function = metric

                def metric(*weights: Any) -> Any:
                    return function(*(weight / scale for weight in weights))

            def lightened(found: BestCut) -> BestCut:
                value = found.value / scale if counts else found.value
                confusion = self._lighter_weights(found.confusion)
                return replace(found, value=value, confusion=confusion)

            try:
                found: BestCut = ask(metric, **demands)
            except Infeasible as infeasible:
                raise Infeasible(str(infeasible), lightened(infeasible.nearest)) from None
            return lightened(found)

        return lighter

    def _lighter(self, optimum: Optimum) -> Optimum:
        return replace(optimum, loss=optimum.loss / self._scale())

    def _lighter_weights(self, confusion: Confusion) -> Confusion:
        return Confusion(*(weight / self._scale() for weight in confusion))

    # Copies, and what is stored.

    def _described(self) -> dict[str, Any]:
        state = {name: getattr(self, f"_{name}") for name in _STATE}
        times = {name: plain_time(state[name]) for name in ("half_life", "newest", "origin")}
        return {"model": self._model, **state, **times}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(n)."""
        parts = dict(snapshot)
        if set(parts) != {"model", *_STATE}:
            raise ValueError("not all that belongs to it, or more")
        dated = isinstance(as_period(parts["half_life"]), timedelta)
        for name in ("newest", "origin"):
            if parts[name] is not None:
                parts[name] = as_time(parts[name], dated)
        timed = parts["by"] == "time"
        known = parts["newest"] is not None
        base = 0.0 if parts["base"] is None else parts["base"]
        numbers = [parts["spent"], parts["spent_at"], base]
        if (
            parts["by"] not in ("samples", "time")
            or (dated and not timed)
            or known != (parts["origin"] is not None)
            or (known and not timed)
            or any(type(number) is not float or not math.isfinite(number) for number in numbers)
            or any(type(parts[name]) is not int or parts[name] < 0 for name in ("count", "refused"))
            or not isinstance(parts["model"], Held)
        ):
            raise ValueError("no samples fade like that")
        fading = cls.__new__(cls)
        fading._start(parts)
        if fading._base is None and len(fading):
            raise ValueError("samples without a time")
        if not abs(fading._now(fading._base or 0.0)) < 1000:
            raise ValueError("a time out of reach")
        return fading

    def __repr__(self) -> str:
        # Not the model's own: its sums are in other terms.
        samples = "1 sample" if len(self) == 1 else f"{len(self):,} samples"
        return (
            f"<{type(self).__name__}(half_life={self._half_life!r}, by={self._by!r}) of "
            f"{type(self._model).__name__}: {samples}>"
        )

    # For a ledger.

    @property
    def _period(self) -> Period | None:
        return self._half_life if self._by == "time" else None

    def _require_counted_at(self, age: Any) -> None:
        half_life: Any = self._period
        if half_life is not None and 2.0 ** (_HIGH - age / half_life) <= self._unit / 2:
            raise ValueError(
                f"maturity={age!r} is too long for half_life={half_life!r}: a negative would have "
                "faded to nothing by the time it counts, and only positives would ever count. "
                "Give a longer half-life or a shorter maturity."
            )

    def _admits(self, time: Any) -> bool:
        if self._by == "samples" or self._base is None:
            return True
        if 2.0 ** self._position(0, time, self._base) > self._unit / 2:
            return True
        self._refused += 1
        return False

    def _hold_entry(self, entry: Any, sample: Row) -> None:
        count = entry.place - 1 if entry.place else self._count
        self._hold(sample, count, entry.time)
        if not entry.place:
            self._count += 1
            entry.place = self._count

    def _release_entry(self, entry: Any, sample: Row) -> None:
        scaled = self._scaled(sample, self._place(entry, self._base or 0.0))
        if scaled is not None:
            score, first, second = scaled
            first = bool(first) if self._names[1] == "label" else first
            self._model._withdraw(score, first, second)

    def _place(self, entry: Any, base: float = 0.0) -> float:
        return self._position(entry.place - 1, entry.time, base)

    def _spend(self, change: int, entry: Any) -> None:
        """Count what an answer costs, as much as its sample counts."""
        latest = max(self._place(entry), self._spent_at)
        before = self._spent * 2.0 ** (self._spent_at - latest)
        self._spent = before + change * 2.0 ** self._place(entry, latest)
        self._spent_at = latest

    def _spent_now(self) -> float:
        return float(self._spent * 2.0 ** -self._now(self._spent_at))

    def _entries(self) -> list[Any]:
        return []  # they leave little by little, and no one by itself

    def _enter(self, entry: Any, time: Any) -> None:
        """Nothing leaves for another."""
