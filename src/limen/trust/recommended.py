# SPDX-License-Identifier: Apache-2.0
"""The threshold to use on new rows, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from limen import _core
from limen.aim import Aim
from limen.confidence import ENOUGH, LEAST, NAMED, critical_value, too_few
from limen.digits import apart
from limen.direction import mirrored
from limen.names import renaming
from limen.optimum import Direction, Optimum, answer, as_threshold
from limen.picture import Mark, exact_mark, picture_of_range
from limen.samples import Samples
from limen.trust.cross_fit import CrossFitted, cross_fit
from limen.trust.explained import explained
from limen.units import exact_positive, unit_parts

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from limen.score_kind import BatchScoreKind
    from limen.units import Cost

__all__ = ["Recommendation", "recommend", "recommended", "where_best"]


@dataclass(frozen=True, repr=False)
class Recommendation:
    """A threshold for new rows, and how sure the samples make us of it.

    Attributes
    ----------
    threshold
        The recommended one: of the cuts that the samples cannot distinguish from the cheapest, the
        one nearest to what an average of calibration maps expects.
    optimum
        The exact optimum of the samples, as `limen.optimal_threshold` finds it.
    interval
        The lowest and the highest threshold of which, at this confidence, one cannot say that it
        is not the best for all rows. Ends are thresholds like any other: ``-inf`` says 1 to all,
        ``inf`` says 1 to none, and ``nan``, where ``inf`` was seen as a score, also to none.
    confidence
        How often such an interval holds the best threshold of all rows.
    regret
        What the exact optimum of so many samples costs more per row than the best threshold of
        all rows, roughly: within a factor of about two.
    samples
        How many samples all this rests on; those of weight 0 do not count.
    current, keep
        The threshold in use, where it was given, and whether it lies inside the interval, or gives
        all samples the same answers as one inside. While it does, keep it: these samples do not
        say that another is better.
    reason
        All this in one sentence, which is also what `print` shows.
    direction
        ``"<="`` where low scores are answered 1, as for `limen.optimal_threshold`. Then ``inf``
        says 1 to all, and ``-inf`` to none.

    Notes
    -----
    Holds a copy of the scores in ascending order, which `cost` and `distance` read.

    Examples
    --------
    >>> import limen
    >>> scores = [i / 64 for i in range(64)]
    >>> labels = [int(i * i % 64 < i) for i in range(64)]
    >>> found = limen.recommend(scores, labels, false_negative=2, current=0.875)
    >>> found
    <Recommendation: threshold 0.23013349430753074, interval (-inf, 0.5078125), confidence 0.95, \
