# SPDX-License-Identifier: Apache-2.0
"""What answers cost on rows that had no part in choosing them, and what one saves against another.

Two thresholds differ only on the rows between them, so these alone say which of the two is cheaper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.floors import binomial_tail
from limen.trust.cross_fit import CrossFitted, Wrong, cost_per_row, normal_quantile
from limen.units import exact_costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.units import Cost

__all__ = ["Saving", "cost_of_answers", "cost_of_rows", "saving", "saving_of_rows"]

_FEW = (
    1000  # rows; above it the normal law alone claims a saving where there is none in 5 % at most
)
_HALVINGS = 30  # of the shares from 0 to 1


@dataclass(frozen=True, slots=True)
class Saving:
    """What answers save against others, on rows that had no part in choosing either.

    Attributes
    ----------
    per_row
        The cost per row, or per weight where rows have weights, of the others less that of these.
        Negative where these cost more.
    interval
        From where to where that is expected to lie on new rows, at the confidence asked for.
    before
        What the others cost per row.
    rows
        How many rows are answered differently. All this rests on them alone.
    """

    per_row: float
    interval: tuple[float, float]
    before: float
    rows: int

    @property
    def distinguishable(self) -> bool:
        """Whether the rows say which of the two is cheaper."""
        low, high = self.interval
        return low > 0 or high < 0

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """The saving and the ends of its interval as shares of what the others cost, at most 1.

        None where the others cost nothing.
        """
        if not self.before:
            return None
        low, high = (min(end / self.before, 1.0) for end in self.interval)
        return self.per_row / self.before, low, high


def cost_of_answers(
    labels: NDArray[np.uint8],
    answers: NDArray[np.bool_],
    weights: NDArray[Any] | None = None,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    confidence: float = 0.95,
) -> CrossFitted:
    """Return what a row costs that is answered by thresholds chosen on other rows. O(n).

    >>> labels, answers = np.array([0, 1, 1, 0], np.uint8), np.array([True, True, False, False])
    >>> cost_of_answers(labels, answers, false_negative=5).mean
    1.5
    """
    positive, negative, scale = exact_costs(false_positive, false_negative)
    ones, each = labels.view(bool), _weights(weights, len(labels))

    def wrong(rows: NDArray[np.bool_]) -> Wrong:
        weight = each[rows]
        return len(weight), float(weight.sum()), float(weight @ weight)

    mistakes = wrong(answers & ~ones), wrong(~answers & ones)
    all_rows = float(each.sum()), float(each @ each)
    return cost_per_row([mistakes], all_rows, (positive, negative), scale, confidence)


def saving(
    labels: NDArray[np.uint8],
    others: NDArray[np.bool_],
    answers: NDArray[np.bool_],
    weights: NDArray[Any] | None = None,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    confidence: float = 0.95,
) -> Saving:
    """Return what answers save against others, both by thresholds chosen on other rows. O(n).

    The standard error is that of `limen.recommend`, so that rare and expensive labels
    count also where there happen to be none. With few rows the normal law promises too much. Where
    they weigh the same and are all answered 1 by one of the two, the interval is therefore at
    least as wide as the exact one of Clopper and Pearson for the share of labels 1 among them.

    >>> labels = np.array([1, 1, 1, 1, 0], np.uint8)
    >>> none, every = np.zeros(5, bool), np.ones(5, bool)
    >>> found = saving(labels, none, every)
    >>> found.per_row, found.rows, found.distinguishable
    (0.6, 5, False)
    """
    positive, negative, scale = exact_costs(false_positive, false_negative)
    each = _weights(weights, len(labels))
    differ = np.flatnonzero(others != answers)
    ones, raised, weight = labels[differ] == 1, answers[differ], each[differ]
    gain = np.where(ones, negative, -positive) * np.where(raised, 1.0, -1.0)
    total = float(weight @ gain)
    square = float(weight @ weight)
    variance = max(float(((weight * gain) ** 2).sum()), positive * negative * square)
    reach = normal_quantile((1 + confidence) / 2) * math.sqrt(variance)
    ends = [total - reach, total + reach]
    if 0 < len(differ) <= _FEW and np.all(weight == weight[0]) and np.all(raised == raised[0]):
        shares = _share_ends(int(np.count_nonzero(ones)), len(differ), 1 - confidence)
        sign = len(differ) * float(weight[0]) * (1 if raised[0] else -1)
        ends += [sign * ((positive + negative) * share - positive) for share in shares]
    before = _total_cost(labels == 1, others, each, positive, negative)
    low, middle, high, whole = (
        float(scale) * value / float(each.sum()) for value in (min(ends), total, max(ends), before)
    )
    return Saving(middle, (low, high), whole, len(differ))


def cost_of_rows(costs: NDArray[np.float64], confidence: float, errors: int) -> CrossFitted:
    """Return what a row costs, where each has a cost of its own, by the normal law. O(n).

    `errors` is how many of them would have been cheaper with the other answer.

    >>> cost_of_rows(np.array([1.0, 3.0]), 0.95, 1).mean
    2.0
    """
    mean, error = _mean(costs)
    reach = normal_quantile((1 + confidence) / 2) * error
    return CrossFitted(mean, error, (mean - reach, mean + reach), errors)


def saving_of_rows(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    differ: NDArray[np.bool_],
    confidence: float,
) -> Saving:
    """Return what answers save per row, where each row has a cost of its own. O(n).

    Costs may be gains, so the saving is no share of anything: its `before` is 0.
    """
    mean, error = _mean(before - after)
    reach = normal_quantile((1 + confidence) / 2) * error
    return Saving(mean, (mean - reach, mean + reach), 0.0, int(np.count_nonzero(differ)))


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    mean = float(values.mean())
    spread = float(np.square(values - mean).sum())
    return mean, math.sqrt(spread / max(len(values) - 1, 1) / len(values))


def _weights(weights: NDArray[Any] | None, rows: int) -> NDArray[np.float64]:
    return np.ones(rows) if weights is None else np.asarray(weights, np.float64)


def _total_cost(ones: Any, answers: Any, weights: Any, positive: int, negative: int) -> float:
    alarms, missed = weights[answers & ~ones].sum(), weights[~answers & ones].sum()
    return float(positive * alarms + negative * missed)


def _share_ends(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Return the interval of a share by Clopper and Pearson.

    >>> [round(end, 4) for end in _share_ends(5, 5, 0.05)]
    [0.4782, 1.0]
    """
    misses = trials - hits
    return _least_share(hits, trials, error / 2), 1 - _least_share(misses, trials, error / 2)


def _least_share(hits: int, trials: int, error: float) -> float:
    """Return the share at which so many hits or more have this chance."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS if hits else 0):
        middle = (low + high) / 2
        if float(binomial_tail(hits, trials, middle)) < error:
            low = middle
        else:
            high = middle
    return low
