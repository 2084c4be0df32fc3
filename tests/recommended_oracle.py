# SPDX-License-Identifier: Apache-2.0
"""The recommended cut and its interval by their definition, over all cuts of whole arrays.

limen finds them natively (native/samples/near_cuts.hpp, ranked.hpp). This is the same in NumPy,
slow and plain: its calibration maps (native/samples/map_average.hpp) are Gaussian processes with
whole matrices of covariances, and Newton's method goes on until nothing changes. A cut is written
as its place: how many samples lie below it. The samples of one score are never separated, so a
place is the first sample of its score, or the number of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limen import _core

BINS = 192


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


class Map(NamedTuple):
    """What the log odds of label 1 look like before labels are seen.

    ``log odds = centre + offset + slopes * features + path``: standard deviations of each, the
    length of the path, and whether it is smooth (Matern 3/2) or not (Ornstein and Uhlenbeck).
    """

    centre: str
    offset: float
    slope: float
    path: float
    length: float
    smooth: bool
    prior: float


OF_RANKS = (
    Map("rank", 2, 2, 0, 1, True, 0.15),
    Map("rank", 2, 2, 0.7, 1, True, 0.10),
    Map("rank", 2, 2, 2, 1, True, 0.06),
    Map("rank", 2, 2, 3, 1, False, 0.08),
    Map("rank", 2, 2, 4, 0.3, False, 0.04),
)
MAPS = {
    "probabilities": (
        Map("identity", 0.1, 0.1, 0, 1, True, 0.35),
        Map("identity", 0.3, 0.3, 0, 1, True, 0.15),
        Map("identity", 0.3, 0.3, 0.5, 1, True, 0.10),
        Map("identity", 1, 1, 2, 1, False, 0.08),
        Map("rank", 2, 2, 0.7, 1, True, 0.16),
        Map("rank", 2, 2, 2, 1, True, 0.06),
        Map("rank", 2, 2, 3, 1, False, 0.07),
        Map("rank", 2, 2, 4, 0.3, False, 0.03),
    ),
    "raw": (
        Map("raw", 3, 2, 0, 1, True, 0.20),
        Map("raw", 3, 2, 1, 1, True, 0.15),
        Map("raw", 3, 2, 2, 1, False, 0.20),
        *OF_RANKS,
    ),
    "ranks": OF_RANKS,
}
GRID = np.arange(-27, 28) / 2  # log odds of scores between those seen
POINTS, SHARES = np.polynomial.hermite_e.hermegauss(9)


def chance(log_odds: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))


def log_odds(chance: Any) -> Any:
    return np.log(chance) - np.log1p(-chance)


def likelihood(f: NDArray[Any], ones: NDArray[Any], count: NDArray[Any]) -> float:
    return float((ones * f - count * np.logaddexp(0, f)).sum())


class Mode(NamedTuple):
    """The most likely log odds under a Gaussian prior, and what is needed around it."""

    dual: NDArray[np.float64]  # the inverse of the prior's covariance times the way from its mean
    root: NDArray[np.float64]  # of the curvature of the likelihood
    cholesky: NDArray[np.float64]
    log_evidence: float

    def around(self, mean: Any, crossed: Any, own: Any) -> tuple[Any, Any]:
        """Means and variances at points of these covariances with the sites and themselves."""
        used = np.linalg.solve(self.cholesky, self.root[:, None] * crossed)
        return mean + crossed.T @ self.dual, np.maximum(own - (used * used).sum(0), 0)


def mode_of(mean: Any, covariance: Any, ones: Any, count: Any) -> Mode:
    """Newton's method, as in Rasmussen and Williams (2006), algorithm 3.1."""
    f, dual = mean.copy(), np.zeros(len(mean))
    value = likelihood(f, ones, count)
    for _ in range(100):
        p = chance(f)
        curve = count * p * (1 - p)
        root = np.sqrt(curve)
        inner = np.eye(len(mean)) + root[:, None] * covariance * root
        right = curve * (f - mean) + ones - count * p
        by = right - root * np.linalg.solve(inner, root * (covariance @ right)) - dual
        step, moved = 1.0, covariance @ by
        while step > 1e-10:
            tried, at = dual + step * by, f + step * moved
            reached = likelihood(at, ones, count) - tried @ (at - mean) / 2
            if reached >= value - 1e-13 * abs(value):
                break
            step /= 2
        gain = reached - value
        dual, f, value = tried, at, reached
        if abs(gain) < 1e-12 * max(1.0, abs(value)) and np.abs(moved).max() < 1e-9:
            break
    p = chance(f)
    root = np.sqrt(count * p * (1 - p))
    cholesky = np.linalg.cholesky(np.eye(len(mean)) + root[:, None] * covariance * root)
    return Mode(dual, root, cholesky, value - float(np.log(np.diag(cholesky)).sum()))


