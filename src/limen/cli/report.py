# SPDX-License-Identifier: Apache-2.0
"""One page about a threshold, for a screen, a phone or paper, that needs nothing but itself."""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import __version__
from limen.cli.aims import aim_of, columns_of
from limen.cli.findings import best_of, calibrator_of, confusion_at, findings_by_group
from limen.cli.inputs import read
from limen.cli.output import print_messages, require_writable, written
from limen.cli.sentences import as_typed, reversed_scores
from limen.digits import gap, plain, thinned, within

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator

    from limen.calibrator import OnlineCalibrator
    from limen.cli.aims import Aim
    from limen.cli.findings import Finding
    from limen.cli.samples import Samples

__all__ = ["report"]

_STRETCHES = 1000  # of a chart, each with its lowest and its highest point
_NEAR = Fraction(101, 100)
_RATIOS = tuple(
    Fraction(text) for text in ("1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10", "20", "50")
)


def report(options: Namespace) -> int:
    """Write the page about the samples in files."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    finding = best_of(samples, aim, options.unit)
    page = _Page(samples, finding, aim, options)
    remark = page.remark
    with written(options.output) as file:
        file.writelines(page.html())
    print_messages(
        f"{options.output}: threshold {finding.threshold_text}, "
        f"cost {plain(finding.loss or 0.0)} of {len(samples):,} samples",
        *([] if remark is None else [f"limen: {remark}"]),
        quiet=options.quiet,
    )
    return 0


class _Page:
    """The page about some samples and their cheapest cut."""

    def __init__(self, samples: Samples, finding: Finding, aim: Aim, options: Namespace) -> None:
        self.samples = samples
        self.finding = finding
        self.aim = aim
        self.options = options
        self.costs = aim.costs
        self.calibrator: OnlineCalibrator = calibrator_of(samples, options.unit)
        self.price = aim.measure
        self.distinct = np.unique(samples.scores)
        self.remark = reversed_scores(samples)
        finite = samples.scores[np.isfinite(samples.scores)]
        self.low, self.high = (
            (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        )
        self.shares = bool(np.all((samples.scores >= 0) & (samples.scores <= 1)))

    def html(self) -> Iterator[str]:
        """Yield the page, piece by piece."""
        title = ", ".join(os.path.basename(path) for path in self.options.files)
        yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield (
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
        )
        yield f"<title>Decision threshold of {escape(title)}</title>\n"
        yield f"<style>{_asset('page.css')}</style>\n"
        yield f"</head>\n<body>\n<main>\n<h1>Decision threshold of {escape(title)}</h1>\n"
        yield from self._answer()
        yield from self._alternatives()
        yield from self._charts()
        yield from self._every_cost()
        yield from self._segments()
        yield "</main>\n"
        yield (
            f"<footer>Written by limen {__version__}. The threshold is the cheapest for exactly "
            "these samples; no grid, no rounding. Choose it on samples that the classifier was "
            "not trained on, or it will look better than it is.</footer>\n"
        )
        figures = json.dumps(self._figures())  # numbers only, so nothing to escape
        yield f'<script type="application/json" id="figures">{figures}</script>\n'
        yield f"<script>{_asset('charts.js')}</script>\n"
        yield f"<script>{_asset('report.js')}</script>\n"
        yield "</body>\n</html>\n"

    # ---- words ------------------------------------------------------------------------------

    def _answer(self) -> Iterator[str]:
        finding, confusion = self.finding, self.finding.confusion
        weighted = self.samples.weights is not None
        yield f'<p class="answer">{_rule(finding)}</p>\n'
        fp, fn = (plain(float(value)) for value in self.costs.values())
        yield (
            f"<p>Each false positive (answering 1 to a 0) costs {fp}, each false negative "
            f"(answering 0 to a 1) costs {fn}. Of {finding.samples:,} samples, "
            f"{finding.positives:,} have label 1. No threshold costs less on them than this one: "
            f"<b id=loss-now>{plain(finding.loss or 0.0)}</b>"
            f"{', counted in weights' if weighted else ''}.</p>\n"
        )
        yield '<div class="tiles">\n'
        for value, name in (
            (f"{confusion.recall:.1%}", "of labels 1 are found (recall)"),
            (f"{confusion.precision:.1%}", "of answers 1 are right (precision)"),
            (f"{confusion.positive_rate:.1%}", "of all are answered 1"),
            (plain(confusion.fp), "false positives"),
            (plain(confusion.fn), "false negatives"),
        ):
            yield f"<div><b>{value}</b><span>{name}</span></div>\n"
        yield "</div>\n"
        if self.remark is not None:
            yield f'<p class="remark">{escape(_sentence(self.remark))}</p>\n'
        if finding.lower is not None and finding.upper is not None:
            lower, _, upper = gap(finding.lower, finding.threshold, finding.upper)
            yield (
                f'<p class="note">Any threshold above {lower} and up to {upper} gives the same '
                f"answers. {self._flat()}</p>\n"
            )

    def _flat(self) -> str:
        """Write how far the threshold may move before the cost rises by more than 1 %."""
        curve = self.calibrator.curve(**self.costs)
        lowest = float(curve.losses.min())
        best = int(np.flatnonzero(curve.losses == lowest)[-1])
        dear = np.flatnonzero(curve.losses > lowest * float(_NEAR))
        first = int(dear[dear < best][-1]) + 1 if (dear < best).any() else 0
        last = int(dear[dear > best][0]) - 1 if (dear > best).any() else len(curve) - 1
        if lowest == 0 or first == last:
            return ""
        ends = [self.threshold_text(float(curve.thresholds[place])) for place in (first, last)]
        return f"From {ends[0]} to {ends[1]} no threshold costs more than 1 % more."

    def _alternatives(self) -> Iterator[str]:
        given = self.options.thresholds or ([0.5] if self.shares else [])
        rows = [("this threshold", self.finding.threshold)]
        rows += [(f"a threshold of {as_typed(threshold)}", threshold) for threshold in given]
        rows += [("answering 1 to all", -math.inf), ("answering 0 to all", math.nan)]
        yield "<h2>What it buys</h2>\n"
        lowest = self.price(*self.finding.confusion)
        yield from _table(
            ("", "cost", "more than needed", "per sample", "false positives", "false negatives"),
            (
                (
                    escape(name),
                    plain(loss := self.price(*(confusion := self._confusion(threshold)))),
                    "" if loss == lowest else f"{plain(loss - lowest)}{_relative(loss, lowest)}",
                    plain(loss / self.finding.samples),
                    plain(confusion.fp),
                    plain(confusion.fn),
                )
                for name, threshold in rows
            ),
            chosen=0,
        )

    def _confusion(self, threshold: float) -> Any:
        return confusion_at(self.samples, threshold, self.options.unit)

    def _charts(self) -> Iterator[str]:
        yield "<h2>The cost of every threshold</h2>\n"
        yield _figure(
            "loss",
            "Cost against threshold.",
            "Move over the curve to read it. The dashed line marks the cheapest threshold.",
        )
        yield '<div class="pair">\n<div>\n<h2>What can be found at which price</h2>\n'
        yield _figure(
            "roc",
            "ROC curve and its hull.",
            "The ROC curve and its hull, whose corners are the thresholds that are best for some "
            "costs. The dot is the cheapest one.",
        )
        yield "</div>\n<div>\n<h2>What a score means</h2>\n"
        yield _figure(
            "fit",
            "Calibrated probability against score.",
            "How many of the samples with such a score have label 1: the best fit that never falls."
            + (" A calibrated classifier lies on the dashed line." if self.shares else ""),
        )
        yield "</div>\n</div>\n"
        yield "<noscript><p>The charts need scripts; the tables do not.</p></noscript>\n"

    def _every_cost(self) -> Iterator[str]:
        asked = Fraction(self.costs["false_negative"]) / Fraction(self.costs["false_positive"])
        ratios = sorted({*_RATIOS, asked})
        yield "<h2>If mistakes cost something else</h2>\n"
        yield (
            "<p>The best threshold for other costs of a false negative, in false positives.</p>\n"
        )
        rows = []
        for ratio in ratios:
            best = self.calibrator.optimum(false_negative=ratio)
            confusion = self.calibrator.confusion(best.threshold)
            rows.append(
                (
                    str(ratio) if ratio.denominator < 100 else plain(float(ratio)),
                    within(best.threshold, best.lower, best.upper),
                    f"{confusion.positive_rate:.1%}",
                    f"{confusion.precision:.1%}",
                    f"{confusion.recall:.1%}",
                    plain(confusion.fp),
                    plain(confusion.fn),
                )
            )
        names = ("false negative costs", "threshold", "answered 1", "precision", "recall")
        yield from _table(
            (*names, "false positives", "false negatives"), rows, chosen=ratios.index(asked)
        )

    def _segments(self) -> Iterator[str]:
        if self.samples.codes is None:
            return
        yield f"<h2>By {escape(self.options.group_column)}</h2>\n"
        yield (
            "<p>The best threshold of each group alone, and what it saves against the one above. "
            "Of small groups it promises too much.</p>\n"
        )
        rows = []
        groups = findings_by_group(
            self.samples, self.finding, self.aim, self.options.unit, self.options.at_least
        )
        for name, part in self.samples.by_group():
            found, own = groups[name]
            common = self.price(*confusion_at(part, self.finding.threshold, self.options.unit))
            loss = self.price(*found.confusion)
            rows.append(
                (
                    escape(name),
                    f"{found.samples:,}",
                    f"{found.positives:,}",
                    found.threshold_text if own else "too few samples",
                    plain(loss),
                    plain(common),
                    f"{plain(common - loss)}{_relative(loss, common)}" if common > loss else "",
                )
            )
        names = (self.options.group_column, "samples", "label 1", "own threshold", "cost at it")
        yield from _table((*map(escape, names), "cost at the common one", "saved"), rows)

    # ---- figures ----------------------------------------------------------------------------

    def _figures(self) -> dict[str, Any]:
        """Everything the charts draw; the ends of the curve lie just outside the scores."""
        finding, confusion = self.finding, self.finding.confusion
        positives, negatives = confusion.tp + confusion.fn, confusion.fp + confusion.tn
        cuts = self.calibrator.curve(**self.costs)
        kept = thinned(cuts.losses, _STRETCHES)
        thresholds = cuts.thresholds[kept]
        each = [self.calibrator.confusion(threshold) for threshold in thresholds.tolist()]
        curve = {
            "at": [self._inside(threshold) for threshold in thresholds.tolist()],
            "shown": [self.threshold_text(threshold) for threshold in thresholds.tolist()],
            "loss": cuts.losses[kept].tolist(),
            "fp": [one.fp for one in each],
            "fn": [one.fn for one in each],
            "rate": [one.positive_rate for one in each],
        }
        hull = self.calibrator.roc_hull()
        corners = dict(zip(hull.thresholds.tolist(), hull.tp.tolist(), strict=True))
        points = {
            threshold: (one.fp, one.tp)
            for threshold, one in zip(thresholds.tolist(), each, strict=True)
        }
        points |= dict(
            zip(corners, zip(hull.fp.tolist(), hull.tp.tolist(), strict=True), strict=True)
        )
        listed = sorted((fp, tp, threshold) for threshold, (fp, tp) in points.items())
        roc = {
            "fpr": [fp / negatives for fp, _, _ in listed],
            "tpr": [tp / positives for _, tp, _ in listed],
            "hull": [tp / positives if at in corners else None for _, tp, at in listed],
            "shown": [self.threshold_text(threshold) for _, _, threshold in listed],
        }
        blocks = self.calibrator.blocks()
        edges = [self._inside(threshold) for threshold in hull.thresholds.tolist()]
        fit_at = [edge for pair in pairwise(edges) for edge in pair]
        fit = {
            "at": fit_at,
            "p": np.repeat(blocks.probabilities, 2).tolist(),
            "diagonal": fit_at if self.shares else None,
        }
        chosen = {
            "at": self._inside(finding.threshold),
            "loss": finding.loss,
            "fpr": confusion.fp / negatives,
            "tpr": confusion.tp / positives,
        }
        return {"curve": curve, "roc": roc, "fit": fit, "chosen": chosen}

    def threshold_text(self, threshold: float) -> str:
        """Write the threshold of a cut with the digits that put it between its scores."""
        place = int(np.searchsorted(self.distinct, threshold))
        lower = float(self.distinct[place - 1]) if place > 0 else None
        upper = float(self.distinct[place]) if place < len(self.distinct) else None
        return within(threshold, lower, upper)

    def _inside(self, threshold: float) -> float:
        """Where a chart shows a threshold: an infinite one next to the last score."""
        margin = 0.02 * (self.high - self.low) or 0.5
        if math.isnan(threshold):
            return self.high + margin
        return min(max(threshold, self.low - margin), self.high + margin)


def _asset(name: str) -> str:
    return files("limen.page").joinpath(name).read_text(encoding="utf-8")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _relative(loss: float, lowest: float) -> str:
    return f" ({abs(loss - lowest) / lowest:.1%})" if lowest else ""


def _rule(finding: Finding) -> str:
    if finding.upper is None:
        return "Answer 0 to <strong>every score</strong>."
    if finding.lower is None:
        return "Answer 1 to <strong>every score</strong>."
    return (
        "Answer 1 when the score is at least "
        f'<strong id="threshold" data-exact="{finding.threshold!r}">'
        f"{finding.threshold_text}</strong>."
    )


def _figure(id: str, label: str, caption: str) -> str:
    return (
        f'<figure>\n<div class="chart" id="{id}" role="img" aria-label="{escape(label)}"></div>\n'
        f'<figcaption class="readout">{escape(caption)}</figcaption>\n</figure>\n'
    )


def _table(
    names: Iterable[str], rows: Iterable[Iterable[str]], chosen: int | None = None
) -> Iterator[str]:
    yield '<div class="scroll">\n<table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead>\n<tbody>\n"
    for place, row in enumerate(rows):
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        yield f'<tr class="chosen">{cells}</tr>\n' if place == chosen else f"<tr>{cells}</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"
