# SPDX-License-Identifier: Apache-2.0
"""Pieces of the report as HTML: figures, tables and the files that stand in the page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from limen.reporting.wording import flagged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limen.metrics import Confusion
    from limen.reporting.findings import Finding
    from limen.reporting.wording import Words

__all__ = ["asset", "figure", "precision_of", "rule", "sentence", "table"]


def asset(name: str) -> str:
    """Return a file of the page."""
    from importlib.resources import files  # takes longer to load than all of the reports

    return files("limen.page").joinpath(name).read_text(encoding="utf-8")


def sentence(text: str) -> str:
    """Begin a sentence with a capital."""
    return text[0].upper() + text[1:]


def rule(finding: Finding, words: Words) -> str:
    """Write when to answer 1."""
    if finding.same_answer is not None:
        who = sentence(flagged(finding.same_answer))
        return f"<strong>{who}</strong>: {words.same_answer(finding.same_answer)}."
    bound = "at least" if finding.direction == ">=" else "at most"
    return (
        f"{words.call} when the score is {bound} "
        f'<strong id="threshold" data-exact="{finding.threshold!r}">'
        f"{finding.threshold_text}</strong>."
    )


def precision_of(confusion: Confusion) -> str:
    """Write the precision; there is none where nobody is flagged."""
    return f"{confusion.precision:.1%}" if confusion.tp + confusion.fp else "&ndash;"


def figure(id: str, label: str, caption: str) -> str:
    """Write the place of a chart."""
    return (
        f'<figure>\n<div class="chart" id="{id}" role="img" aria-label="{escape(label)}"></div>\n'
        f'<figcaption class="readout">{escape(caption)}</figcaption>\n</figure>\n'
    )


def table(
    names: Iterable[str], rows: Iterable[Iterable[str]], classes: dict[int, str] | None = None
) -> Iterator[str]:
    """Yield a table; some rows, by number, have a class."""
    yield '<div class="scroll">\n<table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead>\n<tbody>\n"
    for place, row in enumerate(rows):
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        named = f' class="{classes[place]}"' if classes and place in classes else ""
        yield f"<tr{named}>{cells}</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"
