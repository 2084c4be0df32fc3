# SPDX-License-Identifier: Apache-2.0
"""The loss of every threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.batch import loss_curve
from limen.plots.display import BLUE, MINUS, ORANGE, Display, labelled, number, visible

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.units import Cost

__all__ = ["LossCurveDisplay"]


class LossCurveDisplay(Display):
    """The loss of every threshold, with the cheapest and every tie marked.

    Parameters
    ----------
    thresholds, losses
        As of `limen.LossCurve`: in ascending order, from ``-inf`` to ``inf``.
    scores
        The distinct scores, where the loss changes; None for halfway between thresholds.
    name
        Name of the curve in the legend.

    Attributes
    ----------
    ax_, figure_, line_
        The matplotlib objects that were drawn.

    Examples
    --------
    >>> from limen.plots import LossCurveDisplay
    >>> display = LossCurveDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75])
    >>> display.ax_.get_xlabel()
    'threshold'
    """

    def __init__(
        self,
        *,
        thresholds: ArrayLike,
        losses: ArrayLike,
        scores: ArrayLike | None = None,
        name: str | None = None,
    ):
        self.thresholds, self.losses = np.asarray(thresholds), np.asarray(losses)
        self.scores = None if scores is None else np.asarray(scores)
        self.name = name

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
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of some labels and scores. O(n)."""
        scores, labels = labelled(y_true, y_score, pos_label)
        curve = loss_curve(
            scores,
            labels,
            false_positive=false_positive,
            false_negative=false_negative,
            weights=sample_weight,
        )
        counted = scores if sample_weight is None else scores[np.asarray(sample_weight) > 0]
        display = cls(
            thresholds=curve.thresholds,
            losses=curve.losses,
            scores=np.unique(counted),
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

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
        cheapest = np.flatnonzero(ys == ys.min())
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
        ax.legend(frameon=False)
        return self

    def _threshold(self, place: int) -> str:
        """Write the threshold of a cut so that it lies between the scores beside it."""
        known, ends = self.thresholds, self.scores
        if ends is None:
            ends = (known[1:] + known[:-1]) / 2
        lower = float(ends[place - 1]) if place > 0 else None
        upper = float(ends[place]) if place < len(ends) else None
        return number(float(known[place]), lower, upper)

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
