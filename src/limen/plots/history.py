# SPDX-License-Identifier: Apache-2.0
"""How the threshold moved along a stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.memory.windows import in_window
from limen.online import OnlineThreshold
from limen.plots.display import BLUE, ORANGE, Display, labelled
from limen.times import as_times

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.units import Cost

__all__ = ["ThresholdHistoryDisplay"]


class ThresholdHistoryDisplay(Display):
    """How the threshold moved along a stream.

    It has no band: the interval of `limen.recommend` is for one look at the samples, and a line
    leaves it some day by chance. `limen.Evidence` is for those who keep looking.

    Parameters
    ----------
    thresholds
        The threshold after each sample, or after some of them.
    positions
        The number or the time of these samples; None counts from 1.
    name
        Name of the line in the legend.

    Attributes
    ----------
    ax_, figure_, line_
        The matplotlib objects that were drawn.

    Examples
    --------
    >>> from limen.plots import ThresholdHistoryDisplay
    >>> display = ThresholdHistoryDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75])
    >>> display.thresholds
    array([  inf, 0.175,   inf, 0.625])
    """

    def __init__(
        self, *, thresholds: ArrayLike, positions: ArrayLike | None = None, name: str | None = None
    ):
        self.thresholds = np.asarray(thresholds, dtype=np.float64)
        count = np.arange(1, len(self.thresholds) + 1)
        self.positions = count if positions is None else np.asarray(positions)
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        window: int | timedelta | Callable[[Any], Any] | None = None,
        pos_label: Any = None,
        positions: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Play labels and scores in their order, and draw the threshold after each. O(n log n).

        `window` is a number n for the last n samples, a timedelta for the last period of the
        times in `positions`, or a function that wraps an empty `limen.OnlineThreshold` in a
        window and returns the window.
        """
        scores, labels = labelled(y_true, y_score, pos_label)
        model = OnlineThreshold(false_positive=false_positive, false_negative=false_negative)
        held = in_window(model, window)
        times: list[dict[str, Any]] = [{}] * len(scores)
        if isinstance(window, timedelta):
            if positions is None:
                raise ValueError("a window over a period needs the times: pass them as positions.")
            times = [{"time": time} for time in as_times(positions, dated=True, name="positions")]
        thresholds = []
        for score, label, time in zip(scores.tolist(), labels.tolist(), times, strict=True):
            held.update(score, label, **time)
            thresholds.append(held.threshold)
        return cls(thresholds=thresholds, positions=positions, name=name).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the line; where the threshold is ±∞, a mark stands at the edge."""
        ax = self._start(ax)
        label = name or self.name or "threshold"
        style = {"color": BLUE, "drawstyle": "steps-post", "linewidth": 1.5, "label": label}
        finite = np.where(np.isfinite(self.thresholds), self.thresholds, np.nan)
        (self.line_,) = ax.plot(self.positions, finite, **{**style, **(curve_kwargs or {})})
        ends = (
            (self.thresholds == -math.inf, 0.0, "^", "all predicted positive"),
            (
                (self.thresholds == math.inf) | np.isnan(self.thresholds),
                1.0,
                "v",
                "none predicted positive",
            ),
        )
        for where, height, marker, meaning in ends:
            if where.any():
                ax.plot(
                    self.positions[where],
                    np.full(int(where.sum()), height),
                    marker,
                    color=ORANGE,
                    markersize=5,
                    transform=ax.get_xaxis_transform(),
                    clip_on=False,
                    label=meaning,
                )
        ax.set(xlabel="samples", ylabel="threshold")
        ax.legend(frameon=False)
        return self
