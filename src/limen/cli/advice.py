# SPDX-License-Identifier: Apache-2.0
"""What the samples of files say about the rows that come next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.groups import GroupThreshold, by_group
from limen.trust.recommended import Recommendation, recommend

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.cli.samples import Samples

__all__ = ["group_thresholds", "interval_text", "recommendation_or_refusal"]


def recommendation_or_refusal(
    samples: Samples, costs: dict[str, Any], unit: Any
) -> Recommendation | str:
    """Recommend a threshold for new rows, or say in a sentence why none can be. O(n log n)."""
    weights = _weights_in_units(samples, unit)
    if samples.shares is not None:  # to count more and to cost more is the same
        each = zip(("false_positive", "false_negative"), samples.shares, strict=True)
        costs = {name: costs.get(name, 1) * share for name, share in each}
        weights = None
    try:
        return recommend(
            samples.scores,
            samples.labels,
            weights=weights,
            direction=samples.direction,
            **costs,
        )
    except (ValueError, OverflowError) as error:  # the samples themselves were found sound before
        return str(error)


def group_thresholds(
    samples: Samples, costs: dict[str, Any], unit: Any, at_least: int
) -> dict[str, GroupThreshold]:
    """Return the threshold for new rows of each group. O(n log n).

    For samples of which all together have a recommended threshold.
    """
    found = by_group(
        samples.codes,
        samples.scores,
        samples.labels,
        weights=_weights_in_units(samples, unit),
        at_least=at_least,
        shrink=True,
        direction=samples.direction,
        **costs,
    )
    return {name: found.recommendation(code) for code, name in enumerate(samples.names)}


def _weights_in_units(samples: Samples, unit: Any) -> Any:
    """Count weights in units: a recommendation depends on their ratios alone, and takes no unit."""
    if samples.weights is None or unit is None:
        return samples.weights
    return np.rint(samples.weights / float(unit))


def interval_text(interval: tuple[float, float], write: Callable[[float], str]) -> str:
    """Write the interval of the best threshold; its ends may be ``-inf``, ``inf`` and nan.

    An end that is nan answers 1 to none: where low scores are answered 1, the low end.

    >>> interval_text((0.25, 0.5), str), interval_text((-math.inf, 0.5), str)
    ('0.25 to 0.5', '0.5 or below')
    >>> interval_text((0.25, math.nan), str), interval_text((-math.inf, math.inf), str)
    ('0.25 or above', 'any threshold')
    >>> interval_text((math.inf, math.inf), str), interval_text((-math.inf, -math.inf), str)
    ('inf', '-inf')
    """
    low, high = interval
    if low == high or (math.isnan(low) and math.isnan(high)):
        return write(low)
    if low == -math.inf or math.isnan(low):
        return f"{write(high)} or below" if high < math.inf else "any threshold"
    return f"{write(low)} to {write(high)}" if high < math.inf else f"{write(low)} or above"
