# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut of whole arrays."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from limen import _core
from limen.aim import Aim
from limen.calibrator import OnlineCalibrator
from limen.columns import samples_with_losses
from limen.direction import is_falling, mirrored, negated
from limen.metrics import BestCut, Metric
from limen.names import renaming
from limen.optimum import Direction, LossCurve, Optimum
from limen.samples import Samples
from limen.units import exact_unit, unit_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from numpy.typing import ArrayLike

    from limen.best_cut import Demands
    from limen.review import ReviewBand
    from limen.units import Cost

__all__ = [
    "loss_curve",
    "optimal_cut",
    "optimal_threshold",
    "review_band",
    "warn_of_one_class",
]


@overload
def optimal_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = ...,
    false_negative: Cost | ArrayLike = ...,
    weights: ArrayLike | None = ...,
    unit: Cost | None = ...,
    direction: Direction = ...,
    prevalence: Cost | None = ...,
    pos_label: object = ...,
) -> Optimum: ...


@overload
def optimal_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost = ...,
    false_negative: Cost = ...,
    weights: ArrayLike | None = ...,
    unit: Cost | None = ...,
    direction: Direction = ...,
    prevalence: Cost | None = ...,
    pos_label: object = ...,
    metric: str | Metric | Callable[..., ArrayLike] | None = ...,
    **demands: Unpack[Demands],
) -> BestCut: ...


@renaming
def optimal_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
    prevalence: Cost | None = None,
    pos_label: object = None,
    metric: str | Metric | Callable[..., ArrayLike] | None = None,
    **demands: Unpack[Demands],
) -> Optimum | BestCut:
    """Find the decision threshold with the lowest total cost, exactly. O(n), without sorting.

    Parameters
    ----------
    scores
        What the classifier gave; larger means more positive. Infinities are fine, nan is not.
    labels
        0 or 1 (or False and True) for each score; with `pos_label` any two values.
    false_positive, false_negative
        Cost of answering 1 to a 0, and of answering 0 to a 1: one number, or one for each sample,
        such as the amount of a payment. For gains of right answers see
        `limen.losses.cost_matrix`.
    weights
        How much each sample counts; a weight of 0 leaves the sample out.
    unit
        Each weight is held as a whole number of units, as in `limen.OnlineThreshold`; with costs
        for each sample, each loss.
    direction
        ``"<="`` where a lower score means more positive, as with an age, a distance or a p-value:
        the answer is 1 when ``score <= threshold``. The same as to negate all scores, and the
        threshold found.
    prevalence
        The share of label 1 among the rows to come, where that of the samples is another: labels
        count as `limen.losses.at_prevalence` says, as if weighted, and losses and confusions are
        those of as many rows of that kind. Scores within each label must be like those to come.
    pos_label
        The label of the positive class, where labels are not 0 and 1, such as ``"fraud"``.
    metric
        Another aim than cost: a name such as ``"f1"``, one of `limen.metrics`, or a function, as
        for `limen.OnlineCalibrator.best`. The answer is then a `limen.BestCut`, with the `value` of
        the metric, its `confusion` and no loss.
    demands
        Floors and ceilings: ``min_precision``, ``min_recall``, ``max_false_positive_rate``,
        ``max_positive_rate`` and ``max_positives``, a number of rows. The answer is the best cut
        that meets them, by the metric or the cost, as a `limen.BestCut`; `limen.Infeasible` is
        raised where there is none.

    Notes
    -----
    Without a sample, or where all labels are the same, every score gets one answer, and there is a
    `UserWarning`.

    The optimum is that of the samples given. Choose a threshold on samples that the classifier
    was not trained on, or it will look better than it is.

    Examples
    --------
    >>> from limen import optimal_threshold
    >>> optimal_threshold([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], false_negative=5)
    <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
    >>> optimal_threshold([70, 41, 35, 18], [0, 0, 1, 1], direction="<=")
    <Optimum: threshold 38.0, lower 35.0, upper 41.0, loss 0.0, direction '<='>
    >>> optimal_threshold([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], metric="recall", min_precision=0.9)
    <BestCut: threshold 0.625, lower 0.5, upper 0.75, value 0.5, \
confusion Confusion(tp=1.0, fp=0.0, fn=1.0, tn=2.0)>
    >>> optimal_threshold([0.1, 0.5, 0.7], ["ok", "ok", "fraud"], pos_label="fraud").threshold
    0.6
    >>> amounts = [40, 9, 300]
    >>> optimal_threshold([0.1, 0.2, 0.5], [0, 1, 1], false_positive=10, false_negative=amounts)
    <Optimum: threshold 0.15000000000000002, lower 0.1, upper 0.2, loss 0.0>
    """
    aim = Aim.of(
        false_positive=false_positive,
        false_negative=false_negative,
        metric=metric,
        prevalence=prevalence,
        unit=unit,
        **demands,
    )
    if demands and aim.by_cost and not aim.priced:
        aim = replace(aim, metric=aim.measure)  # demands of None make it a BestCut all the same
    found: Any = None
    # Plain arrays of the usual types need no conversion, which takes longer than a small search.
    if (
        aim.parts is not None
        and weights is None
        and pos_label is None
        and direction == ">="
        and type(scores) is np.ndarray
        and type(labels) is np.ndarray
    ):
        found = _core.select_arrays(scores, labels, *aim.parts)
    if found is None:
        samples = Samples.of(scores, labels, weights, direction, positive=pos_label)
        best = aim.best(samples)
    else:
        best = Optimum(*found)
    if best.lower is None or best.upper is None:
        warn_of_one_class(samples if found is None else Samples.of(scores, labels))
    return best  # type: ignore[no-any-return]