optimum 0.2109375, current 0.875, keep False>
    >>> print(found)
    Change 0.875 to 0.2301: with 95 % confidence the best threshold lies at 0.5078 or below.
    >>> found.predict([0.05, 0.7])
    array([0, 1])
    >>> print(found.cost())
    0.2031 per row (0.08708 to 0.3192)
    """

    threshold: float
    optimum: Optimum
    interval: tuple[float, float]
    confidence: float
    regret: float
    samples: int
    current: float | None
    keep: bool | None
    _ranked: _core.Ranked = field(compare=False)
    _costs: tuple[int, int] = field(compare=False)
    _scale: Fraction = field(compare=False)
    direction: Direction = ">="

    _has_rows: ClassVar[bool] = True  # and not only counts, by which answers may differ unseen

    @classmethod
    def _of(
        cls,
        ranked: _core.Ranked,
        costs: tuple[int, int],
        scale: Fraction,
        optimum: Optimum,
        confidence: Any,
        current: float | None,
    ) -> Self:
        """Ask the core about samples in order of score, by whole costs of `scale` each."""
        reach = critical_value(confidence)
        (zeros, _), (ones, _) = ranked.worth()
        threshold, low, high, regret = ranked.recommend(reach)
        return cls(
            threshold=threshold,
            optimum=optimum,
            interval=(low, high),
            confidence=confidence,
            regret=regret * float(scale),
            samples=zeros + ones,
            current=current,
            keep=None if current is None else ranked.keeps(current, reach),
            _ranked=ranked,
            _costs=costs,
            _scale=scale,
        )

    def __repr__(self) -> str:
        listed = {
            "threshold": self.threshold,
            "interval": self.interval,
            "confidence": self.confidence,
            "optimum": self.optimum.threshold,
        }
        if self.current is not None:
            listed |= {"current": self.current, "keep": self.keep}
        if self.direction != ">=":
            listed["direction"] = self.direction
        shown = ", ".join(f"{name} {value!r}" for name, value in listed.items())
        return f"<{type(self).__name__}: {shown}>"

    def __str__(self) -> str:
        return self.reason

    def _repr_html_(self) -> str:
        """Show the reason and a small picture in a notebook."""
        marks = [
            Mark(self.threshold, "recommended", "use"),
            exact_mark(self.optimum),
        ]
        if self.current is not None:
            marks.append(Mark(self.current, "in use", "current"))
        return picture_of_range(self.reason, marks, self.interval, self.confidence)

    @property
    def reason(self) -> str:
        """What to do and why, in one sentence."""
        return _reason(self)

    @overload
    def predict(self, scores: float) -> int: ...
    @overload
    def predict(self, scores: ArrayLike) -> NDArray[np.int64]: ...
    def predict(self, scores: ArrayLike) -> int | NDArray[np.int64]:
        """Answer 1 or 0 to each score by the recommended threshold. O(n)."""
        return answer(scores, self.threshold, self.direction)

    def cost(self) -> CrossFitted:
        """Return what a new row will cost, by cross-fitting. O(n), once.

        The loss of a threshold on the samples that chose it is too good. Here every row is judged
        by a threshold that was chosen without it, by the same rule, in five folds. Raises
        ValueError when less than seven samples of a label are held.
        """
        return self._cost

    @cached_property
    def _cost(self) -> CrossFitted:
        return cross_fit(self._ranked, self._costs, self._scale, self.confidence)

    def explain(self) -> str:
        """Say in one sentence which calibration maps carry the weight. O(n).

        >>> import limen
        >>> scores = [i / 64 for i in range(64)]
        >>> limen.recommend(scores, [int(i * i % 64 < i) for i in range(64)]).explain()
        'The scores are close to probabilities; they are a little too low (weight 0.79).'
        """
        return explained(self._ranked, self.direction)

    def labels_needed(self, target: Cost) -> int:
        """Return how many labels bring the regret per row down to a target, roughly. O(1).

        Counts all labels, those held included. Never less than the ten that a recommendation
        needs at least.
        """
        ratio: float = self.regret / float(exact_positive(target, "target"))
        return max(2 * LEAST, math.ceil(self.samples * math.pow(ratio, 1.5)))

    def distance(self, threshold: float) -> float:
        """Return how much more a threshold costs than the optimum, in standard errors. O(log n).

        For one threshold that was named before the samples were seen. See `rules_out`.
        """
        given = as_threshold(threshold, "threshold")
        return self._ranked.distance(given if self.direction == ">=" else 0.0 - given)

    def rules_out(self, threshold: float) -> bool:
        """Whether the samples say that a named threshold is not the best one. O(log n).

        A test at the confidence of this recommendation, for one threshold that was named before
        the samples were seen, and for one look: who looks again and again needs
        `limen.Evidence`.
        """
        return self.distance(threshold) > critical_value(self.confidence, NAMED)


@renaming
def recommend(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    weights: ArrayLike | None = None,
    current: float | None = None,
    confidence: float = 0.95,
    direction: Direction = ">=",
    prevalence: Cost | None = None,
    scores_are: BatchScoreKind = "auto",
    pos_label: object = None,
) -> Recommendation:
    """Recommend a threshold for new rows, and say how sure it is. O(n log n).

    Parameters
    ----------
    scores, labels, false_positive, false_negative
        As for `limen.optimal_threshold`.
    weights
        How much each row matters; a weight of 0 leaves it out. Unequal weights are worth less
        than as many equal ones, which is counted in. A row that stands for several equal ones
        belongs in as many rows, else the answer is less sure than it could be.
    current
        The threshold in use, if there is one: `keep` says whether to keep it.
    confidence
        0.8, 0.9, 0.95 or 0.99.
    direction
        ``"<="`` where a lower score means more positive, as for `limen.optimal_threshold`.
    prevalence
        The share of label 1 among the rows to come, where that of the samples is another, as for
        `limen.optimal_threshold`. The interval takes this share as known.
    scores_are
        ``"probabilities"`` of label 1 (with the direction ``"<="`` of label 0; one outside of 0 to
        1 is taken as the nearest of these), ``"raw"`` numbers on a scale of their own, or
        ``"ranks"``, of which only the order counts. ``"auto"`` takes scores that all lie between 0
        and 1 as probabilities, and others as raw.
    pos_label
        The label of the positive class, where labels are not 0 and 1.

    Raises
    ------
    ValueError
        When there are less than five samples of either label: nobody could recommend anything.

    Notes
    -----
    The samples must be like the rows to come, and not those that the classifier was trained on.
    The answer does not depend on the order of rows, and with ``scores_are="ranks"`` on nothing but
    the order of the scores. With very many samples it becomes the exact optimum. See docs/trust.md.

    Examples
    --------
    >>> import limen
    >>> scores = [i / 64 for i in range(64)]
    >>> labels = [int(i * i % 64 < i) for i in range(64)]
    >>> limen.recommend(scores, labels).reason
    'Use 0.3534, which 64 samples do not distinguish from their exact optimum 0.4141: with 95 % \
confidence the best threshold lies between 0.02344 and 0.4922.'
    """
    critical_value(confidence)  # refuses what is no confidence before it reads anything
    if current is not None:
        current = as_threshold(current, "current")
    costs: dict[str, Any] = {"false_positive": false_positive, "false_negative": false_negative}
    aim = Aim.of(**costs, prevalence=prevalence, confidence=confidence)
    samples = Samples.of(scores, labels, weights, direction, scores_are, pos_label)
    return recommended(samples, aim, current)


def recommended(samples: Samples, aim: Aim, current: float | None = None) -> Recommendation:
    """Recommend a threshold by samples and an aim that were read. O(n log n).

    The confidence is that of the aim, or 0.95.
    """
    if aim.by_row:
        raise TypeError(
            f"{next(iter(aim.by_row))} must be one number for all rows. Costs of each row go into "
            "labels and weights: see limen.losses.cost_matrix."
        )
    _require_held(samples.weights)
    positive, negative, scale = aim.on(samples).exact
    parts = unit_parts(None, scale)
    optimum = Optimum(*_core.select_threshold(*samples.columns, positive, negative, *parts))
    ranked = samples.ranked(positive, negative)
    _require_enough(ranked, current)
    if current is not None and samples.direction != ">=":
        current = 0.0 - current
    confidence = 0.95 if aim.confidence is None else aim.confidence
    found = Recommendation._of(ranked, (positive, negative), scale, optimum, confidence, current)
    return samples.present(found)


@mirrored.register
def _(found: Recommendation) -> Recommendation:
    return replace(
        found,
        threshold=mirrored(found.threshold),
        optimum=mirrored(found.optimum),
        interval=mirrored(found.interval),
        current=None if found.current is None else mirrored(found.current),
        direction="<=",
    )


def _require_held(weights: Any) -> None:
    """Refuse weights that would round to 0; there is no unit here, as their ratio alone matters."""
    if weights is None or weights.dtype.kind != "f":
        return
    lost = np.flatnonzero((weights > 0) & (weights <= 2.0 ** -(_core.finest_bits + 1)))
    if len(lost):
        at = int(lost[0])
        raise ValueError(
            f"weights[{at}] is {weights[at].item()!r}, which is rounded to 0 beside 1. Multiply "
            "all weights by the same number: only their ratio matters here."
        )


def _require_enough(ranked: _core.Ranked, current: float | None) -> None:
    """Raise ValueError where a label has too few samples, or weights that are worth as little."""
    zeros, ones = ranked.worth()
    for label, (count, worth) in ((1, ones), (0, zeros)):
        if worth < ENOUGH:
            raise too_few(f"{count} ", label, worth if count >= LEAST else None, current)


def where_best(interval: tuple[float, float], confidence: float, digits: int | None = None) -> str:
    """Say where the best threshold of all rows lies, in as many digits as its ends need to differ.

    >>> where_best((float("-inf"), 0.25), 0.95)
    'with 95 % confidence the best threshold lies at 0.25 or below'
    >>> where_best((0.16068, 0.16073), 0.95)
    'with 95 % confidence the best threshold lies between 0.16068 and 0.16073'
    """
    low, high = interval
    digits = digits or apart(interval)
    # An end that is nan says 1 to none: the high end, or where low scores are answered 1 the low.
    no_low = low == -math.inf or (math.isnan(low) and not math.isnan(high))
    if no_low and not high < math.inf:
        where = "may lie anywhere"
    elif no_low:
        where = f"lies at {high:.{digits}g} or below"
    elif not high < math.inf:
        where = f"lies at {low:.{digits}g} or above"
    elif low == high:
        where = f"lies at {low:.{digits}g}"
    else:
        where = f"lies between {low:.{digits}g} and {high:.{digits}g}"
    return f"with {confidence * 100:g} % confidence the best threshold {where}"


def _alike(found: Recommendation, digits: int) -> str:
    """Say why a threshold beyond an end of the interval is kept; of others nothing."""
    if found.current is not None and found._has_rows:
        low, high = found.interval
        for end, beyond in ((low, found.current < low), (high, found.current > high)):
            if beyond:
                return f": it gives all of them the same answers as {end:.{digits}g}"
    return ""


def _reason(found: Recommendation) -> str:
    """Say in one sentence what to do and why."""
    numbers = (*found.interval, found.threshold, found.optimum.threshold, found.current)
    digits = apart([each for each in numbers if each is not None])
    best = where_best(found.interval, found.confidence, digits)
    held, number = f"{found.samples:,} samples", f"{found.threshold:.{digits}g}"
    if found.keep:
        kept, alike = f"Keep {found.current:.{digits}g}", _alike(found, digits)
        return f"{kept}: {best}, and {held} do not rule this one out{alike}."
    if found.current is not None:
        return f"Change {found.current:.{digits}g} to {number}: {best}."
    if found.optimum.answers_as(found.threshold):
        return f"Use {number}, the exact optimum of {held}: {best}."
    exact = f"{found.optimum.threshold:.{digits}g}"
    alike = f"which {held} do not distinguish from their exact optimum {exact}"
    return f"Use {number}, {alike}: {best}."
