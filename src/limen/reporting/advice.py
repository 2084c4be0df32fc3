# SPDX-License-Identifier: Apache-2.0
"""What samples say about the rows that come next: a threshold and how sure it is, or why none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.errors import Infeasible
from limen.groups import GroupThreshold, by_group
from limen.reporting.findings import calibrator_of, finding_at, finding_of, losses_of
from limen.trust.recommended import Recommendation, recommend

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.reporting.aim import Aim
    from limen.reporting.findings import Finding
    from limen.reporting.samples import Samples

__all__ = ["Advice", "advice_on", "interval_text", "thresholds_by_group"]


@dataclass(frozen=True, slots=True)
class Advice:
    """The threshold recommended for new rows, or why there is none."""

    confidence: float
    reason: str  # what to do and why, in a sentence
    finding: Finding | None = None  # the recommended cut of the samples
    interval: tuple[float, float] | None = None  # where the best threshold of all rows lies
    regret: float | None = None
    current: float | None = None
    keep: bool | None = None
    found: Recommendation | None = None

    @property
    def at(self) -> str:
        """Say at which threshold that holds; nothing where there is none."""
        return (
            "" if self.finding is None else f" They do at threshold {self.finding.threshold_text}."
        )

    def facts(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "recommended": None if self.finding is None else self.finding.threshold,
            "interval": None if self.interval is None else list(self.interval),
            "confidence": self.confidence,
            "regret": self.regret,
            "current": self.current,
            "keep": self.keep,
            "reason": self.reason,
        }


def advice_on(
    samples: Samples,
    aim: Aim,
    unit: Any,
    confidence: float,
    current: float | None = None,
    *,
    narrowed: bool = False,
) -> Advice:
    """Recommend a threshold for new rows, or say why not. O(n log n).

    By costs, as `limen.recommend` does; under demands, the best cut that new rows meet them at,
    with this confidence. `narrowed` samples stand for more rows than memory holds.
    """
    try:
        if narrowed:
            raise ValueError(
                "no threshold is recommended, as memory does not hold all rows. Of so many, the "
                "exact optimum is as good."
            )
        if aim.demands:
            return _guaranteed(samples, aim, confidence, current)
        if aim.metric is not None:
            raise ValueError(
                f"no threshold is recommended by {aim.name}; that is known for costs and demands."
            )
        judged, costs = _priced(samples, aim), aim.costs
        if samples.shares is not None and not samples.costs:
            judged = replace(samples, weights=None)  # to count more and to cost more is the same
            each = zip(aim.costs.items(), samples.shares, strict=True)
            costs = {name: cost * share for (name, cost), share in each}
        found = recommend(
            judged.scores,
            judged.labels,
            weights=_weights_in_units(judged, unit),
            current=current,
            confidence=confidence,
            direction=samples.direction,
            **costs,
        )
    except (ValueError, OverflowError) as error:
        return Advice(confidence, str(error), current=current)
    except MemoryError:  # which sufficed for the exact optimum
        reason = "no threshold is recommended, as memory does not suffice for it."
        return Advice(confidence, reason, current=current)
    return Advice(
        confidence,
        found.reason,
        finding_at(samples, found.threshold, aim, unit),
        found.interval,
        found.regret,
        current,
        found.keep,
        found,
    )


def _priced(samples: Samples, aim: Aim) -> Samples:
    """Return samples whose mistakes cost as much as the rows say, by labels and weights. O(n).

    A row costs one thing if it is answered 0 and another if it is answered 1: the cheaper answer is
    its label, and the difference its weight. What it costs in any case does not move the threshold.
    """
    if not samples.costs:
        return samples
    below, above = losses_of(samples, aim)
    labels = (below > above).view(np.uint8)
    return replace(samples, labels=labels, weights=np.abs(below - above), costs={})


def _guaranteed(samples: Samples, aim: Aim, confidence: float, current: float | None) -> Advice:
    """Find the best cut at which new rows meet the demands, or raise ValueError."""
    if samples.weights is not None:
        raise ValueError(
            "no threshold is recommended: demands hold on new rows only where all rows weigh 1."
        )
    calibrator = calibrator_of(samples, None)
    try:
        found = calibrator.best(aim.measure, **aim.demands, confidence=confidence)
    except Infeasible as error:
        raise ValueError(f"{error.problem}.") from None
    demands = " and ".join(f"{name}={float(bound)!r}" for name, bound in aim.demands.items())
    reason = f"With {confidence * 100:g} % confidence new rows meet {demands}."
    return Advice(confidence, reason, finding_of(found, samples), current=current)


def thresholds_by_group(
    samples: Samples, aim: Aim, unit: Any, at_least: int
) -> dict[str, GroupThreshold]:
    """Return the threshold for new rows of each group; none where none can be recommended."""
    if samples.codes is None or aim.metric is not None:
        return {}
    try:
        return _group_thresholds(_priced(samples, aim), aim.costs, unit, at_least)
    except (ValueError, OverflowError, MemoryError):  # which `advice_on` puts into words
        return {}


def _group_thresholds(
    samples: Samples, costs: dict[str, Any], unit: Any, at_least: int
) -> dict[str, GroupThreshold]:
    """Return the threshold for new rows of each group. O(n log n)."""
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
