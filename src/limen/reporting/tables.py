# SPDX-License-Identifier: Apache-2.0
"""The tables of the report: other thresholds, a review band, other costs, and groups."""

from __future__ import annotations

import math
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from limen.digits import difference, plain, within
from limen.reporting.advice import thresholds_by_group
from limen.reporting.findings import (
    FEW,
    FEW_OF_LABEL,
    findings_by_group,
    groups_of,
    judged_at,
)
from limen.reporting.html import precision_of, table
from limen.reporting.wording import Words, as_typed, flagged, zones_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.groups import GroupThreshold
    from limen.reporting.findings import Finding
    from limen.reporting.samples import FileRows
    from limen.reporting.study import Study

__all__ = ["alternatives", "every_cost", "groups", "named", "zones"]

_RATIOS = tuple(
    Fraction(text) for text in ("1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10", "20", "50")
)
_ADVISED = ("recommended", "95 % interval")  # names of columns


def named(study: Study) -> dict[str, Finding]:
    """Return the recommended and the cheapest threshold by name; one where they cost the same.

    Of several cheapest ones, the recommended one need not be the highest.
    """
    if study.advice is None:
        return {f"{study.best} on these rows": study.cheapest}
    if study.worth(study.chosen.threshold) == study.lowest:
        return {"recommended, and cheapest on these rows": study.chosen}
    return {"recommended for new rows": study.chosen, "cheapest on these rows": study.cheapest}


def alternatives(study: Study, words: Words) -> Iterator[str]:
    """Yield what other thresholds cost on the same rows."""
    given = study.asked.thresholds or ([0.5] if study.charts.shares else [])
    rows = [(name, found.threshold) for name, found in named(study).items()]
    rows += [(f"a threshold of {as_typed(threshold)}", threshold) for threshold in given]
    every = -math.inf if study.samples.direction == ">=" else math.inf
    rows += [(words.all, every), (words.none, math.nan)]
    title = "What it costs on these rows" if study.by_cost else "Other thresholds on these rows"
    yield f"<h2>{title}</h2>\n"
    more = ["more than the cheapest", "per sample"] if study.by_cost else ["away from the best"]
    names = ["", study.word, *more, "false positives", "false negatives"]
    names += [] if study.advice is None else ["in interval"]
    yield from table(names, (_alternative(study, *row) for row in rows), {0: "chosen"})
    if study.advice is not None:
        yield (
            '<p class="note">While the threshold in use lies in the 95 % interval, keep it: '
            "these rows do not say that another one is better.</p>\n"
        )


def _alternative(study: Study, name: str, threshold: float) -> Iterator[str]:
    confusion, worth = study.judged(threshold)
    yield name
    yield plain(worth)
    share = _relative(worth, study.lowest) if study.by_cost else ""
    yield f"{plain(difference(worth, study.lowest))}{share}" if worth != study.lowest else ""
    if study.by_cost:
        yield plain(worth / study.cheapest.samples)
    yield plain(confusion.fp)
    yield plain(confusion.fn)
    if study.advice is not None and study.advice.interval is not None:
        low, high = map(study.charts.place, study.advice.interval)
        yield "yes" if low <= study.charts.place(threshold) <= high else "no"


def zones(study: Study) -> Iterator[str]:
    """Yield the three zones of a review band, beside what a single threshold costs."""
    band = study.band
    if band is None:
        return
    yield "<h2>No, ask a person, yes</h2>\n"
    yield (
        f"<p>With a question that costs {plain(float(study.asked.asking or 0))}, these two "
        f'thresholds cost <b id="band" data-low="{band.low!r}" data-high="{band.high!r}">'
        f"{plain(band.loss)}</b> on these rows, questions included; the cheapest single threshold "
        f"costs {plain(study.cheapest.worth)}.</p>\n"
    )
    total = band.no + band.ask + band.yes
    rows = (
        (word, where, plain(weight), f"{weight / total:.1%}", missed)
        for word, where, weight, missed in zones_of(band)
    )
    yield from table(["answer", "when the score is", "rows", "share", "mistakes"], rows)
    advice = study.advice_on_band()
    if advice is None:
        yield (
            '<p class="remark" id="band-sure">Both thresholds are the cheapest on these rows only. '
            "How sure they are for new rows is not known here.</p>\n"
        )
        return
    yield '<p>For new rows, with 95 % confidence each:</p>\n<ul id="band-sure">\n'
    for which, each in zip(("lower", "upper"), advice.values(), strict=True):
        if each.finding is None:
            continue
        yield (
            f"<li>the best {which} threshold lies in {study.interval_text(each.interval)}; "
            f"recommended is <b data-exact="
            f'"{each.finding.threshold!r}">{study.charts.name(each.finding.threshold)}</b></li>\n'
        )
    yield "</ul>\n"


