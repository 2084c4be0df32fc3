# SPDX-License-Identifier: Apache-2.0
"""The losses of the paper's four problems, and of a cost matrix per row.

Each function returns ``(below, above)``: what a sample costs if it lies below the cut (the
answer is 0) and above it (the answer is 1), ready for `limen.optimal_cut` and
`limen.OnlineCut.update_many`. Whole numbers stay whole, so nothing is rounded on the way.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core
from limen.arrays import is_single
from limen.columns import Numbers, as_labels, as_numbers, require_same_length
from limen.units import Cost, exact_bound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["at_prevalence", "classification", "cost_matrix", "linear"]


def classification(
    labels: ArrayLike,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    weights: ArrayLike | None = None,
) -> tuple[Numbers, Numbers]:
    """Classification error, with class weights and sample weights. O(n).

    Problems 1 to 3 of the paper: ``false_negative / false_positive`` is its alpha and
    `weights` its beta.

    Examples
    --------
    >>> from limen import losses
    >>> losses.classification([0, 1, 1], false_negative=5, weights=[1, 1, 2])
    (array([ 0,  5, 10]), array([1, 0, 0]))
    """
    answers = as_labels(labels)
    counts = None if weights is None else as_numbers(weights, "weights")
    require_same_length(labels=answers, weights=counts)
    wrong = [
        _times(counts if counts is not None else np.ones(len(answers), np.int64), cost, name)
        for name, cost in (("false_positive", false_positive), ("false_negative", false_negative))
    ]
    positive = answers == 1
    return np.where(positive, wrong[1], 0), np.where(positive, 0, wrong[0])


def linear(z: ArrayLike, *, outputs: tuple[Cost, Cost] = (0, 1)) -> tuple[Numbers, Numbers]:
    """Any linear loss ``z * output``, with the outputs [Q0, Q1] of the paper. O(n).

    A negative z asks for the higher output, a positive one for the lower.

    Examples
    --------
    >>> from limen import losses
    >>> losses.linear([1, -2], outputs=(-1, 1))
    (array([-1,  2]), array([ 1, -2]))
    """
    low, high = outputs
    if not low <= high:
        raise ValueError(f"outputs must ascend, got {outputs!r}. Swap the two.")
    slopes = as_numbers(z, "z")
    return _times(slopes, low, "outputs[0]"), _times(slopes, high, "outputs[1]")


def cost_matrix(
    labels: ArrayLike,
    *,
    tp: ArrayLike = 0,
    fp: ArrayLike = 1,
    fn: ArrayLike = 1,
    tn: ArrayLike = 0,
) -> tuple[Numbers, Numbers]:
    """Price each outcome, the same for all rows or one price per row. O(n).

    Negative costs are gains.

    Examples
    --------
    A missed fraud costs its amount, a false alarm costs 2, a stopped fraud gains 1:

    >>> from limen import losses
    >>> losses.cost_matrix([1, 0, 1], tp=-1, fp=2, fn=[100, 0, 30])
    (array([100,   0,  30]), array([-1,  2, -1]))
    """
    return priced(as_labels(labels), tp=tp, fp=fp, fn=fn, tn=tn)


def priced(labels: NDArray[np.uint8], **prices: ArrayLike) -> tuple[Numbers, Numbers]:
    """Do what `cost_matrix` does, with labels that were read. O(n)."""
    costs = {name: _per_row(value, len(labels), name) for name, value in prices.items()}
    positive = labels == 1
    below = np.where(positive, costs["fn"], costs["tn"])
    above = np.where(positive, costs["tp"], costs["fp"])
    return below, above


def at_prevalence(
    labels: ArrayLike, prevalence: Cost, *, weights: ArrayLike | None = None
) -> tuple[Fraction | float, Fraction | float]:
    """Return how much each label 0 and each label 1 counts where a share `prevalence` has label 1.

    A sample whose labels 1 were picked out, as in a study of cases and controls, has another share
    of them than the rows to come. There a label 1 counts ``prevalence / share``, a label 0 ``(1 -
    prevalence) / (1 - share)``: all of them as much as before. Scores within each label must be
    like those of the rows to come. O(n).

    Fractions where weights are whole numbers, else floats.

    >>> from limen import losses
    >>> losses.at_prevalence([0, 1, 1, 0], 0.02)
    (Fraction(49, 25), Fraction(1, 25))
    """
    counts = None if weights is None else as_numbers(weights, "weights")
    return shares_at(as_labels(labels), prevalence, counts)


def shares_at(
    labels: NDArray[np.uint8], prevalence: Any, weights: Numbers | None
) -> tuple[Fraction | float, Fraction | float]:
    """Do what `at_prevalence` does, with columns that were read. O(n)."""
    wanted = exact_bound(prevalence, "prevalence")
    if not 0 < wanted < 1:
        raise ValueError(f"prevalence must lie between 0 and 1, got {prevalence!r}.")
    ones, every = int(np.count_nonzero(labels)), len(labels)
    if weights is not None:
        counts = weighed(np.ones(every, np.int64), weights)
        ones, every = counts[labels == 1].sum().item(), counts.sum().item()
    if not 0 < ones < every:
        raise ValueError(
            "prevalence needs samples of both labels: what is missing cannot be weighted."
        )
    whole = Fraction(every)
    each = (1 - wanted) * whole / Fraction(every - ones), wanted * whole / Fraction(ones)
    exact = weights is None or weights.dtype == np.int64
    return each if exact else (float(each[0]), float(each[1]))


def weighed(values: Numbers, weights: ArrayLike | None) -> Numbers:
    """Multiply losses by weights of 0 or more; whole numbers stay whole. O(n).

    >>> weighed(np.array([3, -1]), [2, 5])
    array([ 6, -5])
    """
    if weights is None:
        return values
    counts = as_numbers(weights, "weights")
    require_same_length(labels=values, weights=counts)
    bad = np.flatnonzero(~((counts >= 0) & (counts < np.inf)))
    if len(bad):
        raise ValueError(
            f"weights[{bad[0]}] is {counts[bad[0]]}; a weight must be 0 or more, and finite."
        )
    if values.dtype == counts.dtype == np.int64:
        largest = int(np.abs(values).max(initial=0)) * int(counts.max(initial=0))
        if largest < _core.most_units:
            return values * counts
    return values.astype(np.float64) * counts


def _per_row(values: ArrayLike, rows: int, name: str) -> Numbers:
    if is_single(values):
        return as_numbers(np.asarray(values).reshape(1), name)
    column = as_numbers(values, name)
    require_same_length(labels=np.empty(rows), **{name: column})
    return column


def _times(values: Numbers, factor: Cost, name: str) -> Numbers:
    """Multiply: int64 for whole numbers, float64 otherwise, never with an overflow."""
    number = factor if isinstance(factor, int | Fraction) else float(factor)
    if values.dtype == np.int64 and number == int(number):
        largest = int(np.abs(values).max(initial=0)) * abs(int(number))
        if largest >= _core.most_units:
            raise OverflowError(f"{name}={factor!r} makes losses of 2**62 or more. Scale it down.")
        return values * int(number)
    return values.astype(np.float64) * float(number)


def __dir__() -> list[str]:
    return __all__
