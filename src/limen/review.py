# SPDX-License-Identifier: Apache-2.0
"""A review band: "no" below one threshold, "yes" from another one on, and a person in between."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from limen.arrays import is_single
from limen.columns import ordered_scores
from limen.direction import mirrored
from limen.metrics import Confusion
from limen.units import Cost, exact_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.best_cut import Cuts
    from limen.optimum import Direction

__all__ = ["ReviewBand", "band_of", "band_within", "exact_asking"]


@dataclass(frozen=True, slots=True)
class ReviewBand:
    """Two thresholds: answer 0 below `low`, 1 from `high` on, and ask a person in between.

    Attributes
    ----------
    low, high
        The thresholds. Equal ones leave nothing to ask.
    loss
        The total cost: mistakes in both outer zones, and all questions.
    no, ask, yes
        The weight of the samples in each zone.
    confusion
        The weights of right and wrong answers in the outer zones; those asked about are in none.
    direction
        ``"<="`` where lower scores mean positive: 1 up to `low`, 0 above `high`.

    Examples
    --------
    >>> import limen
    >>> band = limen.review_band([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1], asking=0.25)
    >>> band.low, band.high, band.loss, band.ask
    (2.5, 4.5, 0.5, 2.0)
    >>> band.predict([1, 3, 6])
    array([ 0, -1,  1])
    """

    low: float
    high: float
    loss: float
    no: float
    ask: float
    yes: float
    confusion: Confusion
    direction: Direction = ">="

    @overload
    def predict(self, scores: float) -> int: ...
    @overload
    def predict(self, scores: ArrayLike) -> NDArray[np.int64]: ...
    def predict(self, scores: ArrayLike) -> int | NDArray[np.int64]:
        """Answer 0 or 1 to each score, or -1 where a person is to be asked. O(m)."""
        single = is_single(scores)
        given = ordered_scores(np.asarray(scores).reshape(1) if single else scores)
        if self.direction == ">=":
            yes, asked = given >= self.high, given >= self.low
        else:
            yes, asked = given <= self.low, given <= self.high
        zones = np.where(yes, 1, np.where(asked, -1, 0))
        return int(zones[0]) if single else zones


@mirrored.register
def _(band: ReviewBand) -> ReviewBand:
    low, high = mirrored((band.low, band.high))
    rest = band.loss, band.no, band.ask, band.yes, band.confusion
    return ReviewBand(low, high, *rest, direction="<=")


def exact_asking(asking: Cost, false_positive: Cost, false_negative: Cost) -> tuple[Fraction, ...]:
    """Read the cost of asking and of both mistakes exactly; asking may cost nothing."""
    for name, cost in (("false_positive", false_positive), ("false_negative", false_negative)):
        if np.ndim(cost):  # type: ignore[arg-type]
            raise ValueError(
                f"{name} is an array. A review band works only with one cost of each mistake: with "
                "costs of each row, it is not two cuts that are chosen apart."
            )
    price = Fraction(0) if asking == 0 else exact_positive(asking, "asking")
    return (
        price,
        exact_positive(false_positive, "false_positive"),
        exact_positive(false_negative, "false_negative"),
    )


def band_of(
    low: tuple[float, Confusion], high: tuple[float, Confusion], costs: tuple[Fraction, ...]
) -> ReviewBand:
    """Describe the band between two thresholds by the confusions at both."""
    asking, false_positive, false_negative = costs
    (low_at, below), (high_at, above) = low, high
    confusion = Confusion(tp=above.tp, fp=above.fp, fn=below.fn, tn=below.tn)
    asked = sum(map(Fraction, above)) - sum(map(Fraction, confusion))
    mistakes = false_positive * Fraction(above.fp) + false_negative * Fraction(below.fn)
    loss = float(mistakes + asking * asked)
    zones = confusion.fn + confusion.tn, float(asked), confusion.tp + confusion.fp
    return ReviewBand(low_at, high_at, loss, *zones, confusion)


def band_within(
    cuts: Cuts, costs: tuple[Fraction, ...], most: Fraction | None
) -> tuple[tuple[float, Confusion], tuple[float, Confusion]]:
    """Find the cheapest pair of cuts with at most so much weight between them. O(n).

    Of several, the one with the highest upper cut, then the highest lower one.
    """
    common = math.lcm(*(cost.denominator for cost in costs))
    asking, positive, negative = (int(cost * common) for cost in costs)
    ones, zeros = (each.astype(object) for each in (cuts.positives_below, cuts.negatives_below))
    both = ones + zeros
    # What a pair costs, without the questions that both sums count once too often.
    below = negative * ones - asking * both
    above = asking * both + positive * (zeros[-1] - zeros)
    room = both[-1] if most is None else most / Fraction(*cuts.unit)
    best: Any = None
    window: deque[int] = deque()  # lower cuts that may be the cheapest, the cheapest first
    for place in range(len(both)):
        while window and below[window[-1]] >= below[place]:  # of equal ones the highest stays
            window.pop()
        window.append(place)
        while both[place] - both[window[0]] > room:
            window.popleft()
        cost = below[window[0]] + above[place]
        if best is None or cost <= best[0]:
            best = cost, window[0], place
    ends = []
    for place in best[1:]:
        weights = (float(weight[0]) for weight in cuts.in_numbers([place]))
        ends.append((float(cuts.thresholds[place]), Confusion(*weights)))
    return ends[0], ends[1]
