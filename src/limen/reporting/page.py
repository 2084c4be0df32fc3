# SPDX-License-Identifier: Apache-2.0
"""One page about a threshold, for a screen, a phone or paper, that needs nothing but itself."""

from __future__ import annotations

import json
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import __version__
from limen.digits import plain
from limen.reporting.html import asset, figure, precision_of, rule, sentence
from limen.reporting.tables import alternatives, every_cost, groups, named, zones
from limen.reporting.wording import Words, aim_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.reporting.origin import Origin
    from limen.reporting.study import Study

__all__ = ["page_of"]

_NEAR = Fraction(101, 100)


def page_of(study: Study, title: str, origin: Origin) -> Iterator[str]:
    """Yield the page, piece by piece."""
    positive = study.asked.words.positive
    words = Words(None if positive is None else escape(positive))
    heading = f"Decision threshold of {escape(title)}" if title else "Decision threshold"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
    )
    yield f"<title>{heading}</title>\n"
    yield f"<style>{asset('page.css')}{asset('report.css')}</style>\n"
    yield f"</head>\n<body>\n<main>\n<h1>{heading}</h1>\n"
    yield from _answer(study, words)
    yield from zones(study)
    yield from alternatives(study, words)
    yield from _charts(study, words)
    yield from every_cost(study, words)
    yield from groups(study, words)
    yield from origin.html()
    yield "</main>\n"
    yield (
        f"<footer>Written by limen {__version__}. The cheapest threshold is exact for these "
        "rows; no grid, no rounding. The recommended one and its interval hold for new rows "
        "that are like these. Choose on rows that the classifier was not trained on, or all "
        "of this looks better than it is.</footer>\n"
    )
    figures = json.dumps(_figures(study)).replace("<", "\\u003c")  # so that no word ends the script
    yield f'<script type="application/json" id="figures">{figures}</script>\n'
    yield f"<script>{asset('words.js')}</script>\n"
    yield f"<script>{asset('charts.js')}</script>\n"
    yield f"<script>{asset('report.js')}</script>\n"
    yield "</body>\n</html>\n"


def _answer(study: Study, words: Words) -> Iterator[str]:
    chosen = study.chosen
    yield f'<p class="answer">{rule(chosen, words)}</p>\n'
    yield from _how_sure(study)
    yield (
        f"<p>{aim_text(study.aim, words)} Of {chosen.samples:,} samples, "
        f"{chosen.positives:,} have label {words.label}.</p>\n"
    )
    yield from _new_cost(study)
    if study.remark is not None:
        yield f'<p class="remark">{escape(sentence(study.remark))}</p>\n'
    confusion = chosen.confusion
    right = "answers 1" if words.positive is None else f"those {words.called}"
    nobody = "" if confusion.tp + confusion.fp else ": nobody is flagged"
    yield '<p class="note">On these rows, at this threshold:</p>\n<div class="tiles">\n'
    for value, name in (
        (f"{confusion.recall:.1%}", f"of {words.ones} are found (recall)"),
        (precision_of(confusion), f"of {right} are right (precision){nobody}"),
        (f"{confusion.positive_rate:.1%}", f"of all are {words.called}"),
        (plain(confusion.fp), "false positives"),
        (plain(confusion.fn), "false negatives"),
    ):
        yield f"<div><b>{value}</b><span>{name}</span></div>\n"
    yield "</div>\n"
    if chosen.same_answers is not None:
        yield (
            f'<p class="note">Any {chosen.same_answers} gives the same answers on these rows.</p>\n'
        )
    if flat := _flat(study):
        yield f'<p class="note">{flat}</p>\n'


def _how_sure(study: Study) -> Iterator[str]:
    """Yield the interval of the best threshold, and the cheapest threshold beside it."""
    cost = f"{study.word} <b id=loss-now>{plain(study.cheapest.worth)}</b>"
    if study.samples.weights is not None:
        cost += ", counted in weights"
    if study.advice is None:
        worse = "cost much more" if study.by_cost else "do much worse"
        yield (
            f"<p>This is the {study.best} threshold on these rows ({cost}). On new rows it may "
            f"{worse}.</p>\n"
        )
        if study.sure is not None and study.sure.finding is not None:
            exact = study.sure.finding.threshold
            yield (
                f'<p class="sure" id="sure" data-exact="{exact!r}">'
                f"{escape(study.refusal)}{study.sure.at}</p>\n"
            )
        else:
            yield (
                f'<p class="remark" id="refusal">No threshold is recommended for new rows: '
                f"{escape(study.refusal)}</p>\n"
            )
        return
    low, high = study.advice.interval or (0.0, 0.0)
    cheapest = (
        "No threshold costs less on these rows"
        if study.worth(study.chosen.threshold) == study.lowest
        else "The cheapest threshold on these rows is "
        f'<b id="cheapest" data-exact="{study.cheapest.threshold!r}">'
        f"{study.charts.name(study.cheapest.threshold)}</b>"
    )
    yield (
        f'<p class="sure">Recommended for new rows. 95 % interval of the best threshold: '
        f'<b id="interval" data-low="{low!r}" data-high="{high!r}">{study.interval}</b>.</p>\n'
        f"<p>{cheapest} ({cost}). Which one is the cheapest here is partly chance. With 95 % "
        "confidence, the interval holds the threshold that is the best for all rows like "
        "these.</p>\n"
    )


