# SPDX-License-Identifier: Apache-2.0
"""A model of two numbers: how the odds of label 1 grow with the rank of a score.

The rank is written as a normal score, so nothing depends on the scale of the scores. It is a rough
model; it is used only where the samples cannot tell cuts apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limen import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.trust.intervals import Costs
    from limen.trust.ranked import Ranked

__all__ = ["RankModel", "rank_model"]

_BINS = 1024


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
    """Fit the model by Newton's method. O(bins), after O(n) to see how many scores there are.

    The core fits it, as it does for a model that holds the same samples.
    """
    below = ranked.below(_bin_ends(ranked))
    share = ranked.effective / float(below.weight[-1])
    ones, zeros = np.diff(below.ones) * share, np.diff(below.zeros) * share
    return RankModel(*_core.rank_model(ones, zeros))


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
