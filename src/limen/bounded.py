# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut in bounded memory, with an upper bound on its excess loss."""

from __future__ import annotations

from fractions import Fraction
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

from limen import _core
from limen.columns import samples_with_losses
from limen.direction import setting
from limen.model import Labelled, ModelBase
from limen.names import renaming
from limen.optimum import Deciding, Optimum
from limen.units import cost_parts, exact_costs, exact_unit, unit_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from limen.optimum import Direction
    from limen.units import Cost

__all__ = ["BoundedCalibrator", "BoundedCut", "BoundedThreshold"]

# What exact models answer from all their scores.
_UNKNOWN = {
    "best",
    "blocks",
    "confusion",
    "curve",
    "interval",
    "keeps",
    "near_best",
    "probability",
    "probability_interval",
    "recommended",
    "review_band",
    "roc_hull",
}


class _Capacity(ModelBase):
    """Models that never hold more than `capacity` runs of scores."""

    __slots__ = ()

    @property
    def capacity(self) -> int:
        """How many scores and runs of scores are held at most. O(1)."""
        capacity: int = self._given["capacity"]
        return capacity

    def __getattr__(self, name: str) -> NoReturn:
        why = ""
        if name in _UNKNOWN:
            why = (
                ": it would need every score, and within a run of scores they are not "
                "distinguished any more. Ask for the threshold and loss_bound, or make the model "
                "without a capacity"
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}{why}.", name=name, obj=self
        )


