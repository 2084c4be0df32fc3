# SPDX-License-Identifier: Apache-2.0
"""What people read about cuts and samples, in the words they use for label 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limen.digits import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.aim import Aim
    from limen.review import ReviewBand
    from limen.samples import Samples

__all__ = ["Words", "aim_text", "as_typed", "flagged", "reversed_scores", "zones_of"]

_LOOKED_AT = 2**17  # rows, to see which way the scores run
_CLEAR = 2.5  # standard deviations


@dataclass(frozen=True, slots=True)
class Words:
    """How a page speaks of label 1 and of answering it: in the user's own word where there is one.

    >>> Words("fraud").all, Words().all
    ('calling all fraud', 'always positive')
    """

    positive: str | None = None

    @property
    def label(self) -> str:
        """The name of label 1."""
        return "1" if self.positive is None else self.positive

    @property
    def ones(self) -> str:
        """The rows of label 1."""
        return "labels 1" if self.positive is None else f"label {self.positive}"

    @property
    def zeros(self) -> str:
        """The rows of label 0."""
        return "labels 0" if self.positive is None else "other labels"

    @property
    def call(self) -> str:
        """What to do with a row above the threshold."""
        return "Answer 1" if self.positive is None else f"Call it {self.positive}"

    @property
    def called(self) -> str:
        """What was done with it."""
        return "answered 1" if self.positive is None else f"called {self.positive}"

    @property
    def all(self) -> str:
        """The answer to every row."""
        return "always positive" if self.positive is None else f"calling all {self.positive}"

    @property
    def none(self) -> str:
        """The other answer to every row."""
        return "never positive" if self.positive is None else f"calling none {self.positive}"

    @property
    def mistakes(self) -> tuple[str, str]:
        """What a false positive is, and a false negative."""
        if self.positive is None:
            return "answering 1 to a 0", "answering 0 to a 1"
        return f"calling it {self.positive} when it is not", f"missing what is {self.positive}"

    def same_answer(self, answer: int) -> str:
        """Say that every row gets one answer."""
        if self.positive is None:
            return f"answer {answer} to every score"
        return f"call {'every' if answer else 'no'} row {self.positive}, whatever its score"


def flagged(answer: int) -> str:
    """Name the threshold at which every row gets one answer.

    >>> flagged(0), flagged(1)
    ('flag nobody', 'flag everybody')
    """
    return "flag everybody" if answer else "flag nobody"


_USUAL = Words()


def aim_text(aim: Aim, words: Words = _USUAL) -> str:
    """Say what makes a threshold the best one."""
    wrong = dict(zip(("false_positive", "false_negative"), words.mistakes, strict=True))
    if aim.priced:
        each = [
            f"a {outcome.replace('_', ' ')}{f' ({wrong[outcome]})' if outcome in wrong else ''} "
            + (f"what {price} says" if isinstance(price, str) else plain(price))
            for outcome, price in aim.facts().items()
            if price or outcome in wrong
        ]
        text = f"What a row costs: {', '.join(each)}. A gain is a negative cost."
    elif aim.measure.scale is not None:
        fp, fn = (plain(float(value)) for value in aim.mistakes.values())
        text = (
            f"Each false positive ({wrong['false_positive']}) costs {fp}, each false negative "
            f"({wrong['false_negative']}) costs {fn}."
        )
    else:
        best = "lowest" if aim.measure.lowest else "highest"
        text = f"The aim is the {best} {aim.name.replace('_', ' ')}."
    for demand in aim.limits:
        if demand.count is not None:
            text += f" At most {plain(float(demand.count))} rows may be {words.called}."
            continue
        bound = "at least" if demand.is_floor else "at most"
        share = f"{float(demand.bound) * 100:.6g} %"
        text += f" The {demand.rate.replace('_', ' ')} must be {bound} {share}."
    return text


def zones_of(band: ReviewBand) -> Iterator[tuple[str, str, float, str]]:
    """Yield the answer of each zone, its scores, its weight and its mistakes."""
    low, high, wrong = plain(band.low), plain(band.high), band.confusion
    rising = band.direction == ">="
    below, above = ("below", "from") if rising else ("up to", "above")
    no = "no", f"{below} {low}" if rising else f"{above} {high}", band.no, wrong.fn
    yes = "yes", f"{above} {high}" if rising else f"{below} {low}", band.yes, wrong.fp
    kinds = {"no": "false negatives", "yes": "false positives"}
    for word, where, weight, mistakes in (no, ("ask", "in between", band.ask, 0.0), yes):
        missed = f"{plain(mistakes)} {kinds[word]}" if word in kinds else ""
        yield word, where, weight, missed


def reversed_scores(samples: Samples, *, typed: bool = True) -> str | None:
    """Warn when labels 1 clearly have the lower scores; None where that is not clear.

    The advice names options where they were `typed`, else arguments of Python. Looks at some rows
    where there are many. O(n log n) of those.
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
    which, advice = (
        ("higher", "If a low score means 1, add")
        if samples.direction == ">="
        else ("lower", "If a high score means 1, leave out")
    )
    option, name = (
        ("--lower-is-positive", "--positive") if typed else ('direction="<="', "positive")
    )
    return (
        "the scores seem to run the other way: of two samples with different labels, the label 1 "
        f"has the {which} score in only {higher:.1%} of all pairs. {advice} {option}; "
        f"if the other label is the positive one, name it with {name}."
    )


def as_typed(threshold: float) -> str:
    """Write a threshold that somebody gave, in all its digits.

    >>> as_typed(0.5), as_typed(3.0), as_typed(float("nan"))
    ('0.5', '3', 'nan (which no score reaches)')
    """
    if math.isnan(threshold):
        return "nan (which no score reaches)"
    return repr(threshold).removesuffix(".0")
