# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut, kept exact one sample at a time, in any order."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, overload

from limen import _core
from limen.columns import samples_with_losses
from limen.direction import setting
from limen.model import Labelled, ModelBase
from limen.names import renaming
from limen.optimum import Deciding, LossCurve, Optimum
from limen.score_kind import ScoreKind, kind_setting
from limen.units import Cost, cost_parts, exact_unit, unit_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from limen.bounded import BoundedCut, BoundedThreshold
    from limen.optimum import Direction

__all__ = ["OnlineCut", "OnlineThreshold"]


class _Cheapest(Deciding, ModelBase):
    """Models of one pair of costs; `_core` adds threshold and loss."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def loss(self) -> float: ...
        def _optimum(self) -> tuple[Any, ...]: ...
        def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    @property
    def optimum(self) -> Optimum:
        """The cheapest cut now. O(log n) after a change, else O(1).

        >>> import limen
        >>> limen.OnlineThreshold().optimum
        <Optimum: threshold inf, lower None, upper None, loss 0.0>
        """
        return Optimum(*self._optimum())

    def curve(self) -> LossCurve:
        """Compute the loss of every cut. O(n).

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update_many([0.3, 0.7], [0, 1])
        >>> cut.curve().losses
        array([1., 0., 1.])
        """
        found: LossCurve = self._turned(LossCurve(*self._curve()))
        return found

    def _shown(self) -> str:
        return f", threshold {self.threshold!r}, loss {self.loss!r}"


# Each __init__ has a class of its own: beside __new__, mypy does not look at what that returns.


class _WithCosts(_Cheapest, Labelled):
    __slots__ = ()

    @renaming
    def __init__(
        self,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        unit: Cost | None = None,
        direction: Direction = ">=",
        scores: ScoreKind = "ranks",
        capacity: None = None,
    ) -> None:
        parts = cost_parts(false_positive, false_negative, unit)
        self._native.__init__(self, *parts, *self._capacities)
        self._given = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "unit": unit,
            **setting(direction),
            **kind_setting(scores),
        }


class _WithLosses(_Cheapest):
    __slots__ = ()

    def __init__(
        self, *, unit: Cost | None = None, direction: Direction = ">=", capacity: None = None
    ) -> None:
        parts = unit_parts(exact_unit(unit), Fraction(1))
        self._native.__init__(self, *parts, *self._capacities)
        self._given = {"unit": unit, **setting(direction)}


class OnlineThreshold(_WithCosts, _core.Threshold, kind="OnlineThreshold"):
    """Keep the best decision threshold of a binary classifier, sample by sample.

    After every call to `update`, `threshold` is the cut with the lowest total loss over all
    samples held so far. It is exact: no grid, no approximation, no rounding beyond the unit.

    Parameters
    ----------
    false_positive
        Cost of answering 1 when the label is 0.
    false_negative
        Cost of answering 0 when the label is 1.
    unit
        Each weight is held as a whole number of units. Whole weights need no unit. With None,
        other weights are rounded to the nearest 2**-20; with ``unit=0.01`` amounts of money
        are exact in cents.
    direction
        ``">="``: higher scores mean positive. ``"<="``: lower ones do, as ages or distances may;
        the answer is 1 when ``score <= threshold``, and of several cheapest cuts it is the lowest.
    scores
        What scores are, for `recommended`: ``"probabilities"`` of label 1 (with the direction
        ``"<="`` of label 0), ``"raw"`` numbers on a scale of their own, or ``"ranks"``, of which
        only the order counts. ``"ranks"`` is true of any scores; where more is true, say so, and
        fewer samples suffice. A probability outside of 0 to 1 is taken as the nearest of these.
    capacity
        With a number, a `limen.BoundedThreshold` is made: it holds no more than so many scores, and
        has an upper bound on the excess loss of its threshold.

    Notes
    -----
    The answer is 1 when ``score >= threshold``. Equal scores are never separated. When
    several cuts are equally good, the highest is chosen: say yes only when it pays. Before
    the first sample the threshold is ``inf`` and the loss 0.

    `update` and `revert` take O(log n), where n is the number of distinct scores, and about
    23 bytes per distinct score. Any order of arrival leaves the same state. Several threads
    may share one object.

    Examples
    --------
    >>> from limen import OnlineThreshold
    >>> cut = OnlineThreshold()
    >>> for score, label in [(0.1, 0), (0.25, 1), (0.5, 0), (0.75, 1)]:
    ...     cut.update(score, label)
    >>> cut.threshold
    0.625
    >>> cut.optimum
    <Optimum: threshold 0.625, lower 0.5, upper 0.75, loss 1.0>

    A missed positive that costs five times more moves the cut down:

    >>> cut = OnlineThreshold(false_negative=5)
    >>> for score, label in [(0.1, 0), (0.25, 1), (0.5, 0), (0.75, 1)]:
    ...     cut.update(score, label)
    >>> cut.threshold, cut.loss
    (0.175, 1.0)

    Distances, of which a short one means positive:

    >>> near = OnlineThreshold(direction="<=")
    >>> near.update_many([3.5, 0.5, 2.0, 0.75], [0, 1, 0, 1])
    >>> near.threshold, near.predict([1.0, 3.0])
    (1.375, array([1, 0]))
    """

    __slots__ = ()

    _native = _core.Threshold

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls,
            *,
            false_positive: Cost = ...,
            false_negative: Cost = ...,
            unit: Cost | None = ...,
            direction: Direction = ...,
            scores: ScoreKind = ...,
            capacity: None = ...,
        ) -> Self: ...
        @overload
        def __new__(  # type: ignore[misc]
            cls,
            *,
            capacity: int,
            false_positive: Cost = ...,
            false_negative: Cost = ...,
            unit: Cost | None = ...,
            direction: Direction = ...,
        ) -> BoundedThreshold: ...

    def __new__(cls, *args: Any, capacity: int | None = None, **settings: Any) -> Any:
        """Make the bounded model where a capacity is given."""
        if capacity is None:
            return super().__new__(cls)
        from limen.bounded import BoundedThreshold

        return BoundedThreshold(*args, capacity=capacity, **settings)

    @property
    def recommended(self) -> float | None:
        """The threshold to use on new rows, as `limen.recommend` finds it for such scores.

        O(log n) for 192 bins, and about half a millisecond for the calibration maps over them; a
        fifth where the bins did not change since the last read. Where weights differ, the first
        read takes O(n) and 100 bytes for each score, and so does one after n/8 changes without a
        read; any other, O(log n) more for each score that changed since the last. None below five
        samples of either label: nobody could recommend anything. Keep the threshold in use until
        then.

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update_many([i / 64 for i in range(64)], [int(i * i % 64 < i) for i in range(64)])
        >>> cut.threshold, cut.recommended
        (0.4140625, 0.3046875)
        """
        return self._recommended(1, 1)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return between which thresholds the best one of all rows lies. O(log n) usually.

        The same as `limen.recommend` finds for the samples held. Where weights differ, as for
        `recommended`.
        `confidence` is 0.8, 0.9, 0.95 or 0.99, and holds for one look: who looks again and again
        needs `limen.Evidence`. Below five samples of either label it may lie anywhere.

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update_many([i / 64 for i in range(64)], [int(i * i % 64 < i) for i in range(64)])
        >>> cut.interval()
        (0.0234375, 0.4921875)
        """
        return self._sure(confidence, 1, 1)

    def keeps(self, threshold: float, *, confidence: float = 0.95) -> bool:
        """Whether to keep a threshold: it lies inside the `interval`. Cost as there.

        One that gives all samples held the same answers as one inside is kept too.

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update_many([i / 64 for i in range(64)], [int(i * i % 64 < i) for i in range(64)])
        >>> cut.keeps(0.25), cut.keeps(0.75)
        (True, False)
        """
        return self._keeps(threshold, confidence, 1, 1)


