# SPDX-License-Identifier: Apache-2.0
"""The rule: of the cuts that the samples cannot tell from the best, the one nearest the model's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from limen.trust.intervals import cuts_near, total_losses
from limen.trust.rank_model import rank_model

if TYPE_CHECKING:
    from limen.trust.intervals import Costs
    from limen.trust.ranked import Ranked

__all__ = ["allowed_reach", "best_place", "recommended_place"]


def best_place(ranked: Ranked, costs: Costs) -> int:
    """Return the place of the cheapest cut, the highest of several. O(n)."""
    cuts = ranked.cuts()
    losses = total_losses(ranked.below(cuts), ranked.all(), costs)
    return int(cuts[len(cuts) - 1 - int(losses[::-1].argmin())])


def allowed_reach(ranked: Ranked) -> float:
    """How far the samples allow one to move from the best cut, in standard errors.

    0.75 up to 300 samples, slowly less beyond, so that the answer becomes the exact optimum as
    samples come in.
    """
    return 0.75 * min(1.0, math.pow(300 / ranked.effective, 0.25))


def recommended_place(ranked: Ranked, best: int, costs: Costs) -> int:
    """Return the place of the recommended cut, given that of the best one. O(n)."""
    allowed = cuts_near(ranked, best, costs, allowed_reach(ranked))
    weight = float(ranked.all().weight[0])
    away = np.abs(
        ranked.weight_below(allowed.places) - weight * rank_model(ranked).share_below(costs)
    )
    nearest = away <= away.min() + 1e-9 * weight / ranked.effective
    cheapest = int(allowed.excess[nearest].argmin())
    return int(allowed.places[nearest][cheapest])
