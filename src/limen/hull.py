# SPDX-License-Identifier: Apache-2.0
"""The isotonic fit and the ROC hull: the best cuts of all costs, in two forms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from limen import _core
from limen.arrays import is_single
from limen.columns import ordered_scores
from limen.units import as_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Between", "Blocks", "Calibrated", "RocHull", "require_between"]

Between: TypeAlias = 'Literal["step", "linear"]'


def require_between(between: object) -> None:
    """Raise ValueError unless this is one of the two ways to fill the space between blocks."""
    if between not in ("step", "linear"):
        raise ValueError(f'between must be "step" or "linear", got {between!r}.')


class Calibrated:
    """Base of all that give each score a calibrated probability."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _probability(self, score: float, linear: bool, /) -> float: ...
        def _probabilities(
            self, scores: NDArray[np.float64], linear: bool, /
        ) -> NDArray[np.float64]: ...

    @overload
    def probability(self, scores: float, *, between: Between = ...) -> float: ...
    @overload
    def probability(self, scores: ArrayLike, *, between: Between = ...) -> NDArray[np.float64]: ...
    def probability(
        self, scores: ArrayLike, *, between: Between = "step"
    ) -> float | NDArray[np.float64]:
        """Return the calibrated probability of each score. O(log n) each.

        Parameters
        ----------
        scores
            One score or many. Below the lowest score held and above the highest, the
            probability is that of the end.
        between
            The probability of a score between two blocks of the fit. ``"step"``: the probability of
            the block on its side of the threshold between them. A probability above
            ``false_positive / (false_positive + false_negative)`` then says the same as
            ``score >= threshold(...)``, for every finite score and all costs, which is why it
            is the default. ``"linear"``: the straight line between the nearest scores of the two
            blocks, as in scikit-learn; next to an infinite score, the value of the finite end.

        Notes
        -----
        nan when no sample is held.

        Examples
        --------
        >>> from limen import OnlineCalibrator
        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.2, 0.4, 0.6], [0, 1, 0, 1])
        >>> calibrator.probability(0.2)
        0.5
        >>> calibrator.probability([0.45, 0.55])
        array([0.5, 1. ])
        >>> calibrator.probability([0.45, 0.55], between="linear")
        array([0.625, 0.875])
        """
        if isinstance(scores, float) and scores == scores and between in ("step", "linear"):
            return self._probability(scores, between == "linear")  # the common case
        require_between(between)
        if is_single(scores):
            array = ordered_scores(np.asarray(scores).reshape(1))
            return float(self._probabilities(array, between == "linear")[0])
        return self._probabilities(ordered_scores(scores), between == "linear")


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(Calibrated):
    """The isotonic fit of the labels on the scores, in ascending order.

    The scores of a block share one probability, the share of label 1 in its weight, and
    probabilities rise strictly from block to block. For costs false_positive and
    false_negative the best cut lies below the first block whose probability is more than
    ``false_positive / (false_positive + false_negative)``. Where `limen.isotonic` was asked for a
    falling fit, or for bounds, probabilities fall, or stay the same at a bound.

    Attributes
    ----------
    first, last
        The lowest and the highest score of each block.
    probabilities
        The isotonic value of each block, rounded once.
    positive, weight
        The weight of label 1 and of both labels in each block.
    counts
        The number of samples in each block.

    Examples
    --------
    >>> from limen import isotonic
    >>> fit = isotonic([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> fit.first, fit.last
    (array([0.1 , 0.25, 0.75]), array([0.1 , 0.5 , 0.75]))
    >>> fit.probabilities
    array([0. , 0.5, 1. ])
    >>> fit.probability(0.3)
    0.5
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    positive: NDArray[np.float64] = field(init=False)
    weight: NDArray[np.float64] = field(init=False)
    counts: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    _positive_units: NDArray[np.int64] = field(repr=False)
    _weight_units: NDArray[np.int64] = field(repr=False)
    _unit: Fraction = field(repr=False)

    def __post_init__(self) -> None:
        for name, units in (("positive", self._positive_units), ("weight", self._weight_units)):
            object.__setattr__(self, name, as_weights(units, self._unit))

    @classmethod
    def _of(cls, columns: tuple[Any, ...]) -> Blocks:
        first, last, positive, weight, counts, probabilities, unit = columns
        return cls(first, last, counts, probabilities, positive, weight, Fraction(*unit))

    def _mirrored(self) -> Blocks:
        """Return the fit of the opposite labels, which falls where this one rises."""
        positive = self._weight_units - self._positive_units
        pairs = zip(positive.tolist(), self._weight_units.tolist(), strict=True)
        probabilities = np.array([float(Fraction(*pair)) for pair in pairs])  # rounded once
        return replace(self, probabilities=probabilities, _positive_units=positive)

    def _clipped(self, low: Fraction | None, high: Fraction | None) -> Blocks:
        """Return the same with probabilities that stay within bounds."""
        ends = (0.0 if low is None else float(low), 1.0 if high is None else float(high))
        return replace(self, probabilities=np.clip(self.probabilities, *ends))

    def fractions(self) -> list[Fraction]:
        """Return the isotonic values as exact fractions. O(b) for b blocks.

        >>> from limen import isotonic
        >>> isotonic([0.1, 0.2, 0.3], [1, 0, 0]).fractions()
        [Fraction(1, 3)]
        """
        pairs = zip(self._positive_units.tolist(), self._weight_units.tolist(), strict=True)
        return [Fraction(positive, weight) for positive, weight in pairs]

    def _probability(self, score: float, linear: bool, /) -> float:
        return float(self._probabilities(np.array([score]), linear)[0])

    def _probabilities(self, scores: NDArray[np.float64], linear: bool, /) -> NDArray[np.float64]:
        first, last, values = self.first, self.last, self.probabilities
        if len(values) > 1 and values[0] > values[-1]:  # falling: the same, seen from the other end
            first, last, values, scores = -last[::-1], -first[::-1], values[::-1].copy(), -scores
        return _core.probabilities_in(first, last, values, scores, linear)

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclass(frozen=True, slots=True, eq=False)
class RocHull:
    """The cuts that are best for some cost, in ascending order.

    The first predicts all positive, the last none; between them lie the vertices of the convex
    hull of the ROC curve, which are the cuts between the blocks of the isotonic fit.

    Attributes
    ----------
    thresholds
        The threshold of each cut.
    tp, fp, fn, tn
        The weights of true and false positives, false and true negatives at each cut.

    Examples
    --------
    >>> from limen import OnlineCalibrator
    >>> calibrator = OnlineCalibrator()
    >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> hull = calibrator.roc_hull()
    >>> hull.thresholds
    array([ -inf, 0.175, 0.625,   inf])
    >>> hull.tp, hull.fp
    (array([2., 2., 1., 0.]), array([2., 1., 0., 0.]))
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]
    tn: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.thresholds)
