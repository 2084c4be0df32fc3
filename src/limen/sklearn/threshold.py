# SPDX-License-Identifier: Apache-2.0
"""A classifier that decides at the exact cheapest threshold."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from limen import losses
from limen.batch import optimal_cut, optimal_threshold
from limen.best_cut import demands_of
from limen.calibrator import OnlineCalibrator
from limen.errors import Infeasible
from limen.metrics import BestCut, Metric, as_metric, cost
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import Optimum
from limen.sklearn.pool import Pool, fine_unit
from limen.sklearn.wrapper import PER_ROW, Samples, Wrapper, inner_has
from limen.units import Cost, exact_costs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["ThresholdClassifier"]


class ThresholdClassifier(Wrapper):
    """A classifier that decides at the exact cheapest threshold.

    The counterpart of scikit-learn's `TunedThresholdClassifierCV`: instead of the best of a
    hundred thresholds, with scores interpolated between folds, it takes the cheapest of all on
    the pooled scores of rows that the classifier was not fitted on. It may well be that the
    positive class is never worth its cost; then `best_threshold_` is ``inf``.

    Parameters
    ----------
    estimator
        A binary classifier with `predict_proba` or `decision_function`.
    false_positive, false_negative
        Cost of answering the positive class to a negative row, and the other way round. Costs
        per row are passed to `fit`.
    metric
        What to maximise instead of minimising the cost: a name such as "f1", one of
        `limen.metrics` or a function of tp, fp, fn, tn, as for `limen.OnlineCalibrator.best`.
        Costs and a metric are two aims; give one of them.
    min_precision, min_recall, max_false_positive_rate, max_positive_rate
        What the threshold must keep to; the best that does is taken. When none does, `fit`
        raises `limen.Infeasible`; `partial_fit` warns and takes the nearest.
    response_method
        "predict_proba", "decision_function", or "auto" for the first of them it has.
    pos_label
        The positive class; None for the second of `classes_`, which is 1 or True. Where classes
        have other names it must be given as soon as the answer depends on it: with unequal
        costs, costs per row, a metric or a limit.
    cv
        How the rows to score are set aside: None for five folds, a number of folds, a share of
        the rows between 0 and 1, a splitter, or splits. With "prefit" the estimator is taken as
        it is and every row given to `fit` is scored: give it rows it was not fitted on.
    refit
        Whether to fit on all rows once the threshold is found. False needs a single split.
    n_jobs
        How many folds to fit at once.
    random_state
        Seed of the split when `cv` is a share of the rows.
    unit
        Each weight or cost per row is held as a whole number of units, as in
        `limen.OnlineThreshold`.
        With None it is chosen so that rounding is lost beside the sum, and follows when later
        batches weigh more or less.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    best_threshold_
        Rows with ``score >= best_threshold_`` are answered with the positive class.
    best_score_
        Minus the total cost of the mistakes at that threshold, or what the metric is worth.
    optimum_
        The cut as `limen.Optimum`, or as `limen.BestCut` where a metric or a limit is given.
    classes_, n_features_in_, feature_names_in_
        As those of `estimator_`.

    Notes
    -----
    `partial_fit` exists when the estimator has it: each batch is scored before it is learned
    from, and the threshold follows. Until a batch could be scored the threshold is that of the
    classifier itself, 0.5 for probabilities and 0 for a decision function. The scores held are
    those that the classifier gave then; if it has changed much since, start anew.

    A threshold is the best on the rows it was chosen on; on new rows another may do better.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from limen.sklearn import ThresholdClassifier
    >>> X, y = make_classification(weights=[0.8], flip_y=0.1, random_state=0)
    >>> model = ThresholdClassifier(LogisticRegression(), false_negative=5).fit(X, y)
    >>> model.best_score_, model.optimum_.loss
    (-48.0, 48.0)
    >>> model.predict(X[:4])
    array([0, 0, 0, 0])

    The highest recall of which nine in ten alarms are right:

    >>> careful = ThresholdClassifier(LogisticRegression(), metric="recall", min_precision=0.9)
    >>> careful.fit(X, y).optimum_.confusion
    Confusion(tp=11.0, fp=1.0, fn=10.0, tn=78.0)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        metric: str | Metric | Callable[..., Any] | None = None,
        min_precision: Cost | None = None,
        min_recall: Cost | None = None,
        max_false_positive_rate: Cost | None = None,
        max_positive_rate: Cost | None = None,
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
        self.metric = metric
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.max_false_positive_rate = max_false_positive_rate
        self.max_positive_rate = max_positive_rate
        self.response_method = response_method
        self.pos_label = pos_label
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.unit = unit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        false_positive: ArrayLike | None = None,
        false_negative: ArrayLike | None = None,
        **params: Any,
    ) -> ThresholdClassifier:
        """Fit the classifier and find its threshold.

        Costs one fit for each fold and one on all rows; the search itself is O(n).

        Parameters
        ----------
        X, y
            Rows of features, and one of two classes for each.
        sample_weight
            How much each row counts, in the classifier (where it takes weights) and in the
            search.
        false_positive, false_negative
            Costs of each row, at least 0, instead of one for all.
        **params
            Further parameters for the `fit` of the inner classifier and for the splitter, by
            scikit-learn's metadata routing.
        """
        amounts = dict(zip(PER_ROW, (sample_weight, false_positive, false_negative), strict=True))
        self._fit(X, y, amounts, params)
        return self

    @available_if(inner_has("partial_fit"))
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        false_positive: ArrayLike | None = None,
        false_negative: ArrayLike | None = None,
        **params: Any,
    ) -> ThresholdClassifier:
        """Score a batch, move the threshold, and only then learn from it.

        The first batch of all cannot be scored and only teaches. O(m log n) for a batch of m
        beside n scores held, and what the inner classifier takes.

        Parameters
        ----------
        X, y
            Rows of features, and one of two classes for each.
        classes
            Both classes; needed in the first call.
        sample_weight, false_positive, false_negative, **params
            As for `fit`.
        """
        amounts = dict(zip(PER_ROW, (sample_weight, false_positive, false_negative), strict=True))
        self._partial_fit(X, y, classes, amounts, params)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Answer each row with a class. O(n) besides the scores."""
        return self._named(self._score(X) >= self.best_threshold_)

    @available_if(inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the inner classifier."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the inner classifier."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    @available_if(inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the inner classifier."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_log_proba(X)

    def _check_parameters(self, per_row: bool) -> None:
        super()._check_parameters(per_row)
        if self.metric is not None:
            as_metric(self.metric)
            if (self.false_positive, self.false_negative) != (1, 1):
                raise ValueError(
                    f"metric={self.metric!r} and costs exclude each other: the costs would "
                    "have no effect. Leave out one of the two."
                )
        demands_of(**self._limits())
        if per_row and self._measured():
            raise ValueError(
                "costs per row cannot be combined with a metric or limits such as "
                "min_precision. Leave out one of the two."
            )

    def _limits(self) -> dict[str, Cost | None]:
        names = ("min_precision", "min_recall", "max_false_positive_rate", "max_positive_rate")
        return {name: getattr(self, name) for name in names}

    def _measured(self) -> bool:
        """Whether something other than the lowest cost is asked for."""
        return self.metric is not None or any(v is not None for v in self._limits().values())

    def _favours(self) -> bool:
        return self._measured() or super()._favours()

    def _costs(self) -> dict[str, Any]:
        return {"false_positive": self.false_positive, "false_negative": self.false_negative}

    def _hold_nothing(self, per_row: bool, used: str) -> None:
        self._conclude(Optimum(None, None, 0.0), self._new_pool(per_row))
        self.best_threshold_ = 0.5 if used == "predict_proba" else 0.0

    def _found(self, samples: Samples, goes_on: bool) -> tuple[Any, ...]:
        columns = self._columns(samples)
        if not goes_on and not self._measured():
            return self._searched(columns, samples.priced), None
        pool = self._new_pool(samples.priced)
        with pool.holding(columns) as model:
            best = self._best(model)
        return best, pool if goes_on else None

    def _hold_more(self, samples: Samples, learn: Callable[[], Any]) -> None:
        if samples.priced != isinstance(self._held.model, OnlineCut):
            raise ValueError(
                "costs per row must be given with every batch or with none: this batch differs "
                "from those before."
            )
        missed = None
        with self._held.holding(self._columns(samples)) as model:
            try:
                best = self._best(model)
            except Infeasible as infeasible:
                missed, best = infeasible, infeasible.nearest
            learn()
        self._conclude(best, self._held)
        if missed is not None:
            warnings.warn(str(missed), stacklevel=4)

    def _new_pool(self, priced: bool) -> Pool:
        if priced and not self._measured():
            return Pool(OnlineCut(unit=self.unit))
        times = max(exact_costs(self.false_positive, self.false_negative)[:2])
        if self._measured():
            return Pool(OnlineCalibrator(unit=self.unit), times)
        return Pool(OnlineThreshold(unit=self.unit, **self._costs()), times)

    def _best(self, model: Any) -> Optimum | BestCut:
        if not self._measured():
            best: Optimum = model.optimum
            return best
        metric = cost(**self._costs()) if self.metric is None else self.metric
        measured: BestCut = model.best(metric, **self._limits())
        return measured

    def _searched(self, columns: tuple[Any, ...], priced: bool) -> Optimum:
        unit, times = self.unit, max(exact_costs(self.false_positive, self.false_negative)[:2])
        if priced:
            return optimal_cut(*columns, unit=fine_unit(columns[1:], 1) if unit is None else unit)
        scores, labels, weights = columns
        if unit is None and weights is not None:
            unit = fine_unit([weights], times)
        return optimal_threshold(scores, labels, weights=weights, unit=unit, **self._costs())

    def _columns(self, samples: Samples) -> tuple[Any, ...]:
        """Join scores with labels and weights, or with losses, as the models take them."""
        if not samples.priced:
            return samples[:3]
        prices = {}
        for name, column in (("fp", samples.false_positive), ("fn", samples.false_negative)):
            same = Fraction(self.false_positive if name == "fp" else self.false_negative)
            whole = int(same) if same.denominator == 1 else float(same)
            price: Any = whole if column is None else column
            prices[name] = price if samples.weights is None else price * samples.weights
        return (samples.scores, *losses.cost_matrix(samples.labels, **prices))

    def _conclude(self, best: Optimum | BestCut, held: Any) -> None:
        self._held = held  # a pool, or None where the classifier cannot go on
        self.optimum_ = best
        self.best_threshold_ = best.threshold
        if isinstance(best, Optimum):
            self.best_score_ = 0.0 - best.loss
        else:
            self.best_score_ = best.value if self.metric is not None else 0.0 - best.value
