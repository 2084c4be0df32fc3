# SPDX-License-Identifier: Apache-2.0
"""Base of the displays: scores of a classifier, axes to draw on, colours and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.classifiers import (
    classes_of,
    positive_of,
    require_known,
    require_obvious_positive,
    scores_of,
)
from limen.columns import as_labels, ordered_scores
from limen.digits import downsample, within
from limen.units import unequal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["BLUE", "GREEN", "GREY", "MINUS", "ORANGE", "Display", "labelled", "number", "visible"]

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#767676"
MINUS = "\N{MINUS SIGN}"
_STRETCHES = 4_000  # more than a screen is wide


def labelled(y_true: Any, y_score: Any, pos_label: Any) -> tuple[Any, Any]:
    """Read scores and labels, given in the order of scikit-learn."""
    scores = ordered_scores(y_score)
    try:
        return scores, as_labels(y_true, name="y_true", positive=pos_label)
    except ValueError:
        classes = sorted(set(np.asarray(y_true).tolist()), key=str)
        if pos_label is not None or len(classes) != 2:
            raise
    require_obvious_positive(classes, y_true)
    return scores, as_labels(y_true, name="y_true", positive=classes[1])


def _predictions(
    estimator: Any, X: Any, y: Any, method: str, pos_label: Any, costs: dict[str, Any]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Whether each row is of the positive class, and the score that the classifier gives it."""
    classes, labels = classes_of(estimator), np.asarray(y)
    own = getattr(estimator, "pos_label", None) if pos_label is None else pos_label
    positive = positive_of(classes, own, matters=unequal(**costs), y=labels)
    require_known(labels, classes)
    return labels == positive, scores_of(estimator, X, method, positive)


def number(
    value: float, lower: float | None = None, upper: float | None = None, direction: str = ">="
) -> str:
    """Write a number for a legend, a threshold such that it lies inside its gap.

    >>> number(float("inf")), number(0.123456), number(0.123456, 0.12345, 0.12346)
    ('∞', '0.1235', '0.12346')
    """
    return within(value, lower, upper, 4, direction).replace("inf", "∞").replace("-", MINUS)


def visible(xs: NDArray[Any], ys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Drop points of a line that a screen cannot show, keeping all of its peaks and dips."""
    kept = downsample(ys, _STRETCHES)
    return xs[kept], ys[kept]


class Display:
    """Base of the displays: scores of a classifier, and axes to draw on."""

    @classmethod
    def from_predictions(cls, y_true: Any, y_score: Any, **kwargs: Any) -> Self:
        """Draw what some labels and scores give."""
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        response_method: str = "auto",
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a fitted classifier gives, at its own costs unless others are given.

        Parameters
        ----------
        estimator, X, y
            A fitted classifier with `predict_proba` or `decision_function`, rows and classes.
        response_method
            "predict_proba", "decision_function", or "auto" for the first of them it has.
        pos_label
            The positive class; None for that of the classifier, or the second of its classes.
            Where costs differ it must be given, unless classes are 0 and 1, -1 and 1 or bools.
        name
            Name in the legend; None for the type of the classifier.
        **kwargs
            As for `from_predictions`.
        """
        costs = dict.fromkeys(("false_positive", "false_negative"), 1)
        for cost in costs:
            if hasattr(estimator, cost):
                kwargs.setdefault(cost, getattr(estimator, cost))
        costs.update({cost: kwargs[cost] for cost in costs if kwargs.get(cost) is not None})
        labels, scores = _predictions(estimator, X, y, response_method, pos_label, costs)
        called = type(estimator).__name__ if name is None else name
        return cls.from_predictions(labels, scores, name=called, **kwargs)

    def _start(self, ax: Any, width: float = 6.4, height: float = 4.2) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(width, height), layout="constrained")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return ax
