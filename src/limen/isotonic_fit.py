# SPDX-License-Identifier: Apache-2.0
"""Exact isotonic regression of whole arrays."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limen import _core
from limen.columns import samples_with_labels
from limen.hull import Blocks
from limen.units import Cost, exact_bound, exact_unit, unit_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["isotonic"]


def isotonic(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    increasing: bool | Literal["auto"] = True,
    y_min: Cost | None = None,
    y_max: Cost | None = None,
    unit: Cost | None = None,
) -> Blocks:
    """Fit labels to scores by the best non-decreasing function, exactly. O(n).

    Parameters
    ----------
    scores
        What the classifier gave; larger means more positive. Infinities are fine, nan is not.
    labels
        0 or 1 (or False and True) for each score.
    weights
        How much each sample counts; a weight of 0 leaves the sample out.
    increasing
        False for the best non-increasing function, where lower scores mean more positive. "auto"
        for the direction in which labels go with scores: that of their rank correlation.
    y_min, y_max
        The least and the largest probability; values beyond become that. `positive`, `weight` and
        `fractions` of the result stay what the samples say.
    unit
        Each weight is held as a whole number of units, as in `limen.OnlineThreshold`.

    Examples
    --------
    >>> from limen import isotonic
    >>> fit = isotonic([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> fit.probabilities
    array([0. , 0.5, 1. ])
    >>> fit.probability([0.3, 0.9])
    array([0.5, 1. ])
    >>> isotonic([20, 35, 50, 65], [1, 0, 1, 0], increasing=False, y_min=0.01).probabilities
    array([1.  , 0.5 , 0.01])
    """
    bounds = [
        None if bound is None else exact_bound(bound, name)
        for name, bound in (("y_min", y_min), ("y_max", y_max))
    ]
    if None not in bounds and bounds[0] > bounds[1]:  # type: ignore[operator]
        raise ValueError(f"y_min must not be above y_max, got {y_min!r} and {y_max!r}.")
    if increasing not in (True, False, "auto"):
        raise ValueError(f'increasing must be True, False or "auto", got {increasing!r}.')
    numbers, flags, heavy = samples_with_labels(scores, labels, weights)
    rising = _is_rising(numbers, flags, heavy) if increasing == "auto" else increasing
    parts = unit_parts(exact_unit(unit), Fraction(1))
    given = flags if rising else 1 - flags
    fit = Blocks._of(_core.isotonic_blocks(numbers, given, heavy, *parts))
    if not rising:
        fit = fit._mirrored()
    return fit if bounds == [None, None] else fit._clipped(*bounds)


def _is_rising(
    scores: NDArray[np.float64], labels: NDArray[np.uint8], weights: NDArray[Any] | None
) -> bool:
    """Whether higher scores have label 1 more often: whether the area under the ROC is 1/2 or more.

    Rows of weight 0 are left out, others count alike.
    """
    if weights is not None:
        scores, labels = scores[weights > 0], labels[weights > 0]
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    twice_rank = (2 * np.cumsum(counts) - counts + 1)[place]
    positives = int(np.count_nonzero(labels))
    return int(twice_rank[labels == 1].sum()) >= positives * (len(labels) + 1)
