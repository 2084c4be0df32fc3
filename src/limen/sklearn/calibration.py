# SPDX-License-Identifier: Apache-2.0
"""A fitted classifier with its calibration: from scores to probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import _SigmoidCalibration  # the same from 1.6 to 1.9; tests try both

from limen.classifiers import scores_of
from limen.hull import Between, require_between

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.calibrator import OnlineCalibrator
    from limen.samples import Samples

__all__ = ["CalibratedPair", "Calibration", "both_columns", "require_method"]

METHODS = ("isotonic", "sigmoid", "venn-abers", "average")
BOUNDS = ("clip", "nan", "raise")


def require_method(method: Any, between: Any, out_of_bounds: Any) -> None:
    """Raise ValueError unless these are settings of a calibration."""
    if method not in METHODS:
        listed = ", ".join(map(repr, METHODS))
        raise ValueError(f"method must be one of {listed}, got {method!r}.")
    if out_of_bounds not in BOUNDS:
        listed = ", ".join(map(repr, BOUNDS))
        raise ValueError(f"out_of_bounds must be one of {listed}, got {out_of_bounds!r}.")
    require_between(between)


class Calibration:
    """What turns scores into probabilities of the positive class, by one of the methods."""

    def __init__(
        self,
        model: OnlineCalibrator,
        samples: Samples,
        method: str,
        between: Between,
        out_of_bounds: str,
    ) -> None:
        self.model = model
        self.method = method
        self.between = between
        self.out_of_bounds = out_of_bounds
        self._ranked = samples.ranked(1, 1) if method == "average" and len(model) else None
        self._sigmoid = _fitted_sigmoid(samples) if method == "sigmoid" and len(model) else None

    def probability(
        self, scores: NDArray[Any], between: Between | None = None, out_of_bounds: str | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of the positive class for each score.

        Without settings they are those of the time of the fit.
        """
        given = np.asarray(scores, dtype=np.float64)
        if self._sigmoid is not None:
            found = np.asarray(self._sigmoid.predict(given))
        elif self._ranked is not None:
            order = np.argsort(given, kind="stable")
            found = np.empty(len(given))
            found[order] = self._ranked.maps(given[order])[0]
        elif self.method == "venn-abers":
            low, high = self.model.probability_interval(given)
            found = high / (1.0 - low + high)
        else:
            found = self.model.probability(given, between=between or self.between)
        bounds = out_of_bounds or self.out_of_bounds
        return found if bounds == "clip" else self._bounded(given, found, bounds)

    def _bounded(
        self, scores: NDArray[np.float64], found: NDArray[np.float64], bounds: str
    ) -> NDArray[np.float64]:
        blocks = self.model.blocks()
        low, high = blocks.first[0], blocks.last[-1]
        outside = (scores < low) | (scores > high)
        if bounds == "raise" and outside.any():
            at = int(outside.argmax())
            raise ValueError(
                f"row {at} has the score {scores[at]}, and the classifier was calibrated on scores "
                f"from {low} to {high}. Set out_of_bounds='clip' for the probability of the end."
            )
        return np.where(outside, np.nan, found)


def _fitted_sigmoid(samples: Samples) -> Any:
    weights = None if samples.weights is None else samples.weights.astype(np.float64)
    return _SigmoidCalibration().fit(samples.scores, samples.labels.astype(np.float64), weights)


class CalibratedPair:
    """A fitted classifier and the calibration of its scores, as in scikit-learn.

    Attributes
    ----------
    estimator
        The fitted classifier.
    calibrators
        The calibration, in a list as in scikit-learn.
    classes
        The two classes, in the order of the columns of `predict_proba`.
    """

    def __init__(
        self, estimator: Any, calibration: Calibration, classes: Any, positive: Any, response: Any
    ) -> None:
        self.estimator = estimator
        self.calibrators = [calibration]
        self.classes = classes
        self._positive = positive
        self._response = response

    def positive(self, X: Any, **settings: Any) -> NDArray[Any]:
        """Return the calibrated probability of the positive class, as fine as the scores."""
        scores = scores_of(self.estimator, X, self._response, self._positive)
        found = self.calibrators[0].probability(scores, **settings)
        return found.astype(np.float32) if scores.dtype == np.float32 else found

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the calibrated probability of each class."""
        return both_columns(self.positive(X), second=bool(self.classes[1] == self._positive))


def both_columns(positive: NDArray[Any], second: bool) -> NDArray[Any]:
    """Put the probabilities of both classes side by side, in the order of the classes.

    >>> both_columns(np.array([0.25]), second=True)
    array([[0.75, 0.25]])
    """
    columns = [1 - positive, positive]
    return np.column_stack(columns if second else columns[::-1])
