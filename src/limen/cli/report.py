# SPDX-License-Identifier: Apache-2.0
"""One page about a threshold, for a screen, a phone or paper, that needs nothing but itself."""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import __version__
from limen.cli.advice import group_thresholds, interval_text, recommendation_or_refusal
from limen.cli.aims import aim_of, columns_of
from limen.cli.charts import Charts
from limen.cli.findings import (
    band_of,
    best_of,
    calibrator_of,
    confusion_at,
    finding_at,
    findings_by_group,
)
from limen.cli.html import asset, figure, rule, table, zones
from limen.cli.inputs import read, unit_of
from limen.cli.new_rows import advice_on
from limen.cli.output import print_messages, require_writable, written
from limen.cli.sentences import aim_text, as_typed, reversed_scores
from limen.digits import plain, within

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.cli.aims import Aim
    from limen.cli.findings import Finding, GroupFinding
    from limen.cli.new_rows import Advice
    from limen.cli.samples import Samples
    from limen.groups import GroupThreshold
    from limen.trust.recommended import Recommendation

__all__ = ["report"]

_NEAR = Fraction(101, 100)
_RATIOS = tuple(
    Fraction(text) for text in ("1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10", "20", "50")
)
# A group with fewer is grey: its own cheapest threshold is mostly chance.
_FEW = 300
_FEW_OF_LABEL = 30
_ADVISED = ("recommended", "95 % interval")  # names of columns


def report(options: Namespace) -> int:
    """Write the page about the samples in files."""
    aim = aim_of(options)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    options.unit = unit_of(samples, options.unit)
    finding = best_of(samples, aim, options.unit)
    page = _Page(samples, finding, aim, options)
    with written(options.output) as file:
        file.writelines(page.html())
    print_messages(*page.messages(), quiet=options.quiet)
    return 0


