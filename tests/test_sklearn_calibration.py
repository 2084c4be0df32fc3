# SPDX-License-Identifier: Apache-2.0
"""The methods of calibration and ensembles, against scikit-learn's and by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import limen
from limen.sklearn import CalibratedClassifier, ThresholdClassifier

X, Y = make_classification(300, 6, weights=[0.7], flip_y=0.2, random_state=5)
NAMES = np.array(["fine", "ill"])[Y]
WEIGHTS = np.random.default_rng(1).uniform(size=len(Y))
FOLDS = StratifiedKFold(3)
METHODS = ["isotonic", "sigmoid", "venn-abers"]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
@pytest.mark.parametrize("inner", [LogisticRegression(), GaussianNB()])
def test_it_is_what_scikit_learn_computes(inner, method, ensemble, weights) -> None:
    theirs = CalibratedClassifierCV(inner, method=method, ensemble=ensemble, cv=FOLDS)
    response = "decision_function" if isinstance(inner, LogisticRegression) else "auto"
    ours = CalibratedClassifier(
        inner,
        method=method,
        ensemble=ensemble,
        cv=FOLDS,
        between="linear",
        response_method=response,
    )
    theirs.fit(X, Y, sample_weight=weights)
    ours.fit(X, Y, sample_weight=weights)

    assert np.allclose(theirs.predict_proba(X), ours.predict_proba(X), rtol=1e-6, atol=1e-9)
    assert len(theirs.calibrated_classifiers_) == len(ours.calibrated_classifiers_)
    pairs = zip(theirs.calibrated_classifiers_, ours.calibrated_classifiers_, strict=True)
    for one, other in pairs:
        assert np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_the_sigmoid_takes_the_decision_function_first() -> None:
    theirs = CalibratedClassifierCV(LogisticRegression(), method="sigmoid", ensemble=False)
    ours = CalibratedClassifier(LogisticRegression(), method="sigmoid")

    assert np.allclose(theirs.fit(X, Y).predict_proba(X), ours.fit(X, Y).predict_proba(X))


def test_venn_abers_is_one_number_of_the_interval() -> None:
    model = CalibratedClassifier(LogisticRegression(), method="venn-abers", cv=FOLDS).fit(X, Y)
    held = cross_val_predict(LogisticRegression(), X, Y, cv=FOLDS, method="predict_proba")
    with np.errstate(all="ignore"):  # which the package changes for everybody when it is imported
        theirs = pytest.importorskip("venn_abers").VennAbers()
        theirs.fit(held, Y)
        merged, _ = theirs.predict_proba(LogisticRegression().fit(X, Y).predict_proba(X))

    assert np.allclose(merged, model.predict_proba(X), atol=1e-5)  # they round scores
    positive = model.predict_proba(X)[:, 1]
    assert (0 < positive).all()
    assert (positive < 1).all()
    low, high = model.calibrator_.probability_interval(model.estimator_.predict_proba(X)[:, 1])
    assert (low <= positive).all()
    assert (positive <= high).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ensemble", [True, False])
def test_answers_are_those_of_the_probabilities(method, ensemble) -> None:
    model = CalibratedClassifier(
        GaussianNB(), method=method, ensemble=ensemble, pos_label="ill", cv=FOLDS
    ).fit(X, NAMES)
    positive = model.predict_proba(X)[:, 1]
    costs = np.random.default_rng(3).integers(1, 30, len(X))

    assert ["fine", "ill"] == model.classes_.tolist()
    assert ((positive > 0.5) == (model.predict(X) == "ill")).all()
    assert ((positive > 1 / 8) == (model.predict(X, false_negative=7) == "ill")).all()
    each = model.predict(X, false_negative=costs) == "ill"
    assert ((positive > 1 / (1 + costs)) == each).all()
    swapped = CalibratedClassifier(
        GaussianNB(), method="sigmoid", ensemble=ensemble, pos_label="fine", cv=FOLDS
    ).fit(X, NAMES)
    straight = CalibratedClassifier(
        GaussianNB(), method="sigmoid", ensemble=ensemble, pos_label="ill", cv=FOLDS
    ).fit(X, NAMES)
    assert np.allclose(straight.predict_proba(X), swapped.predict_proba(X), atol=1e-5)


def test_an_ensemble_is_the_mean_of_its_classifiers_and_has_no_other() -> None:
    model = CalibratedClassifier(GaussianNB(), ensemble=True, cv=FOLDS).fit(X, Y)
    parts = []
    for learn, score in FOLDS.split(X, Y):
        fitted = GaussianNB().fit(X[learn], Y[learn])
        fit = limen.isotonic(fitted.predict_proba(X[score])[:, 1], Y[score])
        parts.append(fit.probability(fitted.predict_proba(X)[:, 1]))

    assert np.mean(parts, axis=0).tolist() == model.predict_proba(X)[:, 1].tolist()
    assert not hasattr(model, "estimator_")
    assert not hasattr(model, "calibrator_")
    assert 6 == model.n_features_in_
    again = pickle.loads(pickle.dumps(model))
    assert model.predict_proba(X).tolist() == again.predict_proba(X).tolist()
    with pytest.raises(ValueError, match="an ensemble has no partial_fit"):
        model.partial_fit(X, Y)
    model.set_params(ensemble=False).fit(X, Y)
    assert isinstance(model.estimator_, GaussianNB)
    assert 1 == len(model.calibrated_classifiers_)


@pytest.mark.parametrize(
    ("estimator", "many"), [(LinearSVC(), 3), (FrozenEstimator(LinearSVC().fit(X, Y)), 1)]
)
def test_auto_is_an_ensemble_unless_the_classifier_is_frozen(estimator, many) -> None:
    model = CalibratedClassifier(estimator, ensemble="auto", cv=FOLDS).fit(X, Y)

    assert many == len(model.calibrated_classifiers_)


def test_an_ensemble_of_a_fitted_classifier_is_that_classifier() -> None:
    inner = GaussianNB().fit(X, Y)
    model = CalibratedClassifier(inner, cv="prefit", ensemble=True).fit(X, Y)

    assert inner is model.estimator_


def test_without_an_estimator_it_is_that_of_scikit_learn() -> None:
    ours = CalibratedClassifier(method="sigmoid", cv=FOLDS).fit(X, Y)
    theirs = CalibratedClassifierCV(cv=FOLDS, ensemble=False).fit(X, Y)

    assert np.allclose(theirs.predict_proba(X), ours.predict_proba(X))
    with sklearn.config_context(enable_metadata_routing=True):
        CalibratedClassifier(cv=FOLDS).fit(X, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ensemble", [True, False])
def test_scores_that_were_never_seen(method, ensemble) -> None:
    inside, outside = X[:1], 1e3 * np.array([[1, -1, 1, 1, -1, 1], [-1, 1, -1, -1, 1, -1]])
    rows = np.vstack([inside, outside])
    made = {"method": method, "ensemble": ensemble, "cv": FOLDS}
    inner = LinearSVC(random_state=0)
    clipped = CalibratedClassifier(inner, **made).fit(X, Y).predict_proba(rows)
    none = CalibratedClassifier(inner, out_of_bounds="nan", **made).fit(X, Y).predict_proba(rows)
    strict = CalibratedClassifier(inner, out_of_bounds="raise", **made).fit(X, Y)

    assert not np.isnan(clipped).any()
    assert clipped[0].tolist() == none[0].tolist()
    assert np.isnan(none[1:]).all()
    assert strict.predict_proba(inside).tolist() == clipped[:1].tolist()
    with pytest.raises(ValueError, match=r"row 1 has the score .* calibrated on scores from"):
        strict.predict_proba(rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ensemble", [True, False])
def test_float32_in_float32_out(method, ensemble) -> None:
    class Same(Column):
        """Its scores are as fine as its rows."""

        def predict_proba(self, X):
            return super().predict_proba(X).astype(X.dtype)

    for dtype in (np.float32, np.float64):
        model = CalibratedClassifier(Same(), method=method, ensemble=ensemble, cv=FOLDS)
        rows = X.astype(dtype)
        assert dtype == model.fit(rows, Y).predict_proba(rows).dtype


class Column(ClassifierMixin, BaseEstimator):
    """A classifier that gives one column of shape (n, 1), as neural networks do."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return 1 / (1 + np.exp(-X[:, :1]))


