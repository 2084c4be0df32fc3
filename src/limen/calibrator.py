# SPDX-License-Identifier: Apache-2.0
"""Every cost at once: exact isotonic regression, kept exact one sample at a time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, overload

import numpy as np

from limen import _core
from limen.arrays import is_single
from limen.best_cut import Cuts, best_cut, demands_of, error_of, near_best
from limen.columns import ordered_scores
from limen.confidence import ENOUGH
from limen.direction import setting
from limen.errors import Infeasible
from limen.hull import Blocks, Calibrated, RocHull
from limen.metrics import BestCut, Confusion, Metric, as_metric
from limen.model import Labelled
from limen.optimum import LossCurve, Optimum, answer
from limen.review import ReviewBand, band_of, band_within, exact_asking
from limen.score_kind import ScoreKind, kind_setting
from limen.units import Cost, exact_bound, exact_costs, exact_positive, exact_unit, unit_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.best_cut import Demands
    from limen.bounded import BoundedCalibrator
    from limen.optimum import Direction

__all__ = ["OnlineCalibrator"]

_MOST = _core.most_units


class _WithUnit(Labelled, Calibrated):
    # __init__ has a class of its own: beside __new__, mypy does not look at what that returns.
    __slots__ = ()

    def __init__(
        self,
        *,
        unit: Cost | None = None,
        direction: Direction = ">=",
        scores: ScoreKind = "ranks",
        capacity: None = None,
    ) -> None:
        parts = unit_parts(exact_unit(unit), Fraction(1))
        self._native.__init__(self, *parts, self._capacities[0])
        self._given = {"unit": unit, **setting(direction), **kind_setting(scores)}


class OnlineCalibrator(_WithUnit, _core.Calibrator, kind="OnlineCalibrator"):
    """Keep the best threshold for every cost and the calibrated probability, sample by sample.

    It holds the exact isotonic regression of the labels on the scores, which contains the best
    cut for any costs, the convex hull of the ROC curve and the probability of each score.

    Parameters
    ----------
    unit
        Each weight is held as a whole number of units, as in `limen.OnlineThreshold`.
    direction
        As for `limen.OnlineThreshold`. With ``"<="`` the probability falls as the score rises.
    scores
        What scores are, for `recommended`: as for `limen.OnlineThreshold`.
    capacity
        With a number, a `limen.BoundedCalibrator` is made: it holds no more than so many buckets of
        scores, and has an upper bound on the excess loss of its threshold for any costs.

    Notes
    -----
    `update` and `revert` take O(log² n), where n is the number of distinct scores, and about
    50 bytes per distinct score; `threshold`, `optimum`, `confusion` and the probability of one
    score take O(log n). Thresholds are those of `limen.OnlineThreshold` bit for bit, ties
    included. Any order of arrival leaves the same state. Several threads may share one object.

    Examples
    --------
    >>> from limen import OnlineCalibrator
    >>> calibrator = OnlineCalibrator()
    >>> for score, label in [(0.1, 0), (0.25, 1), (0.5, 0), (0.75, 1)]:
    ...     calibrator.update(score, label)
    >>> calibrator.threshold()
    0.625
    >>> calibrator.threshold(false_negative=5)
    0.175
    >>> calibrator.probability([0.1, 0.3, 0.8])
    array([0. , 0.5, 1. ])
    >>> calibrator.best("f1").threshold
    0.175
    """

    __slots__ = ()

    takes_costs = True
    _native = _core.Calibrator
    _capacities: ClassVar[tuple[int, int]] = (_core.hull_leaf_slots, 0)

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls,
            *,
            unit: Cost | None = ...,
            direction: Direction = ...,
            scores: ScoreKind = ...,
            capacity: None = ...,
        ) -> Self: ...
        @overload
        def __new__(  # type: ignore[misc]
            cls, *, capacity: int, unit: Cost | None = ..., direction: Direction = ...
        ) -> BoundedCalibrator: ...

    def __new__(cls, *args: Any, capacity: int | None = None, **settings: Any) -> Any:
        """Make the bounded model where a capacity is given."""
        if capacity is None:
            return super().__new__(cls)
        from limen.bounded import BoundedCalibrator

        return BoundedCalibrator(*args, capacity=capacity, **settings)

    def threshold(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> float:
        """Return the cheapest threshold for these costs. O(log n).

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.threshold(false_positive=1, false_negative=5)
        0.175
        """
        if (
            type(false_positive) is type(false_negative) is int
            and 0 < false_positive < _MOST
            and 0 < false_negative < _MOST
        ):  # the common case: only the ratio matters, so fractions are not needed
            return self._threshold(false_positive, false_negative)
        positive, negative, _ = exact_costs(false_positive, false_negative)
        return self._threshold(positive, negative)

    def optimum(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> Optimum:
        """Return the cheapest cut for these costs, and its loss. O(log n).

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.optimum(false_negative=5)
        <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
        """
        return Optimum(*self._optimum(*self._priced(false_positive, false_negative)))

    def recommended(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> float | None:
        """Return the threshold to use on new rows, as `limen.recommend` finds it.

        Takes what `OnlineThreshold.recommended` takes; for other costs than at the last read a
        fifth of it. None below five samples of either label.

        >>> calibrator = OnlineCalibrator()
        >>> labels = [int(i * i % 64 < i) for i in range(64)]
        >>> calibrator.update_many([i / 64 for i in range(64)], labels)
        >>> calibrator.recommended(), calibrator.recommended(false_negative=2)
        (0.3046875, 0.2109375)
        """
        return self._recommended(*exact_costs(false_positive, false_negative)[:2])

    def calibrated(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the chance of label 1 at each score by the maps behind `recommended`.

        An average of calibration maps: smooth where `probability` has steps, and never 0 or 1, but
        it need not rise everywhere. O(m log m) for m scores, besides what `recommended` takes.
        Raises ValueError below five samples of either label.

        >>> calibrator = OnlineCalibrator(scores="probabilities")
        >>> labels = [int(i * i % 64 < i) for i in range(64)]
        >>> calibrator.update_many([i / 64 for i in range(64)], labels)
        >>> calibrator.calibrated([0.1, 0.5, 0.9]).round(2)
        array([0.15, 0.67, 0.94])
        """
        given = ordered_scores(scores)
        core = given if self.direction == ">=" else 0.0 - given
        order = np.argsort(core, kind="stable")
        chances = _core.calibrated(self, ENOUGH, core[order])
        if isinstance(chances, tuple):
            self._require_enough(1, 1)
        found = np.empty(len(core))
        found[order] = chances
        return found

    def interval(
        self, confidence: float = 0.95, *, false_positive: Cost = 1, false_negative: Cost = 1
    ) -> tuple[float, float]:
        """Return between which thresholds the best one of all rows lies, for these costs.

        As `interval` of `limen.OnlineThreshold`.

        >>> calibrator = OnlineCalibrator()
        >>> labels = [int(i * i % 64 < i) for i in range(64)]
        >>> calibrator.update_many([i / 64 for i in range(64)], labels)
        >>> calibrator.interval(false_negative=2)
        (-inf, 0.5078125)
        """
        costs = exact_costs(false_positive, false_negative)
        return self._sure(confidence, *costs[:2])

    def keeps(
        self,
        threshold: float,
        *,
        confidence: float = 0.95,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
    ) -> bool:
        """Whether to keep a threshold: it lies inside the `interval` for these costs.

        One that gives all samples held the same answers as one inside is kept too.

        >>> calibrator = OnlineCalibrator()
        >>> labels = [int(i * i % 64 < i) for i in range(64)]
        >>> calibrator.update_many([i / 64 for i in range(64)], labels)
        >>> calibrator.keeps(0.75), calibrator.keeps(0.75, false_positive=9)
        (False, True)
        """
        costs = exact_costs(false_positive, false_negative)
        return self._keeps(threshold, confidence, *costs[:2])

    def _priced(self, false_positive: Cost, false_negative: Cost) -> tuple[int, int, int, int]:
        """Return the costs as whole numbers, and the size of one unit of loss as a fraction."""
        positive, negative, scale = exact_costs(false_positive, false_negative)
        return (positive, negative, *unit_parts(exact_unit(self._given["unit"]), scale)[2:])

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
        """Answer 1 or 0 to each score by the threshold for these costs. O(m + log n).

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.3, 0.7], [0, 1])
        >>> calibrator.predict([0.2, 0.9])
        array([0, 1])
        """
        threshold = self.threshold(false_positive=false_positive, false_negative=false_negative)
        return answer(scores, threshold, self.direction)

    def curve(self, *, false_positive: Cost = 1, false_negative: Cost = 1) -> LossCurve:
        """Compute the loss of every cut for these costs. O(n).

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.3, 0.7], [0, 1])
        >>> calibrator.curve(false_negative=2).losses
        array([1., 0., 2.])
        """
        curve = LossCurve(*self._curve(*self._priced(false_positive, false_negative)))
        found: LossCurve = self._turned(curve)
        return found

    @overload
    def probability_interval(self, scores: float) -> tuple[float, float]: ...
    @overload
    def probability_interval(
        self, scores: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def probability_interval(
        self, scores: ArrayLike
    ) -> tuple[float, float] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the Venn-Abers interval of each score: what one more sample could change.

        O(log² n) for one score; for m scores O(m log² n), or O(n + m log n) where there are many.

        Parameters
        ----------
        scores
            One score or many.

        Returns
        -------
        low, high
            The value of the isotonic fit at the score if it also held one new sample of this
            score: of label 0, and of label 1. Two floats for one score, two arrays for many.

        Notes
        -----
        If the next row is drawn like the samples held, one of the two numbers, the one for its
        true label, is a calibrated probability, with any number of samples. They lie far apart
        where samples are few. This is not a confidence interval: see docs/trust.md. Where one
        number is needed, ``high / (1 - low + high)`` lies between them.

        The new sample weighs 1, whatever the others weigh, and is never added. Both numbers are
        the nearest doubles of the exact fractions; 0 and 1 where nothing is held.

        Raises
        ------
        ValueError
            When a weight of 1 would round to nothing in the unit.

        Examples
        --------
        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.2, 0.4, 0.6], [0, 1, 0, 1])
        >>> calibrator.probability_interval(0.4)
        (0.3333333333333333, 0.6666666666666666)
        >>> low, high = calibrator.probability_interval([0.1, 0.4, 0.9])
        >>> low
        array([0.        , 0.33333333, 0.5       ])
        """
        return self._probability_interval(scores, 1.0)

    def _probability_interval(
        self, scores: Any, weight: float
    ) -> tuple[float, float] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the same for a new sample of another weight."""
        if isinstance(scores, float) and scores == scores:
            return self._interval(scores, weight)
        single = is_single(scores)
        low, high = self._intervals(ordered_scores([scores] if single else scores), weight)
        return (low.item(), high.item()) if single else (low, high)

    def blocks(self) -> Blocks:
        """Return the isotonic fit: all its blocks. O(b log n) for b blocks.

        Probabilities rise from block to block, and fall where lower scores mean positive.

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.blocks().probabilities
        array([0. , 0.5, 1. ])
        """
        found: Blocks = self._turned(Blocks._of(self._blocks()))
        return found

    def roc_hull(self) -> RocHull:
        """Return the cuts that are best for some cost. O(b log n) for b of them.

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.3, 0.7], [0, 1])
        >>> calibrator.roc_hull().thresholds
        array([-inf,  0.5,  inf])
        """
        cuts = Cuts(*self._hull())
        hull = RocHull(cuts.thresholds, *cuts.in_numbers(slice(None)))
        found: RocHull = self._turned(hull)
        return found

    def confusion(self, threshold: float) -> Confusion:
        """Return the weights of right and wrong answers at any threshold. O(log n).

        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.confusion(0.5)
        Confusion(tp=1.0, fp=1.0, fn=1.0, tn=1.0)
        """
        return Confusion(*self._confusion(threshold))

    def best(
        self,
        metric: str | Metric | Callable[..., ArrayLike],
        *,
        min_precision: Cost | None = None,
        min_recall: Cost | None = None,
        max_false_positive_rate: Cost | None = None,
        max_positive_rate: Cost | None = None,
        max_positives: Cost | None = None,
        confidence: Cost | None = None,
    ) -> BestCut:
        """Find the best cut by a metric, among those that meet the demands.

        O(b log n) for b blocks when the metric is best on the hull and nothing is demanded,
        O(n) otherwise. Of several equally good cuts it is the highest, and the lowest where lower
        scores mean positive.

        Parameters
        ----------
        metric
            ``"accuracy"``, ``"balanced_accuracy"``, ``"f1"``, ``"jaccard"``, ``"kappa"``,
            ``"mcc"``, ``"odds_ratio"``, ``"precision"``, ``"recall"``, ``"roc01"``,
            ``"specificity"``, ``"youden"``, in capitals or not, one of `limen.metrics`, or a
            function that is given arrays of tp, fp, fn and tn, one entry
            for each cut, and returns the value of each; more is better.
        min_precision, min_recall
            Floors. A cut that answers 1 to nobody has no precision and meets no floor for it,
            not even 0.
        max_false_positive_rate, max_positive_rate
            Ceilings on the share of labels 0, and of all, that are answered 1.
        max_positives
            A ceiling on how many are answered 1, by weight: the 500 with the highest scores, or
            fewer where scores are equal.
        confidence
            None: the samples held meet the demands, exactly. On new rows such a floor is broken
            about every second time, as the cut was chosen for meeting it here. 0.95: new rows
            meet all demands, but for one sample of rows in 20 at most; the cut is then more
            careful, and every sample must weigh 1. See docs/trust.md.

        Raises
        ------
        limen.Infeasible
            When no cut meets the demands; its attribute `nearest` is the cut that misses least.
            Where only the confidence cannot be had, `more_samples` says roughly what is missing.

        Examples
        --------
        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> best = calibrator.best("recall", min_precision=0.9)
        >>> best.threshold, best.value
        (0.625, 0.5)
        """
        demands = demands_of(
            min_precision=min_precision,
            min_recall=min_recall,
            max_false_positive_rate=max_false_positive_rate,
            max_positive_rate=max_positive_rate,
            max_positives=max_positives,
        )
        measured, error = as_metric(metric), None
        if confidence is not None:
            cuts, samples = self._counted_cuts()
            error = error_of(confidence, cuts, samples, demands)
        else:
            on_hull = isinstance(measured, Metric) and measured.on_hull and not demands
            cuts = Cuts(*(self._hull() if on_hull else self._cuts()))
        try:
            found: BestCut = self._turned(best_cut(cuts, measured, demands, error))
        except Infeasible as infeasible:
            raise self._turned(infeasible) from None
        return found

    def near_best(
        self, metric: str | Metric, *, within: Cost = 0.01, **demands: Unpack[Demands]
    ) -> list[tuple[float, float]]:
        """Find all thresholds that are nearly as good as the best one by a metric. O(n).

        Parameters
        ----------
        metric
            A name or one of `limen.metrics`, as for `best`; no function of your own.
        within
            How much worse they may be, as a share of the best value: 0.01 is one per cent.
        demands
            Floors and ceilings, as for `best`.

        Returns
        -------
        runs
            Pairs ``(low, high)`` in ascending order: every threshold above `low` and up to `high`
            is one of them, and no other; from `low` on and below `high` where lower scores mean
            positive. Values are compared without rounding.

        Notes
        -----
        This is a count of the samples held and no interval of confidence: see `limen.recommend`.

        Examples
        --------
        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> calibrator.near_best("f1", within=0.2)
        [(-inf, 0.25), (0.5, 0.75)]
        """
        measured = as_metric(metric)
        if not isinstance(measured, Metric):
            raise TypeError("near_best needs a name or one of limen.metrics, not a function.")
        share = exact_bound(within, "within")
        runs = near_best(Cuts(*self._cuts()), measured, demands_of(**demands), share)
        found: list[tuple[float, float]] = self._turned(runs)
        return found

    def review_band(
        self,
        *,
        asking: Cost,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        max_questions: Cost | None = None,
    ) -> ReviewBand:
        """Find the cheapest two thresholds: no, ask a person, yes. O(log n).

        Parameters
        ----------
        asking
            What one question costs, for a sample of weight 1; the person is always right.
        false_positive, false_negative
            What mistakes cost in the zones that are answered without asking.
        max_questions
            How many questions may be asked, by weight. Then it takes O(n), as without a cost of
            asking.

        Notes
        -----
        Two cuts, each the cheapest for costs of its own: asking instead of "no" pays from a
        probability of ``asking / false_negative`` on, "yes" instead of asking from ``1 - asking /
        false_positive`` on. The band is empty where asking costs ``false_positive *
        false_negative / (false_positive + false_negative)`` or more. Of several, both thresholds
        are the highest, and the lowest where lower scores mean positive.

        Examples
        --------
        >>> calibrator = OnlineCalibrator()
        >>> calibrator.update_many([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1])
        >>> band = calibrator.review_band(asking=0.25)
        >>> band.low, band.high
        (2.5, 4.5)
        >>> band = calibrator.review_band(asking=0.5)
        >>> band.low, band.high
        (4.5, 4.5)
        """
        costs = price, positive, negative = exact_asking(asking, false_positive, false_negative)
        if max_questions is not None or price == 0:
            most = None
            if max_questions is not None:
                zero = max_questions == 0
                most = Fraction(0) if zero else exact_positive(max_questions, "max_questions")
            return self._band(*band_within(Cuts(*self._cuts()), costs, most), costs)
        if price * (positive + negative) >= positive * negative:
            low = high = self.threshold(false_positive=positive, false_negative=negative)
        else:
            low = self.threshold(false_positive=price, false_negative=negative - price)
            high = self.threshold(false_positive=positive - price, false_negative=price)
        ends = [(self._turned(end), self.confusion(end)) for end in (low, high)]
        return self._band(ends[0], ends[1], costs)

    def _band(self, low: Any, high: Any, costs: Any) -> ReviewBand:
        """Describe the band between two thresholds of the core."""
        found: ReviewBand = self._turned(band_of(low, high, costs))
        return found

    def _counted_cuts(self) -> tuple[Cuts, int]:
        """All cuts, and how many samples were held then: other threads may go on."""
        while True:
            samples, cuts = len(self), Cuts(*self._cuts())
            if samples == len(self):
                return cuts, samples
