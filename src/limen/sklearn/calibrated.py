# SPDX-License-Identifier: Apache-2.0
"""A classifier with exactly calibrated probabilities that decides at any costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from limen.arrays import is_single
from limen.calibrator import OnlineCalibrator
from limen.classifiers import positive_of
from limen.columns import as_numbers, require_same_length
from limen.hull import Between, require_between
from limen.sklearn.pool import Pool
from limen.sklearn.wrapper import Samples, Wrapper, inner_has
from limen.units import Cost, unequal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["CalibratedClassifier"]

_NEAR = 1e-9  # a probability closer than this to the bar is compared without rounding


class CalibratedClassifier(Wrapper):
    """A classifier with exactly calibrated probabilities that decides at any costs.

    The probabilities are those of the isotonic regression on the pooled scores of rows that
    the classifier was not fitted on. Deciding by them is deciding at the cheapest threshold,
    for all costs at once, so costs may be given when it predicts, and differ from row to row.

    Parameters
    ----------
    estimator, response_method, pos_label, cv, refit, n_jobs, random_state, unit
        As for `ThresholdClassifier`.
    false_positive, false_negative
        The costs at which `predict` decides unless it is given others.
    between
        The probability between two blocks of the fit, as for
        `limen.OnlineCalibrator.probability`. With "linear" it rises without steps, but only
        with "step" does it say the same as `predict` for every score.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    calibrator_
        The `limen.OnlineCalibrator` that holds the scores.
    classes_, n_features_in_, feature_names_in_
        As those of `estimator_`.

    Notes
    -----
    `partial_fit` exists when the estimator has it: each batch is scored before it is learned
    from. Until the first batch is scored, the probabilities are those of the classifier itself,
    or one half where it has none.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from limen.sklearn import CalibratedClassifier
    >>> X, y = make_classification(weights=[0.8], flip_y=0.1, random_state=0)
    >>> model = CalibratedClassifier(LogisticRegression()).fit(X, y)
    >>> model.predict_proba(X[:2]).round(2)
    array([[0.89, 0.11],
           [0.89, 0.11]])
    >>> model.predict(X[:2]), model.predict(X[:2], false_negative=[1, 100])
    (array([0, 0]), array([0, 1]))
    """

    def __init__(
        self,
        estimator: Any,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        between: Between = "step",
        response_method: str = "auto",
        pos_label: Any = None,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        unit: Cost | None = None,
    ) -> None:
        self.estimator = estimator
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.between = between
        self.response_method = response_method
        self.pos_label = pos_label
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.unit = unit

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> CalibratedClassifier:
        """Fit the classifier and calibrate it.

        Costs one fit for each fold and one on all rows; the calibration is O(n).

        Parameters
        ----------
        X, y, sample_weight, **params
            As for `ThresholdClassifier.fit`.
        """
        self._fit(X, y, {"sample_weight": sample_weight}, params)
        return self

    @available_if(inner_has("partial_fit"))
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> CalibratedClassifier:
        """Score a batch, calibrate by it, and only then learn from it.

        O(m log² n) for a batch of m beside n scores held, and what the inner classifier takes.

        Parameters
        ----------
        X, y, classes, sample_weight, **params
            As for `ThresholdClassifier.partial_fit`.
        """
        self._partial_fit(X, y, classes, {"sample_weight": sample_weight}, params)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the calibrated probability of each class. O(m log n) besides the scores."""
        scores = self._score(X)
        if len(self.calibrator_):
            positive = self.calibrator_.probability(scores, between=self.between)
        elif hasattr(self.estimator_, "predict_proba"):
            probabilities: NDArray[np.float64] = self.estimator_.predict_proba(X)
            return probabilities
        else:
            positive = np.full(len(scores), 0.5)
        columns = [1.0 - positive, positive]
        return np.column_stack(columns if self.classes_[1] == self._positive else columns[::-1])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities; ``-inf`` for what never occurred."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(
        self,
        X: Any,
        *,
        false_positive: ArrayLike | None = None,
        false_negative: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Answer each row with the class that is cheaper to expect.

        O(m log n) besides the scores.

        Parameters
        ----------
        X
            Rows of features.
        false_positive, false_negative
            Costs instead of those of the constructor: one for all rows, or one for each.
        """
        given = {"false_positive": false_positive, "false_negative": false_negative}
        costs: dict[str, Any] = {
            name: getattr(self, name) if value is None else value for name, value in given.items()
        }
        scores = self._score(X)
        positive_of(self.classes_, self.pos_label, matters=unequal(**costs))
        if len(self.calibrator_) and all(is_single(value) for value in costs.values()):
            return self._named(scores >= self.calibrator_.threshold(**costs))
        each = {name: _costs_of_rows(value, name, len(scores)) for name, value in costs.items()}
        bar = each["false_positive"] / (each["false_positive"] + each["false_negative"])
        if len(self.calibrator_) == 0:
            return self._named(self._positive_column(self.predict_proba(X)) > bar)
        probability = self.calibrator_.probability(scores)
        answers = probability > bar
        for at in np.flatnonzero(np.abs(probability - bar) < _NEAR):
            own = {n: v if is_single(v) else each[n][at].item() for n, v in costs.items()}
            answers[at] = scores[at] >= self.calibrator_.threshold(**own)
        return self._named(answers)

    def _check_parameters(self, per_row: bool) -> None:
        super()._check_parameters(per_row)
        require_between(self.between)

    def _positive_column(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        column: NDArray[np.float64] = probabilities[:, int(self.classes_[1] == self._positive)]
        return column

    def _hold_nothing(self, per_row: bool, used: str) -> None:
        pool = Pool(OnlineCalibrator(unit=self.unit))
        self._conclude(pool.model, pool)

    def _found(self, samples: Samples, goes_on: bool) -> tuple[Any, ...]:
        pool = Pool(OnlineCalibrator(unit=self.unit))
        with pool.holding(samples[:3]) as model:
            return model, pool if goes_on else None

    def _hold_more(self, samples: Samples, learn: Callable[[], Any]) -> None:
        with self._held.holding(samples[:3]) as model:
            learn()
        self._conclude(model, self._held)

    def _conclude(self, calibrator: OnlineCalibrator, held: Any) -> None:
        self._held = held  # a pool, or None where the classifier cannot go on
        self.calibrator_ = calibrator


def _costs_of_rows(value: Any, name: str, rows: int) -> NDArray[np.float64]:
    """Return a positive cost for each row, from one for all or one for each."""
    if is_single(value):
        return np.full(rows, float(value))
    costs = as_numbers(value, name).astype(np.float64)
    require_same_length(X=np.empty(rows), **{name: costs})
    bad = ~(np.isfinite(costs) & (costs > 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{name}[{at}] must be a positive, finite number, got {costs[at]}.")
    return costs