@pytest.mark.parametrize("wrap", [ThresholdClassifier, CalibratedClassifier])
@pytest.mark.parametrize("positive", ["fine", "ill"])
def test_a_single_column_is_that_of_the_second_class(wrap, positive) -> None:
    class Both(Column):
        def predict_proba(self, X):
            one = super().predict_proba(X)
            return np.hstack([1 - one, one])

    one, two = (wrap(inner, pos_label=positive).fit(X, NAMES) for inner in (Column(), Both()))

    assert two.predict(X).tolist() == one.predict(X).tolist()
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="column-vector"):
        wrap(Both(), pos_label=positive).fit(X, NAMES[:, None])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_follows_a_stream(method) -> None:
    inner = SGDClassifier(loss="log_loss", random_state=0)
    model = CalibratedClassifier(inner, method=method).partial_fit(X[:100], Y[:100], [0, 1])
    scores = []
    name = "decision_function" if method == "sigmoid" else "predict_proba"
    for at in (100, 200):
        given = getattr(model.estimator_, name)(X[at : at + 100])
        scores.append(given if given.ndim == 1 else given[:, 1])
        model.partial_fit(X[at : at + 100], Y[at : at + 100])
    given = getattr(model.estimator_, name)(X)
    now = given if given.ndim == 1 else given[:, 1]
    held, labels = np.concatenate(scores), Y[100:]
    if method == "sigmoid":
        expected = sklearn.calibration._SigmoidCalibration().fit(held, labels).predict(now)
    else:
        online = limen.OnlineCalibrator()
        online.update_many(held, labels)
        expected = online.probability(now)
        if method == "venn-abers":
            low, high = online.probability_interval(now)
            expected = high / (1 - low + high)

    assert np.allclose(expected, model.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"method": "temperature"}, "method must be one of 'isotonic', 'sigmoid', 'venn-abers'"),
        ({"out_of_bounds": "drop"}, "out_of_bounds must be one of 'clip', 'nan', 'raise'"),
        ({"ensemble": "yes"}, "ensemble must be True, False or 'auto', got 'yes'"),
        ({"ensemble": True, "cv": sklearn.model_selection.KFold(200)}, "Requesting 200-fold"),
        (
            {"ensemble": True, "cv": sklearn.model_selection.LeaveOneOut()},
            "LeaveOneOut cross-validation does not leave rows of both classes",
        ),
    ],
)
def test_a_calibration_that_cannot_be_is_told(made, told) -> None:
    with pytest.raises(ValueError, match=told):
        CalibratedClassifier(GaussianNB(), **made).fit(X, Y)
