# SPDX-License-Identifier: Apache-2.0
"""The best cut of samples, with all that is known about it; of all of them and of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen.best_cut import Cuts, exact_worth
from limen.calibrator import OnlineCalibrator
from limen.digits import gap, within
from limen.errors import Infeasible
from limen.metrics import BestCut, Confusion
from limen.online import OnlineCut
from limen.optimum import Gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from limen.aim import Aim
    from limen.best_cut import Weights
    from limen.optimum import Direction, LossCurve, Optimum
    from limen.reporting.samples import FileRows
    from limen.review import ReviewBand
    from limen.samples import Samples

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
    "groups_of",
    "judged_at",
    "loss_curve_of",
    "near_of",
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


def best_of(rows: FileRows, aim: Aim) -> Finding:
    """Find the best cut by the aim; raise `Infeasible` where no cut meets its demands."""
    return finding_of(aim.best(rows), rows, aim)


def finding_of(found: Optimum | BestCut, rows: FileRows, aim: Aim) -> Finding:
    """Describe the best cut of rows."""
    ends = found.threshold, found.lower, found.upper
    if isinstance(found, BestCut):
        worth = None, found.value, found.confusion
        return Finding(*ends, *worth, *rows.counts, found.direction)
    confusion = confusion_at(rows, found.threshold, aim)
    return Finding(*ends, found.loss, None, confusion, *rows.counts, found.direction)


def finding_at(rows: FileRows, threshold: float, aim: Aim) -> Finding:
    """Describe the cut at any threshold. O(n)."""
    answers = rows.answers(threshold)
    lower = None if answers.all() else float(rows.scores[~answers].max())
    upper = float(rows.scores[answers].min()) if answers.any() else None
    confusion, worth = judged(rows, answers, aim)
    gap = rows.present(Gap(lower, upper))
    loss, value = (worth, None) if aim.by_cost else (None, worth)
    ends = threshold, gap.lower, gap.upper
    return Finding(*ends, loss, value, confusion, *rows.counts, rows.direction)


def groups_of(rows: FileRows, aim: Aim) -> Iterator[tuple[str, FileRows, Aim]]:
    """Yield each group with its rows and the aim on these, in the order of their names. O(n)."""
    for name, places in rows.groups():
        yield name, rows.rows(places), aim.rows(places)


def findings_by_group(
    each: Iterable[tuple[str, FileRows, Aim]], finding: Finding, at_least: int
) -> dict[str, GroupFinding]:
    """Find the best cut of each group; a smaller one than `at_least` gets that of all samples."""
    groups = {}
    for name, members, aim in each:
        rows, ones = members.counts
        if rows >= at_least:
            try:
                groups[name] = GroupFinding(best_of(members, aim), own=True)
            except Infeasible as error:
                problem = f"group {name}: {error.problem}"
                raise Infeasible(problem, error.nearest, error.rates) from None
            continue
        confusion, worth = judged_at(members, finding.threshold, aim)
        loss, value = (worth, None) if aim.by_cost else (None, worth)
        counts: dict[str, Any] = {"samples": rows, "positives": ones}
        common = replace(finding, confusion=confusion, loss=loss, value=value, **counts)
        groups[name] = GroupFinding(common, own=False)
    return groups


def calibrator_of(rows: Samples, unit: Any) -> Any:
    """Hold all samples in an `OnlineCalibrator` of their direction."""
    calibrator = OnlineCalibrator(unit=unit, direction=rows.direction)
    calibrator.update_many(rows.given, rows.labels, rows.weights)
    return calibrator


def near_of(rows: Samples, aim: Aim, within: Any) -> list[tuple[float, float]]:
    """Find the thresholds that are at most a share worse than the best; none for None. O(n)."""
    if within is None:
        return []
    found: list[tuple[float, float]] = calibrator_of(rows, aim.unit).near_best(
        aim.measure, within=within, **aim.demands
    )
    return found


def band_of(rows: Samples, aim: Aim, asking: Any, max_questions: int | None) -> ReviewBand | None:
    """Find the review band for a cost of asking or a number of questions; None for neither."""
    if asking is None and max_questions is None:
        return None
    if not aim.by_cost or aim.priced or (asking or 0) < 0:
        raise ValueError(
            "asking and max_questions go with one false_positive and one false_negative cost, and "
            "are not negative. Leave out metrics, demands and other costs."
        )
    found: ReviewBand = calibrator_of(rows, aim.unit).review_band(
        asking=asking or 0, max_questions=max_questions, **aim.mistakes
    )
    return found


def loss_curve_of(rows: Samples, aim: Aim) -> LossCurve:
    """Return what every cut costs, also where rows have costs of their own. O(n log n)."""
    model = replace(aim, metric=None, demands={}).model()
    model.update_many(*aim.columns_of(rows))
    curve: LossCurve = rows.present(model.curve())
    return curve


def judged_at(rows: Samples, threshold: Any, aim: Aim) -> tuple[Confusion, float]:
    """Return right and wrong answers at a threshold, or one for each row, and their worth. O(n)."""
    return judged(rows, rows.answers(threshold), aim)


def judged(rows: Samples, answers: NDArray[np.bool_], aim: Aim) -> tuple[Confusion, float]:
    """Return right and wrong answers, and what they cost or their value by a metric. O(n)."""
    units, size = _counted(rows, answers, aim.unit)
    if aim.priced:
        below, above = aim.losses(rows)
        none = np.zeros(len(rows))
        cut = OnlineCut(unit=aim.unit)  # which adds up without rounding
        cut.update_many(none, np.where(answers, above, below), none)
        worth = float(cut.curve().losses[-1])
    else:
        worth = exact_worth(aim.measure, units, size)
    return _confusion(units, size), worth


def confusion_at(rows: Samples, threshold: Any, aim: Aim) -> Confusion:
    """Count right and wrong answers at a threshold, or one for each row, exactly. O(n)."""
    return _confusion(*_counted(rows, rows.answers(threshold), aim.unit))


def _confusion(units: Weights, size: Fraction) -> Confusion:
    return Confusion(*[whole * size.numerator / size.denominator for whole in units])


def _counted(rows: Samples, answers: NDArray[np.bool_], unit: Any) -> tuple[Weights, Fraction]:
    """Return the whole units of tp, fp, fn and tn, and what one of them weighs. O(n)."""
    if rows.weights is not None:
        calibrator = OnlineCalibrator(unit=unit)
        calibrator.update_many(answers, rows.labels, rows.weights)
        cuts = Cuts(*calibrator._cuts())
        between = [int(np.searchsorted(cuts.upper, 0.5))]  # the answers 0 and the answers 1
        tp, fp, fn, tn = (int(units[0]) for units in cuts.exactly(between))
        return (tp, fp, fn, tn), Fraction(*cuts.unit)
    tp = int(np.count_nonzero(answers & rows.labels.view(bool)))
    fp = int(np.count_nonzero(answers)) - tp
    positives = rows.positives
    return (tp, fp, positives - tp, len(rows) - positives - fp), Fraction(1)
