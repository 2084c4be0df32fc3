# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut of whole arrays."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core, losses
from limen.columns import Numbers, as_numbers, samples_with_labels, samples_with_losses
from limen.direction import is_falling, negated, turned
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import Direction, LossCurve, Optimum
from limen.units import cost_parts, exact_unit, unit_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.units import Cost

__all__ = ["loss_curve", "optimal_cut", "optimal_threshold"]


def optimal_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
) -> Optimum:
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

    Notes
    -----
    The optimum is that of the samples given. Choose a threshold on samples that the classifier
    was not trained on, or it will look better than it is.

    Examples
    --------
    >>> from limen import optimal_threshold
    >>> optimal_threshold([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], false_negative=5)
    <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
    >>> optimal_threshold([70, 41, 35, 18], [0, 0, 1, 1], direction="<=")
    <Optimum: threshold 38.0, lower 35.0, upper 41.0, loss 0.0, direction '<='>
    >>> amounts = [40, 9, 300]
    >>> optimal_threshold([0.1, 0.2, 0.5], [0, 1, 1], false_positive=10, false_negative=amounts)
    <Optimum: threshold 0.15000000000000002, lower 0.1, upper 0.2, loss 0.0>
    """
    if direction != ">=" and is_falling(direction):
        costs: Any = {"false_positive": false_positive, "false_negative": false_negative}
        found = optimal_threshold(negated(scores), labels, weights=weights, unit=unit, **costs)
        return turned(found)  # type: ignore[no-any-return]
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


def _losses_per_sample(
    labels: ArrayLike, wrong: tuple[Any, Any], weights: ArrayLike | None
) -> tuple[Numbers, Numbers]:
    """Return what each sample costs if it is answered 0 and 1, by costs of its own. O(n)."""
    costs = {}
    for short, name, cost in zip(
        ("fp", "fn"), ("false_positive", "false_negative"), wrong, strict=True
    ):
        each = as_numbers(cost if np.ndim(cost) else [cost], name)
        bad = np.flatnonzero(~(each >= 0))
        if len(bad):
            where = f"{name}[{bad[0]}]" if np.ndim(cost) else name
            raise ValueError(
                f"{where} is {each[bad[0]]}; a mistake costs 0 or more. For gains of right answers "
                "use limen.optimal_cut with limen.losses.cost_matrix."
            )
        costs[short] = each if np.ndim(cost) else each[0]
    below, above = losses.cost_matrix(labels, **costs)
    return losses.weighed(below, weights), losses.weighed(above, weights)
