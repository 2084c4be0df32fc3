# SPDX-License-Identifier: Apache-2.0
"""Which cuts the samples cannot tell from the best one.

A cut is within reach of the cheapest when it costs at most ``reach`` standard errors more. Near
the minimum the scale of the loss cancels, so that the reach of a confidence is one number for all
data: see `limen.confidence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limen.confidence import NAMED, SAFE, SMOOTH, reach_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.trust.ranked import Below, Ranked

__all__ = [
    "NAMED",
    "SAFE",
    "SMOOTH",
    "Costs",
    "Near",
    "cuts_near",
    "distance",
    "ends_near",
    "reach_of",
    "regret",
    "spread",
    "total_losses",
]

_MOST_BLOCKS = 1024
_LEAST_SAMPLES = 512  # in a block: less would take as long
_AT_ONCE = 8  # blocks to look into for the end of an interval


class Costs(NamedTuple):
    """Whole costs in the ratio of those given."""

    false_positive: int
    false_negative: int


def total_losses(below: Below, total: Below, costs: Costs) -> NDArray[np.int64]:
    """Return the loss of each cut in whole units.

    The core has checked that the sum of all losses is below 2**62.
    """
    missed, alarms = below.ones, total.zeros - below.zeros
    losses: NDArray[np.int64] = costs.false_negative * missed + costs.false_positive * alarms
    return losses


def spread(below: Below, best: Below, costs: Costs) -> NDArray[np.float64]:
    """Return the standard error of each cut's loss minus that of the best cut.

    The larger of two variances of what lies between: that of the labels seen, and that of labels
    for which either answer costs the same. Without the second, rare and expensive labels would
    not show where there happen to be none.
    """
    positive, negative = map(float, costs)
    ones = np.abs(below.ones_squared - best.ones_squared)
    zeros = np.abs(below.zeros_squared - best.zeros_squared)
    seen = negative * negative * ones + positive * positive * zeros
    return np.sqrt(np.maximum(seen, positive * negative * (ones + zeros)))


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Cuts near the best one, ascending: places, what they cost more, and its standard error."""

    places: NDArray[np.int64]
    excess: NDArray[np.int64]
    errors: NDArray[np.float64]

    def within(self, reach: float) -> Near:
        """Return the cuts that cost at most so many standard errors more than the best."""
        kept = self.excess <= reach * self.errors
        return Near(self.places[kept], self.excess[kept], self.errors[kept])


def cuts_near(ranked: Ranked, best: int, costs: Costs, reach: float) -> Near:
    """Return the cuts within reach of the best one. O(n) at most."""
    return _look_into(ranked, best, costs, reach, _open_blocks(ranked, best, costs, reach))


def ends_near(ranked: Ranked, best: int, costs: Costs, reach: float) -> tuple[int, int]:
    """Return the places of the lowest and the highest cut within reach of the best one.

    O(n) at most; where many cuts are within reach, much faster than finding all of them.
    """
    blocks = _open_blocks(ranked, best, costs, reach)
    parts = [blocks[at : at + _AT_ONCE] for at in range(0, len(blocks), _AT_ONCE)]
    found = (_look_into(ranked, best, costs, reach, part).places for part in parts)
    low = next(places for places in found if len(places))[0]
    found = (_look_into(ranked, best, costs, reach, part).places for part in parts[::-1])
    high = next(places for places in found if len(places))[-1]
    return int(low), int(high)


def _open_blocks(ranked: Ranked, best: int, costs: Costs, reach: float) -> list[tuple[int, int]]:
    """Return the blocks of samples, ascending, in which a cut could be within reach.

    The loss of a cut is at least what either end of its block allows, and the standard error
    grows away from the best.
    """
    if len(ranked) < _LEAST_SAMPLES:
        return [(0, len(ranked) + 1)]
    total, chosen, ends = ranked.all(), ranked.below([best]), _block_ends(ranked)
    below = ranked.below(ends)
    losses = total_losses(below, total, costs) - total_losses(chosen, total, costs)
    errors = spread(below, chosen, costs)
    bound = np.maximum(
        losses[:-1] - costs.false_positive * np.diff(below.zeros),
        losses[1:] - costs.false_negative * np.diff(below.ones),
    )
    is_open = np.append(bound <= reach * np.maximum(errors[:-1], errors[1:]), True)
    # The cut above all samples is a block of its own.
    starts, stops = ends, np.append(ends[1:], len(ranked) + 1)
    return list(zip(starts[is_open].tolist(), stops[is_open].tolist(), strict=True))


def _look_into(
    ranked: Ranked, best: int, costs: Costs, reach: float, blocks: list[tuple[int, int]]
) -> Near:
    """Return the cuts of some blocks that are within reach of the best one."""
    total, chosen = ranked.all(), ranked.below([best])
    places = np.concatenate([np.arange(start, stop) for start, stop in blocks])
    places = places[ranked.is_cut(places)]
    below = ranked.below(places)
    excess = total_losses(below, total, costs) - total_losses(chosen, total, costs)
    return Near(places, excess, spread(below, chosen, costs)).within(reach)


def _block_ends(ranked: Ranked) -> NDArray[np.int64]:
    """Cuts from the lowest to the highest with about as many samples between each two."""
    blocks = min(_MOST_BLOCKS, 1 + len(ranked) // _LEAST_SAMPLES)
    even = np.linspace(0, len(ranked), blocks, endpoint=False).astype(np.int64)
    first = np.searchsorted(ranked.scores, ranked.scores[even])
    return np.append(np.unique(first), len(ranked))


def distance(ranked: Ranked, best: int, place: int, costs: Costs) -> float:
    """Return how many standard errors more than the best one a cut costs. O(log n).

    For a threshold that was named before the samples were seen, `NAMED` tells which distance is
    too large to be chance.
    """
    at, chosen, total = ranked.below([place]), ranked.below([best]), ranked.all()
    excess = total_losses(at, total, costs) - total_losses(chosen, total, costs)
    error = float(spread(at, chosen, costs)[0])
    return float(excess[0]) / error if error else 0.0


def regret(ranked: Ranked, best: int, costs: Costs) -> float:
    """Return what the best cut of such samples costs more per weight than the best of all rows.

    In whole costs; within a factor of about two.
    """
    ends = ranked.below(ends_near(ranked, best, costs, 1.0))
    squares = float(np.diff(ends.squared)[0])
    weight = float(ranked.all().weight[0])
    return 0.24 * math.sqrt(costs.false_positive * costs.false_negative * squares) / weight
