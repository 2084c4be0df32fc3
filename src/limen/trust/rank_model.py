# SPDX-License-Identifier: Apache-2.0
"""A model of two numbers: how the odds of label 1 grow with the rank of a score.

The rank is written as a normal score, so nothing depends on the scale of the scores. It is a rough
model; it is used only where the samples cannot tell cuts apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.trust.intervals import Costs
    from limen.trust.ranked import Ranked

__all__ = ["RankModel", "rank_model"]

_BINS = 1024
_STEPS = 50
_LONGEST_STEP = 5.0
_RIDGE = 1e-6


class RankModel(NamedTuple):
    """``log odds of label 1 = slope * normal score of the rank + offset``."""

    slope: float
    offset: float

    def share_below(self, costs: Costs) -> float:
        """Tell which share of the rows should be answered 0.

        >>> from limen.trust.intervals import Costs
        >>> RankModel(1.0, 0.0).share_below(Costs(1, 1))
        0.5
        """
        odds = math.log(costs.false_positive / costs.false_negative)
        if self.slope > 0:
            return 0.5 * math.erfc((self.offset - odds) / self.slope / math.sqrt(2))
        return 0.0 if self.offset >= odds else 1.0


def rank_model(ranked: Ranked) -> RankModel:
    """Fit the model by Newton's method. O(bins), after O(n) to see how many scores there are."""
    below = ranked.below(_bin_ends(ranked))
    share = ranked.effective / float(below.weight[-1])
    ones, zeros = np.diff(below.ones) * share, np.diff(below.zeros) * share
    both = ones + zeros
    x = _normal_scores((np.cumsum(both) - both / 2) / both.sum())
    positive, negative = ones.sum(), zeros.sum()
    # Targets as in Platt's method: never quite 0 or 1, so that the fit stays finite.
    target = ones * ((positive + 1) / (positive + 2)) + zeros / (negative + 2)
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        guess = 1 / (1 + np.exp(-np.clip(slope * x + offset, -35, 35)))
        error, curve = both * guess - target, both * guess * (1 - guess)
        by_slope, by_offset = float((error * x).sum()) + _RIDGE * slope, float(error.sum())
        xx, xo = float((curve * x * x).sum()) + _RIDGE, float((curve * x).sum())
        oo = float(curve.sum()) + 1e-9
        determinant = xx * oo - xo * xo
        if determinant <= 1e-14:
            break
        step = (oo * by_slope - xo * by_offset) / determinant
        shift = (xx * by_offset - xo * by_slope) / determinant
        shorter = min(1.0, _LONGEST_STEP / max(abs(step), abs(shift), 1e-300))
        slope, offset = slope - shorter * step, offset - shorter * shift
        if abs(step) + abs(shift) < 1e-8:
            break
    return RankModel(slope, offset)


def _normal_scores(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    from statistics import NormalDist  # it loads slowly, and most programs never come here

    return np.array([*map(NormalDist().inv_cdf, shares.tolist())])


def _bin_ends(ranked: Ranked) -> NDArray[np.int64]:
    """Places between which the scores of one bin lie: each score its own, or bins of equal mass.

    A score is in the bin that the middle of its weight falls into.
    """
    cuts = ranked.cuts()
    if len(cuts) - 1 <= _BINS:
        return cuts
    weights = ranked.weight_below(cuts)
    twice_middle = weights[1:] + weights[:-1]
    goals = np.arange(1, _BINS) * (2 * float(weights[-1]) / _BINS)
    starts = np.searchsorted(twice_middle, goals)
    return np.unique(np.concatenate([[0], cuts[starts], [len(ranked)]]))
