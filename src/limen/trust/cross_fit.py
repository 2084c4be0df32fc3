# SPDX-License-Identifier: Apache-2.0
"""What the recommended threshold costs on rows that it has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from limen.confidence import LEAST

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from limen import _core

__all__ = ["LEAST", "CrossFitted", "Wrong", "cost_per_row", "cross_fit", "normal_quantile"]

# Answers that are wrong in one way: how many, their weight, and that squared.
Wrong: TypeAlias = "tuple[int, float, float]"

_FOLDS = 5
_FEW_ERRORS = 10


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """What a row costs, by thresholds that were chosen without it.

    Attributes
    ----------
    mean
        The cost per row, or per weight where rows have weights.
    standard_error
        How much the mean varies by chance.
    interval
        From where to where the cost on new rows is expected to lie, at the confidence asked for.
    errors
        On how many rows with a cost all this rests. With less than ten, take the interval as a
        guess.
    """

    mean: float
    standard_error: float
    interval: tuple[float, float]
    errors: int

    @property
    def few(self) -> bool:
        """Whether it rests on less than ten errors, too few for the interval to be trusted."""
        return self.errors < _FEW_ERRORS

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{self.mean:.4g} per row ({low:.4g} to {high:.4g})"
        errors = "1 error" if self.errors == 1 else f"{self.errors} errors"
        return text + (f", from only {errors}" if self.few else "")


def cross_fit(
    ranked: _core.Ranked, costs: tuple[int, int], scale: Fraction, confidence: float
) -> CrossFitted:
    """Choose on four fifths of the samples, count what the other fifth costs, five times.

    The folds are every fifth sample of each label in order of score, the same for any order of
    rows. Raises ValueError where four fifths hold less than five samples of a label.
    """
    (zeros, _), (ones, _) = ranked.worth()
    if min(zeros, ones) - math.ceil(min(zeros, ones) / _FOLDS) < LEAST:
        raise ValueError(
            f"the cost on new rows cannot be estimated from {ones} samples of label 1 and {zeros} "
            f"of label 0: without a fifth of them, {LEAST} of each must be left. Collect at least "
            "7 of each."
        )
    return cost_per_row(ranked.cross_fit(_FOLDS), ranked.weight(), costs, scale, confidence)


def cost_per_row(
    mistakes: Iterable[tuple[Wrong, Wrong]],
    all_rows: tuple[float, float],
    costs: tuple[int, int],
    scale: Fraction,
    confidence: float,
) -> CrossFitted:
    """Return the mean cost of rows, and how sure it is.

    `mistakes` are false positives and false negatives of thresholds that were chosen without the
    rows judged; `all_rows` is the weight of all rows and the sum of its squares.
    """
    weight, squared = all_rows
    errors, cost, squares, both = 0, 0.0, 0.0, 0.0
    for wrongs in mistakes:
        for price, (rows, wrong, wrong_squared) in zip(costs, wrongs, strict=True):
            errors += rows
            cost += price * wrong
            squares += price * price * wrong_squared
            both += price * wrong_squared
    mean = cost / weight
    # The root of the sum of (weight * (cost - mean))**2; most rows cost nothing.
    residual = squares - 2 * mean * both + mean * mean * squared
    error = math.sqrt(max(residual, 0.0)) / weight
    reach = normal_quantile((1 + confidence) / 2) * error
    # Where no error was seen, one cannot say more than that errors are rare: the rule of three.
    unseen = max(costs) * -math.log(1 - confidence) / (weight**2 / squared)
    unit = float(scale)
    interval = max(mean - reach, 0.0) * unit, max(mean + reach, unseen) * unit
    return CrossFitted(mean * unit, error * unit, interval, errors)


def normal_quantile(share: float) -> float:
    """Return the number below which this share of a normal law lies.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from statistics import NormalDist  # it loads slowly, and most programs never come here

    return NormalDist().inv_cdf(share)
