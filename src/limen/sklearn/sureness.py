# SPDX-License-Identifier: Apache-2.0
"""How sure the threshold of pooled scores is, and what any threshold costs on them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen.sklearn.pool import fine_unit
from limen.trust import recommend
from limen.units import Cost, exact_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def how_sure(columns: Sequence[Any], unit: Cost | None, costs: dict[str, Any]) -> Sureness:
    """Ask `limen.recommend`, or keep the reason why it refuses. O(n log n).

    Only the ratio of weights matters, so they go in as whole numbers of the unit of the search.
    """
    scores, labels, weights = columns
    if weights is not None:
        if unit is None:
            unit = fine_unit([weights], max(exact_costs(**costs)[:2]))
        if unit is not None:
            weights = np.rint(weights / float(unit)).astype(np.int64)
    try:
        found = recommend(scores, labels, weights=weights, **costs)
    except ValueError as error:
        return Sureness.refused(f"{error} Label 1 is the positive class.")
    return Sureness(found.threshold, found.interval, found.reason)


def cost_at(columns: Sequence[Any], threshold: float, costs: dict[str, Any]) -> float:
    """Add up what the mistakes of a threshold cost. O(n).

    >>> columns = np.array([0.2, 0.4]), np.array([1, 0]), None
    >>> cost_at(columns, 0.3, {"false_positive": 0.1, "false_negative": 0.2})
    0.3
    """
    scores, labels, weights = columns
    answered = scores >= threshold  # nan, which answers 0 to all, included
    positive, negative, scale = exact_costs(**costs)
    alarms, missed = (
        Fraction((at if weights is None else weights[at]).sum().item())
        for at in (answered & (labels == 0), ~answered & (labels == 1))
    )
    return float(scale * (positive * alarms + negative * missed))
