# SPDX-License-Identifier: Apache-2.0
"""Pieces of the report as HTML: figures, tables and the files that stand in the page."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from limen.cli.sentences import zones_of
from limen.digits import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limen.cli.findings import Finding
    from limen.review import ReviewBand

__all__ = ["asset", "figure", "rule", "table", "zones"]


def asset(name: str) -> str:
    """Return a file of the page."""
    return files("limen.page").joinpath(name).read_text(encoding="utf-8")


def rule(finding: Finding) -> str:
    """Write when to answer 1."""
    if finding.same_answer is not None:
        return f"Answer {finding.same_answer} to <strong>every score</strong>."
    bound = "at least" if finding.direction == ">=" else "at most"
    return (
        f"Answer 1 when the score is {bound} "
        f'<strong id="threshold" data-exact="{finding.threshold!r}">'
        f"{finding.threshold_text}</strong>."
    )


def figure(id: str, label: str, caption: str) -> str:
    """Write the place of a chart."""
    return (
        f'<figure>\n<div class="chart" id="{id}" role="img" aria-label="{escape(label)}"></div>\n'
        f'<figcaption class="readout">{escape(caption)}</figcaption>\n</figure>\n'
    )


def table(
    names: Iterable[str], rows: Iterable[Iterable[str]], classes: dict[int, str]
) -> Iterator[str]:
    """Yield a table; some rows, by number, have a class."""
    yield '<div class="scroll">\n<table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead>\n<tbody>\n"
    for place, row in enumerate(rows):
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        named = f' class="{classes[place]}"' if place in classes else ""
        yield f"<tr{named}>{cells}</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"


def zones(band: ReviewBand, asking: Any, single: float) -> Iterator[str]:
    """Yield the three zones of a review band, beside what a single threshold costs."""
    yield "<h2>No, ask a person, yes</h2>\n"
    yield (
        f"<p>With a question that costs {plain(float(asking))}, these two thresholds cost "
        f'<b id="band" data-low="{band.low!r}" data-high="{band.high!r}">{plain(band.loss)}</b> on '
        "these rows, questions included; the cheapest single threshold costs "
        f"{plain(single)}.</p>\n"
    )
    total = band.no + band.ask + band.yes
    rows = (
        (word, where, plain(weight), f"{weight / total:.1%}", missed)
        for word, where, weight, missed in zones_of(band)
    )
    yield from table(["answer", "when the score is", "rows", "share", "mistakes"], rows, {})
