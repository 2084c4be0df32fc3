# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut of whole arrays."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from limen import _core, losses
from limen.best_cut import Cuts, best_cut, demands_of
from limen.calibrator import OnlineCalibrator
from limen.columns import (
    Numbers,
    as_labels,
    as_numbers,
    require_same_length,
    samples_with_labels,
    samples_with_losses,
)
from limen.direction import is_falling, negated, turned
from limen.errors import Infeasible
from limen.metrics import BestCut, Metric, as_metric, cost
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import Direction, LossCurve, Optimum
from limen.units import cost_parts, exact_costs, exact_positive, exact_unit, unit_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from numpy.typing import ArrayLike

    from limen.best_cut import Demands
    from limen.review import ReviewBand
    from limen.units import Cost

__all__ = [
    "exact_best",
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
    metric: str | Metric | Callable[..., ArrayLike] | None = ...,
    **demands: Unpack[Demands],
) -> BestCut: ...


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
    metric: str | Metric | Callable[..., ArrayLike] | None = None,
    **demands: Unpack[Demands],
) -> Optimum | BestCut:
    """Find the decision threshold with the lowest total cost, exactly. O(n), without sorting.

    Parameters
    ----------
    scores
        What the classifier gave; larger means more positive. Infinities are fine, nan is not.
    labels
        0 or 1 (or False and True) for each score.
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
    >>> amounts = [40, 9, 300]
    >>> optimal_threshold([0.1, 0.2, 0.5], [0, 1, 1], false_positive=10, false_negative=amounts)
    <Optimum: threshold 0.15000000000000002, lower 0.1, upper 0.2, loss 0.0>
    """
    best: Optimum | BestCut = exact_best(
        scores,
        labels,
        false_positive=false_positive,
        false_negative=false_negative,
        weights=weights,
        unit=unit,
        direction=direction,
        prevalence=prevalence,
        metric=metric,
        **demands,
    )
    if best.lower is None or best.upper is None:
        warn_of_one_class(labels, weights)
    return best


def warn_of_one_class(labels: ArrayLike, weights: ArrayLike | None) -> None:
    """Warn the caller of our caller where labels are missing or all the same. O(n)."""
    ys = as_labels(labels)
    if weights is not None:
        ys = ys[np.asarray(as_numbers(weights, "weights")) != 0]
    ones = int(np.count_nonzero(ys))
    if 0 < ones < len(ys):
        return
    found = f"all {len(ys):,} labels are {int(ones > 0)}" if len(ys) else "there is no sample"
    warnings.warn(
        f"a threshold needs samples of both classes, and {found}: this one gives every score the "
        "same answer. Hold more samples, or check the column of labels.",
        stacklevel=3,
    )


def exact_best(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
    prevalence: Cost | None = None,
    metric: str | Metric | Callable[..., ArrayLike] | None = None,
    **demands: Unpack[Demands],
) -> Any:
    """Do what `optimal_threshold` does, without a warning where there is one class. O(n)."""
    if direction != ">=" and is_falling(direction):
        given: Any = {"false_positive": false_positive, "false_negative": false_negative}
        given |= {"weights": weights, "unit": unit, "metric": metric, **demands}
        given["prevalence"] = prevalence
        try:
            return turned(exact_best(negated(scores), labels, **given))
        except Infeasible as infeasible:
            raise turned(infeasible) from None
    if prevalence is not None:
        costs = false_positive, false_negative
        aim = {"unit": unit, "metric": metric, **demands}
        return _at_prevalence((scores, labels, weights), costs, prevalence, aim)
    if metric is not None or demands:
        calibrator = OnlineCalibrator(unit=unit)
        measured = _measure(metric, false_positive, false_negative)
        demands_of(**demands)  # refuses what is none
        calibrator.update_many(scores, labels, weights)
        return calibrator.best(measured, **demands)
    try:
        parts = cost_parts(false_positive, false_negative, unit)  # type: ignore[arg-type]
    except ValueError:
        each: tuple[Any, Any] = false_positive, false_negative
        if not any(np.ndim(cost) for cost in each):
            raise
        below, above = _losses_per_sample(labels, each, weights)
        return optimal_cut(scores, below, above, unit=unit)
    # Plain arrays of the usual types need no conversion, which takes longer than a small search.
    if weights is None and type(scores) is np.ndarray and type(labels) is np.ndarray:
        best = _core.select_arrays(scores, labels, *parts)
        if best is not None:
            return Optimum(*best)
    samples = samples_with_labels(scores, labels, weights)
    return Optimum(*_core.select_threshold(*samples, *parts))


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
    if is_falling(direction):
        found = optimal_cut(negated(scores), below, above, unit=unit)
        return turned(found)  # type: ignore[no-any-return]
    parts = unit_parts(exact_unit(unit), Fraction(1))
    return Optimum(*_core.select_losses(*samples_with_losses(scores, below, above), *parts))


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
    falling = is_falling(direction)
    calibrator = OnlineCalibrator(unit=unit)
    calibrator.update_many(negated(scores) if falling else scores, labels, weights)
    band = calibrator.review_band(
        asking=asking,
        false_positive=false_positive,
        false_negative=false_negative,
        max_questions=max_questions,
    )
    return turned(band) if falling else band