class Maps:
    """The chance of label 1 along the scores, averaged over maps."""

    def __init__(self, ranked: Ranked, kind: str, falling: bool = False) -> None:
        self.ranked, self.falling = ranked, falling
        cuts = ranked.cuts()
        below = ranked.below(cuts).weight
        self.weight = int(below[-1])
        self.worth = ranked.effective / self.weight
        self.whole = len(cuts) - 1 <= BINS
        ends = cuts if self.whole else bin_ends(ranked)
        self.below = ranked.below(ends).weight
        sums = ranked.below(ends)
        self.ones = np.diff(sums.ones) * self.worth
        self.count = np.diff(sums.weight) * self.worth
        self.middles = (self.below[1:] + self.below[:-1]) / 2
        distinct = ranked.scores[cuts[:-1]]
        in_middle = np.searchsorted(2 * below[1:], self.below[1:] + self.below[:-1])
        scores = self.scores = distinct[in_middle]
        if kind == "raw":
            at = distinct[
                np.searchsorted(2 * below[1:], 2 * np.array([0.16, 0.5, 0.84]) * below[-1])
            ]
            self.centre = at[1]
            with np.errstate(invalid="ignore"):
                self.half = (at[2] - at[0]) / 2
                if not self.half > 0:
                    self.half = (scores[-1] - scores[0]) / 2
            if not self.half > 0:
                self.half = 1.0
            if not (math.isfinite(self.centre) and math.isfinite(self.half)):
                kind = "ranks"
        self.kind = kind
        self.sites = self.coordinates(self.middles / self.weight, scores)
        self.modes = [
            mode_of(centre, features @ features.T + path, self.ones, self.count)
            for centre, features, path in (self.prior(map, self.sites) for map in MAPS[kind])
        ]
        logs = [
            mode.log_evidence + math.log(map.prior)
            for mode, map in zip(self.modes, MAPS[kind], strict=True)
        ]
        weights = np.exp(np.array(logs) - max(logs))
        self.shares = weights / weights.sum()
        self.log_odds = self.averaged(self.sites)

    def chance_of(self, score: Any) -> Any:
        return 1 + score if self.falling else score

    def coordinates(self, ranks: Any, scores: Any) -> dict[str, NDArray[np.float64]]:
        found = {"x": np.array([NormalDist().inv_cdf(each) for each in ranks])}
        if self.kind == "probabilities":
            s = np.clip(self.chance_of(scores), 1e-6, 1 - 1e-6)
            found |= {"low": np.log(s), "high": -np.log1p(-s)}
        elif self.kind == "raw":
            found["u"] = np.clip((scores - self.centre) / self.half, -5, 5)
        return found

    def prior(self, map: Map, at: dict[str, Any], other: Any = None) -> tuple[Any, Any, Any]:
        """Return the mean, the scaled features, and the covariance of the path with other sites."""
        if map.centre == "identity":
            centre = at["low"] + at["high"]
            features = [map.slope * at["low"], map.slope * at["high"]]
            along = "x"
        else:
            along = "x" if map.centre == "rank" else "u"
            centre, features = 2 * at[along], [map.slope * at[along]]
        whole = np.stack([np.full(len(centre), float(map.offset)), *features], 1)
        away = np.abs(at[along][:, None] - (at if other is None else other)[along]) / map.length
        if map.smooth:
            away = away * math.sqrt(3)
            return centre, whole, map.path**2 * (1 + away) * np.exp(-away)
        return centre, whole, map.path**2 * np.exp(-away)

    def averaged(self, at: dict[str, Any]) -> NDArray[np.float64]:
        total = 0.0
        for map, mode, share in zip(MAPS[self.kind], self.modes, self.shares, strict=True):
            centre, features, _ = self.prior(map, at)
            _, own, path = self.prior(map, self.sites, at)
            variance = (features * features).sum(1) + map.path**2
            mean, spread = mode.around(centre, own @ features.T + path, variance)
            points = mean + np.sqrt(spread) * POINTS[:, None]
            total = total + share * (SHARES[:, None] * chance(points)).sum(0) / SHARES.sum()
        return np.asarray(log_odds(np.clip(total, 1e-9, 1 - 1e-9)))

    def goal(self, costs: Costs) -> float:
        """The weight below which the maps would answer 0."""
        share = costs.false_positive / sum(costs)
        sizes = np.diff(self.below)
        losses = np.append(0, np.cumsum(sizes * (chance(self.log_odds) - share)))
        cut = int(np.flatnonzero(losses <= losses.min() + 1e-12 * self.weight)[-1])
        if self.whole:
            return float(self.below[cut])
        if cut == 0:
            return 0.0
        rank = math.inf
        if cut < len(self.middles):
            odds = math.log(costs.false_positive / costs.false_negative)
            low, high = self.log_odds[cut - 1 : cut + 1]
            part = min(max((odds - low) / (high - low), 0), 1) if high > low else 0.5
            rank = self.middles[cut - 1] + part * (self.middles[cut] - self.middles[cut - 1])
        below = self.ranked.below(self.ranked.cuts()).weight
        return float(below[np.searchsorted(below[1:] + below[:-1], 2 * rank)])

    def inside(self, place: int, costs: Costs) -> float:
        """Where in its gap a cut becomes a threshold."""
        ranked = self.ranked
        middle = ranked.threshold(place)
        if self.kind != "probabilities":
            return middle
        cuts = ranked.cuts()
        at = int(np.searchsorted(cuts, place))
        below = ranked.below(cuts).weight
        odds = math.log(costs.false_positive / costs.false_negative)
        low = self.chance_of(ranked.scores[place - 1]) if place else -1.0
        high = self.chance_of(ranked.scores[place]) if place < len(ranked) else 2.0
        z, found = list[float](), list[float]()
        if place:
            seen = float(np.interp((below[at - 1] + below[at]) / 2, self.middles, self.log_odds))
            z.append(log_odds(min(max(low, 1e-6), 1 - 1e-6)))
            found.append(min(seen, odds - 1e-9))
        free = (chance(GRID) > low) & (chance(GRID) < high)
        if free.any():
            end = min(0.5, 0.25 / max(self.weight * self.worth, 1))
            rank = min(max(below[at] / self.weight, end), 1 - end)
            scores = chance(GRID[free]) - (1 if self.falling else 0)
            z += GRID[free].tolist()
            found += self.averaged(self.coordinates([rank] * len(scores), scores)).tolist()
        if place < len(ranked):
            seen = float(np.interp((below[at] + below[at + 1]) / 2, self.middles, self.log_odds))
            z.append(log_odds(min(max(high, 1e-6), 1 - 1e-6)))
            found.append(max(seen, odds))
        pays = [each >= odds for each in found]
        if place:
            if True not in pays[1:]:
                return middle
            after = pays.index(True, 1)
        else:
            if False not in pays:
                return middle
            after = len(pays) - pays[::-1].index(False)
            if after == len(pays):
                return middle
        part = (odds - found[after - 1]) / (found[after] - found[after - 1])
        score = float(chance(z[after - 1] + part * (z[after] - z[after - 1])))
        return score - (1 if self.falling else 0) if low < score <= high else middle


