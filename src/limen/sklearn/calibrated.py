# SPDX-License-Identifier: Apache-2.0
"""A classifier with exactly calibrated probabilities that decides at any costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from limen.arrays import is_single
from limen.calibrator import OnlineCalibrator
from limen.classifiers import positive_of
from limen.columns import as_numbers, require_same_length
from limen.hull import Between
from limen.sklearn.calibration import CalibratedPair, Calibration, both_columns, require_method
from limen.sklearn.pool import Pool
from limen.sklearn.wrapper import Pooled, Wrapper, inner_has
from limen.units import Cost, unequal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from limen.samples import Samples

__all__ = ["CalibratedClassifier"]

_NEAR = 1e-9  # a probability closer than this to the bar is compared without rounding


class CalibratedClassifier(Wrapper):
    """A classifier with exactly calibrated probabilities that decides at any costs.

    The probabilities are those of the isotonic regression on the pooled scores of rows that
    the classifier was not fitted on. Deciding by them is deciding at the cheapest threshold,
    for all costs at once, so costs may be given when it predicts, and differ from row to row.
    It can stand in for scikit-learn's `CalibratedClassifierCV` with two classes; what differs is
    listed in docs/ecosystem.md.

    Parameters
    ----------
    estimator
        A binary classifier; None for scikit-learn's default, ``LinearSVC(random_state=0)``.
    method
        How scores become probabilities. "isotonic": the exact isotonic fit. "sigmoid": Platt's
        sigmoid as scikit-learn fits it, for few samples or scores of that shape. "venn-abers": one
        number out of the interval of `limen.OnlineCalibrator.probability_interval`, never 0 or 1.
        "average": the average of calibration maps behind `limen.recommend`, as
        `limen.OnlineCalibrator.calibrated`.
    false_positive, false_negative
        The costs at which `predict` decides unless it is given others.
    between
        The probability between two blocks of the isotonic fit, as for
        `limen.OnlineCalibrator.probability`. With "linear" it rises without steps, but only
        with "step" does it say the same as `predict` for every score.
    out_of_bounds
        The probability of scores below the lowest and above the highest that it was calibrated on:
        "clip" for that of the end (for the sigmoid, its own), "nan", or "raise" for a ValueError.
    ensemble
        False: one classifier, fitted on all rows and calibrated on the pooled scores. True: the
        classifiers of all folds, each calibrated on its own fold; the probability is the mean.
        "auto": True, but False for a classifier that is fitted already, as in scikit-learn.
    response_method
        "predict_proba", "decision_function", or "auto" for the first of them it has; for the
        sigmoid "auto" takes "decision_function" first.
    pos_label, cv, refit, n_jobs, random_state, unit
        As for `ThresholdClassifier`. `refit` has no effect on an ensemble.

    Attributes
    ----------
    estimator_
        The fitted classifier; none with an ensemble.
    calibrator_
        The `limen.OnlineCalibrator` that holds the scores, whatever the method, after `partial_fit`
        too: its `recommended`, `interval` and `keeps` say which threshold to use on new rows, at
        any costs, and how sure that is. None with an ensemble.
    calibrated_classifiers_
        One for each fold of an ensemble, else one. Each has `estimator`, `calibrators` and
        `predict_proba`.
    classes_, n_features_in_, feature_names_in_
        As those of the classifier.

    Notes
    -----
    `partial_fit` exists when the estimator has it: each batch is scored before it is learned
    from. Until the first batch is scored, the probabilities are those of the classifier itself,
    or one half where it has none. With "sigmoid" and "average" a batch takes O(n log n), and an
    ensemble has no `partial_fit`.

    Probabilities are float32 where the classifier gives its scores so.

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

    calibrator_: OnlineCalibrator

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "isotonic",
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        between: Between = "step",
        out_of_bounds: str = "clip",
        ensemble: bool | str = False,
        response_method: str = "auto",
        pos_label: Any = None,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        unit: Cost | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.between = between
        self.out_of_bounds = out_of_bounds
        self.ensemble = ensemble
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
        if self._ensembled():
            raise ValueError("an ensemble has no partial_fit. Set ensemble=False.")
        self._partial_fit(X, y, classes, {"sample_weight": sample_weight}, params)
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the calibrated probability of each class. O(m log n) besides the scores."""
        check_is_fitted(self, "classes_")
        if not self._ensemble and len(self.calibrator_) == 0:
            if hasattr(self.estimator_, "predict_proba"):
                probabilities: NDArray[np.float64] = self.estimator_.predict_proba(X)
                return probabilities
            return np.full((len(self._score(X)), 2), 0.5)
        return both_columns(self._probability(X), second=bool(self.classes_[1] == self._positive))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the probabilities; ``-inf`` for what never occurred."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[Any] = np.log(self.predict_proba(X))
        return logarithms

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
        check_is_fitted(self, "classes_")
        positive_of(self.classes_, self.pos_label, matters=unequal(**costs))
        exact = self.method == "isotonic" and not self._ensemble and len(self.calibrator_) > 0
        scores = self._score(X) if exact else None
        if scores is not None and all(is_single(value) for value in costs.values()):
            return self._named(scores >= self.calibrator_.threshold(**costs))
        if scores is None:
            probability = self._positive_column(self.predict_proba(X)).astype(np.float64)
        else:
            probability = self.calibrator_.probability(scores)
        rows = len(probability)
        each = {name: _costs_of_rows(value, name, rows) for name, value in costs.items()}
        bar = each["false_positive"] / (each["false_positive"] + each["false_negative"])
        answers = probability > bar
        if scores is not None:
            for at in np.flatnonzero(np.abs(probability - bar) < _NEAR):
                own = {n: v if is_single(v) else each[n][at].item() for n, v in costs.items()}
                answers[at] = scores[at] >= self.calibrator_.threshold(**own)
        return self._named(answers)

    def _check_parameters(self, per_row: bool) -> None:
        super()._check_parameters(per_row)
        require_method(self.method, self.between, self.out_of_bounds)
        if self.ensemble not in (True, False, "auto"):
            raise ValueError(f"ensemble must be True, False or 'auto', got {self.ensemble!r}.")

    def _inner(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LinearSVC(random_state=0)
        if get_config()["enable_metadata_routing"]:
            default.set_fit_request(sample_weight=True)
        return default

    def _response(self) -> str | tuple[str, ...]:
        if self.method == "sigmoid" and self.response_method == "auto":
            return "decision_function", "predict_proba"
        return self.response_method

    def _ensembled(self) -> bool:
        if self.ensemble == "auto" and isinstance(self.estimator, FrozenEstimator):
            return False
        return self.ensemble is not False and not isinstance(self.cv, str)

    def _probability(self, X: Any) -> NDArray[Any]:
        """Return the mean probability of the positive class."""
        settings = {"between": self.between, "out_of_bounds": self.out_of_bounds}
        found = [pair.positive(X, **settings) for pair in self.calibrated_classifiers_]
        return found[0] if len(found) == 1 else np.mean(found, axis=0)

    def _positive_column(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        column: NDArray[np.float64] = probabilities[:, int(self.classes_[1] == self._positive)]
        return column

    def _hold_nothing(self, per_row: bool, used: str) -> None:
        pool = Pool(OnlineCalibrator(unit=self.unit))
        self._conclude([(self.estimator_, self._calibration(pool.model, pool.samples()))], pool)

    def _found(self, pooled: Pooled, goes_on: bool) -> tuple[Any, ...]:
        if self._ensembled():
            folds = zip(pooled.classifiers, pooled.folds(), strict=True)
            return [(one, self._held_by(fold.samples)[0]) for one, fold in folds], None
        calibration, pool = self._held_by(pooled.samples)
        return [(None, calibration)], pool if goes_on else None

    def _held_by(self, samples: Samples) -> tuple[Calibration, Pool]:
        """Calibrate on some samples."""
        pool = Pool(OnlineCalibrator(unit=self.unit))
        with pool.holding(samples.columns) as model:
            return self._calibration(model, samples), pool

    def _calibration(self, model: OnlineCalibrator, samples: Samples) -> Calibration:
        return Calibration(model, samples, self.method, self.between, self.out_of_bounds)

    def _hold_more(self, pooled: Pooled, learn: Callable[[], Any]) -> None:
        samples = pooled.samples
        with self._held.holding(samples.columns) as model:
            # Only these need them all again.
            whole = self.method in ("sigmoid", "average")
            every = self._held.samples(samples.columns) if whole else samples
            found = self._calibration(model, every)
            learn()
        self._conclude([(None, found)], self._held)

    def _conclude(self, pairs: list[tuple[Any, Calibration]], held: Any) -> None:
        self._held = held  # a pool, or None where the classifier cannot go on
        self._ensemble = self._ensembled()
        self.calibrated_classifiers_ = [
            CalibratedPair(
                self.estimator_ if one is None else one,
                calibration,
                self.classes_,
                self._positive,
                self._response(),
            )
            for one, calibration in pairs
        ]
        if self._ensemble:
            del self.estimator_  # the first of several, which does not stand for all
            if hasattr(self, "calibrator_"):
                del self.calibrator_
        else:
            self.calibrator_ = pairs[0][1].model


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
