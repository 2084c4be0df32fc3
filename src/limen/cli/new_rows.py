# SPDX-License-Identifier: Apache-2.0
"""What ``fit`` and ``compare`` say about new rows: a threshold and how sure it is, or why none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.advice import _weights_in_units as weights_in_units
from limen.cli.advice import group_thresholds
from limen.cli.exits import USAGE, Failure
from limen.cli.findings import calibrator_of, finding_at, finding_of, losses_of
from limen.errors import Infeasible
from limen.trust.intervals import reach_of
from limen.trust.recommended import recommend

if TYPE_CHECKING:
    from limen.cli.aims import Aim
    from limen.cli.findings import Finding
    from limen.cli.samples import Samples
    from limen.groups import GroupThreshold

__all__ = ["Advice", "advice_on", "group_facts", "require_confidence", "thresholds_by_group"]


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


def require_confidence(confidence: float) -> None:
    """Refuse a level for which no interval is known, before any work is done."""
    try:
        reach_of(confidence)
    except ValueError as error:
        raise Failure(f"--{error}", USAGE) from None


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
            weights=weights_in_units(judged, unit),
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
        raise ValueError(str(error).split(" The samples held meet it")[0]) from None
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
        return group_thresholds(_priced(samples, aim), aim.costs, unit, at_least)
    except (ValueError, OverflowError, MemoryError):  # which `advice_on` puts into words
        return {}


def group_facts(found: GroupThreshold | None) -> dict[str, Any]:
    """Return the threshold for new rows of a group, its interval and its basis, ready for JSON.

    The basis is "own" where the group's own samples moved the threshold of all samples, else "all".
    """
    if found is None:
        return {"recommended": None, "interval": None, "basis": None}
    return {
        "recommended": found.threshold,
        "interval": None if found.interval is None else list(found.interval),
        "basis": "own" if found.source else "all",
    }
