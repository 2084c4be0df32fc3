# SPDX-License-Identifier: Apache-2.0
"""What people read about cuts and samples on standard error."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.aims import DEMANDS, option_text
from limen.cli.output import bold
from limen.digits import gap, plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.cli.aims import Aim
    from limen.cli.findings import Finding, GroupFinding
    from limen.cli.samples import Samples

__all__ = ["as_typed", "comparison", "remarks", "reversed_scores", "summary"]

_LOOKED_AT = 2**17  # rows, to see which way the scores run
_CLEAR = 2.5  # standard deviations


def summary(finding: Finding, aim: Aim) -> Iterator[str]:
    """Yield the lines about the best cut."""
    negatives = finding.samples - finding.positives
    yield f"{finding.samples:,} samples: {finding.positives:,} count as 1, {negatives:,} as 0"
    yield _rule(finding)
    confusion = finding.confusion
    if aim.metric is None:
        fp, fn = map(float, (aim.costs["false_positive"], aim.costs["false_negative"]))
        none = fn * (confusion.tp + confusion.fn)
        every = fp * (confusion.fp + confusion.tn)
        yield (
            f"cost {plain(finding.loss or 0.0)}: false positives {plain(confusion.fp)} at "
            f"{plain(fp)}, false negatives {plain(confusion.fn)} at {plain(fn)}; answering 0 to "
            f"all costs {plain(none)}, 1 to all {plain(every)}"
        )
    else:
        yield f"{aim.name} {plain(finding.value or 0.0)}"
    yield (
        f"answers 1 to {confusion.positive_rate:.2%} of all; precision {confusion.precision:.2%}, "
        f"recall {confusion.recall:.2%}"
    )


def _rule(finding: Finding) -> str:
    if finding.upper is None:
        return bold("answer 0 to every score")
    if finding.lower is None:
        return bold("answer 1 to every score")
    lower, threshold, upper = gap(finding.lower, finding.threshold, finding.upper)
    return (
        f"{bold(f'answer 1 when score >= {threshold}')}: any threshold above {lower} and up to "
        f"{upper} gives the same answers"
    )


def remarks(
    samples: Samples, groups: dict[str, GroupFinding], options: Namespace, aim: Aim
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
    if options.save is not None and aim.metric is not None:
        given = [
            option_text(name, value)
            for name in ("metric", "false_positive", "false_negative", *DEMANDS)
            if (value := getattr(options, name)) is not None
        ]
        yield (
            f"limen: {options.save} holds the samples, for any aim. Show them by this one with: "
            f"limen show {shlex.quote(options.save)} {' '.join(given)}"
        )


def reversed_scores(samples: Samples) -> str | None:
    """Warn when labels 1 clearly have the lower scores; None where that is not clear.

    Looks at some rows where there are many. O(n log n) of those.
    """
    rows = slice(None, None, max(1, len(samples) // _LOOKED_AT))
    scores, ones = samples.scores[rows], samples.labels[rows] == 1
    weights = np.ones(len(scores)) if samples.weights is None else samples.weights[rows]
    positives, negatives = int(np.count_nonzero(ones)), int(np.count_nonzero(~ones))
    if not weights[ones].sum() or not weights[~ones].sum():
        return None
    order = np.argsort(scores[~ones])
    low = scores[~ones][order]
    below = np.concatenate([[0.0], np.cumsum(weights[~ones][order], dtype=np.float64)])
    beaten = sum(below[np.searchsorted(low, scores[ones], side)] for side in ("left", "right")) / 2
    higher = float(np.average(beaten, weights=weights[ones]) / below[-1])
    spread = math.sqrt((positives + negatives + 1) / (12 * positives * negatives))
    if higher >= 0.5 - _CLEAR * spread:
        return None
    return (
        "the scores seem to run the other way: of two samples with different labels, the label 1 "
        f"has the higher score in only {higher:.1%} of all pairs. If a low score means 1, turn "
        "them round (such as 1 - score); if the other label should count as 1, name it with "
        "--positive."
    )


def comparison(row: dict[str, Any], lowest: float, samples: int) -> str:
    """Compare the loss of a threshold with the lowest one."""
    at = f"{as_typed(row['threshold'])} costs {plain(row['loss'])}"
    if row["excess"] == 0:
        return f"{at}, as little as any threshold can"
    more = f"{row['excess'] / lowest:.1%} more" if lowest else "where the optimum costs nothing"
    above = bold(f"{plain(row['excess'])} above the optimum")
    return f"{at}, {above} ({more}; {plain(row['excess'] / samples)} per sample)"


def as_typed(threshold: float) -> str:
    """Write a threshold that somebody gave, in all its digits.

    >>> as_typed(0.5), as_typed(3.0), as_typed(float("nan"))
    ('0.5', '3', 'nan (which no score reaches)')
    """
    if math.isnan(threshold):
        return "nan (which no score reaches)"
    return repr(threshold).removesuffix(".0")
