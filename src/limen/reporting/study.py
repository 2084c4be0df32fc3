# SPDX-License-Identifier: Apache-2.0
"""What a report knows about samples: the threshold for new rows, the best on these, and a band."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from limen.aim import Aim
from limen.digits import apart, plain
from limen.reporting.advice import Advice, advice_on, interval_text
from limen.reporting.charts import Charts
from limen.reporting.findings import band_of, best_of, calibrator_of, judged_at
from limen.reporting.wording import Words, reversed_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limen.metrics import Confusion
    from limen.reporting.findings import Finding
    from limen.reporting.samples import FileRows

__all__ = ["CONFIDENCE", "Question", "Study"]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Question:
    """What a report is asked for."""

    aim: Aim  # on the samples at hand
    thresholds: Sequence[float] | None = None  # to compare with; None for 0.5 among probabilities
    asking: Any = None
    max_questions: int | None = None
    group: str = "group"  # what groups are called
    at_least: int = 1
    words: Words = field(default_factory=Words)
    typed: bool = False  # asked on the command line, so that advice names its options


class Study:
    """Everything a report says about some samples. O(n log n)."""

    def __init__(self, samples: FileRows, asked: Question) -> None:
        aim = asked.aim
        self.samples = samples
        self.asked = asked
        self.aim = aim
        self.cheapest = best_of(samples, aim)
        self.lowest = self.worth(self.cheapest.threshold)
        self.by_cost = aim.by_cost
        self.word, self.best = ("cost", "cheapest") if self.by_cost else (aim.name, "best")
        self.calibrator = calibrator_of(samples, aim.unit)
        self.charts = Charts(self.calibrator, samples, aim)
        self.remark = reversed_scores(samples, typed=asked.typed)
        self.band = band_of(samples, aim, asked.asking, asked.max_questions)
        advice = advice_on(samples, aim, CONFIDENCE)
        self.advice = advice if advice.interval is not None else None
        self.sure = advice if aim.demands else None  # a cut at which new rows meet the demands
        self.refusal = "" if self.advice is not None else advice.reason
        self.chosen = self.cheapest
        if self.advice is not None and self.advice.finding is not None:
            self.chosen = self.advice.finding

    @property
    def interval(self) -> str:
        """The interval of the best threshold for people; empty where none is recommended."""
        return "" if self.advice is None else self.interval_text(self.advice.interval)

    def interval_text(self, interval: Any) -> str:
        """Write an interval of thresholds for people."""
        digits = apart(interval)
        return interval_text(interval, lambda end: self.charts.name(end, digits))

    def judged(self, threshold: float) -> tuple[Confusion, float]:
        """Count right and wrong answers at a threshold, and what they are worth. O(n)."""
        return judged_at(self.samples, threshold, self.aim)

    def worth(self, threshold: float) -> float:
        """Return what a threshold costs, or its value by a metric. O(n)."""
        return self.judged(threshold)[1]

    def advice_at(self, ratio: Any) -> Advice:
        """Recommend a threshold for another cost of a false negative, in false positives."""
        aim = Aim.of(false_negative=ratio, unit=self.aim.unit)
        return advice_on(self.samples, aim, CONFIDENCE)

    def advice_on_band(self) -> dict[str, Advice] | None:
        """Say how sure both thresholds of the review band are, or None where that is not known.

        Between "no" and "ask", a question in vain costs `asking`, and one not asked the cost of a
        false negative less that of the question; between "ask" and "yes" it is the other way
        round. So each is the cheapest threshold of two other costs, unless questions are limited.
        """
        asking, costs = self.asked.asking, self.aim.mistakes
        if self.band is None or not asking or self.asked.max_questions is not None:
            return None
        first = {"false_positive": asking, "false_negative": costs["false_negative"] - asking}
        second = {"false_positive": costs["false_positive"] - asking, "false_negative": asking}
        if min(*first.values(), *second.values()) <= 0:
            return None
        rising = self.samples.direction == ">="
        ends = {"low": first, "high": second} if rising else {"low": second, "high": first}
        aims = {end: Aim.of(**each, unit=self.aim.unit) for end, each in ends.items()}
        found = {end: advice_on(self.samples, aim, CONFIDENCE) for end, aim in aims.items()}
        known = all(advice.interval is not None for advice in found.values())
        return found if known and self.band.low < self.band.high else None

    def at_finding(self, finding: Finding) -> str:
        """Name the threshold of a finding in a sentence."""
        name = self.charts.name(finding.threshold)
        return name if " " in name else f"threshold {name}"

    def summary(self) -> Iterator[str]:
        """Yield the findings, one sentence each."""
        best = (
            f"{self.at_finding(self.cheapest)}, {self.word} {plain(self.cheapest.worth)} of "
            f"{len(self.samples):,} samples"
        )
        if self.advice is None:
            yield f"{self.best} {best}"
            yield f"{self.refusal}{'' if self.sure is None else self.sure.at}"
        else:
            yield (
                f"{self.at_finding(self.chosen)} for new rows (95 % interval {self.interval}); "
                f"cheapest on these rows {best.removeprefix('threshold ')}"
            )
        if self.remark is not None:
            yield self.remark
