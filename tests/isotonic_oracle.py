# SPDX-License-Identifier: Apache-2.0
"""The isotonic fit, every cut and every metric in exact arithmetic: slow, short, obviously right.

Nothing here knows the package. Weights are whole numbers or Fractions, so every comparison is one
of rational numbers; the Matthews correlation, which has a root, is compared by sign and square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

Exact = int | Fraction


# Samples, joined by score.


class Point(NamedTuple):
    """All samples of one score: the weight of either label, and how many they are."""

    score: float
    positive: Exact
    negative: Exact
    count: int


def join(rows: Iterable[tuple[float, int, Exact]]) -> list[Point]:
    """Rows of score, label and weight in ascending order of score; weight 0 is left out."""
    held: dict[float, Point] = {}
    for score, label, weight in rows:
        if weight:
            _, positive, negative, count = held.get(score, (score, 0, 0, 0))
            positive, negative = positive + weight * label, negative + weight * (1 - label)
            held[score] = Point(score + 0.0, positive, negative, count + 1)
    return [held[score] for score in sorted(held)]


# The isotonic fit.


class Pool(NamedTuple):
    """Neighbouring scores that share one value."""

    first: float
    last: float
    positive: Exact
    weight: Exact
    count: int

    @property
    def value(self) -> Fraction:
        return Fraction(self.positive, self.weight)


def pools(points: Iterable[Point]) -> list[Pool]:
    """Pool adjacent violators; equal values are pooled too."""
    found: list[Pool] = []
    for score, positive, negative, count in points:
        pool = Pool(score, score, positive, positive + negative, count)
        while found and found[-1].positive * pool.weight >= pool.positive * found[-1].weight:
            lower = found.pop()
            sums = (a + b for a, b in zip(lower[2:], pool[2:], strict=True))
            pool = Pool(lower.first, pool.last, *sums)
        found.append(pool)
    return found


def threshold_between(lower: float | None, upper: float | None) -> float:
    """The number to publish for a gap, by the rule as it is written."""
    if upper is None:
        return math.nan if lower == math.inf else math.inf
    if lower is None:
        return -math.inf
    if math.isinf(lower) or math.isinf(upper):
        return upper
    middle = float((Fraction(lower) + Fraction(upper)) / 2)
    return middle if lower < middle < upper else upper


def probability(fit: Sequence[Pool], score: float, between: str = "step") -> Fraction | None:
    """The value of the fit at a score, None where nothing is held."""
    if not fit:
        return None
    if score <= fit[0].last:
        return fit[0].value
    if score >= fit[-1].first:
        return fit[-1].value
    for lower, upper in pairwise(fit):
        if upper.first <= score <= upper.last:
            return upper.value
        if lower.last < score < upper.first:
            break
    if between == "step":
        above = score >= threshold_between(lower.last, upper.first)
        return upper.value if above else lower.value
    below, above = math.isfinite(lower.last), math.isfinite(upper.first)
    if below and above:
        left, here, right = (Fraction(x) for x in (lower.last, score, upper.first))
        return lower.value + (upper.value - lower.value) * (here - left) / (right - left)
    if below or above:
        return lower.value if below else upper.value
    return (lower.value + upper.value) / 2


# Every cut.


class Cut(NamedTuple):
    """A gap between neighbouring scores, and what it makes of the samples."""

    lower: float | None
    upper: float | None
    tp: Exact
    fp: Exact
    fn: Exact
    tn: Exact

    @property
    def threshold(self) -> float:
        return threshold_between(self.lower, self.upper)

    @property
    def confusion(self) -> tuple[Exact, Exact, Exact, Exact]:
        return self[2:]


def cuts(points: Sequence[Point]) -> list[Cut]:
    """Every cut in ascending order, from the answer 1 to all to the answer 1 to none."""
    tp, fp = sum(point.positive for point in points), sum(point.negative for point in points)
    found = [Cut(None, points[0].score if points else None, tp, fp, 0, 0)]
    for at, (score, positive, negative, _) in enumerate(points):
        _, _, tp, fp, fn, tn = found[-1]
        upper = points[at + 1].score if at + 1 < len(points) else None
        counts = (tp - positive, fp - negative, fn + positive, tn + negative)
        found.append(Cut(score, upper, *counts))
    return found


def confusion(points: Sequence[Point], threshold: float) -> tuple[Exact, Exact, Exact, Exact]:
    """The four sums where the answer is 1 when the score is at least the threshold."""
    tp = sum(point.positive for point in points if point.score >= threshold)
    fp = sum(point.negative for point in points if point.score >= threshold)
    fn = sum(point.positive for point in points if not point.score >= threshold)
    tn = sum(point.negative for point in points if not point.score >= threshold)
    return tp, fp, fn, tn


def loss(cut: Cut, false_positive: Exact, false_negative: Exact) -> Exact:
    return cut.fp * false_positive + cut.fn * false_negative


def cheapest(all_cuts: Sequence[Cut], false_positive: Exact, false_negative: Exact) -> Cut:
    """The highest of the cheapest cuts."""
    return min(reversed(all_cuts), key=lambda cut: loss(cut, false_positive, false_negative))


# Metrics: each is a number that orders cuts exactly as the metric does.

Metric = Callable[[Exact, Exact, Exact, Exact], Exact]


def quotient(part: Exact, whole: Exact) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def accuracy(tp, fp, fn, tn):
    return quotient(tp + tn, tp + fp + fn + tn)


def recall(tp, fp, fn, tn):
    return quotient(tp, tp + fn)


def precision(tp, fp, fn, tn):
    return quotient(tp, tp + fp)


def specificity(tp, fp, fn, tn):
    return quotient(tn, tn + fp)


def false_positive_rate(tp, fp, fn, tn):
    return quotient(fp, tn + fp)


def positive_rate(tp, fp, fn, tn):
    return quotient(tp + fp, tp + fp + fn + tn)


def balanced_accuracy(tp, fp, fn, tn):
    return (recall(tp, fp, fn, tn) + specificity(tp, fp, fn, tn)) / 2


def youden(tp, fp, fn, tn):
    return recall(tp, fp, fn, tn) + specificity(tp, fp, fn, tn) - 1


def fbeta(beta: Exact) -> Metric:
    times = Fraction(beta) ** 2

    def metric(tp, fp, fn, tn):
        return quotient((1 + times) * tp, (1 + times) * tp + times * fn + fp)

    return metric


def jaccard(tp, fp, fn, tn):
    return quotient(tp, tp + fp + fn)


def signed_square_of_mcc(tp, fp, fn, tn):
    """The correlation times its own size: a rational number that orders alike."""
    top = tp * tn - fp * fn
    return quotient(top * abs(top), (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


def negative_cost(false_positive: Exact, false_negative: Exact) -> Metric:
    return lambda tp, fp, fn, tn: -(fp * false_positive + fn * false_negative)


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "youden": youden,
    "f1": fbeta(1),
    "jaccard": jaccard,
    "mcc": signed_square_of_mcc,
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
}


def best(all_cuts: Sequence[Cut], metric: Metric) -> Cut:
    """The highest of the best cuts."""
    return max(reversed(all_cuts), key=lambda cut: metric(*cut.confusion))


# Floors and ceilings.

# Of each bound: the rate, what it is a part of, and whether it is a floor.
BOUNDS: dict[str, tuple[Metric, Metric, bool]] = {
    "min_precision": (precision, lambda tp, fp, fn, tn: tp + fp, True),
    "min_recall": (recall, lambda tp, fp, fn, tn: tp + fn, True),
    "max_false_positive_rate": (false_positive_rate, lambda tp, fp, fn, tn: tn + fp, False),
    "max_positive_rate": (positive_rate, lambda tp, fp, fn, tn: tp + fp + fn + tn, False),
}


def shortfall(cut: Cut, name: str, bound: Exact) -> Fraction:
    """By how much the rate misses its bound; an undefined rate is 0."""
    rate, _, floor = BOUNDS[name]
    found = rate(*cut.confusion)
    return Fraction(max(0, bound - found if floor else found - bound))


def meets(cut: Cut, name: str, bound: Exact) -> bool:
    """A floor, even of 0, wants a rate that is defined; a ceiling holds where there is none."""
    rate, whole, floor = BOUNDS[name]
    if not whole(*cut.confusion):
        return not floor
    found = rate(*cut.confusion)
    return found >= bound if floor else found <= bound


def feasible(all_cuts: Sequence[Cut], bounds: dict[str, Exact]) -> list[Cut]:
    return [cut for cut in all_cuts if all(meets(cut, *bound) for bound in bounds.items())]


def nearest(all_cuts: Sequence[Cut], bounds: dict[str, Exact]) -> Cut:
    """The highest of the cuts whose largest shortfall is smallest."""
    return min(
        reversed(all_cuts),
        key=lambda cut: max(shortfall(cut, *bound) for bound in bounds.items()),
    )
