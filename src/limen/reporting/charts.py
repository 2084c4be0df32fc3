# SPDX-License-Identifier: Apache-2.0
"""What the charts of the report draw."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.best_cut import Cuts
from limen.digits import downsample, within
from limen.direction import mirrored
from limen.optimum import LossCurve
from limen.reporting.findings import loss_curve_of
from limen.reporting.wording import flagged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.aim import Aim
    from limen.samples import Samples

__all__ = ["Charts"]

_LARGEST = sys.float_info.max
_STRETCHES = 1000  # of a chart, each with its lowest and its highest point


class Charts:
    """The cuts of samples as numbers, texts and places on the axis of a chart."""

    def __init__(self, calibrator: Any, samples: Samples, aim: Aim) -> None:
        self.calibrator = calibrator
        self.direction = samples.direction
        self.word, self.lowest = aim.name, aim.measure.lowest
        self.curve = (
            loss_curve_of(samples, aim) if aim.by_cost else _values(calibrator, samples, aim)
        )
        self.distinct = np.unique(samples.given)
        finite = self.distinct[np.isfinite(self.distinct)]
        self.low, self.high = (float(finite[0]), float(finite[-1])) if len(finite) else (0.0, 1.0)
        self.shares = bool(np.all((self.distinct >= 0) & (self.distinct <= 1)))

    def place(self, threshold: float) -> int:
        """Return how many distinct scores lie below the cut at a threshold. O(log n)."""
        if self.direction == ">=":
            return int(np.searchsorted(self.distinct, threshold))
        return (
            0 if math.isnan(threshold) else int(np.searchsorted(self.distinct, threshold, "right"))
        )

    def gap(self, threshold: float) -> tuple[float | None, float | None]:
        """Return the scores beside a threshold; None where there is no score on that side."""
        place = self.place(threshold)
        lower = float(self.distinct[place - 1]) if place > 0 else None
        upper = float(self.distinct[place]) if place < len(self.distinct) else None
        return lower, upper

    def text(self, threshold: float, digits: int = 6) -> str:
        """Write a threshold with the digits that put it between its scores."""
        return within(threshold, *self.gap(threshold), digits, self.direction)

    def name(self, threshold: float, digits: int = 6) -> str:
        """Write a threshold for people: what it does where it is not a number and no score is."""
        if not math.isfinite(threshold) and None in (gap := self.gap(threshold)):
            return flagged(int(gap[self.direction == ">="] is not None))
        return self.text(threshold, digits)

    def figures(self, marks: list[dict[str, Any]], band: dict[str, Any] | None) -> dict[str, Any]:
        """Everything the charts draw, ready for JSON; the ends lie just outside the scores.

        A mark has a threshold, a text, and `as`, its class in page.css; a band has the ends of an
        interval and a text.
        """
        ends = [] if band is None else band["interval"]
        losses = self.curve.losses
        best = losses[[losses.argmin() if self.lowest else losses.argmax()]]
        cuts = {self.place(end) for end in (*ends, *(mark["threshold"] for mark in marks))}
        kept = sorted(cuts.union(downsample(self.curve.losses, _STRETCHES)))
        thresholds = self.curve.thresholds[kept].tolist()
        # A cut that is marked is called by the threshold of its mark, the first where it has two.
        called = {self.place(mark["threshold"]): mark["threshold"] for mark in reversed(marks)}
        shown = [called.get(*each) for each in zip(kept, thresholds, strict=True)]
        each = [self.calibrator.confusion(threshold) for threshold in thresholds]
        curve = {
            "at": [self._inside(threshold) for threshold in thresholds],
            "shown": [self.text(threshold) for threshold in shown],
            "loss": _finite(self.curve.losses[kept]),
            "fp": [one.fp for one in each],
            "fn": [one.fn for one in each],
            "rate": [one.positive_rate for one in each],
            "band": [self._in_band(threshold, ends) for threshold in thresholds],
        }
        points = {
            threshold: (one.fp, one.tp) for threshold, one in zip(thresholds, each, strict=True)
        }
        return {
            "curve": curve,
            "roc": self._roc(points),
            "fit": self._fit(),
            "best": _finite(best)[0],
            "word": self.word.replace("_", " "),
            "side": "above the lowest" if self.lowest else "below the highest",
            "first": int(self.direction == ">="),
            "marks": [self._marked(**mark) for mark in marks],
            "band": band
            and {
                "from": self._inside(ends[0]),
                "to": self._inside(ends[1]),
                "text": band["text"],
            },
        }

    def _roc(self, points: dict[float, tuple[float, float]]) -> dict[str, Any]:
        hull = self.calibrator.roc_hull()
        positives, negatives = float(hull.tp.max()), float(hull.fp.max())
        corners = dict(zip(hull.thresholds.tolist(), hull.tp.tolist(), strict=True))
        points = points | dict(
            zip(corners, zip(hull.fp.tolist(), hull.tp.tolist(), strict=True), strict=True)
        )
        listed = sorted((fp, tp, threshold) for threshold, (fp, tp) in points.items())
        return {
            "fpr": [fp / negatives for fp, _, _ in listed],
            "tpr": [tp / positives for _, tp, _ in listed],
            "hull": [tp / positives if at in corners else None for _, tp, at in listed],
            "shown": [self._where(threshold) for _, _, threshold in listed],
        }

    def _where(self, threshold: float) -> str:
        name = self.name(threshold)
        return f"{name[0].upper()}{name[1:]}" if " " in name else f"At threshold {name}"

    def _fit(self) -> dict[str, Any]:
        hull, rising = self.calibrator.roc_hull(), self.direction == ">="
        blocks = self.calibrator.blocks()
        edges = [self._inside(threshold) for threshold in hull.thresholds.tolist()]
        at = [edge for pair in pairwise(edges) for edge in pair]
        return {
            "at": at,
            "p": np.repeat(blocks.probabilities, 2).tolist(),
            "diagonal": at if self.shares and rising else None,
        }

    def _marked(self, threshold: float, **words: str) -> dict[str, Any]:
        confusion = self.calibrator.confusion(threshold)
        return {
            "at": self._inside(threshold),
            "loss": _finite(self.curve.losses[[self.place(threshold)]])[0],
            "fpr": confusion.false_positive_rate,
            "tpr": confusion.recall,
            **words,
        }

    def _in_band(self, threshold: float, ends: Any) -> bool:
        places = [self.place(end) for end in ends]
        return bool(places) and places[0] <= self.place(threshold) <= places[1]

    def _inside(self, threshold: float) -> float:
        """Where a chart shows a threshold: an infinite one next to the last score."""
        margin = 0.02 * (self.high - self.low) or 0.5
        low, high = max(self.low - margin, -_LARGEST), min(self.high + margin, _LARGEST)
        if math.isnan(threshold):
            return high if self.direction == ">=" else low
        return min(max(threshold, low), high)


def _values(calibrator: Any, samples: Samples, aim: Aim) -> LossCurve:
    """Return the value of every cut by a metric, in the place of losses."""
    cuts = Cuts(*calibrator._cuts())
    values = LossCurve(cuts.thresholds, aim.measure(*cuts.in_numbers(slice(None))))
    return mirrored(values) if samples.direction == "<=" else values


def _finite(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers for JSON; a chart leaves out what is infinite."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