def every_cost(study: Study, words: Words) -> Iterator[str]:
    """Yield the thresholds for other costs of a false negative."""
    costs = study.aim.mistakes
    asked = Fraction(costs["false_negative"]) / Fraction(costs["false_positive"])
    one_cost = study.by_cost and not study.aim.by_row
    ratios = sorted({*_RATIOS, asked} if one_cost else _RATIOS)
    advised = study.advice is not None
    chosen = {ratios.index(asked): "chosen"} if one_cost else {}
    title = "If mistakes cost something else" if one_cost else "If mistakes have a cost"
    if study.aim.by_row:
        title = "If mistakes cost the same in all rows"
    yield f"<h2>{title}</h2>\n"
    yield (
        "<p>The threshold for other costs of a false negative, in false positives. The shares "
        "and counts are those of "
        f"{'the recommended one' if advised else 'the cheapest one'} on these rows.</p>\n"
    )
    names = ["false negative costs", *(_ADVISED if advised else []), "cheapest on these rows"]
    names += [words.called, "precision", "recall", "false positives", "false negatives"]
    yield from table(names, (_at_ratio(study, ratio) for ratio in ratios), chosen)


def _at_ratio(study: Study, ratio: Fraction) -> Iterator[str]:
    best = study.calibrator.optimum(false_negative=ratio)
    chosen = best.threshold
    yield str(ratio) if ratio.denominator < 100 else plain(float(ratio))
    if study.advice is not None:
        advice = study.advice_at(ratio)
        if advice.finding is None:  # one that overflows, where the costs asked for did not
            yield ""
            yield ""
        else:
            chosen = advice.finding.threshold
            yield study.charts.name(chosen)
            yield study.interval_text(advice.interval)
    yield study.charts.name(best.threshold)
    confusion = study.calibrator.confusion(chosen)
    yield f"{confusion.positive_rate:.1%}"
    yield precision_of(confusion)
    yield f"{confusion.recall:.1%}"
    yield plain(confusion.fp)
    yield plain(confusion.fn)


def groups(study: Study, words: Words) -> Iterator[str]:
    """Yield the thresholds of groups."""
    if study.samples.codes is None:
        return
    name, advised = escape(study.asked.group), study.advice is not None
    yield f"<h2>By {name}</h2>\n"
    if advised:
        yield (
            "<p>Recommended for the new rows of a group: the common threshold at the top of "
            "this page, moved into the 95 % interval of the group's own samples where it lies "
            "outside.</p>\n"
        )
    yield (
        f"<p>The {study.best} threshold of a group's own rows is exact, and promises too much "
        f"on new ones. Groups of fewer than {FEW} samples, or {FEW_OF_LABEL} of a label, are "
        "grey: theirs is mostly chance.</p>\n"
    )
    rows, classes = [], {}
    least, each = study.asked.at_least, list(groups_of(study.samples, study.aim))
    found = thresholds_by_group(study.samples, study.aim, least) if advised else {}
    cheapest = findings_by_group(each, study.cheapest, least)
    for place, (group, part, aim) in enumerate(each):
        best, own = cheapest[group]
        common = judged_at(part, study.chosen.threshold, aim)[1]
        worth = judged_at(part, best.threshold, aim)[1] if own else common
        few = _rests_on(part, words)
        if few:
            classes[place] = "few"
        rows.append(
            (
                escape(group) + (f"<small>{few}</small>" if few else ""),
                f"{best.samples:,}",
                f"{best.positives:,}",
                *(_of_group(study, found.get(group)) if advised else ()),
                _own_name(best) if own else "too few samples",
                plain(worth),
                plain(common),
                _saved(study, worth, common),
            )
        )
    names = [name, "samples", f"label {words.label}"]
    names += [*(_ADVISED if advised else []), f"{study.best} on its rows"]
    names += [f"{study.word} at that", f"{study.word} at the common one"]
    yield from table([*names, "saved here" if study.by_cost else "better by"], rows, classes)


def _of_group(study: Study, found: GroupThreshold | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    if found.interval is None:
        return study.charts.name(found.threshold), "too few to say"
    return study.charts.name(found.threshold), study.interval_text(found.interval)


def _own_name(best: Finding) -> str:
    """Write the threshold of a group's own rows."""
    if not math.isfinite(best.threshold) and best.same_answer is not None:
        return flagged(best.same_answer)
    return within(best.threshold, best.lower, best.upper, direction=best.direction)


def _saved(study: Study, worth: float, common: float) -> str:
    if not study.by_cost:
        return plain(difference(worth, common)) if worth != common else ""
    return f"{plain(difference(common, worth))}{_relative(worth, common)}" if common > worth else ""


def _relative(loss: float, base: float) -> str:
    """Write a difference as a share of a cost; of nothing, or of a gain, there is none."""
    return f" ({abs(loss - base) / base:.1%})" if base > 0 else ""


def _rests_on(part: FileRows, words: Words) -> str:
    """Say that a group rests on few samples; nothing where they are many."""
    if len(part) < FEW:
        return f"rests on {_counted(len(part))}"
    ones = part.positives
    rarer, label = min((ones, words.label), (len(part) - ones, _other(words)), key=_first)
    return f"rests on {_counted(rarer)} of label {label}" if rarer < FEW_OF_LABEL else ""


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _other(words: Words) -> str:
    return "0" if words.positive is None else f"other than {words.label}"


def _counted(samples: int) -> str:
    return "1 sample" if samples == 1 else f"{samples:,} samples"