def _new_cost(study: Study) -> Iterator[str]:
    """Yield what a new row will cost, by cross-fitting."""
    if study.advice is None or study.advice.found is None:
        return
    try:
        cost = study.advice.found.cost()
    except ValueError as error:
        yield f'<p class="remark" id="new-cost">{escape(sentence(str(error)))}</p>\n'
        return
    row = "row" if study.samples.weights is None else "row of weight 1"
    mean, low, high = (plain(value, 4) for value in (cost.mean, *cost.interval))
    what = f"A new {row} is expected to cost", "on average"
    if study.aim.by_row:  # where the weight of a row is what it has at stake
        mean, low, high = (f"{value:.2%}" for value in (cost.mean, *cost.interval))
        what = (
            "Mistakes on new rows are expected to cost",
            ("of what is at stake, the difference between both answers to each row"),
        )
    elif study.aim.priced:
        what = what[0], "more on average than with right answers only"
    errors = "1 error" if cost.errors == 1 else f"{cost.errors:,} errors"
    yield (
        f'<p>{what[0]} <b id="new-cost" data-exact="{cost.mean!r}">{mean}</b> {what[1]} '
        f"(95 % interval {low} to {high}). This is estimated by cross-fitting: each row is "
        "judged by a threshold that was chosen without it. "
        f"It rests on {errors}"
        f"{', too few to trust the interval' if cost.few else ''}.</p>\n"
    )


def _flat(study: Study) -> str:
    """Write how far the threshold may move before the cost rises by more than 1 %."""
    if not study.by_cost:
        return ""
    losses, thresholds = study.charts.curve.losses, study.charts.curve.thresholds
    lowest = float(losses.min())
    cheapest = np.flatnonzero(losses == lowest)
    best = int(cheapest[-1 if study.samples.direction == ">=" else 0])
    dear = np.flatnonzero(losses > lowest * float(_NEAR))
    first = int(dear[dear < best][-1]) + 1 if (dear < best).any() else 0
    last = int(dear[dear > best][0]) - 1 if (dear > best).any() else len(losses) - 1
    if lowest <= 0 or first == last:
        return ""
    ends = [study.charts.text(float(thresholds[place])) for place in (first, last)]
    return (
        f"On these rows, each threshold from {ends[0]} to {ends[1]} costs at most 1 % more "
        "than the cheapest. That is a count of these rows and no confidence interval: "
        "on new rows the best threshold may well lie outside."
    )


def _charts(study: Study, words: Words) -> Iterator[str]:
    marks, band = _marks(study), _band(study)
    shown = [*(mark["text"] for mark in marks), *([] if band is None else [band["text"]])]
    yield f"<h2>The {study.word.replace('_', ' ')} of every threshold on these rows</h2>\n"
    yield figure(
        "loss",
        f"{sentence(study.word)} on these rows against threshold; {'; '.join(shown)}.",
        "Move over the curve to read it.",
    )
    yield '<div class="pair">\n<div>\n<h2>Caught against false alarms</h2>\n'
    yield figure(
        "roc",
        f"ROC curve and its hull; {'; '.join(mark['text'] for mark in marks)}.",
        "The corners of the hull are the thresholds that are cheapest here for some costs.",
    )
    yield "</div>\n<div>\n<h2>What a score means</h2>\n"
    yield figure(
        "fit",
        "Calibrated probability against score.",
        f"How many of the samples with such a score have label {study.asked.words.label}: the best "
        "fit that never "
        + (
            "rises."
            if study.samples.direction == "<="
            else "falls. A calibrated classifier lies on the dashed line."
            if study.charts.shares
            else "falls."
        ),
    )
    yield "</div>\n</div>\n"
    yield "<noscript><p>The charts need scripts; the tables do not.</p></noscript>\n"


def _marks(study: Study) -> list[dict[str, Any]]:
    return [
        {
            "threshold": found.threshold,
            "text": f"{name}: {study.charts.name(found.threshold)}",
            "as": "cheapest" if found is study.cheapest else "mark",
        }
        for name, found in named(study).items()
    ]


def _band(study: Study) -> dict[str, Any] | None:
    if study.advice is None:
        return None
    text = f"95 % interval of the best threshold: {study.interval}"
    return {"interval": study.advice.interval, "text": text}


def _figures(study: Study) -> dict[str, Any]:
    words = study.asked.words
    names = ("label", "ones", "zeros", "called", "all", "none")
    spoken = {name: getattr(words, name) for name in names}
    return {**study.charts.figures(_marks(study), _band(study)), "words": spoken}
