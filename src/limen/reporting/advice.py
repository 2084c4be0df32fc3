# SPDX-License-Identifier: Apache-2.0
"""What samples say about the rows that come next: a threshold and how sure it is, or why none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.errors import Infeasible
from limen.reporting.findings import finding_at, finding_of
from limen.trust.recommended import Recommendation, recommend

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.aim import Aim
    from limen.groups import GroupThreshold
    from limen.reporting.findings import Finding
    from limen.reporting.samples import FileRows
    from limen.samples import Samples

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
    rows: FileRows,
    aim: Aim,
    confidence: float,
    current: float | None = None,
    *,
    narrowed: bool = False,
) -> Advice:
    """Recommend a threshold for new rows, or say why not. O(n log n).

    By costs, as `limen.recommend` does; under demands, the best cut that new rows meet them at,
    with this confidence. `narrowed` rows stand for more than memory holds.
    """
    try:
        if narrowed:
            raise ValueError(
                "no threshold is recommended, as memory does not hold all rows. Of so many, the "
                "exact optimum is as good."
            )
        if aim.demands:
            return _guaranteed(rows, aim, confidence, current)
        if not aim.by_cost:
            raise ValueError(
                f"no threshold is recommended by {aim.name}: that works only with costs and "
                "demands."
            )
        found = _recommended(rows, aim, confidence, current)
    except (ValueError, OverflowError) as error:
        return Advice(confidence, str(error), current=current)
    except MemoryError:  # which sufficed for the exact optimum
        reason = "no threshold is recommended, as memory does not suffice for it."
        return Advice(confidence, reason, current=current)
    finding = finding_at(rows, found.threshold, aim)
    about = found.interval, found.regret, current, found.keep, found
    return Advice(confidence, found.reason, finding, *about)


def _recommended(
    rows: FileRows, aim: Aim, confidence: float, current: float | None
) -> Recommendation:
    """Recommend a threshold by costs, or raise ValueError. O(n log n)."""
    judged, by_mistakes = aim.reduced(rows)
    costs = by_mistakes.mistakes
    if rows.shares is not None and not aim.by_row:
        judged = replace(rows, weights=None)  # to count more and to cost more is the same
        each = zip(costs.items(), rows.shares, strict=True)
        costs = {name: cost * share for (name, cost), share in each}
    return recommend(
        judged.given,
        judged.labels,
        weights=_weights_in_units(judged, aim.unit),
        current=current,
        confidence=confidence,
        direction=rows.direction,
        **costs,
    )


def _guaranteed(rows: FileRows, aim: Aim, confidence: float, current: float | None) -> Advice:
    """Find the best cut at which new rows meet the demands, or raise ValueError."""
    if rows.weights is not None:
        raise ValueError(
            "no threshold is recommended: demands hold on new rows only where all rows weigh 1."
        )
    sure = replace(aim, confidence=confidence, unit=None)
    try:
        found = sure.best(rows)
    except Infeasible as error:
        raise ValueError(f"{error.problem}.") from None
    demands = " and ".join(f"{name}={float(bound)!r}" for name, bound in aim.demands.items())
    reason = f"With {confidence * 100:g} % confidence new rows meet {demands}."
    return Advice(confidence, reason, finding_of(found, rows, aim), current=current)


def thresholds_by_group(rows: FileRows, aim: Aim, at_least: int) -> dict[str, GroupThreshold]:
    """Return the threshold for new rows of each group; none where none can be recommended."""
    if rows.codes is None or not aim.by_cost:
        return {}
    from limen.groups import by_group  # loads much that others do not need

    try:
        judged, by_mistakes = aim.reduced(rows)
        found = by_group(
            rows.codes,
            judged.given,
            judged.labels,
            weights=_weights_in_units(judged, aim.unit),
            at_least=at_least,
            shrink=True,
            direction=rows.direction,
            **by_mistakes.mistakes,
        )
        return {name: found.recommendation(code) for code, name in enumerate(rows.names)}
    except (ValueError, OverflowError, MemoryError):  # which `advice_on` puts into words
        return {}


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
