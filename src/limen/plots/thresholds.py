# SPDX-License-Identifier: Apache-2.0
"""Precision, recall and other metrics of every threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.best_cut import Cuts
from limen.calibrator import OnlineCalibrator
from limen.metrics import from_text
from limen.plots.display import BLUE, GREY, ORANGE, labelled, visible
from limen.plots.loss_curve import LossCurveDisplay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from limen.optimum import Direction
    from limen.trust.recommended import Recommendation
    from limen.units import Cost

__all__ = ["ThresholdDisplay"]

_STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREY, "-."), ("#CC79A7", ":"))


class ThresholdDisplay(LossCurveDisplay):
    """Metrics of every threshold, with the recommended threshold and its interval.

    Parameters
    ----------
    thresholds
        In ascending order, from ``-inf`` to ``inf``.
    values
        The values of each metric at these thresholds, by its name.
    scores, recommendation, name, direction
        As for `LossCurveDisplay`.

    Attributes
    ----------
    ax_, figure_, lines_, line_, band_
        The matplotlib objects that were drawn; `line_` is the first of the `lines_`, and `band_` is
        None where there is no band.

    Examples
    --------
    >>> from limen.demo import load_phishing
    >>> from limen.plots import ThresholdDisplay
    >>> scores, labels = load_phishing()
    >>> display = ThresholdDisplay.from_predictions(labels, scores, false_negative=5)
    >>> list(display.values), round(display.recommendation.threshold, 4)
    (['precision', 'recall', 'f1'], 0.3458)
    """

    def __init__(
        self,
        *,
        thresholds: ArrayLike,
        values: Mapping[str, ArrayLike],
        scores: ArrayLike | None = None,
        recommendation: Recommendation | None = None,
        name: str | None = None,
        direction: Direction = ">=",
    ):
        self.values = {metric: np.asarray(each) for metric, each in values.items()}
        super().__init__(
            thresholds=thresholds,
            losses=next(iter(self.values.values())),
            scores=scores,
            recommendation=recommendation,
            name=name,
            direction=direction,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        metrics: Sequence[str] = ("precision", "recall", "f1"),
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
        """Draw the metrics of some labels and scores. O(n log n).

        The recommended threshold is that of the costs; `metrics` are names as for
        `limen.optimal_threshold`, and all else is as for `LossCurveDisplay.from_predictions`.
        """
        if isinstance(metrics, str) or not len(metrics):
            raise ValueError(f"metrics must be a list of names, got {metrics!r}.")
        scores, labels = labelled(y_true, y_score, pos_label)
        calibrator = OnlineCalibrator(direction=direction)
        calibrator.update_many(scores, labels, sample_weight)
        cuts, step = Cuts(*calibrator._cuts()), 1 if direction == ">=" else -1
        weights = [weight[::step] for weight in cuts.in_numbers(slice(None))]
        display = cls(
            thresholds=cuts.thresholds if step == 1 else 0.0 - cuts.thresholds[::-1],
            values={metric: from_text(metric)(*weights) for metric in metrics},
            name=name,
            direction=direction,
        )
        given: dict[str, Any] = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "weights": sample_weight,
            "direction": direction,
        }
        display._recommend(scores, labels, given, confidence)
        return display.plot(ax=ax, **kwargs)

    def _worth_text(self, place: int, threshold: float | None = None) -> str:
        each = (f"{name} {values[place]:.4g}" for name, values in self.values.items())
        return f"{self._threshold(place, threshold)} ({', '.join(each)})".replace("_", " ")

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the metrics; thresholds of ±∞ stand at the ends, beyond the lowest and highest."""
        ax = self._start(ax)
        xs, self.lines_ = self._placed(), []
        called = name or self.name
        for at, (metric, values) in enumerate(self.values.items()):
            colour, dashes = _STYLES[at % len(_STYLES)]
            label = metric.replace("_", " ") + ("" if called is None else f", {called}")
            style = {"color": colour, "linestyle": dashes, "linewidth": 1.5, "label": label}
            self.lines_ += ax.plot(*visible(xs, values), **{**style, **(curve_kwargs or {})})
        self.line_ = self.lines_[0]
        self._draw_recommended(ax, xs)
        self._mark_ends(ax, xs)
        ax.set(xlabel="threshold", ylabel="value")
        ax.margins(y=0.08)
        ax.legend(framealpha=0.85, edgecolor="none")
        return self
