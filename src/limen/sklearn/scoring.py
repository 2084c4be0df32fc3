# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's scorers: those whose optimum limen knows, and those that must be asked."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sklearn.metrics as theirs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing

from limen import metrics
from limen.classifiers import rows_in
from limen.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["ScorerRequest", "Scoring", "read_scoring"]

_KNOWN: dict[Any, Metric] = {
    theirs.accuracy_score: metrics.accuracy,
    theirs.balanced_accuracy_score: metrics.balanced_accuracy,
    theirs.cohen_kappa_score: metrics.kappa,
    theirs.f1_score: metrics.f1,
    theirs.jaccard_score: metrics.jaccard,
    theirs.matthews_corrcoef: metrics.mcc,
    theirs.precision_score: metrics.precision,
    theirs.recall_score: metrics.recall,
}


class Scoring(NamedTuple):
    """A scorer, the metric that it computes where limen knows it, and its positive class."""

    scorer: Callable[..., Any]
    metric: Metric | None
    pos_label: Any

    def takes_weights(self) -> bool:
        """Whether it can be asked with weights."""
        function = getattr(self.scorer, "_score_func", self.scorer)
        return "sample_weight" in signature(function).parameters


def read_scoring(scoring: Any, pos_label: Any) -> Scoring:
    """Look a scorer up by its name, and recognise what it computes.

    >>> read_scoring("f1", None).metric
    limen.metrics.f1
    """
    scorer = theirs.get_scorer(scoring) if isinstance(scoring, str) else scoring
    if isinstance(scorer, Metric):
        raise TypeError(f"scoring={scorer!r} is a metric of limen: write metric={scorer!r}.")
    if not callable(scorer):
        raise TypeError(f"scoring must be a name or a scorer, got {scorer!r}.")
    if not hasattr(scorer, "_score_func") and "y_true" in signature(scorer).parameters:
        raise TypeError(
            f"scoring is {scorer!r}, a function of answers; a scorer is called with an estimator, "
            "X and y. Write scoring=make_scorer(...) around it."
        )
    settings = dict(getattr(scorer, "_kwargs", {}))
    own = settings.pop("pos_label", None)
    # A metric about the other class than the threshold is none that limen knows.
    same = own is None or pos_label is None or own == pos_label
    return Scoring(scorer, _metric_of(scorer, settings) if same else None, own)


def _metric_of(scorer: Any, settings: dict[str, Any]) -> Metric | None:
    """Return the metric of limen that is the same as this scorer's, if there is one."""
    function = getattr(scorer, "_score_func", None)
    if getattr(scorer, "_sign", 1) != 1:
        return None
    if settings.get("average") == "binary":
        settings.pop("average")
    if function is theirs.fbeta_score and set(settings) == {"beta"}:
        return metrics.fbeta(settings["beta"])
    return None if settings else _KNOWN.get(function)


class _Answers(ClassifierMixin, BaseEstimator):
    """A classifier that has answered these rows already, for a scorer to look at."""

    def __init__(self, classes: Any, answers: Any) -> None:
        self.classes_ = classes
        self.answers = answers

    def predict(self, X: Any) -> Any:
        if rows_in(X) != len(self.answers):
            raise ValueError(
                f"the scorer asks for answers to {rows_in(X)} rows, and {len(self.answers)} rows "
                "were set aside. A scorer can only be asked about the rows that it is given."
            )
        return self.answers

    def predict_proba(self, X: Any) -> Any:
        raise ValueError(
            "scoring looks at scores instead of answers, so no threshold changes its value. Take "
            "one that looks at answers, such as scoring='f1' or scoring='balanced_accuracy'."
        )

    decision_function = predict_proba


class ScorerRequest(NamedTuple):
    """A scorer with the rows that it is asked about, whose scores are known."""

    scorer: Callable[..., Any]
    rows: Any
    classes: NDArray[Any]  # of the rows
    params: dict[str, Any]  # one value for each row, or one for all
    names: NDArray[Any]  # the two classes, in order
    positive: Any

    def take(self, at: NDArray[Any]) -> ScorerRequest:
        """Select rows."""
        many = len(self.classes)
        return self._replace(
            rows=_safe_indexing(self.rows, at),
            classes=self.classes[at],
            params={name: rows_of(value, at, many) for name, value in self.params.items()},
        )

    def values(self, scores: NDArray[np.float64], thresholds: Any) -> NDArray[np.float64]:
        """Ask for the value at each threshold. O(n) each, and what the scorer takes."""
        negative = self.names[0] if self.names[1] == self.positive else self.names[1]
        answered = _Answers(self.names, None)
        found = []
        with warnings.catch_warnings():
            # To answer all rows alike is one of the cuts, and has no precision.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            for threshold in thresholds:
                answers = np.where(scores >= threshold, self.positive, negative)
                answered.answers = answers.astype(self.names.dtype)
                found.append(self.scorer(answered, self.rows, self.classes, **self.params))
        values = np.asarray(found, dtype=np.float64)
        if values.shape != (len(thresholds),):
            raise ValueError(f"scoring must return one number, got {found[0]!r}.")
        return values


def rows_of(value: Any, at: Any, rows: int) -> Any:
    """Select rows of what holds one value per row; anything else is passed on as it is."""
    sized = hasattr(value, "shape") or hasattr(value, "__len__")
    if value is None or isinstance(value, str | dict) or not sized or rows_in(value) != rows:
        return value
    return _safe_indexing(value, at)
