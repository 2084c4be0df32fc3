# SPDX-License-Identifier: Apache-2.0
"""The recommended cut and its interval by their definition, over all cuts of whole arrays.

limen finds them natively (native/samples/near_cuts.hpp, ranked.hpp). This is the same in NumPy,
slow and plain. A cut is written as its place: how many samples lie below it. The samples of one
score are never separated, so a place is the first sample of its score, or the number of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limen import _core

BINS = 1024


class Costs(NamedTuple):
    """Whole costs in the ratio of those given."""

    false_positive: int
    false_negative: int


class Below(NamedTuple):
    """What lies below each of some cuts, by label: weights, and sums of squared weights."""

    ones: NDArray[np.int64]
    zeros: NDArray[np.int64]
    ones_squared: NDArray[np.float64]
    zeros_squared: NDArray[np.float64]

    @property
    def weight(self) -> NDArray[np.int64]:
        return self.ones + self.zeros

    @property
    def squared(self) -> NDArray[np.float64]:
        return self.ones_squared + self.zeros_squared


class Ranked:
    """Samples in order of score, label and weight; those of weight 0 are left out."""

    def __init__(self, scores: Any, labels: Any, weights: Any = None) -> None:
        whole = np.ones(len(scores), np.int64) if weights is None else whole_weights(weights)
        rows = np.lexsort((whole, labels, scores := np.asarray(scores, float) + 0.0))
        rows = rows[whole[rows] > 0]
        self.scores = scores[rows]
        self.labels = np.asarray(labels, np.int64)[rows]
        self.weights = whole[rows]
        ones, zeros = self.weights * self.labels, self.weights * (1 - self.labels)
        squares = (each.astype(np.float64) ** 2 for each in (ones, zeros))
        self.sums = Below(*(np.append(0, np.cumsum(each)) for each in (ones, zeros, *squares)))

    def __len__(self) -> int:
        return len(self.scores)

    def below(self, places: Any) -> Below:
        return Below(*(column[np.asarray(places)] for column in self.sums))

    def all(self) -> Below:
        return self.below([len(self)])

    @property
    def effective(self) -> float:
        """How many samples of equal weight would be worth as much."""
        return float(self.all().weight[0]) ** 2 / float(self.all().squared[0])

    def place(self, threshold: float) -> int:
        return int(np.searchsorted(self.scores, threshold))

    def threshold(self, place: int) -> float:
        lower = float(self.scores[place - 1]) if place else None
        upper = float(self.scores[place]) if place < len(self) else None
        return _core.threshold_of(lower, upper)

    def cuts(self) -> NDArray[np.int64]:
        inner = np.flatnonzero(self.scores[1:] != self.scores[:-1]) + 1
        return np.unique(np.concatenate([[0], inner, [len(self)]]))


def whole_weights(weights: Any) -> NDArray[np.int64]:
    """Weights as whole numbers of the largest unit that holds them, as the core holds them."""
    weights = np.asarray(weights)
    if weights.dtype.kind in "iu" or np.all(weights == np.rint(weights)):
        return weights.astype(np.int64)
    units = np.rint(np.ldexp(weights, _core.finest_bits)).astype(np.int64)
    together = int(np.bitwise_or.reduce(units))
    return units >> max((together & -together).bit_length() - 1, 0)


def total_losses(below: Below, total: Below, costs: Costs) -> NDArray[np.int64]:
    missed, alarms = below.ones, total.zeros - below.zeros
    losses: NDArray[np.int64] = costs.false_negative * missed + costs.false_positive * alarms
    return losses


def spread(below: Below, best: Below, costs: Costs) -> NDArray[np.float64]:
    """The standard error of each cut's loss minus that of the best cut."""
    positive, negative = map(float, costs)
    ones = np.abs(below.ones_squared - best.ones_squared)
    zeros = np.abs(below.zeros_squared - best.zeros_squared)
    seen = negative * negative * ones + positive * positive * zeros
    return np.sqrt(np.maximum(seen, positive * negative * (ones + zeros)))


@dataclass(frozen=True)
class Near:
    """Cuts near the best one, ascending: places, what they cost more, and its standard error."""

    places: NDArray[np.int64]
    excess: NDArray[np.int64]
    errors: NDArray[np.float64]

    def within(self, reach: float) -> Near:
        kept = self.excess <= reach * self.errors
        return Near(self.places[kept], self.excess[kept], self.errors[kept])


def best_place(ranked: Ranked, costs: Costs) -> int:
    """The place of the cheapest cut, the highest of several."""
    cuts = ranked.cuts()
    losses = total_losses(ranked.below(cuts), ranked.all(), costs)
    return int(cuts[len(cuts) - 1 - int(losses[::-1].argmin())])


