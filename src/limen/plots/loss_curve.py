# SPDX-License-Identifier: Apache-2.0
"""The loss of every threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.batch import loss_curve
from limen.confidence import critical_value
from limen.plots.display import BLUE, GREEN, MINUS, ORANGE, Display, labelled, number, visible
from limen.trust.recommended import recommend

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.optimum import Direction
    from limen.trust.recommended import Recommendation
    from limen.units import Cost

__all__ = ["LossCurveDisplay"]


class LossCurveDisplay(Display):
    """The loss of every threshold, with the cheapest and every tie marked.

    A band shows the interval of the best threshold for all rows, and a line in it the threshold
    that `limen.recommend` finds for new rows.

    Parameters
    ----------
    thresholds, losses
        As of `limen.LossCurve`: in ascending order, from ``-inf`` to ``inf``.
    scores
        The distinct scores, where the loss changes; None for halfway between thresholds.
    recommendation
        What `limen.recommend` finds for the same samples and costs; None for no band.
    name
        Name of the curve in the legend.
    direction
        ``"<="`` where lower scores mean positive.

    Attributes
    ----------
    ax_, figure_, line_, band_
        The matplotlib objects that were drawn; `band_` is None where there is no band.

    Examples
    --------
    >>> from limen.plots import LossCurveDisplay
    >>> display = LossCurveDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75])
    >>> display.ax_.get_xlabel()
    'threshold'
    >>> from limen.demo import load_phishing
    >>> scores, labels = load_phishing()
    >>> display = LossCurveDisplay.from_predictions(labels, scores, false_negative=5)
    >>> round(display.recommendation.threshold, 4)
    0.3458
    """

    def __init__(
        self,
        *,
        thresholds: ArrayLike,
        losses: ArrayLike,
        scores: ArrayLike | None = None,
        recommendation: Recommendation | None = None,
        name: str | None = None,
        direction: Direction = ">=",
    ):
        self.direction = direction
        self.thresholds, self.losses = np.asarray(thresholds), np.asarray(losses)
        self.scores = None if scores is None else np.asarray(scores)
        self.recommendation = recommendation
        self.name = name
        self._refused = False

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
        confidence: float | None = 0.95,
        direction: Direction = ">=",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of some labels and scores. O(n log n).

        `confidence` is that of the band: 0.8, 0.9, 0.95 or 0.99; None draws neither the band nor
        the recommended threshold. With less than five samples of either label nothing can be
        recommended, and the legend says so. With the `direction` ``"<="`` lower scores mean
        positive, as for `limen.optimal_threshold`.
        """
        scores, labels = labelled(y_true, y_score, pos_label)
        given: dict[str, Any] = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "weights": sample_weight,
            "direction": direction,
        }
        curve = loss_curve(scores, labels, **given)
        counted = scores if sample_weight is None else scores[np.asarray(sample_weight) > 0]
        display = cls(
            thresholds=curve.thresholds,
            losses=curve.losses,
            scores=np.unique(counted),
            name=name,
            direction=direction,
        )
        display._recommend(scores, labels, given, confidence)
        return display.plot(ax=ax, **kwargs)

    def _recommend(
        self, scores: Any, labels: Any, given: dict[str, Any], confidence: float | None
    ) -> None:
        """Find the recommended threshold, or remember that there are too few samples."""
        if confidence is None:
            return
        critical_value(confidence)  # raises ValueError for a level that is not in the table
        try:
            self.recommendation = recommend(scores, labels, confidence=confidence, **given)
        except ValueError:  # too few of a label; the curve has found all else to be sound
            self._refused = True

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve; thresholds of ±∞ stand at the ends, beyond the lowest and highest."""
        ax = self._start(ax)
        xs, ys = self._placed(), self.losses
        label = name or self.name or "loss"
        style = {"color": BLUE, "label": label, "drawstyle": "steps-post", "linewidth": 1.5}
        turns = (xs[1:] + xs[:-1]) / 2 if self.scores is None else self.scores
        edges = np.concatenate([xs[:1], np.clip(turns, xs[0], xs[-1]), xs[-1:]])
        steps = visible(edges, np.append(ys, ys[-1]))
        (self.line_,) = ax.plot(*steps, **{**style, **(curve_kwargs or {})})
        self._draw_recommended(ax, xs)
        cheapest = np.flatnonzero(ys == ys.min())
        if self.direction == "<=":  # of several the lowest, which says 1 to the fewest
            cheapest = cheapest[::-1]
        best, ties = cheapest[-1], cheapest[:-1]
        ax.axvline(xs[best], color=ORANGE, linestyle="--", linewidth=1)
        ax.plot(
            xs[best],
            ys[best],
            "o",
            color=ORANGE,
            markersize=8,
            label=f"cheapest: {number(ys[best])} at {self._threshold(best)}",
        )
        if len(ties):
            more = "1 more" if len(ties) == 1 else f"{len(ties):,} more"
            shown = {"markersize": 8, "markerfacecolor": "white", "color": ORANGE}
            ax.plot(xs[ties], ys[ties], "o", label=f"as cheap: {more}", **shown)
        self._mark_ends(ax, xs)
        ax.set(xlabel="threshold", ylabel="total loss")
        ax.margins(y=0.08)
        ax.legend(framealpha=0.85, edgecolor="none")  # may lie over the band
        return self

    def _draw_recommended(self, ax: Any, xs: NDArray[np.float64]) -> None:
        """Draw the interval as a band, and the recommended threshold as a line in it."""
        self.band_ = None
        if self._refused:
            ax.plot([], [], " ", label="too few samples to recommend a threshold")
        if self.recommendation is None:
            return
        found = self.recommendation
        low, place, high = (
            self._cut(threshold)
            for threshold in (found.interval[0], found.threshold, found.interval[1])
        )
        chosen = found.threshold  # anywhere in its gap
        x = chosen if np.isfinite(chosen) else xs[place]
        ax.axvline(x, color=GREEN, linewidth=1)
        ax.plot(
            x,
            self.losses[place],
            "D",
            color=GREEN,
            markersize=7,
            label=f"recommended: {self._worth_text(place, chosen)}",
        )
        ends = f"{self._threshold(low)} to {self._threshold(high)}"
        self.band_ = ax.axvspan(
            xs[low],
            xs[high],
            color=GREEN,
            alpha=0.15,
            linewidth=0,
            label=f"{found.confidence * 100:g} % interval: {ends}",
        )

    @property
    def _turns(self) -> NDArray[np.float64]:
        """Where the loss changes: the scores, or halfway between thresholds."""
        known = self.thresholds
        return (known[1:] + known[:-1]) / 2 if self.scores is None else self.scores

    def _cut(self, threshold: float) -> int:
        """Return the place of the cut that answers as a threshold does."""
        if np.isnan(threshold):  # none is answered 1
            return 0 if self.direction == "<=" else len(self.thresholds) - 1
        return int(
            np.searchsorted(self._turns, threshold, "left" if self.direction == ">=" else "right")
        )

    def _worth_text(self, place: int, threshold: float | None = None) -> str:
        """Write what a cut is worth, and its threshold."""
        return f"{number(self.losses[place])} at {self._threshold(place, threshold)}"

    def _threshold(self, place: int, threshold: float | None = None) -> str:
        """Write a threshold of a cut so that it lies between the scores beside it."""
        ends = self._turns
        lower = float(ends[place - 1]) if place > 0 else None
        upper = float(ends[place]) if place < len(ends) else None
        chosen = self.thresholds[place] if threshold is None else threshold
        return number(float(chosen), lower, upper, self.direction)

    def _placed(self) -> NDArray[np.float64]:
        """Give thresholds places on the axis: infinite ones a little beyond the others."""
        known = self.thresholds if self.scores is None else np.append(self.thresholds, self.scores)
        finite = known[np.isfinite(known)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        beyond = 0.06 * (high - low) or 0.5
        ends = np.nan_to_num(self.thresholds, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        placed: NDArray[np.float64] = np.clip(ends, low - beyond, high + beyond)
        return placed

    def _mark_ends(self, ax: Any, xs: NDArray[np.float64]) -> None:
        room = 0.07 * (xs[-1] - xs[0])
        inside = [tick for tick in ax.get_xticks() if xs[0] + room < tick < xs[-1] - room]
        ax.set_xticks([xs[0], *inside, xs[-1]], [f"{MINUS}∞", *map(number, inside), "∞"])
