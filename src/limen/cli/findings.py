# SPDX-License-Identifier: Apache-2.0
"""The best cut of samples, with all that is known about it; of all of them and of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen.batch import optimal_threshold
from limen.calibrator import OnlineCalibrator
from limen.cli.exits import BAD_INPUT, INFEASIBLE, Failure
from limen.digits import within
from limen.errors import Infeasible
from limen.metrics import Confusion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limen.cli.aims import Aim
    from limen.cli.samples import Samples
    from limen.metrics import BestCut

__all__ = [
    "FEW",
    "FEW_OF_LABEL",
    "Finding",
    "GroupFinding",
    "as_failure",
    "best_of",
    "calibrator_of",
    "confusion_at",
    "finding_at",
    "finding_of",
    "findings_by_group",
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

    @property
    def few(self) -> bool:
        """Whether it rests on so few samples that the exact optimum is mostly chance."""
        rarer = min(self.positives, self.samples - self.positives)
        return self.samples < FEW or rarer < FEW_OF_LABEL

    @property
    def threshold_text(self) -> str:
        """The threshold for people."""
        return within(self.threshold, self.lower, self.upper)

    def facts(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        confusion = self.confusion
        aim = {"loss": self.loss} if self.value is None else {"value": self.value}
        return {
            "threshold": self.threshold,
            "lower": self.lower,
            "upper": self.upper,
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


def best_of(samples: Samples, aim: Aim, unit: Any, group: str | None = None) -> Finding:
    """Find the best cut by the aim."""
    try:
        if aim.metric is None:
            best = optimal_threshold(
                samples.scores, samples.labels, weights=samples.weights, unit=unit, **aim.costs
            )
            confusion = confusion_at(samples, best.threshold, unit)
            ends = best.threshold, best.lower, best.upper
            return Finding(*ends, best.loss, None, confusion, *samples.counts)
        found = calibrator_of(samples, unit).best(aim.metric, **aim.demands)
    except Infeasible as infeasible:
        raise as_failure(infeasible, "" if group is None else f"group {group}: ") from None
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    return finding_of(found, samples)


def finding_of(found: BestCut, samples: Samples) -> Finding:
    """Describe the best cut of samples by a metric."""
    ends = found.threshold, found.lower, found.upper
    return Finding(*ends, None, found.value, found.confusion, *samples.counts)


def finding_at(samples: Samples, threshold: float, aim: Aim, unit: Any) -> Finding:
    """Describe the cut at any threshold. O(n)."""
    above = samples.scores >= threshold
    lower = None if above.all() else float(samples.scores[~above].max())
    upper = float(samples.scores[above].min()) if above.any() else None
    confusion = confusion_at(samples, threshold, unit)
    worth = aim.measure(*confusion)
    loss, value = (worth, None) if aim.metric is None else (None, worth)
    return Finding(threshold, lower, upper, loss, value, confusion, *samples.counts)


def findings_by_group(
    each: Iterable[tuple[str, Samples]], finding: Finding, aim: Aim, unit: Any, at_least: int
) -> dict[str, GroupFinding]:
    """Find the best cut of each group; a smaller one than `at_least` gets that of all samples."""
    groups = {}
    for name, members in each:
        rows, ones = members.counts
        if rows >= at_least:
            groups[name] = GroupFinding(best_of(members, aim, unit, name), own=True)
            continue
        confusion = confusion_at(members, finding.threshold, unit)
        worth = {"loss" if aim.metric is None else "value": aim.measure(*confusion)}
        counts = {"samples": rows, "positives": ones}
        groups[name] = GroupFinding(
            replace(finding, confusion=confusion, **worth, **counts), own=False
        )
    return groups


def as_failure(infeasible: Infeasible, where: str) -> Failure:
    """Word what no cut meets, with the nearest cut, for the command line."""
    near = infeasible.nearest
    problem = str(infeasible).split("; ask for less")[0]
    text = within(near.threshold, near.lower, near.upper)
    problem = problem.replace(repr(near.threshold), text)
    return Failure(f"{where}{problem}. Ask for less.", INFEASIBLE)


def calibrator_of(samples: Samples, unit: Any) -> OnlineCalibrator:
    """Hold all samples."""
    calibrator = OnlineCalibrator(unit=unit)
    calibrator.update_many(samples.scores, samples.labels, samples.weights)
    return calibrator


def confusion_at(samples: Samples, threshold: Any, unit: Any) -> Confusion:
    """Count right and wrong answers at a threshold, or one for each row, exactly. O(n)."""
    answers = samples.scores >= threshold
    if samples.weights is not None:
        calibrator = OnlineCalibrator(unit=unit)
        calibrator.update_many(answers, samples.labels, samples.weights)
        return calibrator.confusion(0.5)
    tp = int(np.count_nonzero(answers & samples.labels.view(bool)))
    fp = int(np.count_nonzero(answers)) - tp
    positives = samples.positives
    return Confusion(*map(float, (tp, fp, positives - tp, len(samples) - positives - fp)))
