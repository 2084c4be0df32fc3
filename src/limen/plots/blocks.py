# SPDX-License-Identifier: Apache-2.0
"""The blocks of the isotonic fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.direction import is_falling
from limen.isotonic_fit import isotonic
from limen.plots.display import BLUE, GREY, ORANGE, Display, labelled, number
from limen.units import Cost, exact_costs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.hull import Blocks
    from limen.optimum import Direction

__all__ = ["CalibrationBlocksDisplay"]


class CalibrationBlocksDisplay(Display):
    """The isotonic fit: how often each stretch of scores turns out positive.

    Parameters
    ----------
    blocks
        The result of `limen.isotonic` or `OnlineCalibrator.blocks`.
    level
        The share above which it pays to answer 1, to be marked; None for none.
    name
        Name of the fit in the legend.

    Attributes
    ----------
    ax_, figure_, line_, points_
        The matplotlib objects that were drawn.

    Examples
    --------
    >>> from limen.plots import CalibrationBlocksDisplay
    >>> display = CalibrationBlocksDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.25, 0.5, 0.75])
    >>> display.blocks.probabilities
    array([0. , 0.5, 1. ])
    """

    def __init__(
        self,
        *,
        blocks: Blocks,
        level: float | None = None,
        name: str | None = None,
    ):
        self.blocks, self.level, self.name = blocks, level, name

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        false_positive: Cost | None = None,
        false_negative: Cost | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        direction: Direction = ">=",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the fit of some labels and scores, and where costs would cut it. O(n).

        With the `direction` ``"<="``, where lower scores mean positive, it never rises.
        """
        columns = labelled(y_true, y_score, pos_label)
        rising = not is_falling(direction)
        fit = isotonic(*columns, weights=sample_weight, increasing=rising)
        level = None
        if false_positive is not None or false_negative is not None:
            costs = (1 if cost is None else cost for cost in (false_positive, false_negative))
            one, other, _ = exact_costs(*costs)
            level = one / (one + other)
        return cls(blocks=fit, level=level, name=name).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw each block over its scores, with a dot whose area is its weight."""
        ax = self._start(ax)
        blocks = self.blocks
        ends = np.concatenate([blocks.first, blocks.last])
        ends = ends[np.isfinite(ends)] if np.isfinite(ends).any() else np.array([0.0, 1.0])
        # A block with an infinite score is drawn up to the outermost finite one.
        first, last = (np.clip(end, ends.min(), ends.max()) for end in (blocks.first, blocks.last))
        levels, weight = blocks.probabilities, blocks.weight
        rising = not len(levels) or levels[0] <= levels[-1]
        if rising and len(first) and first[0] >= 0 and last[-1] <= 1:
            ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, label="score itself")
        style = {"color": BLUE, "linewidth": 1.5, "label": name or self.name or "isotonic fit"}
        between = np.repeat((last[:-1] + first[1:]) / 2, 2)
        xs, ys = np.concatenate([first[:1], between, last[-1:]]), np.repeat(levels, 2)
        (self.line_,) = ax.plot(xs, ys, **{**style, **(curve_kwargs or {})})
        area = 10 + 150 * weight / weight.max() if len(weight) else 10
        self.points_ = ax.scatter(
            (first + last) / 2, levels, s=area, color=BLUE, alpha=0.35, linewidths=0,
            label="block, area: weight",
        )  # fmt: skip
        if self.level is not None:
            meaning = f"answer 1 above {number(self.level)}"
            ax.axhline(self.level, color=ORANGE, linestyle="--", linewidth=1, label=meaning)
        ax.set(xlabel="score", ylabel="share of label 1", ylim=(-0.05, 1.05))
        ax.legend(frameon=False, loc="best")
        return self