def cuts_near(ranked: Ranked, best: int, costs: Costs, reach: float) -> Near:
    """The cuts that cost at most `reach` standard errors more than the best one."""
    cuts, total, chosen = ranked.cuts(), ranked.all(), ranked.below([best])
    below = ranked.below(cuts)
    excess = total_losses(below, total, costs) - total_losses(chosen, total, costs)
    return Near(cuts, excess, spread(below, chosen, costs)).within(reach)


def ends_near(ranked: Ranked, best: int, costs: Costs, reach: float) -> tuple[int, int]:
    places = cuts_near(ranked, best, costs, reach).places
    return int(places[0]), int(places[-1])


def distance(ranked: Ranked, best: int, place: int, costs: Costs) -> float:
    """How many standard errors more than the best one a cut costs."""
    at, chosen, total = ranked.below([place]), ranked.below([best]), ranked.all()
    excess = total_losses(at, total, costs) - total_losses(chosen, total, costs)
    error = float(spread(at, chosen, costs)[0])
    return float(excess[0]) / error if error else 0.0


def regret(ranked: Ranked, best: int, costs: Costs) -> float:
    ends = ranked.below(ends_near(ranked, best, costs, 1.0))
    squares = float(np.diff(ends.squared)[0])
    weight = float(ranked.all().weight[0])
    return 0.24 * math.sqrt(costs.false_positive * costs.false_negative * squares) / weight


class RankModel(NamedTuple):
    """``log odds of label 1 = slope * normal score of the rank + offset``."""

    slope: float
    offset: float

    def share_below(self, costs: Costs) -> float:
        odds = math.log(costs.false_positive / costs.false_negative)
        if self.slope > 0:
            return 0.5 * math.erfc((self.offset - odds) / self.slope / math.sqrt(2))
        return 0.0 if self.offset >= odds else 1.0


def bin_ends(ranked: Ranked) -> NDArray[np.int64]:
    """Each score its own bin, or 1,024 of equal mass: a score is where its middle falls."""
    cuts = ranked.cuts()
    if len(cuts) - 1 <= BINS:
        return cuts
    weights = ranked.below(cuts).weight
    twice_middle = weights[1:] + weights[:-1]
    goals = np.arange(1, BINS) * (2 * float(weights[-1]) / BINS)
    starts = np.searchsorted(twice_middle, goals)
    return np.unique(np.concatenate([[0], cuts[starts], [len(ranked)]]))


def rank_model(ranked: Ranked) -> RankModel:
    """Fit by Newton's method, with the targets of Platt's method, which are never quite 0 or 1."""
    below = ranked.below(bin_ends(ranked))
    share = ranked.effective / float(below.weight[-1])
    ones, zeros = np.diff(below.ones) * share, np.diff(below.zeros) * share
    both, positive, negative = ones + zeros, ones.sum(), zeros.sum()
    target = ones * (positive + 1) / (positive + 2) + zeros / (negative + 2)
    middles = (np.cumsum(both) - both / 2) / both.sum()
    x = np.array([NormalDist().inv_cdf(each) for each in middles])
    slope, offset = 1.0, 0.0
    for _ in range(50):
        guess = 1 / (1 + np.exp(-np.clip(slope * x + offset, -35, 35)))
        error, curve = both * guess - target, both * guess * (1 - guess)
        gradient = np.array([1e-6 * slope + error @ x, error.sum()])
        hessian = np.array([[1e-6 + curve @ (x * x), curve @ x], [curve @ x, 1e-9 + curve.sum()]])
        if np.linalg.det(hessian) <= 1e-14:
            break
        step = np.linalg.solve(hessian, gradient)
        slope, offset = (slope, offset) - step * min(1.0, 5 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).sum() < 1e-8:
            break
    return RankModel(float(slope), float(offset))


def allowed_reach(ranked: Ranked) -> float:
    return 0.75 * min(1.0, math.pow(300 / ranked.effective, 0.25))


def recommended_place(ranked: Ranked, best: int, costs: Costs) -> int:
    """Of the cuts within reach the one nearest to the model's; of two as near the cheaper."""
    allowed = cuts_near(ranked, best, costs, allowed_reach(ranked))
    weight = float(ranked.all().weight[0])
    goal = weight * rank_model(ranked).share_below(costs)
    away = np.abs(ranked.below(allowed.places).weight - goal)
    nearest = away <= away.min() + 1e-9 * weight / ranked.effective
    cheapest = int(allowed.excess[nearest].argmin())
    return int(allowed.places[nearest][cheapest])
