# SPDX-License-Identifier: Apache-2.0
"""The ROC curve, its hull, and the line of equal cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.best_cut import Cuts
from limen.calibrator import OnlineCalibrator
from limen.plots.display import BLUE, GREEN, GREY, ORANGE, Display, labelled, number, visible
from limen.units import Cost, exact_costs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.optimum import Direction

__all__ = ["RocHullDisplay"]


class RocHullDisplay(Display):
    """The ROC curve with its convex hull, and the line of equal cost that touches it.

    The hull holds the thresholds that are best for some costs; the line touches it at the one
    that is best for these.

    Parameters
    ----------
    fpr, tpr
        Rates of false and true positives of every cut.
    hull_fpr, hull_tpr
        The same of the cuts on the hull.
    best
        Threshold, false positive rate and true positive rate of the best cut.
    slope
        How many true positives one false positive is worth, in rates.
    costs
        The costs, for the legend.
    gap
        The scores that the best threshold lies between; None where there is none.
    name
        Name of the curve in the legend.
    direction
        ``"<="`` where lower scores mean positive.

    Attributes
    ----------
    ax_, figure_, line_, hull_
        The matplotlib objects that were drawn.

    Examples
    --------
    >>> from limen.plots import RocHullDisplay
    >>> display = RocHullDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75], false_negative=5
    ... )
    >>> display.best, display.slope
    ((0.175, 0.5, 1.0), 0.2)
    """

    def __init__(
        self,
        *,
        fpr: ArrayLike,
        tpr: ArrayLike,
        hull_fpr: ArrayLike,
        hull_tpr: ArrayLike,
        best: tuple[float, float, float],
        slope: float,
        costs: tuple[Cost, Cost] = (1, 1),
        gap: tuple[float | None, float | None] = (None, None),
        name: str | None = None,
        direction: Direction = ">=",
    ):
        self.direction = direction
        self.fpr, self.tpr = np.asarray(fpr), np.asarray(tpr)
        self.hull_fpr, self.hull_tpr = np.asarray(hull_fpr), np.asarray(hull_tpr)
        self.best, self.slope, self.costs, self.name = best, slope, costs, name
        self.gap = gap

    @classmethod
    def from_calibrator(
        cls,
        calibrator: OnlineCalibrator,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a calibrator holds. O(n)."""
        cuts = Cuts(*calibrator._cuts())
        tp, fp, fn, tn = cuts.in_numbers(slice(None))
        positives, negatives = float((tp + fn)[0]), float((fp + tn)[0])
        if not (positives and negatives):
            raise ValueError(
                "a ROC curve needs samples of both labels, got weights of "
                f"{number(negatives)} for label 0 and {number(positives)} for label 1."
            )
        hull = calibrator.roc_hull()
        costs: dict[str, Any] = {"false_positive": false_positive, "false_negative": false_negative}
        best = calibrator.optimum(**costs)
        at = calibrator.confusion(best.threshold)
        one, other, _ = exact_costs(false_positive, false_negative)
        display = cls(
            fpr=fp / negatives,
            tpr=tp / positives,
            hull_fpr=hull.fp / negatives,
            hull_tpr=hull.tp / positives,
            best=(best.threshold, at.false_positive_rate, at.recall),
            slope=one * negatives / (other * positives),
            costs=(false_positive, false_negative),
            gap=(best.lower, best.upper),
            name=name,
            direction=calibrator.direction,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        direction: Direction = ">=",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of labels and scores; with ``"<="`` lower ones mean positive. O(n)."""
        calibrator = OnlineCalibrator(direction=direction)
        calibrator.update_many(*labelled(y_true, y_score, pos_label), sample_weight)
        return cls.from_calibrator(
            calibrator,
            false_positive=false_positive,
            false_negative=false_negative,
            name=name,
            ax=ax,
            **kwargs,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw curve, hull, line of equal cost and the best cut."""
        ax = self._start(ax, 5.6, 5.2)
        threshold, x, y = self.best
        false_positive, false_negative = (number(float(cost)) for cost in self.costs)
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, label="chance")
        style = {"color": BLUE, "linewidth": 1.5, "label": name or self.name or "ROC curve"}
        (self.line_,) = ax.plot(
            *visible(self.fpr[::-1], self.tpr[::-1]), **{**style, **(curve_kwargs or {})}
        )
        (self.hull_,) = ax.plot(
            self.hull_fpr,
            self.hull_tpr,
            color=GREEN,
            linestyle="-.",
            marker="s",
            markersize=3.5,
            linewidth=1,
            label="hull: best for some costs",
        )
        ax.axline(
            (x, y),
            slope=self.slope,
            color=ORANGE,
            linestyle="--",
            linewidth=1,
            label=f"equal cost, {false_positive} : {false_negative}",
        )
        ax.plot(
            x,
            y,
            "o",
            color=ORANGE,
            markersize=8,
            label=f"best threshold: {number(threshold, *self.gap, self.direction)}",
            clip_on=False,
            zorder=3,
        )
        ax.set(
            xlabel="false positive rate",
            ylabel="true positive rate",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        ax.legend(frameon=False, loc="lower right")
        return self
