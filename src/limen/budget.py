# SPDX-License-Identifier: Apache-2.0
"""The threshold that flags at most so many, by scores alone: no labels are needed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from datetime import timedelta
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.columns import ordered_scores
from limen.direction import mirrored, setting
from limen.optimum import Deciding, Gap
from limen.picture import picture_of_model
from limen.storage import Storable
from limen.times import Period, Time, as_period, as_time, as_times, require_one_zone
from limen.units import Cost, exact_bound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.optimum import Direction

__all__ = ["Budget"]


class Budget(Deciding, Storable, kind="Budget"):
    """Keep the lowest threshold at which at most so many of the scores held are flagged.

    For a desk that can look at 500 payments a day, or at one in a hundred, before any label is
    known. Scores come one by one or many at once; exact at every moment.

    Parameters
    ----------
    max_positives
        How many of the scores held may be answered 1.
    max_positive_rate
        Which share of them, instead; of n scores, at most ``floor(share * n)``.
    last_n
        Only the last n scores are held.
    last_period
        Only scores of the last period are held: a number, or a timedelta for datetimes. One that
        is exactly so old has left. Without either, all scores are held.
    direction
        ``">="``: the highest scores are flagged. ``"<="``: the lowest, with all of this mirrored.

    Notes
    -----
    Equal scores are flagged together or not at all, so that fewer than allowed may be flagged.
    While no more scores than allowed are held, all are flagged and the threshold is ``-inf``; where
    none may be, it is ``inf``.

    `threshold` is about the scores held. It moves, so that answers given by it one after the other
    may be more than allowed while scores rise. `answer` also counts the answers given, and says 1
    only while fewer than allowed of the scores held have been answered 1.

    A call takes O(log n) comparisons and moves up to n numbers in memory, which is fast up to a
    million of them. Let one thread at a time use it.

    Examples
    --------
    >>> from limen import Budget
    >>> desk = Budget(max_positives=2)
    >>> desk.update_many([0.1, 0.9, 0.4, 0.7])
    >>> desk.threshold, desk.predict([0.5, 0.8])
    (0.55, array([0, 1]))
    >>> hourly = Budget(max_positives=1, last_period=60)
    >>> [hourly.answer(score, time=at) for at, score in enumerate([0.2, 0.8, 0.9])]
    [1, 0, 0]
    >>> hourly.answer(0.9, time=60)  # the answer at time 0 is an hour old
    1
    """

    __slots__ = ("_flags", "_given", "_held", "_newest", "_queue", "_sorted")

    def __init__(
        self,
        *,
        max_positives: int | None = None,
        max_positive_rate: Cost | None = None,
        last_n: int | None = None,
        last_period: Period | None = None,
        direction: Direction = ">=",
    ) -> None:
        if (max_positives is None) == (max_positive_rate is None):
            raise ValueError("give max_positives or max_positive_rate, one of them.")
        if last_n is not None and last_period is not None:
            raise ValueError("give last_n or last_period, or neither, but not both.")
        for name, number, least in (("max_positives", max_positives, 0), ("last_n", last_n, 1)):
            whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
            if number is not None and (not whole or number < least):
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, got {number!r}."
                )
        if max_positive_rate is not None:
            exact_bound(max_positive_rate, "max_positive_rate")
        if last_period is not None:
            last_period = as_period(last_period, "last_period")
        self._given: dict[str, Any] = {
            "max_positives": None if max_positives is None else int(max_positives),
            "max_positive_rate": max_positive_rate,
            "last_n": None if last_n is None else int(last_n),
            "last_period": last_period,
            **setting(direction),
        }
        self._sorted: list[float] = []  # negated where the lowest are flagged
        # Scores and answers in the order in which they leave: as they came, or by their times.
        self._queue: Any = deque() if last_period is None else []
        self._held = 0  # ever, to leave in order among equal times
        self._flags = 0
        self._newest: Any = None

    @property
    def direction(self) -> Direction:
        """``"<="`` where the lowest scores are flagged, else ``">="``."""
        direction: Direction = self._given.get("direction", ">=")
        return direction

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments, by name; the direction where it is ``"<="``."""
        return dict(self._given)

    def _repr_html_(self) -> str | None:
        """Show a small picture in a notebook. O(n)."""
        return picture_of_model(self)

    @property
    def allowed(self) -> int:
        """How many of the scores held may be answered 1. O(1)."""
        return self._allowed(len(self._sorted))

    def _allowed(self, held: int) -> int:
        if self._given["max_positives"] is not None:
            return min(int(self._given["max_positives"]), held)
        share: Fraction = exact_bound(self._given["max_positive_rate"], "max_positive_rate")
        return share.numerator * held // share.denominator

    @property
    def flagged(self) -> int:
        """How many of the scores held were answered 1 by `answer`. O(1)."""
        return self._flags

    @property
    def gap(self) -> Gap:
        """The highest score held that is not flagged, and the lowest that is. O(log n).

        With the direction ``"<="``, the highest that is flagged, and the lowest that is not.
        """
        scores, place = self._sorted, len(self._sorted) - self.allowed
        if place:  # equal scores are not flagged either
            place = bisect_right(scores, scores[place - 1])
        upper = scores[place] if place < len(scores) else None
        return self._turned(Gap(scores[place - 1] if place else None, upper))  # type: ignore[no-any-return]

    def _turned(self, found: Any) -> Any:
        """Turn what is held to the scores as they are, and these to what is held."""
        return mirrored(found) if self.direction == "<=" else found

    @property
    def threshold(self) -> float:
        """The lowest threshold at which no more than allowed are flagged. O(log n)."""
        if not self._sorted:
            empty: Gap = self._turned(Gap(None, 0.0 if self._given["max_positives"] else None))
            return empty.threshold
        return self.gap.threshold

    def update(self, score: float, *, time: Any = None) -> bool:
        """Hold one more score; return whether it counts: one that is too old does not."""
        return self._add(self._score(score), self._time(time), 0)

    def update_many(self, scores: ArrayLike, *, times: Any = None) -> None:
        """Hold many more scores: all of them, or on an error none."""
        values = [self._turned(score) for score in ordered_scores(scores).tolist()]
        moments: list[Any] = [None] * len(values)
        if times is not None and self._given["last_period"] is not None:
            moments = list(as_times(times, self._dated))
            if len(moments) != len(values):
                raise ValueError(
                    f"one time per score is needed, but scores has {len(values)}, times has "
                    f"{len(moments)}. Nothing was changed."
                )
            for at, moment in enumerate(moments):  # before the first score is held
                earlier = moments[0] if self._newest is None else self._newest
                require_one_zone(moment, earlier, f"times[{at}]")
        elif values:
            self._time(times)
        for value, moment in zip(values, moments, strict=True):
            self._add(value, moment, 0)

    def answer(self, score: float, *, time: Any = None) -> int:
        """Answer 1 or 0 to a score by the threshold before it, within the budget, and hold it.

        The answer is 1 only while fewer than allowed of the scores held, this one included, have
        been answered 1. So with `max_positives` there are never more of them in a window.
        """
        value, moment = self._score(score), self._time(time)
        if moment is not None:
            self._leave(moment)
            if self._too_old(moment):
                return 0
        elif self._given["last_n"] is not None and len(self._sorted) == self._given["last_n"]:
            self._drop()
        room = self._flags < self._allowed(len(self._sorted) + 1)
        flag = int(room and value >= self._turned(self.threshold))
        self._add(value, moment, flag)
        return flag

    @property
    def _dated(self) -> bool:
        return isinstance(self._given["last_period"], timedelta)

    def _score(self, score: Any) -> float:
        found = float(ordered_scores(np.asarray(score).reshape(1))[0]) + 0.0
        return self._turned(found)  # type: ignore[no-any-return]

    def _time(self, time: Any) -> Time | None:
        if self._given["last_period"] is None:
            if time is not None:
                raise ValueError("time is given, but no last_period. Nothing was changed.")
            return None
        if time is None:
            raise TypeError("time is missing: scores leave by it here. Nothing was changed.")
        moment = as_time(time, self._dated)
        if self._newest is not None:
            require_one_zone(moment, self._newest)
        return moment

    def _too_old(self, moment: Any) -> bool:
        old = self._newest is not None and self._newest - moment >= self._given["last_period"]
        return bool(old)

    def _leave(self, moment: Any) -> None:
        """Move the clock, and drop what is too old then."""
        if self._newest is None or moment > self._newest:
            self._newest = moment
        while self._queue and self._too_old(self._queue[0][0]):
            self._drop()

    def _drop(self) -> None:
        entry = (
            self._queue.popleft() if self._given["last_period"] is None else heappop(self._queue)
        )
        score, flag = entry[-2:]
        del self._sorted[bisect_left(self._sorted, score)]
        self._flags -= flag

    def _add(self, score: float, moment: Any, flag: int) -> bool:
        if moment is not None:
            self._leave(moment)
            if self._too_old(moment):
                return False
            heappush(self._queue, (moment, self._held, score, flag))
        else:
            if self._given["last_n"] is not None and len(self._sorted) == self._given["last_n"]:
                self._drop()
            if self._given["last_n"] is not None:
                self._queue.append((score, flag))
        insort(self._sorted, score)
        self._held += 1
        self._flags += flag
        return True

    def _check(self) -> None:
        """Verify what must hold at every moment."""
        windowed = self._given["last_n"] is not None or self._given["last_period"] is not None
        if windowed:
            assert self._sorted == sorted(entry[-2] for entry in self._queue)
            assert self._flags == sum(entry[-1] for entry in self._queue)
        assert self._sorted == sorted(self._sorted)
        assert 0 <= self._flags <= len(self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)

    def empty(self) -> Self:
        """Return a budget of the same settings that holds nothing. O(1)."""
        return type(self)(**self._given)

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, and the scores in the order in which they leave. O(n log n)."""
        timed, last_n = (self._given[name] is not None for name in ("last_period", "last_n"))
        entries = sorted(self._queue) if timed else list(self._queue)
        scores = [entry[-2] for entry in entries] if timed or last_n else self._sorted
        return {
            **self._given,
            "scores": np.array(scores, np.float64),
            "times": tuple(entry[0] for entry in entries) if timed else None,
            "flags": np.array(
                [entry[-1] for entry in entries] if timed or last_n else [], np.uint8
            ),
            "flagged": self._flags,
            "newest": self._newest,
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a budget of a `snapshot`. O(n log n)."""
        names = ("max_positives", "max_positive_rate", "last_n", "last_period")
        given = {name: snapshot[name] for name in names}
        budget = cls(**given, direction=snapshot.get("direction", ">="))
        scores = ordered_scores(snapshot["scores"]).tolist()
        listed = budget._given["last_n"] is not None or budget._given["last_period"] is not None
        flags = [int(flag) for flag in snapshot["flags"]] if listed else [0] * len(scores)
        times = (
            snapshot["times"] if budget._given["last_period"] is not None else [None] * len(scores)
        )
        if not len(scores) == len(flags) == len(times) or not set(flags) <= {0, 1}:
            raise ValueError("the columns of the budget differ in length")
        for score, moment, flag in zip(scores, times, flags, strict=True):
            if not budget._add(score, None if moment is None else budget._time(moment), flag):
                raise ValueError("the budget holds a score that is outside of its window")
        if snapshot["newest"] is not None:
            budget._leave(budget._time(snapshot["newest"]))
        if not listed:
            flagged = int(snapshot["flagged"])
            if not 0 <= flagged <= len(scores):
                raise ValueError("the budget flagged more scores than it holds")
            budget._flags = flagged
        if len(budget) != len(scores) or budget._flags != snapshot["flagged"]:
            raise ValueError("the counts of the budget do not match its scores")
        return budget

    def __repr__(self) -> str:
        given = ", ".join(f"{n}={v!r}" for n, v in self._given.items() if v is not None)
        held = "1 score" if len(self) == 1 else f"{len(self):,} scores"
        return f"<Budget({given}): {held}, threshold {self.threshold!r}>"
