# SPDX-License-Identifier: Apache-2.0
"""How sure the threshold of pooled scores is, and what any threshold costs on them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from limen.aim import Aim
from limen.samples import Samples
from limen.sklearn.pool import fine_unit
from limen.trust import recommend

__all__ = ["Sureness", "cost_at", "how_sure"]


class Sureness(NamedTuple):
    """What `limen.recommend` says about some scores, without holding them."""

    threshold: float | None
    interval: tuple[float, float] | None
    reason: str

    @classmethod
    def refused(cls, reason: str) -> Sureness:
        """Say why there is no recommended threshold and no interval."""
        return cls(None, None, reason)


def how_sure(samples: Samples, aim: Aim) -> Sureness:
    """Ask `limen.recommend`, or keep the reason why it refuses. O(n log n).

    Only the ratio of weights matters, so they go in as whole numbers of the unit of the search.
    """
    weights, unit = samples.weights, aim.unit
    if weights is not None:
        if unit is None:
            unit = fine_unit([weights], max(aim.exact[:2]))
        if unit is not None:
            weights = np.rint(weights / float(unit)).astype(np.int64)
    try:
        found = recommend(samples.scores, samples.labels, weights=weights, **aim.mistakes)
    except ValueError as error:
        return Sureness.refused(f"{error} Label 1 is the positive class.")
    return Sureness(found.threshold, found.interval, found.reason)


def cost_at(samples: Samples, threshold: float, aim: Aim) -> float:
    """Add up what the mistakes of a threshold cost. O(n).

    >>> samples = Samples(np.array([0.2, 0.4]), np.array([1, 0]))
    >>> cost_at(samples, 0.3, Aim.of(false_positive=0.1, false_negative=0.2))
    0.3
    """
    answered = samples.answers(threshold)  # nan, which answers 0 to all, included
    positive, negative, scale = aim.exact
    alarms, missed = (
        Fraction(each.sum().item()) for each in (samples.zeros[answered], samples.ones[~answered])
    )
    return float(scale * (positive * alarms + negative * missed))