def loss_curve(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
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
    given: Any = {"false_positive": false_positive, "false_negative": false_negative}
    falling = is_falling(direction)
    columns = negated(scores) if falling else scores, labels, weights
    cut: Any
    if any(np.ndim(cost) for cost in given.values()):
        cut = OnlineCut(unit=unit)
        each = false_positive, false_negative
        columns = columns[0], *_losses_per_sample(labels, each, weights)
    else:
        cut = OnlineThreshold(**given, unit=unit)
    cut.update_many(*columns)
    curve: LossCurve = cut.curve()
    return turned(curve) if falling else curve


def _at_prevalence(
    columns: tuple[Any, Any, Any], costs: tuple[Any, Any], prevalence: Cost, aim: Any
) -> Optimum | BestCut:
    """Find the best cut where each label counts as at another prevalence."""
    scores, labels, weights = columns
    shares = losses.at_prevalence(labels, prevalence, weights=weights)
    named = dict(zip(("false_positive", "false_negative"), costs, strict=True))
    if any(np.ndim(each) for each in costs):
        raise ValueError(
            "prevalence is known for one cost of each mistake. For costs of each sample, multiply "
            "them by what limen.losses.at_prevalence returns, and leave prevalence out."
        )
    if len(aim) == 2 and aim["metric"] is None:
        # To count more and to cost more is the same.
        priced: Any = {
            name: exact_positive(cost, name) * share
            for (name, cost), share in zip(named.items(), shares, strict=True)
        }
        cheapest: Optimum = exact_best(scores, labels, weights=weights, unit=aim["unit"], **priced)
        return cheapest
    metric = as_metric(_measure(aim.pop("metric"), *costs))
    calibrator = OnlineCalibrator(unit=aim.pop("unit"))
    demands = demands_of(**aim)
    zero, one, scale = exact_costs(*shares)
    counts = losses.weighed(np.where(as_labels(labels) == 1, one, zero), weights)
    calibrator.update_many(scores, labels, counts)
    cuts = Cuts(*calibrator._cuts())
    # Counts are whole numbers of `scale` rows each; functions and max_positives are about rows.
    rows = scale * Fraction(*cuts.unit)
    return best_cut(cuts._replace(unit=rows.as_integer_ratio()), metric, demands)


def _measure(metric: Any, false_positive: Any, false_negative: Any) -> Any:
    """Return the metric, or the cost where there is none; both at once are refused."""
    if metric is None:
        return cost(false_positive=false_positive, false_negative=false_negative)
    if not (np.ndim(false_positive) == np.ndim(false_negative) == 0) or (
        (false_positive, false_negative) != (1, 1)
    ):
        raise ValueError(
            "metric and costs are two aims. Give one of them, or a function of tp, fp, fn, tn."
        )
    return metric


def _losses_per_sample(
    labels: ArrayLike, wrong: tuple[Any, Any], weights: ArrayLike | None
) -> tuple[Numbers, Numbers]:
    """Return what each sample costs if it is answered 0 and 1, by costs of its own. O(n)."""
    costs, answers = {}, as_labels(labels)
    names = {"fp": "false_positive", "fn": "false_negative"}
    for (short, name), given in zip(names.items(), wrong, strict=True):
        each = as_numbers(given if np.ndim(given) else [given], name)
        bad = np.flatnonzero(~(each >= 0))
        if len(bad):
            where = f"{name}[{bad[0]}]" if np.ndim(given) else name
            raise ValueError(
                f"{where} is {each[bad[0]]}; a mistake costs 0 or more. For gains of right answers "
                "use limen.optimal_cut with limen.losses.cost_matrix."
            )
        if np.ndim(given):
            require_same_length(labels=answers, **{name: each})
        costs[short] = each if np.ndim(given) else each[0]
    below, above = losses.cost_matrix(answers, **costs)
    return losses.weighed(below, weights), losses.weighed(above, weights)
