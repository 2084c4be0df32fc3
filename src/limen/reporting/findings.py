# SPDX-License-Identifier: Apache-2.0
"""The best cut of samples, with all that is known about it; of all of them and of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen import losses
from limen.batch import exact_best, loss_curve, optimal_cut
from limen.best_cut import Cuts, exact_worth
from limen.calibrator import OnlineCalibrator
from limen.digits import gap, within
from limen.errors import Infeasible
from limen.metrics import Confusion, Metric
from limen.online import OnlineCut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limen.best_cut import Weights
    from limen.metrics import BestCut
    from limen.optimum import Direction, LossCurve
    from limen.reporting.aim import Aim
    from limen.reporting.samples import Samples
    from limen.review import ReviewBand

__all__ = [
    "FEW",
    "FEW_OF_LABEL",
    "Finding",
    "GroupFinding",
    "band_of",
    "best_of",
    "calibrator_of",
    "confusion_at",
    "finding_at",
    "finding_of",
    "findings_by_group",
    "loss_curve_of",
    "losses_of",
    "near_of",
    "worth_at",
]

FEW = 300  # samples of a group
FEW_OF_LABEL = 30


@dataclass(frozen=True, slots=True)
class Finding:
    """A cut of some samples and all that is known about it."""

    threshold: float
    lower: float | None
    upper: float | None
    loss: float | None  # where costs are the aim
    value: float | None  # where a metric is
    confusion: Confusion
    samples: int
    positives: int
    direction: Direction = ">="

    @property
    def few(self) -> bool:
        """Whether it rests on so few samples that the exact optimum is mostly chance."""
        rarer = min(self.positives, self.samples - self.positives)
        return self.samples < FEW or rarer < FEW_OF_LABEL

    @property
    def worth(self) -> float:
        """What the cut costs, or its value by a metric."""
        worth = self.loss if self.value is None else self.value
        return 0.0 if worth is None else worth

    @property
    def threshold_text(self) -> str:
        """The threshold for people."""
        return within(self.threshold, self.lower, self.upper, direction=self.direction)

    @property
    def same_answer(self) -> int | None:
        """The answer that every score gets, where all get one."""
        if self.lower is not None and self.upper is not None:
            return None
        answered = self.upper if self.direction == ">=" else self.lower
        return int(answered is not None)

    @property
    def same_answers(self) -> str | None:
        """Which thresholds give the same answers; None where no score lies on one side."""
        if self.lower is None or self.upper is None:
            return None
        low, _, high = gap(self.lower, self.threshold, self.upper, self.direction)
        if self.direction == ">=":
            return f"threshold above {low} and up to {high}"
        return f"threshold from {low} and below {high}"

    def facts(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        confusion = self.confusion
        aim = {"loss": self.loss} if self.value is None else {"value": self.value}
        turned = {} if self.direction == ">=" else {"direction": self.direction}
        return {
            "threshold": self.threshold,
            "lower": self.lower,
            "upper": self.upper,
            **turned,
            **aim,
            "confusion": confusion._asdict(),
            "precision": confusion.precision,
            "recall": confusion.recall,
            "false_positive_rate": confusion.false_positive_rate,
            "positive_rate": confusion.positive_rate,
            "samples": self.samples,
            "positives": self.positives,
            "negatives": self.samples - self.positives,
        }


class GroupFinding(NamedTuple):
    """The finding of one group."""

    finding: Finding
    own: bool  # False: the threshold is that of all samples


def best_of(samples: Samples, aim: Aim, unit: Any) -> Finding:
    """Find the best cut by the aim; raise `Infeasible` where no cut meets its demands."""
    if aim.prices:
        columns = samples.scores, *losses_of(samples, aim)
        cheapest = optimal_cut(*columns, unit=unit, direction=samples.direction)
        return finding_at(samples, cheapest.threshold, aim, unit)
    if aim.metric is not None:
        return finding_of(calibrator_of(samples, unit).best(aim.metric, **aim.demands), samples)
    best = exact_best(
        samples.scores,
        samples.labels,
        weights=samples.weights,
        unit=unit,
        direction=samples.direction,
        **aim.costs,
    )
    confusion = confusion_at(samples, best.threshold, unit)
    ends = best.threshold, best.lower, best.upper
    return Finding(*ends, best.loss, None, confusion, *samples.counts, samples.direction)


def finding_of(found: BestCut, samples: Samples) -> Finding:
    """Describe the best cut of samples by a metric."""
    ends = found.threshold, found.lower, found.upper
    counts = samples.counts
    return Finding(*ends, None, found.value, found.confusion, *counts, found.direction)


def finding_at(samples: Samples, threshold: float, aim: Aim, unit: Any) -> Finding:
    """Describe the cut at any threshold. O(n)."""
    above = samples.answers(threshold) == (samples.direction == ">=")
    lower = None if above.all() else float(samples.scores[~above].max())
    upper = float(samples.scores[above].min()) if above.any() else None
    confusion = confusion_at(samples, threshold, unit)
    worth = worth_at(samples, threshold, aim, unit)
    loss, value = (worth, None) if aim.metric is None else (None, worth)
    counts = samples.counts
    return Finding(threshold, lower, upper, loss, value, confusion, *counts, samples.direction)


def findings_by_group(
    each: Iterable[tuple[str, Samples]], finding: Finding, aim: Aim, unit: Any, at_least: int
) -> dict[str, GroupFinding]:
    """Find the best cut of each group; a smaller one than `at_least` gets that of all samples."""
    groups = {}
    for name, members in each:
        rows, ones = members.counts
        if rows >= at_least:
            try:
                groups[name] = GroupFinding(best_of(members, aim, unit), own=True)
            except Infeasible as error:
                words = f"group {name}: {error}"
                raise Infeasible(words, error.nearest, error.more_samples) from None
            continue
        confusion = confusion_at(members, finding.threshold, unit)
        value = worth_at(members, finding.threshold, aim, unit)
        worth: dict[str, Any] = {"loss" if aim.metric is None else "value": value}
        counts: dict[str, Any] = {"samples": rows, "positives": ones}
        groups[name] = GroupFinding(
            replace(finding, confusion=confusion, **worth, **counts), own=False
        )
    return groups


def calibrator_of(samples: Samples, unit: Any) -> Any:
    """Hold all samples in an `OnlineCalibrator` of their direction."""
    calibrator = OnlineCalibrator(unit=unit, direction=samples.direction)
    calibrator.update_many(samples.scores, samples.labels, samples.weights)
    return calibrator


def near_of(samples: Samples, aim: Aim, unit: Any, within: Any) -> list[tuple[float, float]]:
    """Find the thresholds that are at most a share worse than the best; none for None. O(n)."""
    if within is None:
        return []
    found: list[tuple[float, float]] = calibrator_of(samples, unit).near_best(
        aim.measure, within=within, **aim.demands
    )
    return found


def band_of(
    samples: Samples, aim: Aim, unit: Any, asking: Any, max_questions: int | None
) -> ReviewBand | None:
    """Find the review band for a cost of asking or a number of questions; None for neither."""
    if asking is None and max_questions is None:
        return None
    if aim.metric is not None or aim.prices or (asking or 0) < 0:
        raise ValueError(
            "asking and max_questions go with one false_positive and one false_negative cost, and "
            "are not negative. Leave out metrics, demands and other costs."
        )
    found: ReviewBand = calibrator_of(samples, unit).review_band(
        asking=asking or 0, max_questions=max_questions, **aim.costs
    )
    return found


def loss_curve_of(samples: Samples, aim: Aim, unit: Any) -> LossCurve:
    """Return what every cut costs, also where rows have costs of their own. O(n log n)."""
    if not aim.prices:
        given: Any = {"weights": samples.weights, "direction": samples.direction, **aim.costs}
        return loss_curve(samples.scores, samples.labels, unit=unit, **given)
    cut = OnlineCut(unit=unit, direction=samples.direction)
    cut.update_many(samples.scores, *losses_of(samples, aim))
    return cut.curve()


def losses_of(samples: Samples, aim: Aim) -> tuple[Any, Any]:
    """Return what each row costs if it is answered 0, and if it is answered 1. O(n)."""
    each = {
        outcome: samples.costs[outcome] if isinstance(price, str) else price
        for outcome, price in aim.prices.items()
    }
    short = {"".join(word[0] for word in outcome.split("_")): each[outcome] for outcome in each}
    below, above = losses.cost_matrix(samples.labels, **short)
    return losses.weighed(below, samples.weights), losses.weighed(above, samples.weights)


def worth_at(samples: Samples, threshold: Any, aim: Aim, unit: Any) -> float:
    """Return what a threshold, or one for each row, costs, or its value by a metric. O(n)."""
    if not aim.prices:
        units, size = _counted(samples, threshold, unit)
        if isinstance(aim.measure, Metric):
            return exact_worth(aim.measure, units, size)
        return float(aim.measure(*confusion_at(samples, threshold, unit)))
    answers = samples.answers(threshold)
    below, above = losses_of(samples, aim)
    cut = OnlineCut(unit=unit)  # which adds up without rounding
    cut.update_many(np.zeros(len(samples)), np.where(answers, above, below), np.zeros(len(samples)))
    return float(cut.curve().losses[-1])


def confusion_at(samples: Samples, threshold: Any, unit: Any) -> Confusion:
    """Count right and wrong answers at a threshold, or one for each row, exactly. O(n)."""
    units, size = _counted(samples, threshold, unit)
    return Confusion(*(whole * size.numerator / size.denominator for whole in units))


def _counted(samples: Samples, threshold: Any, unit: Any) -> tuple[Weights, Fraction]:
    """Return the whole units of tp, fp, fn and tn, and what one of them weighs. O(n)."""
    answers = samples.answers(threshold)
    if samples.weights is not None:
        calibrator = OnlineCalibrator(unit=unit)
        calibrator.update_many(answers, samples.labels, samples.weights)
        cuts = Cuts(*calibrator._cuts())
        between = [int(np.searchsorted(cuts.upper, 0.5))]  # the answers 0 and the answers 1
        tp, fp, fn, tn = (int(units[0]) for units in cuts.exactly(between))
        return (tp, fp, fn, tn), Fraction(*cuts.unit)
    tp = int(np.count_nonzero(answers & samples.labels.view(bool)))
    fp = int(np.count_nonzero(answers)) - tp
    positives = samples.positives
    return (tp, fp, positives - tp, len(samples) - positives - fp), Fraction(1)
