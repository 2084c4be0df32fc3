# SPDX-License-Identifier: Apache-2.0
"""Samples in order of score, and what lies below a cut.

A cut is written as its place: how many samples lie below it. The samples of one score are never
separated, so a place is the first sample of its score, or the number of all samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limen import _core

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["Below", "Ranked", "Wrong", "as_threshold", "effective", "height"]


class Below(NamedTuple):
    """What lies below each of some cuts, by label: weights, and sums of squared weights."""

    ones: NDArray[np.int64]
    zeros: NDArray[np.int64]
    ones_squared: NDArray[np.float64]
    zeros_squared: NDArray[np.float64]

    @property
    def weight(self) -> NDArray[np.int64]:
        """The weight of both labels."""
        return self.ones + self.zeros

    @property
    def squared(self) -> NDArray[np.float64]:
        """The squared weights of both labels."""
        return self.ones_squared + self.zeros_squared


class Wrong(NamedTuple):
    """Answers that are wrong in one way: how many, their weight, and that squared."""

    rows: int
    weight: float
    squared: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Samples in ascending order of score. The order they came in leaves no trace.

    Attributes
    ----------
    scores
        All scores, ascending.
    ones
        The scores of label 1, ascending; not used where there are weights.
    labels, weights
        Labels and whole weights in order of score, label and weight; None where all weigh 1.
    sums
        What lies below each place; None where all weigh 1.
    """

    scores: NDArray[np.float64]
    ones: NDArray[np.float64]
    labels: NDArray[np.uint8] | None = None
    weights: NDArray[np.int64] | None = None
    sums: Below | None = None

    @classmethod
    def of(cls, scores: Any, labels: Any, weights: Any = None) -> Ranked:
        """Rank columns that `limen.columns` has read and the core has found sound. O(n log n).

        >>> Ranked.of(np.array([0.5, 0.2]), np.array([1, 0], np.uint8)).scores
        array([0.2, 0.5])
        """
        if weights is None:
            # Two plain sorts: much faster than one that carries the labels along.
            return cls(np.sort(scores) + 0.0, np.sort(scores[labels.view(bool)]))
        whole = _whole(weights)
        if not whole.all():
            held = whole > 0
            scores, labels, whole = scores[held], labels[held], whole[held]
        order, tied = _order(scores := scores + 0.0)
        if tied.any():
            # Equal scores in an order of their own, so that sums of squares round alike.
            some = order[tied]
            order[tied] = some[np.lexsort((whole[some], labels[some], scores[some]))]
        return cls._weighted(scores[order], labels[order], whole[order])

    @classmethod
    def _weighted(cls, scores: Any, labels: Any, weights: Any) -> Ranked:
        ones, zeros = weights * labels, weights * (1 - labels)
        squares = (each.astype(np.float64) ** 2 for each in (ones, zeros))
        sums = Below(_sums(ones), _sums(zeros), *map(_sums, squares))
        return cls(scores, scores[labels == 1], labels, weights, sums)

    def __len__(self) -> int:
        return len(self.scores)

    def below(self, places: Any) -> Below:
        """Tell what lies below the cuts at these places. O(log n) each."""
        at = np.asarray(places, np.int64)
        if self.sums is not None:
            taken: list[Any] = [column[at] for column in self.sums]
            return Below(*taken)
        ones = np.full(len(at), len(self.ones))
        inner = at < len(self)
        ones[inner] = np.searchsorted(self.ones, self.scores[at[inner]])
        zeros = at - ones
        return Below(ones, zeros, ones.astype(np.float64), zeros.astype(np.float64))

    def all(self) -> Below:
        """Tell what all samples weigh."""
        return self.below([len(self)])

    def weight_below(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell what the samples of both labels below these cuts weigh. O(1) each."""
        return places if self.sums is None else self.sums.ones[places] + self.sums.zeros[places]

    @property
    def effective(self) -> float:
        """How many samples of equal weight would tell as much."""
        return effective(self.all().weight[0], self.all().squared[0])

    def place(self, threshold: float) -> int:
        """Count the samples that a threshold answers 0; nan answers 0 to all. O(log n)."""
        return int(np.searchsorted(self.scores, threshold))

    def threshold(self, place: int) -> float:
        """Return the number to publish for a cut. O(log n)."""
        lower = float(self.scores[place - 1]) if place else None
        upper = float(self.scores[place]) if place < len(self) else None
        return _core.threshold_of(lower, upper)

    def cuts(self) -> NDArray[np.int64]:
        """Return the places of all cuts, one more than there are distinct scores. O(n)."""
        inner = np.flatnonzero(self.scores[1:] != self.scores[:-1]) + 1
        return np.concatenate([[0], inner, [len(self)]])

    def is_cut(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each place is a cut: the sample before it, if any, has another score."""
        cut = np.ones(len(places), bool)
        inner = (places > 0) & (places < len(self))
        at = places[inner]
        cut[inner] = self.scores[at] != self.scores[at - 1]
        return cut

    def wrong(self, threshold: float) -> tuple[Wrong, Wrong]:
        """Tell the false positives and the false negatives of any threshold. O(log n)."""
        place = self.place(threshold)
        missed = int(np.searchsorted(self.ones, threshold))
        below, total = self.below([place]), self.all()
        alarms = (len(self) - place) - (len(self.ones) - missed)
        zeros, squared = total.zeros - below.zeros, total.zeros_squared - below.zeros_squared
        return (
            Wrong(alarms, int(zeros[0]), float(squared[0])),
            Wrong(missed, int(below.ones[0]), float(below.ones_squared[0])),
        )

    def split(self, fold: int, folds: int) -> tuple[Ranked, Ranked]:
        """Part the samples of each label in order of score: every so many, and the others."""
        positive = self._positive()
        rank = np.where(positive, np.cumsum(positive), np.cumsum(~positive)) - 1
        tested = rank % folds == fold
        return self._part(tested, positive), self._part(~tested, positive)

    def _positive(self) -> NDArray[np.bool_]:
        """Whether each sample has label 1; within a score, in any order."""
        positive = np.zeros(len(self), bool)
        if self.labels is None:
            places = np.searchsorted(self.scores, self.ones)
            places += np.arange(len(places)) - np.searchsorted(self.ones, self.ones)
            positive[places] = True
        else:
            positive[:] = self.labels
        return positive

    def _part(self, held: NDArray[np.bool_], positive: NDArray[np.bool_]) -> Ranked:
        if self.labels is None or self.weights is None:
            return Ranked(self.scores[held], self.scores[held & positive])
        return Ranked._weighted(self.scores[held], self.labels[held], self.weights[held])


def as_threshold(value: Any, name: str) -> float:
    """Read a threshold; ``-inf``, ``inf`` and nan are thresholds too.

    >>> as_threshold(1, "current")
    1.0
    """
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a threshold, which is a number, got {value!r}.")
    return float(value) + 0.0  # -0.0 is the same threshold as 0.0


def height(threshold: float) -> tuple[bool, float]:
    """Where a threshold stands among others; nan, which answers 1 to no score, above all."""
    return (True, 0.0) if threshold != threshold else (False, threshold)


def effective(weight: Any, squared: Any) -> float:
    """How many equal weights tell as much as weights of this sum and this sum of squares."""
    return float(weight) ** 2 / float(squared) if squared else 0.0


def _sums(values: Any) -> Any:
    """Add up what lies before each place, and all."""
    sums = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums


def _order(scores: Any) -> tuple[Any, Any]:
    """Return which sample comes where, and whether it may have to trade places with a neighbour.

    One sort of whole numbers that hold the leading bits of a score and the place it comes from:
    faster than np.argsort. Scores that differ in later bits only are left to the caller.
    """
    bits = scores.view(np.int64)
    bits = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)  # in the order of the scores
    low = (1 << len(bits).bit_length()) - 1
    keys = np.sort(bits & ~low | np.arange(len(bits)))
    order = keys & low
    same = keys[1:] & ~low == keys[:-1] & ~low
    return order, np.append(same, False) | np.append(False, same)


def _whole(weights: Any) -> Any:
    """Weights as whole numbers of the largest unit that holds them, as the core holds them."""
    if weights.dtype == np.int64 or np.all(weights == np.rint(weights)):
        return weights.astype(np.int64)
    units = np.rint(np.ldexp(weights, _core.finest_bits)).astype(np.int64)
    together = int(np.bitwise_or.reduce(units))
    shift: int = (together & -together).bit_length() - 1  # zero bits that all of them end in
    return units >> max(shift, 0)