class _Page:
    """The page about some samples: the threshold for new rows, and the cheapest on these."""

    def __init__(self, samples: Samples, cheapest: Finding, aim: Aim, options: Namespace) -> None:
        self.samples = samples
        self.cheapest = cheapest
        self.aim = aim
        self.options = options
        self.costs = aim.costs
        self.price = aim.measure
        self.lowest = self.price(*cheapest.confusion)
        self.by_cost = aim.metric is None
        self.word, self.best = ("cost", "cheapest") if self.by_cost else (aim.name, "best")
        self.calibrator = calibrator_of(samples, options.unit)
        self.charts = Charts(self.calibrator, samples, aim)
        self.remark = reversed_scores(samples)
        self.band = band_of(samples, aim, options)
        self.sure: Advice | None = None  # a cut at which new rows meet the demands
        if self.by_cost:
            advice = recommendation_or_refusal(samples, self.costs, options.unit)
        else:
            self.sure = advice_on(samples, aim, options.unit, 0.95)
            advice = self.sure.reason
        self.advice: Recommendation | None = None if isinstance(advice, str) else advice
        self.refusal = advice if isinstance(advice, str) else ""
        self.chosen = cheapest
        if self.advice is not None:
            self.chosen = finding_at(samples, self.advice.threshold, aim, options.unit)

    @property
    def interval(self) -> str:
        """The interval of the best threshold for people; empty where none is recommended."""
        return "" if self.advice is None else self._interval_text(self.advice.interval)

    def _interval_text(self, interval: tuple[float, float]) -> str:
        return interval_text(interval, self.charts.end_text)

    def messages(self) -> Iterator[str]:
        """Yield what the command says besides the page."""
        best = (
            f"{self.cheapest.threshold_text}, {self.word} {plain(self.cheapest.worth)} of "
            f"{len(self.samples):,} samples"
        )
        if self.advice is None:
            yield f"{self.options.output}: {self.best} threshold {best}"
            sure = "" if self.sure is None else self.sure.at
            yield f"limen: {self.refusal}{sure}"
        else:
            yield (
                f"{self.options.output}: threshold {self.chosen.threshold_text} for new rows "
                f"(95 % interval {self.interval}); cheapest on these rows {best}"
            )
        if self.remark is not None:
            yield f"limen: {self.remark}"

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
        yield f"<style>{asset('page.css')}</style>\n"
        yield f"</head>\n<body>\n<main>\n<h1>Decision threshold of {escape(title)}</h1>\n"
        yield from self._answer()
        if self.band is not None:
            yield from zones(self.band, self.options.asking or 0, self.cheapest.worth)
        yield from self._alternatives()
        yield from self._charts()
        yield from self._every_cost()
        yield from self._segments()
        yield "</main>\n"
        yield (
            f"<footer>Written by limen {__version__}. The cheapest threshold is exact for these "
            "rows; no grid, no rounding. The recommended one and its interval hold for new rows "
            "that are like these. Choose on rows that the classifier was not trained on, or all "
            "of this looks better than it is.</footer>\n"
        )
        figures = json.dumps(self._figures())  # numbers and our words, so nothing to escape
        yield f'<script type="application/json" id="figures">{figures}</script>\n'
        yield f"<script>{asset('words.js')}</script>\n"
        yield f"<script>{asset('charts.js')}</script>\n"
        yield f"<script>{asset('report.js')}</script>\n"
        yield "</body>\n</html>\n"

    # ---- words ------------------------------------------------------------------------------

    def _answer(self) -> Iterator[str]:
        yield f'<p class="answer">{rule(self.chosen)}</p>\n'
        yield from self._how_sure()
        yield (
            f"<p>{aim_text(self.aim)} Of {self.chosen.samples:,} samples, "
            f"{self.chosen.positives:,} have label 1.</p>\n"
        )
        yield from self._new_cost()
        if self.remark is not None:
            yield f'<p class="remark">{escape(_sentence(self.remark))}</p>\n'
        confusion = self.chosen.confusion
        yield '<p class="note">On these rows, at this threshold:</p>\n<div class="tiles">\n'
        for value, name in (
            (f"{confusion.recall:.1%}", "of labels 1 are found (recall)"),
            (f"{confusion.precision:.1%}", "of answers 1 are right (precision)"),
            (f"{confusion.positive_rate:.1%}", "of all are answered 1"),
            (plain(confusion.fp), "false positives"),
            (plain(confusion.fn), "false negatives"),
        ):
            yield f"<div><b>{value}</b><span>{name}</span></div>\n"
        yield "</div>\n"
        if self.chosen.same_answers is not None:
            yield (
                f'<p class="note">Any {self.chosen.same_answers} gives the same answers on these '
                "rows.</p>\n"
            )
        if flat := self._flat():
            yield f'<p class="note">{flat}</p>\n'

    def _how_sure(self) -> Iterator[str]:
        """Yield the interval of the best threshold, and the cheapest threshold beside it."""
        cost = f"{self.word} <b id=loss-now>{plain(self.cheapest.worth)}</b>"
        if self.samples.weights is not None:
            cost += ", counted in weights"
        if self.advice is None:
            worse = "cost much more" if self.by_cost else "do much worse"
            yield (
                f"<p>This is the {self.best} threshold on these rows ({cost}). On new rows it may "
                f"{worse}.</p>\n"
            )
            if self.sure is not None and self.sure.finding is not None:
                exact = self.sure.finding.threshold
                yield (
                    f'<p class="sure" id="sure" data-exact="{exact!r}">'
                    f"{escape(self.refusal)}{self.sure.at}</p>\n"
                )
            else:
                yield (
                    f'<p class="remark" id="refusal">No threshold is recommended for new rows: '
                    f"{escape(self.refusal)}</p>\n"
                )
            return
        low, high = self.advice.interval
        cheapest = (
            "No threshold costs less on these rows"
            if self.chosen.loss == self.lowest
            else "The cheapest threshold on these rows is "
            f'<b id="cheapest" data-exact="{self.cheapest.threshold!r}">'
            f"{self.cheapest.threshold_text}</b>"
        )
        yield (
            f'<p class="sure">Recommended for new rows. 95 % interval of the best threshold: '
            f'<b id="interval" data-low="{low!r}" data-high="{high!r}">{self.interval}</b>.</p>\n'
            f"<p>{cheapest} ({cost}). Which one is the cheapest here is partly chance. With 95 % "
            "confidence, the interval holds the threshold that is the best for all rows like "
            "these.</p>\n"
        )

    def _new_cost(self) -> Iterator[str]:
        """Yield what a new row will cost, by cross-fitting."""
        if self.advice is None:
            return
        try:
            cost = self.advice.cost()
        except ValueError as error:
            yield f'<p class="remark" id="new-cost">{escape(_sentence(str(error)))}</p>\n'
            return
        row = "row" if self.samples.weights is None else "row of weight 1"
        low, high = map(_rounded, cost.interval)
        errors = "1 error" if cost.errors == 1 else f"{cost.errors:,} errors"
        yield (
            f"<p>A new {row} is expected to cost "
            f'<b id="new-cost" data-exact="{cost.mean!r}">{_rounded(cost.mean)}</b> on average '
            f"(95 % interval {low} to {high}). This is estimated by cross-fitting: each row is "
            "judged by a threshold that was chosen without it. "
            f"It rests on {errors}"
            f"{', too few to trust the interval' if cost.few else ''}.</p>\n"
        )

    def _flat(self) -> str:
        """Write how far the threshold may move before the cost rises by more than 1 %."""
        if not self.by_cost:
            return ""
        losses, thresholds = self.charts.curve.losses, self.charts.curve.thresholds
        lowest = float(losses.min())
        cheapest = np.flatnonzero(losses == lowest)
        best = int(cheapest[-1 if self.samples.direction == ">=" else 0])
        dear = np.flatnonzero(losses > lowest * float(_NEAR))
        first = int(dear[dear < best][-1]) + 1 if (dear < best).any() else 0
        last = int(dear[dear > best][0]) - 1 if (dear > best).any() else len(losses) - 1
        if lowest == 0 or first == last:
            return ""
        ends = [self.charts.text(float(thresholds[place])) for place in (first, last)]
        return (
            f"On these rows, each threshold from {ends[0]} to {ends[1]} costs at most 1 % more "
            "than the cheapest. That is a count of these rows and no confidence interval: "
            "on new rows the best threshold may well lie outside."
        )

    def _alternatives(self) -> Iterator[str]:
        given = self.options.thresholds or ([0.5] if self.charts.shares else [])
        rows = [(name, found.threshold) for name, found in self._named().items()]
        rows += [(f"a threshold of {as_typed(threshold)}", threshold) for threshold in given]
        every = -math.inf if self.samples.direction == ">=" else math.inf
        rows += [("answering 1 to all", every), ("answering 0 to all", math.nan)]
        title = "What it costs on these rows" if self.by_cost else "Other thresholds on these rows"
        yield f"<h2>{title}</h2>\n"
        more = ["more than the cheapest", "per sample"] if self.by_cost else ["away from the best"]
        names = ["", self.word, *more, "false positives"]
        names += ["false negatives"] if self.advice is None else ["false negatives", "in interval"]
        yield from table(
            names,
            (
                (
                    escape(name),
                    plain(loss := self.price(*(confusion := self._confusion(threshold)))),
                    self._excess(loss),
                    *([plain(loss / self.cheapest.samples)] if self.by_cost else []),
                    plain(confusion.fp),
                    plain(confusion.fn),
                    *self._in_interval(threshold),
                )
                for name, threshold in rows
            ),
            {0: "chosen"},
        )
        if self.advice is not None:
            yield (
                '<p class="note">While the threshold in use lies in the 95 % interval, keep it: '
                "these rows do not say that another one is better.</p>\n"
            )

    def _excess(self, loss: float) -> str:
        if loss == self.lowest:
            return ""
        share = _relative(loss, self.lowest) if self.by_cost else ""
        return f"{plain(loss - self.lowest)}{share}"

    def _in_interval(self, threshold: float) -> tuple[str, ...]:
        if self.advice is None:
            return ()
        low, high = map(self.charts.place, self.advice.interval)
        return ("yes" if low <= self.charts.place(threshold) <= high else "no",)

    def _confusion(self, threshold: float) -> Any:
        return confusion_at(self.samples, threshold, self.options.unit)

    def _charts(self) -> Iterator[str]:
        marks, band = self._marks(), self._band()
        shown = [*(mark["text"] for mark in marks), *([] if band is None else [band["text"]])]
        yield f"<h2>The {self.word.replace('_', ' ')} of every threshold on these rows</h2>\n"
        yield figure(
            "loss",
            f"{_sentence(self.word)} on these rows against threshold; {'; '.join(shown)}.",
            "Move over the curve to read it.",
        )
        yield '<div class="pair">\n<div>\n<h2>What can be found at which price</h2>\n'
        yield figure(
            "roc",
            f"ROC curve and its hull; {'; '.join(mark['text'] for mark in marks)}.",
            "The corners of the hull are the thresholds that are cheapest here for some costs.",
        )
        yield "</div>\n<div>\n<h2>What a score means</h2>\n"
        yield figure(
            "fit",
            "Calibrated probability against score.",
            "How many of the samples with such a score have label 1: the best fit that never "
            + (
                "rises."
                if self.samples.direction == "<="
                else "falls. A calibrated classifier lies on the dashed line."
                if self.charts.shares
                else "falls."
            ),
        )
        yield "</div>\n</div>\n"
        yield "<noscript><p>The charts need scripts; the tables do not.</p></noscript>\n"

    def _named(self) -> dict[str, Finding]:
        """Return the recommended and the cheapest threshold by name; one where they cost the same.

        Of several cheapest ones, the recommended one need not be the highest.
        """
        if self.advice is None:
            return {f"{self.best} on these rows": self.cheapest}
        if self.chosen.loss == self.lowest:
            return {"recommended, and cheapest on these rows": self.chosen}
        return {"recommended for new rows": self.chosen, "cheapest on these rows": self.cheapest}

    def _marks(self) -> list[dict[str, Any]]:
        return [
            {
                "threshold": found.threshold,
                "text": f"{name}: {found.threshold_text}",
                "as": "cheapest" if found is self.cheapest else "mark",
            }
            for name, found in self._named().items()
        ]

    def _band(self) -> dict[str, Any] | None:
        if self.advice is None:
            return None
        text = f"95 % interval of the best threshold: {self.interval}"
        return {"interval": self.advice.interval, "text": text}

    def _figures(self) -> dict[str, Any]:
        return self.charts.figures(self._marks(), self._band())

    def _every_cost(self) -> Iterator[str]:
        asked = Fraction(self.costs["false_negative"]) / Fraction(self.costs["false_positive"])
        ratios = sorted({*_RATIOS, asked} if self.by_cost else _RATIOS)
        advised = self.advice is not None
        chosen = {ratios.index(asked): "chosen"} if self.by_cost else {}
        title = "If mistakes cost something else" if self.by_cost else "If mistakes have a cost"
        yield f"<h2>{title}</h2>\n"
        yield (
            "<p>The threshold for other costs of a false negative, in false positives. The shares "
            "and counts are those of "
            f"{'the recommended one' if advised else 'the cheapest one'} on these rows.</p>\n"
        )
        names = ["false negative costs", *(_ADVISED if advised else []), "cheapest on these rows"]
        names += ["answered 1", "precision", "recall", "false positives", "false negatives"]
        yield from table(names, map(self._at_ratio, ratios), chosen)

    def _at_ratio(self, ratio: Fraction) -> Iterator[str]:
        best = self.calibrator.optimum(false_negative=ratio)
        chosen = best.threshold
        yield str(ratio) if ratio.denominator < 100 else plain(float(ratio))
        if self.advice is not None:
            advice = recommendation_or_refusal(
                self.samples, {"false_negative": ratio}, self.options.unit
            )
            if isinstance(advice, str):  # one that overflows, where the costs asked for did not
                yield ""
                yield ""
            else:
                chosen = advice.threshold
                yield self.charts.text(chosen)
                yield self._interval_text(advice.interval)
        yield within(best.threshold, best.lower, best.upper, direction=best.direction)
        confusion = self.calibrator.confusion(chosen)
        yield f"{confusion.positive_rate:.1%}"
        yield f"{confusion.precision:.1%}"
        yield f"{confusion.recall:.1%}"
        yield plain(confusion.fp)
        yield plain(confusion.fn)

    def _segments(self) -> Iterator[str]:
        if self.samples.codes is None:
            return
        advised = self.advice is not None
        yield f"<h2>By {escape(self.options.group_column)}</h2>\n"
        if advised:
            yield (
                "<p>Recommended for the new rows of a group: the common threshold at the top of "
                "this page, moved into the 95 % interval of the group's own samples where it lies "
                "outside.</p>\n"
            )
        yield (
            f"<p>The {self.best} threshold of a group's own rows is exact, and promises too much "
            f"on new ones. Groups of fewer than {_FEW} samples, or {_FEW_OF_LABEL} of a label, are "
            "grey: theirs is mostly chance.</p>\n"
        )
        rows, classes = [], {}
        found, cheapest = self._by_group()
        for place, (name, part) in enumerate(self.samples.by_group()):
            best, own = cheapest[name]
            common = self.price(*confusion_at(part, self.chosen.threshold, self.options.unit))
            loss = self.price(*best.confusion) if own else common
            few = _rests_on(part)
            if few:
                classes[place] = "few"
            saved = f"{plain(common - loss)}{_relative(loss, common)}" if common > loss else ""
            if not self.by_cost:
                saved = plain(loss - common) if loss != common else ""
            rows.append(
                (
                    escape(name) + (f"<small>{few}</small>" if few else ""),
                    f"{best.samples:,}",
                    f"{best.positives:,}",
                    *(self._of_group(found[name]) if advised else ()),
                    best.threshold_text if own else "too few samples",
                    plain(loss),
                    plain(common),
                    saved,
                )
            )
        names = [escape(self.options.group_column), "samples", "label 1"]
        names += [*(_ADVISED if advised else []), f"{self.best} on its rows"]
        names += [f"{self.word} at that", f"{self.word} at the common one"]
        yield from table([*names, "saved here" if self.by_cost else "better by"], rows, classes)

    def _by_group(self) -> tuple[dict[str, GroupThreshold], dict[str, GroupFinding]]:
        """Find the threshold of each group for new rows, and the cheapest on its own rows."""
        unit, least = self.options.unit, self.options.at_least
        found = {}
        if self.advice is not None:
            found = group_thresholds(self.samples, self.costs, unit, least)
        return found, findings_by_group(
            self.samples.by_group(), self.cheapest, self.aim, unit, least
        )

    def _of_group(self, found: GroupThreshold) -> tuple[str, str]:
        if found.interval is None:
            return self.charts.text(found.threshold), "too few to say"
        return self.charts.text(found.threshold), self._interval_text(found.interval)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _relative(loss: float, lowest: float) -> str:
    return f" ({abs(loss - lowest) / lowest:.1%})" if lowest else ""


def _rounded(cost: float) -> str:
    """Write a cost that is estimated, which four digits are enough for."""
    return plain(cost, 4)


def _rests_on(part: Samples) -> str:
    """Say that a group rests on few samples; nothing where they are many."""
    if len(part) < _FEW:
        return f"rests on {_counted(len(part))}"
    rarer, label = min((part.positives, 1), (len(part) - part.positives, 0))
    return f"rests on {_counted(rarer)} of label {label}" if rarer < _FEW_OF_LABEL else ""


def _counted(samples: int) -> str:
    return "1 sample" if samples == 1 else f"{samples:,} samples"
