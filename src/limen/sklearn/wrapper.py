# SPDX-License-Identifier: Apache-2.0
"""Base of both classifiers: scores of rows that the inner one has not learned from."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_regressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from limen.classifiers import (
    RESPONSES,
    classes_of,
    positive_of,
    refuse_estimator,
    require_known,
    response_of,
    scores_of,
)
from limen.columns import Numbers, as_numbers, require_same_length
from limen.samples import Samples
from limen.sklearn.scoring import ScorerRequest, Scoring, rows_of
from limen.units import Cost, exact_costs, unequal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["PER_ROW", "Pooled", "Wrapper", "has_costs", "inner_has"]

PER_ROW = ("sample_weight", "false_positive", "false_negative")


class Pooled(NamedTuple):
    """Samples of rows that the classifier had not learned from, and how they came about."""

    samples: Samples
    costs: dict[str, Numbers]  # of each row, by the mistake; empty where one holds for all rows
    sizes: tuple[int, ...] = ()  # of the folds, one after the other; none where there is no fold
    repeated: bool = False  # whether folds share rows
    asked: ScorerRequest | None = None  # the scorer, where its value is known at no cut
    classifiers: tuple[Any, ...] = ()  # of the folds

    def folds(self) -> list[Pooled]:
        """Divide the samples by fold."""
        found, start = [], 0
        for size in self.sizes:
            rows = slice(start, start + size)
            costs = {name: column[rows] for name, column in self.costs.items()}
            asked = None if self.asked is None else self.asked.take(np.arange(start, start + size))
            found.append(Pooled(self.samples.rows(rows), costs, asked=asked))
            start += size
        return found or [self]


class Rows(NamedTuple):
    """The class, weight and costs of each row."""

    classes: NDArray[Any]
    weights: Numbers | None
    costs: dict[str, Numbers]

    def take(self, at: Any) -> Rows:
        costs = {name: column[at] for name, column in self.costs.items()}
        return Rows(self.classes[at], None if self.weights is None else self.weights[at], costs)

    def pooled(self, scores: Any, positive: Any) -> Pooled:
        """Join the rows with the scores that a classifier gave them."""
        labels = (self.classes == positive).view(np.uint8)
        samples = Samples(np.asarray(scores, dtype=np.float64), labels, self.weights)
        return Pooled(samples, self.costs)


class Routed(NamedTuple):
    """The parameters of `fit`, by who gets them."""

    estimator: dict[str, Any]
    splitter: dict[str, Any]
    scorer: dict[str, Any]


def has_costs(amounts: dict[str, Any]) -> bool:
    """Whether rows come with costs of their own."""
    return amounts.get("false_positive") is not None or amounts.get("false_negative") is not None


def inner_has(method: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the inner classifier has this method."""

    def check(self: Any) -> bool:
        # getattr, so that the inner estimator says itself why it lacks the method.
        getattr(self.estimator_ if hasattr(self, "estimator_") else self._inner(), method)
        return True

    return check


def _fit_and_score(
    estimator: Any, X: Any, y: Any, given: dict[str, Any], split: Any, method: Any, positive: Any
) -> tuple[NDArray[np.float64], Any]:
    """Fit on one part of the rows and score the other; return scores and classifier."""
    learn, score = split
    part = {name: rows_of(value, learn, len(y)) for name, value in given.items()}
    estimator.fit(_safe_indexing(X, learn), _safe_indexing(y, learn), **part)
    return scores_of(estimator, _safe_indexing(X, score), method, positive), estimator


