# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut in bounded memory, and by how much it can at most be missed."""

from __future__ import annotations

from fractions import Fraction
from operator import index
from typing import TYPE_CHECKING, Any

from limen import _core
from limen.columns import samples_with_losses
from limen.model import Held, Labelled
from limen.optimum import Deciding, Optimum
from limen.units import cost_parts, exact_unit, unit_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.units import Cost

__all__ = ["BoundedCut", "BoundedThreshold"]


class _Bounded(Deciding, Held):
    """Models that never hold more than `capacity` runs; `_core` adds threshold and bound."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def loss(self) -> float: ...
        @property
        def loss_bound(self) -> float: ...
        def _optimum(self) -> tuple[float | None, float | None, float]: ...

    @property
    def capacity(self) -> int:
        """How many scores and runs of scores are held at most. O(1)."""
        capacity: int = self._given["capacity"]
        return capacity

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
    """Keep a decision threshold in bounded memory, and by how much it can at most be missed.

    Made by ``OnlineThreshold(capacity=4096)``. `loss` is the most that `threshold` can cost over
    all samples seen, and the best threshold costs no less than ``loss - loss_bound``. While fewer
    distinct scores than `capacity` were seen, `loss_bound` is 0 and everything is as in
    `limen.OnlineThreshold`, bit for bit.

    Parameters
    ----------
    capacity
        How many scores and runs of scores are held at most, from 8 to 65,536; about 70 bytes each.
    false_positive, false_negative, unit
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

    def __init__(
        self,
        *,
        capacity: int,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        unit: Cost | None = None,
    ) -> None:
        parts = cost_parts(false_positive, false_negative, unit)
        size = _as_capacity(capacity)
        _core.BoundedThreshold.__init__(self, *parts, size)
        self._given = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "unit": unit,
            "capacity": size,
        }


class BoundedCut(_Bounded, _core.BoundedCut, kind="BoundedCut"):
    """Keep a cut for any losses in bounded memory, and by how much it can at most be missed.

    Made by ``OnlineCut(capacity=4096)``; `limen.BoundedThreshold` explains what it promises.

    Parameters
    ----------
    capacity
        How many scores and runs of scores are held at most, from 8 to 65,536.
    unit
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

    def __init__(self, *, capacity: int, unit: Cost | None = None) -> None:
        parts = unit_parts(exact_unit(unit), Fraction(1))
        size = _as_capacity(capacity)
        _core.BoundedCut.__init__(self, *parts, size)
        self._given = {"unit": unit, "capacity": size}

    def update_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Add many samples at once: all of them, or on an error none. m times `update`."""
        self._many(*samples_with_losses(scores, below, above), True)

    def revert_many(self, scores: ArrayLike, below: ArrayLike, above: ArrayLike) -> None:
        """Take back many samples at once: all of them, or on an error none. m times `revert`."""
        self._many(*samples_with_losses(scores, below, above), False)


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