class _Bounded(Deciding, _Capacity):
    """Those of one pair of costs; `_core` adds threshold and bound."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def loss(self) -> float: ...
        @property
        def loss_bound(self) -> float: ...
        def _optimum(self) -> tuple[Any, ...]: ...

    @property
    def optimum(self) -> Optimum:
        """The cut that is offered. Its loss is the most that it can be. O(log capacity).

        >>> import limen
        >>> limen.OnlineThreshold(capacity=64).optimum
        <Optimum: threshold inf, lower None, upper None, loss 0.0>
        """
        return Optimum(*self._optimum())

    def _shown(self) -> str:
        bound = f", at most {self.loss_bound!r} above the best" if self.loss_bound else ""
        return f", threshold {self.threshold!r}, loss {self.loss!r}{bound}"


class BoundedThreshold(_Bounded, Labelled, _core.BoundedThreshold, kind="BoundedThreshold"):
    """Keep a decision threshold in bounded memory, with an upper bound on its excess loss.

    Made by ``OnlineThreshold(capacity=4096)``. `loss` is the most that `threshold` can cost over
    all samples seen, and the best threshold costs no less than ``loss - loss_bound``. While fewer
    distinct scores than `capacity` were seen, `loss_bound` is 0 and everything is as in
    `limen.OnlineThreshold`, bit for bit.

    Parameters
    ----------
    capacity
        How many scores and runs of scores are held at most, from 8 to 65,536; about 80 bytes each.
    false_positive, false_negative, unit, direction
        As for `limen.OnlineThreshold`.

    Notes
    -----
    The proof, when the bound grows, and how to choose a capacity: docs/bounded.md. The bound also
    holds after corrections, a `revert` followed by an `update`, and after `merge`. What is held
    depends on the order of arrival, unlike in the exact model.

    Examples
    --------
    >>> import limen
    >>> cut = limen.OnlineThreshold(capacity=8)
    >>> cut.update_many([i / 100 for i in range(100)], [i > 60 for i in range(100)])
    >>> cut.threshold, cut.loss, cut.loss_bound
    (0.605, 0.0, 0.0)
    """

    __slots__ = ()

    _native = _core.BoundedThreshold

    @renaming
    def __init__(
        self,
        *,
        capacity: int,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        unit: Cost | None = None,
        direction: Direction = ">=",
    ) -> None:
        parts = cost_parts(false_positive, false_negative, unit)
        size = _as_capacity(capacity)
        _core.BoundedThreshold.__init__(self, *parts, size)
        self._given = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "unit": unit,
            "capacity": size,
            **setting(direction),
        }


class BoundedCut(_Bounded, _core.BoundedCut, kind="BoundedCut"):
    """Keep a cut for any losses in bounded memory, with an upper bound on its excess loss.

    Made by ``OnlineCut(capacity=4096)``; `limen.BoundedThreshold` explains what it promises.

    Parameters
    ----------
    capacity
        How many scores and runs of scores are held at most, from 8 to 65,536.
    unit, direction
        As for `limen.OnlineCut`.

    Examples
    --------
    >>> import limen
    >>> cut = limen.OnlineCut(capacity=64)
    >>> cut.update(0.2, below=0, above=3)
    >>> cut.update(0.6, below=2, above=0)
    >>> cut.threshold, cut.loss, cut.loss_bound
    (0.4, 0.0, 0.0)
    """

    __slots__ = ()

    _native = _core.BoundedCut

    def __init__(
        self, *, capacity: int, unit: Cost | None = None, direction: Direction = ">="
    ) -> None:
        parts = unit_parts(exact_unit(unit), Fraction(1))
        size = _as_capacity(capacity)
        _core.BoundedCut.__init__(self, *parts, size)
        self._given = {"unit": unit, "capacity": size, **setting(direction)}

    def update_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Add many samples at once: all of them, or on an error none. m times `update`."""
        self._many(*samples_with_losses(scores, below, above), True)

    def revert_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Take back many samples at once: all of them, or on an error none. m times `revert`."""
        self._many(*samples_with_losses(scores, below, above), False)


class BoundedCalibrator(Labelled, _Capacity, _core.BoundedCalibrator, kind="BoundedCalibrator"):
    """Keep the threshold for any costs in bounded memory, with an upper bound on its excess loss.

    Made by ``OnlineCalibrator(capacity=4096)``. The weights of both labels are held in buckets of
    scores that share their leading bits. A threshold between buckets is exact for any costs;
    `loss_bound` says what one inside of a bucket could gain at most. While fewer distinct scores
    than `capacity` were seen, every bound is 0 and thresholds are those of
    `limen.OnlineCalibrator`.

    Parameters
    ----------
    capacity
        How many buckets of scores are held at most, from 8 to 65,536; about 80 bytes each.
    unit, direction
        As for `limen.OnlineCalibrator`.

    Notes
    -----
    Any order of arrival leaves the same answers. There are no probabilities, blocks or hull: they
    would need every score. For one pair of costs, `limen.BoundedThreshold` has tighter bounds.

    Examples
    --------
    >>> import limen
    >>> calibrator = limen.OnlineCalibrator(capacity=64)
    >>> calibrator.update_many([i / 100 for i in range(100)], [i > 60 for i in range(100)])
    >>> calibrator.threshold(false_negative=5), calibrator.loss_bound(false_negative=5)
    (0.595, 1.0)
    """

    __slots__ = ()

    _native = _core.BoundedCalibrator
    takes_costs: ClassVar[bool] = True

    def __init__(
        self, *, capacity: int, unit: Cost | None = None, direction: Direction = ">="
    ) -> None:
        parts = unit_parts(exact_unit(unit), Fraction(1))
        size = _as_capacity(capacity)
        _core.BoundedCalibrator.__init__(self, *parts, size)
        self._given = {"unit": unit, "capacity": size, **setting(direction)}

    def threshold(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> float:
        """Return the threshold that is offered for these costs. O(capacity).

        >>> import limen
        >>> calibrator = limen.OnlineCalibrator(capacity=64)
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.threshold(false_positive=1, false_negative=5)
        0.175
        """
        return self._offered(false_positive, false_negative)[0].threshold

    def optimum(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> Optimum:
        """Return the cut that is offered for these costs, and what it costs. O(capacity).

        >>> import limen
        >>> calibrator = limen.OnlineCalibrator(capacity=64)
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.optimum(false_negative=5)
        <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
        """
        return self._offered(false_positive, false_negative)[0]

    def loss_bound(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> float:
        """Return by how much that can at most cost more than the best cut. O(capacity).

        >>> import limen
        >>> calibrator = limen.OnlineCalibrator(capacity=8)
        >>> calibrator.update_many([i / 100 for i in range(100)], [i % 7 > 3 for i in range(100)])
        >>> calibrator.optimum().loss, calibrator.loss_bound()
        (42.0, 21.0)
        """
        return self._offered(false_positive, false_negative)[1]

    @overload
    def predict(
        self, scores: float, *, false_positive: Cost = ..., false_negative: Cost = ...
    ) -> int: ...
    @overload
    def predict(
        self, scores: ArrayLike, *, false_positive: Cost = ..., false_negative: Cost = ...
    ) -> NDArray[np.int64]: ...
    def predict(
        self, scores: ArrayLike, *, false_positive: Cost = 1, false_negative: Cost = 1
    ) -> int | NDArray[np.int64]:
        """Answer 1 or 0 to each score by the threshold for these costs. O(m + capacity)."""
        return self._offered(false_positive, false_negative)[0].predict(scores)

    def _offered(self, false_positive: Cost, false_negative: Cost) -> tuple[Optimum, float]:
        positive, negative, scale = exact_costs(false_positive, false_negative)
        unit = unit_parts(exact_unit(self._given["unit"]), scale)[2:]
        cut, bound = self._offer(positive, negative, *unit)
        return Optimum(*cut), bound


def _as_capacity(capacity: Any) -> int:
    """Read how many runs may be held; raise an error that names the limits."""
    least, most = _core.least_capacity, _core.most_capacity
    try:
        size = -1 if isinstance(capacity, bool) else index(capacity)
    except TypeError:
        size = -1
    if not least <= size <= most:
        raise ValueError(
            f"capacity must be a whole number from {least} to {most:,}, got {capacity!r}. Without "
            "it, every distinct score is held."
        )
    return size