def _amounts(values: Any, name: str) -> Numbers:
    """One weight or cost for each row."""
    column = as_numbers(values, name)
    bad = ~(np.isfinite(column) & (column >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{name}[{at}] must be a finite number of at least 0, got {column[at]}.")
    return column


def _require_both_classes(cv: Any, folds: int, classes: NDArray[Any]) -> None:
    """Raise ValueError where there are more folds than rows of a class."""
    least = int(np.unique(classes, return_counts=True)[1].min())
    if folds > least:
        raise ValueError(
            f"Requesting {folds}-fold cross-validation, and y has {least} rows of the rarer class. "
            f"{type(cv).__name__} cross-validation does not leave rows of both classes to the "
            "calibration of each fold. Take fewer folds, or ensemble=False."
        )


class Wrapper(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """What the classifiers here share: scores of rows that the inner one has not learned from."""

    if TYPE_CHECKING:
        estimator: Any
        false_positive: Cost
        false_negative: Cost
        response_method: str
        pos_label: Any
        cv: Any
        refit: bool
        n_jobs: int | None
        random_state: Any
        unit: Cost | None

        def _found(self, pooled: Pooled, goes_on: bool) -> tuple[Any, ...]: ...
        def _conclude(self, *found: Any) -> None: ...
        def _hold_more(self, pooled: Pooled, learn: Callable[[], Any]) -> None: ...
        def _hold_nothing(self, per_row: bool, used: str) -> None: ...

    def _scoring(self) -> Scoring | None:
        """Return the scorer that says what is best, if there is one."""
        return None

    def _inner(self) -> Any:
        """Return the classifier to fit."""
        return self.estimator

    def _response(self) -> str | tuple[str, ...]:
        """Return the method that gives scores."""
        return self.response_method

    def _ensembled(self) -> bool:
        """Whether the classifiers of the folds predict, instead of one fitted on all rows."""
        return False

    def _fit(self, X: Any, y: Any, amounts: dict[str, Any], params: dict[str, Any]) -> Any:
        """Fit the classifier, and hold the scores of rows it was not fitted on."""
        self._check_parameters(per_row=has_costs(amounts))
        X, y = indexable(X, y)
        prefit = isinstance(self.cv, str)
        if prefit:
            self._check_fitted_before()
        rows, positive = self._read(y, amounts, classes_of(self.estimator) if prefit else None)
        routed = self._routed("fit", rows.weights, params)
        scoring = self._scoring()
        if scoring is not None and get_config()["enable_metadata_routing"]:
            rows = rows._replace(weights=routed.scorer.get("sample_weight"))
        if prefit:
            estimator: Any = self.estimator
            pooled = self._pooled(estimator, X, rows, positive)
            aside: Any = np.arange(len(rows.classes))
        else:
            estimator, pooled, aside = self._fit_folds(X, y, rows, positive, routed)
        if scoring is not None and scoring.metric is None:
            names = np.unique(rows.classes) if not prefit else classes_of(estimator)
            asked = ScorerRequest(scoring.scorer, X, rows.classes, routed.scorer, names, positive)
            pooled = pooled._replace(asked=asked.take(aside))
        found = self._found(pooled, hasattr(estimator, "partial_fit"))
        self._publish(
            estimator, positive, classes_of(estimator) if prefit else np.unique(rows.classes)
        )
        self._conclude(*found)
        return self

    def _partial_fit(
        self, X: Any, y: Any, classes: Any, amounts: dict[str, Any], params: dict[str, Any]
    ) -> Any:
        """Score a batch, hold the scores, and only then learn from it."""
        self._check_parameters(per_row=has_costs(amounts))
        begun = hasattr(self, "estimator_")
        if not begun and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = self.classes_ if begun else np.unique(np.asarray(classes))
        if classes is not None and begun and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes must be those of the first call, {known.tolist()!r}.")
        rows, positive = self._read(y, amounts, known)
        given = self._routed("partial_fit", rows.weights, params).estimator
        if begun:
            pooled = self._pooled(self.estimator_, X, rows, positive)
            self._hold_more(pooled, lambda: self.estimator_.partial_fit(X, y, **given))
            return self
        estimator = clone(self._inner()).partial_fit(X, y, classes=known, **given)
        classes_of(estimator)
        used = response_of(estimator, self._response())
        self._publish(estimator, positive, known)
        self._hold_nothing(has_costs(amounts), used)
        return self

    def get_metadata_routing(self) -> Any:
        """Return which parameters scikit-learn passes to which method."""
        learning = (
            MethodMapping()
            .add(caller="fit", callee="fit")
            .add(caller="partial_fit", callee="partial_fit")
        )
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self._inner(), method_mapping=learning)
        if hasattr(self.cv, "split"):
            splitting = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=splitting)
        scoring = self._scoring()
        if scoring is not None and hasattr(scoring.scorer, "get_metadata_routing"):
            asking = MethodMapping().add(caller="fit", callee="score")
            router.add(scorer=scoring.scorer, method_mapping=asking)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _check_parameters(self, per_row: bool) -> None:
        exact_costs(self.false_positive, self.false_negative)
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise TypeError(f"estimator must be an object, got the class {name}. Write {name}().")
        if is_regressor(self._inner()):
            refuse_estimator(self.estimator)
        if self.response_method not in ("auto", *RESPONSES):
            raise ValueError(
                "response_method must be 'auto', 'predict_proba' or 'decision_function', got "
                f"{self.response_method!r}."
            )
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(
                "cv must be a number of folds, a share of the rows between 0 and 1, a splitter, "
                f"splits or 'prefit', got {self.cv!r}."
            )

    def _check_fitted_before(self) -> None:
        if hasattr(self.estimator, "classes_"):  # also where the class has it, as wrappers do
            return
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                "When cv='prefit', `estimator` must be fitted. Fit it on other rows first, or "
                "leave cv to its default."
            ) from error

    def _read(
        self, y: Any, amounts: dict[str, Any], known: NDArray[Any] | None
    ) -> tuple[Rows, Any]:
        """Read classes, weights and costs of the rows, and which class is the positive one."""
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. Unknown label type: {kind}")
        y = column_or_1d(y, warn=True)
        classes = np.unique(y) if known is None else known
        if len(classes) != 2:
            raise ValueError(
                f"y must hold two classes, got {len(classes)} class: {classes.tolist()!r}. A "
                "threshold needs examples of both."
            )
        require_known(y, classes)
        matters = has_costs(amounts) or self._favours()
        positive = positive_of(classes, self._pos_label(), matters=matters, y=y)
        columns = {
            name: None if column is None else _amounts(column, name)
            for name, column in amounts.items()
        }
        require_same_length(y=y, **columns)
        weights = columns.pop("sample_weight", None)
        costs = {name: column for name, column in columns.items() if column is not None}
        return Rows(y, weights, costs), positive

    def _favours(self) -> bool:
        """Return whether the answer depends on which class is the positive one."""
        return unequal(self.false_positive, self.false_negative)

    def _pos_label(self) -> Any:
        """Return the positive class as it was given, to the classifier or to its scorer."""
        scoring = self._scoring()
        if self.pos_label is None and scoring is not None:
            return scoring.pos_label
        return self.pos_label

    def _routed(self, method: str, sample_weight: Numbers | None, params: dict[str, Any]) -> Routed:
        """Divide parameters into those of the inner classifier, the splitter and the scorer."""
        if get_config()["enable_metadata_routing"]:
            if sample_weight is not None:
                params = {**params, "sample_weight": sample_weight}
            routed = process_routing(self, method, **params)
            asking = routed.get("scorer", {}).get("score", {})
            splitting = routed.get("splitter", {}) if method == "fit" else {}
            return Routed(routed.estimator[method], dict(splitting.get("split", {})), dict(asking))
        self._require_taken(method, params)
        if sample_weight is None:
            return Routed(params, {}, {})
        weighed = {"sample_weight": sample_weight}
        fitted, asked = {**params, **weighed}, weighed
        if not has_fit_parameter(self._inner(), "sample_weight"):
            warnings.warn(
                f"{type(self._inner()).__name__} takes no sample_weight; the weights are used "
                "for the threshold only.",
                stacklevel=4,
            )
            fitted = params
        scoring = self._scoring()
        if scoring is not None and scoring.metric is None and not scoring.takes_weights():
            warnings.warn(
                "scoring takes no sample_weight; the weights are used for the classifier only.",
                stacklevel=4,
            )
            asked = {}
        return Routed(fitted, {}, asked)

    def _require_taken(self, method: str, params: dict[str, Any]) -> None:
        """Raise ValueError for parameters that the inner classifier does not take."""
        takes = signature(getattr(self._inner(), method)).parameters
        if any(each.kind is each.VAR_KEYWORD for each in takes.values()):
            return
        strange = [name for name in params if name not in takes]
        if strange:
            raise ValueError(
                f"{', '.join(map(repr, strange))} is no parameter of the classifier's {method}. "
                "A splitter or a scorer gets parameters only with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )

    def _fit_folds(
        self,
        X: Any,
        y: Any,
        rows: Rows,
        positive: Any,
        routed: Routed,
    ) -> tuple[Any, Pooled, NDArray[np.intp]]:
        """Fit on the folds, pool the scores of the rows left out, and fit on all rows."""
        if isinstance(self.cv, float):
            cv: Any = StratifiedShuffleSplit(1, test_size=self.cv, random_state=self.random_state)
        else:
            cv = check_cv(self.cv, y=rows.classes, classifier=True)
        splits = list(cv.split(X, rows.classes, **routed.splitter))
        if self._ensembled():
            _require_both_classes(cv, len(splits), rows.classes)
        if not self.refit and len(splits) > 1 and not self._ensembled():
            raise ValueError(
                "When cv has several folds, refit cannot be False: there are "
                f"{len(splits)} classifiers then. Set refit=True, or cv to the share of rows to "
                "set aside, such as cv=0.2."
            )
        inner = self._inner()
        scored = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_score)(
                clone(inner), X, y, routed.estimator, split, self._response(), positive
            )
            for split in splits
        )
        aside = np.concatenate([score for _, score in splits])
        scores = np.concatenate([scores for scores, _ in scored])
        pooled = (
            rows.take(aside)
            .pooled(scores, positive)
            ._replace(
                sizes=tuple(len(scores) for scores, _ in scored),
                repeated=len(np.unique(aside)) < len(aside),
                classifiers=tuple(estimator for _, estimator in scored),
            )
        )
        if self._ensembled():
            return scored[0][1], pooled, aside
        if self.refit:
            return clone(inner).fit(X, y, **routed.estimator), pooled, aside
        return scored[0][1], pooled, aside

    def _pooled(self, estimator: Any, X: Any, rows: Rows, positive: Any) -> Pooled:
        return rows.pooled(scores_of(estimator, X, self._response(), positive), positive)

    def _publish(self, estimator: Any, positive: Any, classes: NDArray[Any]) -> None:
        self.estimator_ = estimator
        self.classes_ = classes
        self._positive = positive
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def _score(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "estimator_")
        return scores_of(self.estimator_, X, self._response(), self._positive)

    def _named(self, answers: NDArray[Any]) -> NDArray[Any]:
        """Return the classes for answers of 0 and 1."""
        negative, positive = self.classes_
        if positive != self._positive:
            negative, positive = positive, negative
        named: NDArray[Any] = np.where(answers, positive, negative).astype(self.classes_.dtype)
        return named
