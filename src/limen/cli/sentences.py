# SPDX-License-Identifier: Apache-2.0
"""What people read about cuts and samples on standard error."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from limen.cli.aims import option_text
from limen.cli.output import bold
from limen.cli.rows import SHOWN
from limen.digits import plain
from limen.metrics import Confusion
from limen.names import DEMANDS, OUTCOMES
from limen.reporting.findings import FEW, FEW_OF_LABEL
from limen.reporting.wording import as_typed, reversed_scores, zones_of
from limen.trust.new_rows import Saving
from limen.trust.recommended import where_best

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from limen.aim import Aim
    from limen.cli.checking import Checked
    from limen.reporting.advice import Advice
    from limen.reporting.findings import Finding, GroupFinding
    from limen.reporting.samples import FileRows
    from limen.review import ReviewBand

__all__ = [
    "band_lines",
    "check_lines",
    "comparisons",
    "demands_met",
    "left_out_lines",
    "near_lines",
    "remarks",
    "saving_text",
    "skipped_lines",
    "summary",
    "value_comparisons",
]

_RUNS = 5  # of thresholds, in messages


def summary(
    finding: Finding, aim: Aim, advice: Advice, shares: tuple[Any, Any] | None = None
) -> Iterator[str]:
    """Yield the lines about the cut for new rows and the best cut of the samples."""
    negatives = finding.samples - finding.positives
    yield f"{finding.samples:,} rows: {finding.positives:,} positive, {negatives:,} negative"
    if shares is not None:
        zero, one = (f"{float(share):.4g}" for share in shares)
        yield f"  weighted to the prevalence asked for: each 1 counts {one}, each 0 {zero}"
    yield from _about_new_rows(advice)
    yield f"exact optimum of these samples: {bold(_rule(finding))}"
    if finding.same_answers is not None:
        yield f"  any {finding.same_answers} gives the same answers"
    confusion = finding.confusion
    if aim.priced:
        yield from _prices(finding, aim)
    elif aim.by_cost:
        fp, fn = map(float, aim.mistakes.values())
        none = fn * (confusion.tp + confusion.fn)
        every = fp * (confusion.fp + confusion.tn)
        yield (
            f"  cost {plain(finding.loss or 0.0)}: false positives {plain(confusion.fp)} at "
            f"{plain(fp)}, false negatives {plain(confusion.fn)} at {plain(fn)}"
        )
        yield (
            f"  for comparison: never positive costs {plain(none)}, always positive {plain(every)}"
        )
    else:
        yield f"  {aim.name} {plain(finding.value or 0.0)}"
    yield (
        f"  answers 1 to {confusion.positive_rate:.2%} of all; precision "
        f"{confusion.precision:.2%}, recall {confusion.recall:.2%}"
    )


def band_lines(band: ReviewBand | None) -> Iterator[str]:
    """Yield the zones of a review band."""
    if band is None:
        return
    yield f"review band of these samples, cost {plain(band.loss)} with all questions:"
    for word, where, weight, missed in zones_of(band):
        mistakes = f", {missed}" if missed else ""
        yield f"  {word} {where}: {plain(weight)} rows{mistakes}"


def near_lines(
    near: list[tuple[float, float]], aim: Aim, within: Any, direction: str
) -> Iterator[str]:
    """Yield the runs of thresholds that are nearly as good as the best, the widest of many."""
    if within is None:
        return
    side = "above" if aim.measure.lowest else "below"
    share = f"{float(within) * 100:.4g} %"
    yield f"thresholds whose {aim.name} is at most {share} {side} the best, on these samples:"
    ends = ("above", "and up to") if direction == ">=" else ("from", "and below")
    for low, high in near[:_RUNS]:
        yield f"  {ends[0]} {as_typed(low)} {ends[1]} {as_typed(high)}"
    if len(near) > _RUNS:
        yield f"  and {len(near) - _RUNS:,} more runs, all of them in --json"


def _prices(finding: Finding, aim: Aim) -> Iterator[str]:
    """Yield what the cut costs, and how that comes about."""
    gain = " (a gain)" if (finding.loss or 0.0) < 0 else ""
    yield f"  cost {plain(finding.loss or 0.0)}{gain}:"
    for outcome, price in aim.facts().items():
        counted = getattr(finding.confusion, OUTCOMES[outcome].short)
        each = f"as {price} says" if isinstance(price, str) else f"at {plain(price)}"
        yield f"    {outcome.replace('_', ' ')}s {plain(counted)} {each}"


def _about_new_rows(advice: Advice) -> Iterator[str]:
    if advice.finding is None:
        yield f"for new rows: {advice.reason}"
        return
    yield f"recommended for new rows: {bold(_rule(advice.finding))}"
    if advice.interval is None:
        yield f"  {advice.reason[0].lower()}{advice.reason[1:].removesuffix('.')}"
        return
    yield f"  {where_best(advice.interval, advice.confidence)}"
    if advice.current is not None:
        current = as_typed(advice.current)
        yield (
            f"  keep {current}: the samples do not rule it out"
            if advice.keep
            else f"  change {current}: it lies outside"
        )


def _rule(finding: Finding) -> str:
    if finding.same_answer is not None:
        return f"answer {finding.same_answer} to every score"
    return f"answer 1 when score {finding.direction} {finding.threshold_text}"


def check_lines(
    name: str, rows: FileRows, checks: list[Checked], aim: Aim, confidence: float
) -> Iterator[str]:
    """Yield what thresholds cost on rows that they were not chosen on."""
    yield f"on {name}, {len(rows):,} rows that had no part in the choice:"
    for check in checks:
        worth = f"{aim.name} {plain(check.worth)}"
        if check.cost is not None:
            worth += f", {check.cost}"
        yield f"  {check.candidate.label}: {worth}"
        for _, _, text in demands_met(check.confusion, aim):
            yield f"    {text}"
        if check.saving is not None and check.against is not None:
            yield f"    {saving_text(check.saving, check.against.name, confidence)}"


def skipped_lines(samples: FileRows) -> Iterator[str]:
    """Yield how many malformed rows were left out, and what is wrong with the first of them."""
    yield from left_out_lines(samples.skipped, len(samples), samples.examples)


def left_out_lines(skipped: int, read: int, examples: Sequence[str]) -> Iterator[str]:
    """Yield how many malformed rows were left out beside those read, and examples."""
    if skipped:
        rows = "1 malformed row was" if skipped == 1 else f"{skipped:,} malformed rows were"
        yield f"limen: {rows} left out of {skipped + read:,}"
        yield from (f"  {example}" for example in examples[:SHOWN])


def saving_text(saving: Saving, other: str, confidence: float) -> str:
    """Say what a threshold saves against another one.

    >>> saving_text(Saving(0.1, (0.05, 0.15), 0.5, 200), "0.5", 0.95)
    'saves 20.0% against 0.5 (10.0% to 30.0%)'
    >>> saving_text(Saving(0.1, (-0.05, 0.25), 0.5, 20), "0.5", 0.95)
    'not distinguishable from 0.5 at 95 % (saves -10.0% to 50.0%)'
    >>> saving_text(Saving(-0.1, (-0.2, -0.05), 0.5, 20), "0.5", 0.95)
    'costs 20.0% more than 0.5 (10.0% to 40.0% more)'
    """
    if saving.rows == 0:
        return f"gives the same answers as {other}"
    middle, low, high = (
        [f"{plain(value, 4)} per row" for value in (saving.per_row, *saving.interval)]
        if saving.shares is None
        else [f"{share:.1%}" for share in saving.shares]
    )
    if not saving.distinguishable:
        return f"not distinguishable from {other} at {confidence * 100:g} % (saves {low} to {high})"
    if saving.per_row > 0:
        return f"saves {middle} against {other} ({low} to {high})"
    middle, low, high = (text.removeprefix("-") for text in (middle, low, high))
    return f"costs {middle} more than {other} ({high} to {low} more)"


def remarks(
    samples: FileRows,
    groups: dict[str, GroupFinding],
    options: Namespace,
    aim: Aim,
) -> Iterator[str]:
    """Yield what the answer alone would hide."""
    if (remark := reversed_scores(samples)) is not None:
        yield f"limen: {remark}"
    for name, (part, own) in groups.items():
        if own and part.positives in (0, part.samples):
            yield (
                f"limen: every label of group {name} counts as {int(part.positives > 0)}; its "
                "threshold says no more than that."
            )
    small = sum(not own for _, own in groups.values())
    if small:
        yield (
            f"limen: {small:,} of {len(groups):,} groups hold fewer than {options.at_least:,} "
            "samples; the threshold of all samples answers for them."
        )
    few = sum(part.few for part, _ in groups.values())
    if few:
        yield (
            f"limen: {few:,} of {len(groups):,} groups rest on few samples (fewer than {FEW}, or "
            f"{FEW_OF_LABEL} of a label)."
        )
    if options.save is not None and not aim.by_cost:
        given = [
            option_text(name, value)
            for name in ("metric", "false_positive", "false_negative", *DEMANDS)
            if (value := getattr(options, name)) is not None
        ]
        yield (
            f"limen: {options.save} holds the samples, for any aim. Show them by this one with: "
            f"limen show {shlex.quote(options.save)} {' '.join(given)}"
        )


def demands_met(confusion: Confusion, aim: Aim) -> Iterator[tuple[str, bool, str]]:
    """Yield each demand, whether it is met, and that in words."""
    total = Fraction(sum(confusion))
    for demand in (each.of(total) for each in aim.limits):
        met, rate = bool(demand.met(confusion)), f"{getattr(confusion, demand.rate):.2%}"
        if demand.count is not None:
            rate = plain(confusion.tp + confusion.fp)
        yield demand.name, met, f"{'meets' if met else 'does not meet'} {demand.text}: {rate}"


def value_comparisons(rows: list[dict[str, Any]], aim: Aim) -> Iterator[str]:
    """Yield what thresholds are worth by a metric, beside the best one."""
    best = rows[0]["value"]
    yield f"the best {aim.name} is {plain(best)}, at {plain(rows[0]['threshold'])}"
    for row in rows[1:]:
        text = f"{as_typed(row['threshold'])} has {aim.name} {plain(row['value'])}"
        away = abs(row["difference"])
        side = "above" if row["difference"] > 0 else "below"
        yield f"{text}, {plain(away)} {side} the best" if away else f"{text}, as good as the best"
        confusion = Confusion(*(row[name] for name in Confusion._fields))
        for _, _, words in demands_met(confusion, aim):
            yield f"  {words}"


def comparisons(
    rows: list[dict[str, Any]],
    lowest: float,
    samples: int,
    advice: list[Advice],
    checks: list[Checked],
) -> Iterator[str]:
    """Yield what thresholds cost more than the optimum, and what that means for new rows."""
    confidence, interval = advice[0].confidence, advice[0].interval
    if interval is not None:
        yield where_best(interval, confidence)
    for row, each, check in zip(rows, advice, checks, strict=True):
        yield _comparison(row, lowest, samples)
        if each.keep:
            yield f"  inside: not distinguishable from the optimum at {confidence * 100:g} %"
        elif interval is not None:
            yield "  outside: for new rows it is not the best threshold"
        if check.saving is not None and check.against is not None:
            yield f"  {saving_text(check.saving, check.against.name, confidence)}"
    if interval is None:
        yield f"for new rows: {advice[0].reason}"
    if len(rows) > 1:
        yield "Savings hold for new rows only if these rows chose neither threshold."


def _comparison(row: dict[str, Any], lowest: float, samples: int) -> str:
    """Compare the loss of a threshold with the lowest one."""
    at = f"{as_typed(row['threshold'])} costs {plain(row['loss'])}"
    if row["excess"] == 0:
        return f"{at}, as little as any threshold can"
    more = f"{row['excess'] / lowest:.1%} more" if lowest > 0 else "where the optimum costs nothing"
    if lowest < 0:
        more = f"where the optimum gains {plain(-lowest)}"
    above = bold(f"{plain(row['excess'])} above the optimum")
    return f"{at}, {above} ({more}; {plain(row['excess'] / samples)} per sample)"