def warn_of_one_class(samples: Samples) -> None:
    """Warn the caller of our caller where labels are missing or all the same. O(n)."""
    ys = samples.labels if samples.weights is None else samples.labels[samples.weights != 0]
    ones = int(np.count_nonzero(ys))
    if 0 < ones < len(ys):
        return
    found = f"all {len(ys):,} labels are {int(ones > 0)}" if len(ys) else "there is no sample"
    warnings.warn(
        f"a threshold needs samples of both classes, and {found}: this one gives every score the "
        "same answer. Hold more samples, or check the column of labels.",
        stacklevel=4,  # past the names of arguments
    )


def optimal_cut(
    scores: ArrayLike,
    below: ArrayLike,
    above: ArrayLike,
    *,
    unit: Cost | None = None,
    direction: Direction = ">=",
) -> Optimum:
    """Find the cheapest cut for any losses, exactly. O(n), without sorting.

    Parameters
    ----------
    scores
        What the classifier gave; larger means more positive.
    below, above
        What each sample costs if it is answered 0, and if it is answered 1.
    unit
        Each loss is held as a whole number of units, as in `limen.OnlineCut`.
    direction
        ``"<="`` where the answer is 1 when ``score <= threshold``, as for `optimal_threshold`:
        `below` is still what a sample costs if it is answered 0.

    Examples
    --------
    >>> from limen import losses, optimal_cut
    >>> optimal_cut([0.2, 0.6, 0.9], *losses.linear([3, -2, -1]))
    <Optimum: threshold 0.4, lower 0.2, upper 0.6, loss -3.0>
    """
    falling = is_falling(direction)
    columns = samples_with_losses(negated(scores) if falling else scores, below, above)
    found = Optimum(*_core.select_losses(*columns, *unit_parts(exact_unit(unit), Fraction(1))))
    return mirrored(found) if falling else found


@renaming
def review_band(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    asking: Cost,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    max_questions: Cost | None = None,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
    pos_label: object = None,
) -> ReviewBand:
    """Find the cheapest two thresholds: no, ask a person, yes. O(n), including the sorting.

    Parameters are those of `limen.OnlineCalibrator.review_band`, which keeps the band online, and
    of `optimal_threshold`. A row of weight 2 is two rows, and asks two questions.

    Examples
    --------
    >>> from limen import review_band
    >>> scores, labels = [1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1]
    >>> band = review_band(scores, labels, asking=0.25)
    >>> band.low, band.high, band.ask
    (2.5, 4.5, 2.0)
    >>> review_band(scores, labels, asking=0, max_questions=1).loss
    1.0
    """
    samples = Samples.of(scores, labels, weights, direction, positive=pos_label)
    calibrator = OnlineCalibrator(unit=unit)
    calibrator._many(*samples.columns, True)
    band = calibrator.review_band(
        asking=asking,
        false_positive=false_positive,
        false_negative=false_negative,
        max_questions=max_questions,
    )
    return samples.present(band)


@renaming
def loss_curve(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
    pos_label: object = None,
) -> LossCurve:
    """Compute the total loss of every cut. O(n), including the sorting.

    Parameters are those of `optimal_threshold`.

    Examples
    --------
    >>> from limen import loss_curve
    >>> curve = loss_curve([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> curve.thresholds
    array([ -inf, 0.175, 0.375, 0.625,   inf])
    >>> curve.losses
    array([2., 1., 2., 1., 2.])
    """
    aim = Aim.of(false_positive=false_positive, false_negative=false_negative, unit=unit)
    samples = Samples.of(scores, labels, weights, direction, positive=pos_label)
    curve: LossCurve = samples.present(aim.holding(samples).curve())
    return curve