class OnlineCut(_WithLosses, _core.Cut, kind="OnlineCut"):
    """Keep the cheapest cut for any losses, sample by sample.

    Each sample has what it costs `below` the cut (the answer is 0) and `above` it (the answer
    is 1). `limen.losses` makes both from labels, weights, cost matrices or linear losses.

    Parameters
    ----------
    unit
        Each loss is held as a whole number of units. Whole losses need no unit. With None,
        other losses are rounded to the nearest 2**-20.
    direction
        As for `OnlineThreshold`. `below` and `above` stay what the answers 0 and 1 cost.
    capacity
        With a number, a `limen.BoundedCut` is made, as for `OnlineThreshold`.

    Notes
    -----
    As for `OnlineThreshold`. Losses may be negative. A sample that costs 0 on both sides is
    not held.

    Examples
    --------
    >>> from limen import OnlineCut
    >>> cut = OnlineCut()
    >>> cut.update(0.2, below=0, above=3)
    >>> cut.update(0.6, below=2, above=0)
    >>> cut.threshold, cut.loss
    (0.4, 0.0)
    """

    __slots__ = ()

    _native = _core.Cut

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls, *, unit: Cost | None = ..., direction: Direction = ..., capacity: None = ...
        ) -> Self: ...
        @overload
        def __new__(  # type: ignore[misc]
            cls, *, capacity: int, unit: Cost | None = ..., direction: Direction = ...
        ) -> BoundedCut: ...

    def __new__(cls, *args: Any, capacity: int | None = None, **settings: Any) -> Any:
        """Make the bounded model where a capacity is given."""
        if capacity is None:
            return super().__new__(cls)
        from limen.bounded import BoundedCut

        return BoundedCut(*args, capacity=capacity, **settings)

    def update_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Add many samples at once: all of them, or on an error none.

        O(m) to sort them, then O(m log n), or O(n + m) when m is large.

        >>> from limen import losses
        >>> cut = OnlineCut()
        >>> cut.update_many([0.2, 0.6], *losses.linear([3, -2]))
        >>> cut.threshold, cut.loss
        (0.4, -2.0)
        """
        self._many(*samples_with_losses(scores, below, above), True)

    def revert_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Take back many samples at once: all of them, or on an error none.

        Costs what `update_many` costs.
        """
        self._many(*samples_with_losses(scores, below, above), False)
