# SPDX-License-Identifier: Apache-2.0
"""A classifier that decides at the exact cheapest threshold, or at the recommended one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from limen.columns import ordered_scores
from limen.errors import Infeasible
from limen.metrics import BestCut, Metric
from limen.online import OnlineCut
from limen.optimum import Optimum
from limen.sklearn.aimed import Aimed
from limen.sklearn.sureness import Sureness, cost_at, how_sure
from limen.sklearn.wrapper import PER_ROW, Pooled, inner_has
from limen.units import Cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from limen.samples import Samples

__all__ = ["ThresholdClassifier"]

_EXACT = "Set recommended=False for the exact threshold."


class ThresholdClassifier(Aimed):
    """A classifier that decides at the exact cheapest threshold, or at the recommended one.

    A drop-in for scikit-learn's `TunedThresholdClassifierCV`: instead of the best of a
    hundred thresholds, with scores interpolated between folds, it takes the best of all on
    the pooled scores of rows that the classifier was not fitted on. It may well be that the
    positive class is never worth its cost; then `best_threshold_` is ``inf``. What differs
    is listed in docs/ecosystem.md.

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
    scoring
        What to maximise, as a scorer of scikit-learn or the name of one; a third aim beside costs
        and a metric. "accuracy", "balanced_accuracy", "f1", "jaccard", "matthews_corrcoef",
        "precision" and "recall" are the metrics of limen, exact and found at once, also as
        ``make_scorer(fbeta_score, beta=2)`` and ``make_scorer(cohen_kappa_score)``. Any other
        scorer is asked with the answers of each cut that could be the best; see Notes.
    min_precision, min_recall, max_false_positive_rate, max_positive_rate
        What the threshold must keep to; the best that does is taken. When none does, `fit`
        raises `limen.Infeasible`; `partial_fit` warns and takes the nearest.
    recommended
        Whether to decide at the threshold that `limen.recommend` would use on new rows, instead of
        the one that is the cheapest on the scores pooled; `optimum_` stays the exact one. For
        costs only: `fit` raises ValueError beside a metric, limits or costs per row, where `cv`
        scores rows more than once, and below five samples of a class.
    thresholds
        None for every threshold. Otherwise the best of these is taken: an array, or a number of
        them at even steps from the lowest score to the highest; `optimum_` stays the best of all.
    response_method
        "predict_proba", "decision_function", or "auto" for the first of them it has.
    pos_label
        The positive class; None for that of the scorer, or else the second of `classes_`, which
        is 1 or True. Where classes have other names it must be given as soon as the answer
        depends on it: with unequal costs, costs per row, a limit, or a metric other than
        "accuracy", "balanced_accuracy", "kappa", "mcc" and "youden".
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
    store_cv_results
        Whether to keep `cv_results_`.
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
        Minus the total cost of the mistakes at that threshold, or what the metric or the scorer
        is worth, on the pooled scores.
    cv_results_
        With `store_cv_results`: "thresholds", in ascending order or as given; "scores", what each
        is worth on the pooled scores; "fold_scores", on those of each fold, one row per fold. From
        the last `fit`; not changed by `partial_fit`.
    best_threshold_interval_
        The lowest and the highest threshold that may be the best one for all rows, at 95 %
        confidence. None where `limen.recommend` says nothing: below five samples of a class,
        for a metric, limits and costs per row, and where `cv` scores rows more than once.
    best_threshold_reason_
        What `limen.recommend` says about the scores pooled, in one sentence; where there is no
        interval, why.
    fold_thresholds_
        The exact threshold of each fold's own scores, by the same aim: how far it moves from fold
        to fold. nan where no threshold of a fold keeps the limits. From the last `fit`; not
        changed by `partial_fit`.
    optimum_
        The exact cut as `limen.Optimum`, or as `limen.BestCut` where a metric, a scorer or a limit
        is given.
    classes_, n_features_in_, feature_names_in_
        As those of `estimator_`.

    Notes
    -----
    `partial_fit` exists when the estimator has it: each batch is scored before it is learned
    from, and the threshold follows. Until a batch could be scored the threshold is that of the
    classifier itself, 0.5 for probabilities and 0 for a decision function. The scores held are
    those that the classifier gave then; if it has changed much since, start over.

    A scorer that limen does not know is asked about all rows set aside at once, with the answers
    of one cut after the other: every cut with a negative row right below it and a positive one
    right above. No other can be better by a scorer that never falls when an answer becomes right.
    Where there are more than 1,000 such cuts, it is asked at the vertices of the ROC hull, at 256
    at even steps, and at up to 256 around the best of these. `partial_fit` does not ask.

    With `recommended`, a batch takes O(n log n), and until there are five samples of each class
    the threshold stays the one of the classifier itself.

    The exact threshold is the best on the rows it was chosen on; on new rows another may do
    better. See docs/trust.md.

    With folds, the interval rests on the scores that the classifiers of all folds gave to rows
    they had not seen, as if one classifier had given them. It says how much the choice of rows
    moves the threshold. It does not say how much the classifier fitted on all rows differs from
    those of the folds; `fold_thresholds_` shows some of that. With ``cv="prefit"``, or with a share
    of the rows and ``refit=False``, the scores are those of the classifier that predicts.

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

    The threshold for new rows, and how sure it is:

    >>> model = model.set_params(recommended=True).fit(X, y)
    >>> round(model.best_threshold_, 2), round(model.optimum_.threshold, 2)
    (0.51, 0.59)
    >>> [round(end, 2) for end in model.best_threshold_interval_]
    [-inf, 0.9]
    >>> model.fold_thresholds_.round(2)
    array([0.84, 0.59, 0.64, 0.87, 0.06])

    The highest recall of which nine in ten alarms are right:

    >>> careful = ThresholdClassifier(LogisticRegression(), metric="recall", min_precision=0.9)
    >>> careful.fit(X, y).optimum_.confusion
    Confusion(tp=11.0, fp=1.0, fn=10.0, tn=78.0)

    In the place of `TunedThresholdClassifierCV`:

    >>> tuned = ThresholdClassifier(LogisticRegression(), scoring="balanced_accuracy").fit(X, y)
    >>> round(tuned.best_score_, 3)
    0.767
    """

    _sure: Sureness | None

    def __init__(
        self,
        estimator: Any,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        metric: str | Metric | Callable[..., Any] | None = None,
        scoring: Any = None,
        min_precision: Cost | None = None,
        min_recall: Cost | None = None,
        max_false_positive_rate: Cost | None = None,
        max_positive_rate: Cost | None = None,
        recommended: bool = False,
        thresholds: Any = None,
        response_method: str = "auto",
        pos_label: Any = None,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        store_cv_results: bool = False,
        unit: Cost | None = None,
    ) -> None:
        self.estimator = estimator
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.metric = metric
        self.scoring = scoring
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.max_false_positive_rate = max_false_positive_rate
        self.max_positive_rate = max_positive_rate
        self.recommended = recommended
        self.thresholds = thresholds
        self.response_method = response_method
        self.pos_label = pos_label
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store_cv_results = store_cv_results
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

        Costs one fit for each fold and one on all rows; the search itself is O(n), the interval
        O(n log n).

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
            Further parameters for the `fit` of the inner classifier; with scikit-learn's metadata
            routing also for the splitter and the scorer.
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
        self._require_followed()
        amounts = dict(zip(PER_ROW, (sample_weight, false_positive, false_negative), strict=True))
        self._partial_fit(X, y, classes, amounts, params)
        return self

    @property
    def best_threshold_interval_(self) -> tuple[float, float] | None:
        """From where to where the best threshold for all rows may lie, at 95 % confidence.

        After `partial_fit` it is computed when it is first asked for. O(n log n).
        """
        return self._sureness().interval

    @property
    def best_threshold_reason_(self) -> str:
        """What `limen.recommend` says, in one sentence, or why it says nothing."""
        return self._sureness().reason

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
        if self.recommended and (unknown := self._unknown(per_row)):
            raise ValueError(f"{unknown} {_EXACT}")

    def _unknown(self, priced: bool, repeated: bool = False) -> str:
        """Say why nothing is known about new rows; nothing where something is."""
        if self._measured():
            return (
                "a recommended threshold and its interval exist for costs only, not for a "
                "metric or limits such as min_precision."
            )
        if self.recommended and self.thresholds is not None:
            return "a recommended threshold is one of all, and thresholds allows some of them only."
        if priced:
            return (
                "a recommended threshold and its interval are not known for costs per row: "
                "limen.recommend takes one cost for each kind of mistake."
            )
        if repeated:
            return (
                "a recommended threshold and its interval need every row at most once, and cv "
                "scores some rows more often, which would look like more rows than there are. "
                "Take folds without repetition, such as cv=5."
            )
        return ""

    def _how_sure(
        self, samples_of: Callable[[], Samples], priced: bool, repeated: bool
    ) -> Sureness:
        unknown = self._unknown(priced, repeated)
        return Sureness.refused(unknown) if unknown else how_sure(samples_of(), self._aim())

    def _sureness(self) -> Sureness:
        """Return what is known about new rows, which `partial_fit` does not compute."""
        check_is_fitted(self, "estimator_")
        if self._sure is None:
            pool = self._held
            priced = isinstance(pool.model, OnlineCut)
            self._sure = self._how_sure(pool.samples, priced, pool.repeated)
        return self._sure

    def _hold_nothing(self, per_row: bool, used: str) -> None:
        natural = 0.5 if used == "predict_proba" else 0.0
        aim = self._aim({"false_negative": np.empty(0, np.int64)} if per_row else {})
        self._conclude(Optimum(None, None, 0.0), self._new_pool(aim), None, natural, 0.0)

    def _found(self, pooled: Pooled, goes_on: bool) -> tuple[Any, ...]:
        samples = replace(pooled.samples, scores=ordered_scores(pooled.samples.scores))
        pooled, aim = pooled._replace(samples=samples), self._aim(pooled.costs)
        sure = self._how_sure(lambda: samples, aim.priced, pooled.repeated)
        if self.recommended and sure.threshold is None:
            raise ValueError(f"{sure.reason} {_EXACT}")
        many = self.store_cv_results or self.thresholds is not None
        results = self._results(pooled) if many else None
        pool = None
        if self.thresholds is not None and results is not None:
            best, threshold, score, folds = self._best_of_these(pooled, results)
        else:
            if goes_on and pooled.asked is None:
                pool = self._new_pool(aim, pooled.repeated)
                with pool.holding(aim.columns_of(samples)) as model:
                    best = aim.best_of(model)
            else:
                best = self._exact(pooled)
            threshold, score = self._chosen(best, sure, samples)
            several = len(pooled.sizes) > 1
            folds = self._thresholds_of(pooled.folds()) if several else [best.threshold]
        each = [fold.samples.scores for fold in pooled.folds()]
        if all(len(scores) and np.ptp(scores) == 0 for scores in each):
            warnings.warn(
                "the classifier gives all rows the same score, so no threshold separates them: "
                f"best_threshold_ is {threshold}, and every row gets the same answer.",
                stacklevel=4,
            )
        return best, pool, sure, threshold, score, np.array(folds), results

    def _hold_more(self, pooled: Pooled, learn: Callable[[], Any]) -> None:
        samples, aim = pooled.samples, self._aim(pooled.costs)
        if aim.priced != isinstance(self._held.model, OnlineCut):
            raise ValueError(
                "costs per row must be given with every batch or with none: this batch differs "
                "from those before."
            )
        missed, sure = None, None
        columns = aim.columns_of(samples)
        with self._held.holding(columns) as model:
            try:
                best = aim.best_of(model)
            except Infeasible as infeasible:
                missed, best = infeasible, infeasible.nearest
            if self.recommended:
                samples = self._held.samples(columns)
                sure = self._how_sure(lambda: samples, aim.priced, self._held.repeated)
            chosen = self._chosen(best, sure, samples)
            learn()
        self._conclude(best, self._held, sure, *chosen)
        if missed is not None:
            warnings.warn(str(missed), stacklevel=4)

    def _chosen(
        self, best: Optimum | BestCut, sure: Sureness | None, samples: Samples
    ) -> tuple[float, float]:
        """Return the threshold to use, and its score on the samples held."""
        if self.recommended and sure is not None:
            threshold = self.best_threshold_ if sure.threshold is None else sure.threshold
            if threshold != best.threshold:
                return threshold, 0.0 - cost_at(samples, threshold, self._aim())
        if isinstance(best, Optimum):
            return best.threshold, 0.0 - best.loss
        aimed = self.metric is not None or self.scoring is not None
        return best.threshold, best.value if aimed else 0.0 - best.value

    def _conclude(
        self,
        best: Optimum | BestCut,
        held: Any,
        sure: Sureness | None,
        threshold: float,
        score: float,
        folds: Any = None,
        results: dict[str, Any] | None = None,
    ) -> None:
        self._held = held  # a pool, or None where the classifier cannot go on
        self._sure = sure  # None until it is asked for
        self.optimum_ = best
        self.best_threshold_ = threshold
        self.best_score_ = score
        if folds is not None:
            self.fold_thresholds_ = folds
            if self.store_cv_results:
                self.cv_results_ = results
            elif hasattr(self, "cv_results_"):
                del self.cv_results_