def bin_ends(ranked: Ranked) -> NDArray[np.int64]:
    """96 bins of equal weight and 96 of equal width in normal scores: by the middle of a score."""
    cuts = ranked.cuts()
    weights = ranked.below(cuts).weight
    twice_middle, twice = weights[1:] + weights[:-1], 2 * float(weights[-1])
    half, law = BINS // 2, NormalDist()
    low, high = (law.inv_cdf(middle / twice) for middle in twice_middle[[0, -1]])
    goals = [twice * i / half for i in range(1, half)]
    goals += [twice * law.cdf(low + (high - low) * i / half) for i in range(1, half)]
    starts = np.searchsorted(twice_middle, np.sort(goals))
    return np.unique(np.concatenate([[0], cuts[starts], [len(ranked)]]))


def allowed_reach(ranked: Ranked, kind: str) -> float:
    return (0.75 if kind == "ranks" else 2) * min(1.0, math.sqrt(math.sqrt(300 / ranked.effective)))


def recommended_place(ranked: Ranked, best: int, costs: Costs, maps: Maps) -> int:
    """Of the cuts within reach the one nearest to the maps'; of two as near the cheaper."""
    allowed = cuts_near(ranked, best, costs, allowed_reach(ranked, maps.kind))
    weight = float(ranked.all().weight[0])
    away = np.abs(ranked.below(allowed.places).weight - maps.goal(costs))
    nearest = away <= away.min() + 1e-9 * weight / ranked.effective
    cheapest = int(allowed.excess[nearest].argmin())
    return int(allowed.places[nearest][cheapest])
