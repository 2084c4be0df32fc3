# SPDX-License-Identifier: Apache-2.0
"""The classifiers keep scikit-learn's contract and decide at the exact optimum."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import joblib
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import limen
from limen.sklearn import CalibratedClassifier, ThresholdClassifier
from limen.sklearn.pool import fine_unit

X, Y = make_classification(300, 6, weights=[0.7], flip_y=0.2, random_state=0)
NAMES = np.array(["fine", "ill"])[Y]
BOTH = [ThresholdClassifier, CalibratedClassifier]
VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def out_of_fold(estimator, method: str = "predict_proba") -> np.ndarray:
    given = cross_val_predict(estimator, X, Y, cv=StratifiedKFold(5), method=method)
    return given[:, 1] if given.ndim == 2 else given


def excused(estimator) -> dict[str, str]:
    """What scikit-learn excuses its own threshold classifiers from, no more than fails."""
    excuses = {}
    if VERSION < (1, 7):
        other = "the check gives a binary classifier other labels with weights than without"
        excuses["check_sample_weight_equivalence_on_dense_data"] = other
        if isinstance(estimator.estimator, LogisticRegression):  # which takes sparse rows
            excuses["check_sample_weight_equivalence_on_sparse_data"] = other
    if not isinstance(estimator, ThresholdClassifier):
        return excuses
    excuses |= {"check_classifiers_train": "Threshold at probability 0.5 does not hold"}
    if estimator.recommended:
        few = "less than five rows of a class: nothing can be recommended"
        excuses |= {
            "check_sample_weights_not_overwritten": few,
            "check_fit2d_1feature": few,
        }
        if VERSION < (1, 8):
            excuses["check_n_features_in_after_fitting"] = few
    return excuses


@parametrize_with_checks(
    [
        *(wrap(inner, cv=3) for wrap in BOTH for inner in (LogisticRegression(), GaussianNB())),
        ThresholdClassifier(LogisticRegression(), cv=3, recommended=True),
        CalibratedClassifier(LogisticRegression(), cv=3, method="sigmoid", ensemble=True),
    ],
    expected_failed_checks=excused,
)
@pytest.mark.check
@pytest.mark.filterwarnings("default")
def test_the_contract_of_scikit_learn_is_kept(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("costs", [{}, {"false_negative": 5}, {"false_positive": 0.3}])
@pytest.mark.parametrize(
    ("inner", "method"),
    [(LogisticRegression(), "predict_proba"), (LinearSVC(), "decision_function")],
)
def test_the_threshold_is_the_optimum_of_the_pooled_out_of_fold_scores(
    inner, method: str, costs
) -> None:
    model = ThresholdClassifier(inner, **costs).fit(X, Y)
    expected = limen.optimal_threshold(out_of_fold(inner, method), Y, **costs)

    assert expected == model.optimum_
    assert (expected.threshold, -expected.loss) == (model.best_threshold_, model.best_score_)


def test_the_classifier_is_fitted_on_all_rows() -> None:
    model = ThresholdClassifier(LogisticRegression()).fit(X, Y)
    whole = LogisticRegression().fit(X, Y)

    assert whole.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert whole.predict_log_proba(X).tolist() == model.predict_log_proba(X).tolist()
    assert whole.decision_function(X).tolist() == model.decision_function(X).tolist()
    answers = (whole.predict_proba(X)[:, 1] >= model.best_threshold_).astype(int)
    assert answers.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("positive", ["fine", "ill"])
def test_either_class_may_be_the_positive_one(positive: str, method: str) -> None:
    """Swapping the classes together with the costs changes no answer but those of ties."""
    model = ThresholdClassifier(
        LogisticRegression(), pos_label=positive, false_negative=3, response_method=method
    ).fit(X, NAMES)
    scores = out_of_fold(LogisticRegression(), method)
    if positive == "fine":
        scores = 1 - scores if method == "predict_proba" else -scores
    expected = limen.optimal_threshold(scores, NAMES == positive, false_negative=3)

    assert expected.loss == model.optimum_.loss
    assert expected.threshold == pytest.approx(model.best_threshold_, rel=1e-12)
    assert {"fine", "ill"} == set(model.predict(X))
    assert "<U4" == model.predict(X).dtype
    answered = model.predict(X) == positive
    given = getattr(model.estimator_, method)(X)
    if method == "predict_proba":
        own = given[:, model.classes_.tolist().index(positive)]
    else:
        own = given if positive == "ill" else -given
    assert (own >= model.best_threshold_).tolist() == answered.tolist()


def test_never_answering_the_positive_class_may_be_best() -> None:
    """scikit-learn's tuner takes its thresholds from the scores, so it cannot say this."""
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = ThresholdClassifier(LogisticRegression(), false_positive=100).fit(noise, y)

    assert (np.inf, -30.0) == (model.best_threshold_, model.best_score_)
    assert [0] == np.unique(model.predict(noise)).tolist()


def test_a_constant_score_is_no_obstacle() -> None:
    with pytest.raises(ValueError, match="constant predictions"):
        TunedThresholdClassifierCV(DummyClassifier()).fit(X, Y)
    model = ThresholdClassifier(DummyClassifier(strategy="prior"), cv=2)
    with pytest.warns(UserWarning, match=r"same score.*best_threshold_ is inf"):
        model.fit(X[:100], Y[:100])

    assert min(Y[:100].sum(), 100 - Y[:100].sum()) == model.optimum_.loss


def test_a_fitted_classifier_is_taken_as_it_is() -> None:
    inner = LogisticRegression().fit(X[:150], Y[:150])
    model = ThresholdClassifier(inner, cv="prefit").fit(X[150:], Y[150:])

    assert inner is model.estimator_
    scores = inner.predict_proba(X[150:])[:, 1]
    assert limen.optimal_threshold(scores, Y[150:]) == model.optimum_


def test_a_classifier_whose_classes_belong_to_its_kind_is_fitted() -> None:
    """As in scikit-learn's tuner: what has `classes_` is fitted, though it never saw `fit`."""

    class Ready(Unweighted):
        classes_ = np.array([0, 1])

    model = ThresholdClassifier(Ready(), cv="prefit").fit(X, Y)

    assert limen.optimal_threshold(X[:, 0], Y) == model.optimum_


def test_a_fitted_classifier_needs_one_class_only() -> None:
    inner = LogisticRegression().fit(X, Y)
    model = ThresholdClassifier(inner, cv="prefit").fit(X[Y == 1], Y[Y == 1])

    assert -np.inf == model.best_threshold_


@pytest.mark.parametrize("wrap", BOTH)
def test_prefit_without_a_fit_is_told(wrap) -> None:
    with pytest.raises(NotFittedError, match="When cv='prefit', `estimator` must be fitted"):
        wrap(LogisticRegression(), cv="prefit").fit(X, Y)


def test_a_share_of_the_rows_may_be_set_aside() -> None:
    model = ThresholdClassifier(
        LogisticRegression(), cv=0.25, refit=False, random_state=7, n_jobs=2
    )
    with joblib.parallel_config(backend="threading"):
        model.fit(X, Y)
    split = StratifiedShuffleSplit(1, test_size=0.25, random_state=7)
    learn, score = next(split.split(X, Y))
    part = LogisticRegression().fit(X[learn], Y[learn])

    assert part.coef_.tolist() == model.estimator_.coef_.tolist()
    expected = limen.optimal_threshold(part.predict_proba(X[score])[:, 1], Y[score])
    assert expected == model.optimum_


@pytest.mark.parametrize(
    "cv", [RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), ShuffleSplit(4)]
)
def test_rows_may_be_scored_more_often_or_never(cv) -> None:
    """`cross_val_predict` cannot do this; the pool simply holds them all."""
    if isinstance(cv, ShuffleSplit):
        cv.random_state = 0
    model = ThresholdClassifier(LogisticRegression(), cv=cv).fit(X, Y)
    scores, labels = [], []
    for learn, score in cv.split(X, Y):
        fitted = LogisticRegression().fit(X[learn], Y[learn])
        scores.append(fitted.predict_proba(X[score])[:, 1])
        labels.append(Y[score])

    assert limen.optimal_threshold(np.concatenate(scores), np.concatenate(labels)) == model.optimum_


def test_several_splits_need_a_refit() -> None:
    with pytest.raises(ValueError, match=r"several folds, refit cannot be False.* 5 .*cv=0.2"):
        ThresholdClassifier(LogisticRegression(), refit=False).fit(X, Y)


def test_a_fold_that_saw_one_class_scores_all_alike() -> None:
    y = np.repeat([0, 1], [90, 10])
    splits = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    model = ThresholdClassifier(GaussianNB(), cv=splits, false_negative=9).fit(X[:100], y)

    assert model.optimum_.loss <= 90
    assert (
        model.optimum_.loss
        == limen.optimal_threshold(
            np.concatenate(
                [np.zeros(50), GaussianNB().fit(X[50:100], y[50:]).predict_proba(X[:50])[:, 1]]
            ),
            np.concatenate([y[50:], y[:50]]),
            false_negative=9,
        ).loss
    )


WEIGHTS = np.random.default_rng(1).integers(0, 4, len(Y))


def test_weights_count_in_the_classifier_and_in_the_search() -> None:
    model = ThresholdClassifier(LogisticRegression(), cv=3).fit(X, Y, sample_weight=WEIGHTS)
    scores = np.empty(len(Y))
    for learn, score in StratifiedKFold(3).split(X, Y):
        fitted = LogisticRegression().fit(X[learn], Y[learn], sample_weight=WEIGHTS[learn])
        scores[score] = fitted.predict_proba(X[score])[:, 1]

    assert limen.optimal_threshold(scores, Y, weights=WEIGHTS) == model.optimum_
    whole = LogisticRegression().fit(X, Y, sample_weight=WEIGHTS)
    assert whole.coef_.tolist() == model.estimator_.coef_.tolist()


@pytest.mark.parametrize("scale", [1e-12, 0.1, 1e12])
def test_weights_of_any_size_find_the_same_cut(scale: float) -> None:
    """The unit follows the weights, so that small ones are not lost."""
    inner = GaussianNB().fit(X[:150], Y[:150])
    rest = X[150:], Y[150:]
    weights = WEIGHTS[150:] + 0.25
    model = ThresholdClassifier(inner, cv="prefit", false_negative=999)
    plain = clone(model).set_params(estimator=inner).fit(*rest, sample_weight=weights)
    scaled = clone(model).set_params(estimator=inner).fit(*rest, sample_weight=weights * scale)

    assert plain.best_threshold_ == scaled.best_threshold_
    assert plain.best_score_ * scale == pytest.approx(scaled.best_score_, rel=1e-9)
    calibrated = CalibratedClassifier(inner, cv="prefit").fit(*rest, sample_weight=weights * scale)
    expected = limen.isotonic(inner.predict_proba(rest[0])[:, 1], rest[1], weights=weights)
    assert len(expected) == len(calibrated.calibrator_.blocks())


class Unweighted(ClassifierMixin, BaseEstimator):
    """A classifier that takes no weights; its score is the first feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


def test_a_classifier_without_weights_is_told_and_the_search_uses_them() -> None:
    with pytest.warns(UserWarning, match="Unweighted takes no sample_weight"):
        model = ThresholdClassifier(Unweighted(), cv=3).fit(X, Y, sample_weight=WEIGHTS)

    assert limen.optimal_threshold(X[:, 0], Y, weights=WEIGHTS) == model.optimum_


AMOUNTS = np.random.default_rng(2).integers(1, 500, len(Y))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_costs_may_differ_from_row_to_row(weights) -> None:
    model = ThresholdClassifier(Unweighted(), false_positive=20, cv=3)
    given = {} if weights is None else {"sample_weight": weights}
    if weights is None:
        model.fit(X, Y, false_negative=AMOUNTS)
    else:
        with pytest.warns(UserWarning, match="takes no sample_weight"):
            model.fit(X, Y, false_negative=AMOUNTS, **given)
    times = 1 if weights is None else weights
    below, above = limen.losses.cost_matrix(Y, fp=20 * times + 0 * Y, fn=AMOUNTS * times)

    assert limen.optimal_cut(X[:, 0], below, above) == model.optimum_
    assert model.optimum_ != ThresholdClassifier(Unweighted(), false_positive=20).fit(X, Y).optimum_


def test_costs_per_row_and_a_metric_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="costs per row cannot be combined with a metric"):
        ThresholdClassifier(Unweighted(), metric="f1").fit(X, Y, false_negative=AMOUNTS)


@pytest.mark.parametrize(
    "metric", ["f1", "mcc", limen.metrics.fbeta(2), lambda tp, fp, fn, tn: tp - fp]
)
def test_a_metric_is_maximised(metric) -> None:
    model = ThresholdClassifier(LogisticRegression(), metric=metric).fit(X, Y)
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(out_of_fold(LogisticRegression()), Y)
    expected = calibrator.best(metric)

    assert expected == model.optimum_
    assert (expected.threshold, expected.value) == (model.best_threshold_, model.best_score_)


def test_limits_are_kept() -> None:
    model = ThresholdClassifier(LogisticRegression(), metric="recall", min_precision=0.8).fit(X, Y)
    cheap = ThresholdClassifier(LogisticRegression(), false_negative=9, max_positive_rate=0.2)
    cheap.fit(X, Y)

    assert model.optimum_.confusion.precision >= 0.8
    assert model.best_score_ == model.optimum_.confusion.recall
    confusion = cheap.optimum_.confusion
    assert confusion.positive_rate <= 0.2
    assert -(confusion.fp + 9 * confusion.fn) == cheap.best_score_


def test_limits_that_no_threshold_keeps_are_told() -> None:
    with pytest.raises(limen.Infeasible, match="min_precision"):
        ThresholdClassifier(Unweighted(), metric="recall", min_precision=1, min_recall=1).fit(X, Y)


def batches(size: int = 50):
    return [(X[at : at + size], Y[at : at + size]) for at in range(0, len(Y), size)]


def test_each_batch_is_scored_before_it_is_learned_from() -> None:
    model = ThresholdClassifier(GaussianNB(), false_negative=4)
    alone, held = GaussianNB(), limen.OnlineThreshold(false_negative=4)
    for number, (rows, labels) in enumerate(batches()):
        if number:
            held.update_many(alone.predict_proba(rows)[:, 1], labels)
        alone.partial_fit(rows, labels, classes=[0, 1])
        model.partial_fit(rows, labels, classes=[0, 1] if number == 0 else None)

        assert (held.optimum if number else limen.Optimum(None, None, 0.0)) == model.optimum_
    assert alone.theta_.tolist() == model.estimator_.theta_.tolist()
    assert [0, 1] == model.classes_.tolist()


@pytest.mark.parametrize(
    ("inner", "natural"), [(GaussianNB(), 0.5), (SGDClassifier(random_state=0), 0.0)]
)
def test_until_a_batch_is_scored_the_classifier_decides_by_itself(inner, natural: float) -> None:
    model = ThresholdClassifier(inner).partial_fit(*batches()[0], classes=[0, 1])

    assert natural == model.best_threshold_
    assert model.estimator_.predict(X).tolist() == model.predict(X).tolist()


def test_partial_fit_goes_on_after_fit() -> None:
    model = ThresholdClassifier(GaussianNB()).fit(X[:200], Y[:200])
    before = cross_val_predict(GaussianNB(), X[:200], Y[:200], method="predict_proba")[:, 1]
    then = model.predict_proba(X[200:])[:, 1]
    model.partial_fit(X[200:], Y[200:])

    assert limen.optimal_threshold(np.concatenate([before, then]), Y) == model.optimum_


def test_costs_per_row_follow_the_stream() -> None:
    model = ThresholdClassifier(GaussianNB())
    for number, (rows, labels) in enumerate(batches()):
        amounts = AMOUNTS[50 * number : 50 * number + 50]
        model.partial_fit(rows, labels, classes=[0, 1], false_negative=amounts)

    assert 250 == len(model._held.model)
    with pytest.raises(ValueError, match="with every batch or with none"):
        model.partial_fit(*batches()[0])


def test_a_limit_that_no_threshold_keeps_stops_no_stream() -> None:
    model = ThresholdClassifier(GaussianNB(), metric="recall", min_precision=1, min_recall=1)
    model.partial_fit(*batches()[0], classes=[0, 1])
    with pytest.warns(UserWarning, match="no cut meets"):
        model.partial_fit(*batches()[1])

    assert 100 == model.estimator_.class_count_.sum()


@pytest.mark.parametrize("wrap", BOTH)
def test_partial_fit_is_there_when_the_classifier_has_it(wrap) -> None:
    assert hasattr(wrap(GaussianNB()), "partial_fit")
    assert not hasattr(wrap(LogisticRegression()), "partial_fit")
    assert not hasattr(ThresholdClassifier(LinearSVC()), "predict_proba")
    assert hasattr(CalibratedClassifier(LinearSVC()), "predict_proba")


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda wrap: wrap(GaussianNB()).partial_fit(X, Y), "classes must be passed on the first"),
        (lambda wrap: wrap(GaussianNB(), cv="none").fit(X, Y), "cv must be .* got 'none'"),
        (lambda wrap: wrap(GaussianNB(), response_method="x").fit(X, Y), "response_method must be"),
        (lambda wrap: wrap(GaussianNB(), false_negative=0).fit(X, Y), "false_negative must be"),
        (
            lambda wrap: wrap(GaussianNB(), pos_label=3).fit(X, Y),
            r"pos_label must be one of \[0, 1\], got 3",
        ),
        (lambda wrap: wrap(GaussianNB()).fit(X, Y * 0), r"two classes, got 1 class: \[0\]"),
        (lambda wrap: wrap(GaussianNB()).fit(X, np.arange(300) % 3), "Only binary classification"),
        (lambda wrap: wrap(GaussianNB()).fit(X, Y, sample_weight=-WEIGHTS), "sample_weight|weight"),
        (lambda wrap: wrap(GaussianNB()).fit(X, Y, sample_weight=[1]), "sample_weight has 1"),
        (lambda wrap: wrap(GaussianNB()).fit(X, Y, groups=Y), "'groups' .*enable_metadata_routing"),
        (
            lambda wrap: (
                wrap(GaussianNB()).partial_fit(X, Y, [0, 1]).partial_fit(X, Y, classes=[0, 2])
            ),
            "classes must be those of the first call",
        ),
        (
            lambda wrap: wrap(GaussianNB()).partial_fit(X, Y, [0, 1]).partial_fit(X[:2], [1, 7]),
            r"y\[1\] must be one of .*7",
        ),
    ],
)
def test_what_cannot_be_done_is_told(wrap, call, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call(wrap)


def test_a_classifier_without_scores_is_told() -> None:
    class Silent(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

    with pytest.raises(AttributeError, match="Silent has none of predict_proba, decision_function"):
        ThresholdClassifier(Silent()).fit(X, Y)


@pytest.mark.parametrize("wrap", BOTH)
def test_frames_go_in_and_names_are_kept(wrap) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = wrap(LogisticRegression()).fit(frame, pandas.Series(NAMES, dtype="category"))

    assert list("abcdef") == model.feature_names_in_.tolist()
    assert wrap(LogisticRegression()).fit(X, NAMES).predict(X).tolist() == (
        model.predict(frame).tolist()
    )


@pytest.mark.parametrize("wrap", BOTH)
def test_a_pickle_goes_on_where_it_was(wrap) -> None:
    model = wrap(GaussianNB()).fit(X[:200], Y[:200])
    back = pickle.loads(pickle.dumps(model))
    for either in (model, back):
        either.partial_fit(X[200:], Y[200:])

    assert model.predict(X).tolist() == back.predict(X).tolist()


@pytest.mark.parametrize("wrap", BOTH)
def test_a_classifier_fits_into_pipelines_and_searches(wrap) -> None:
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(
        wrap(inner, cv=2), {"estimator__logisticregression__C": [0.1, 1.0]}, cv=2
    ).fit(X, Y)

    assert search.best_score_ > 0.5
    assert 2 == len(np.unique(make_pipeline(StandardScaler(), wrap(inner)).fit(X, Y).predict(X)))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_and_costs_are_routed() -> None:
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    model = ThresholdClassifier(inner, cv=2).set_fit_request(
        sample_weight=True, false_negative=True
    )
    seen = []

    class Spy(ThresholdClassifier):
        def fit(self, X, y, sample_weight=None, *, false_positive=None, false_negative=None):
            seen.append((sample_weight, false_positive, false_negative))
            return super().fit(
                X,
                y,
                sample_weight,
                false_positive=false_positive,
                false_negative=false_negative,
            )

    spy = Spy(inner, cv=2).set_fit_request(sample_weight=True, false_negative=True)
    spy.set_score_request(sample_weight=False)
    search = GridSearchCV(spy, {"false_positive": [10]}, cv=2, refit=True)
    search.fit(X, Y, sample_weight=WEIGHTS, false_negative=AMOUNTS)

    assert [150, 150, 300] == [len(weights) for weights, _, _ in seen]
    assert AMOUNTS.tolist() == seen[-1][2].tolist()
    model.set_params(false_positive=10).fit(X, Y, sample_weight=WEIGHTS, false_negative=AMOUNTS)
    assert model.optimum_ == search.best_estimator_.optimum_


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_asked_for_are_refused() -> None:
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        ThresholdClassifier(LogisticRegression()).fit(X, Y, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
def test_groups_reach_the_splitter() -> None:
    groups = np.arange(len(Y)) // 50
    model = ThresholdClassifier(LogisticRegression(), cv=GroupKFold(3)).fit(X, Y, groups=groups)
    expected = cross_val_predict(
        LogisticRegression(),
        X,
        Y,
        cv=GroupKFold(3),
        params={"groups": groups},
        method="predict_proba",
    )

    assert limen.optimal_threshold(expected[:, 1], Y) == model.optimum_


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_batch_by_batch() -> None:
    model = ThresholdClassifier(GaussianNB().set_partial_fit_request(sample_weight=True))
    for rows, labels in batches():
        model.partial_fit(rows, labels, classes=[0, 1], sample_weight=np.full(50, 2))

    assert 600 == model.estimator_.class_count_.sum()


def test_calibrated_probabilities_are_the_isotonic_fit() -> None:
    model = CalibratedClassifier(LogisticRegression()).fit(X, Y)
    fit = limen.isotonic(out_of_fold(LogisticRegression()), Y)
    scores = LogisticRegression().fit(X, Y).predict_proba(X)[:, 1]

    assert fit.probability(scores).tolist() == model.predict_proba(X)[:, 1].tolist()
    assert (1 - fit.probability(scores)).tolist() == model.predict_proba(X)[:, 0].tolist()
    with np.errstate(divide="ignore"):
        assert np.log(model.predict_proba(X)).tolist() == model.predict_log_proba(X).tolist()
    smooth = model.set_params(between="linear").predict_proba(X)[:, 1]
    assert fit.probability(scores, between="linear").tolist() == smooth.tolist()


def test_the_columns_of_the_probabilities_are_those_of_the_classes() -> None:
    ill = CalibratedClassifier(LinearSVC(), pos_label="ill").fit(X, NAMES)
    fine = CalibratedClassifier(LinearSVC(), pos_label="fine").fit(X, NAMES)

    assert ["fine", "ill"] == ill.classes_.tolist() == fine.classes_.tolist()
    assert np.abs(ill.predict_proba(X) - fine.predict_proba(X)).max() < 1e-12


COSTS = [(1, 1), (1, 5), (7, 2), (0.1, 0.3)]


@pytest.mark.parametrize(("false_positive", "false_negative"), COSTS)
def test_predicting_at_costs_is_the_threshold_classifier_at_these_costs(
    false_positive, false_negative
) -> None:
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    expected = ThresholdClassifier(LogisticRegression(), **costs).fit(X, Y).predict(X).tolist()
    calibrated = CalibratedClassifier(LogisticRegression()).fit(X, Y)

    assert expected == calibrated.predict(X, **costs).tolist()
    assert expected == calibrated.set_params(**costs).predict(X).tolist()
    rows = {name: np.full(len(X), value) for name, value in costs.items()}
    assert expected == calibrated.set_params(false_positive=3).predict(X, **rows).tolist()
    assert expected == calibrated.predict(X, **(rows | {"false_negative": false_negative})).tolist()


def test_each_row_is_answered_at_its_own_costs() -> None:
    calibrated = CalibratedClassifier(GaussianNB()).fit(X, Y)
    answers = calibrated.predict(X, false_positive=AMOUNTS, false_negative=AMOUNTS[::-1])
    expected = [
        calibrated.predict(
            X[at : at + 1],
            false_positive=int(AMOUNTS[at]),
            false_negative=int(AMOUNTS[-1 - at]),
        )[0]
        for at in range(len(X))
    ]

    assert expected == answers.tolist()
    assert {0, 1} == set(expected)


def test_a_probability_at_the_bar_is_compared_without_rounding() -> None:
    """Three in four at costs of 0.3 and 0.1 is a tie; in doubles 0.3 / (0.3 + 0.1) is less."""
    rows, labels = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1, 1, 1, 0])
    inner = Unweighted().fit(rows, labels)
    calibrated = CalibratedClassifier(inner, cv="prefit").fit(rows, labels)

    assert 0.75 > 0.3 / (0.3 + 0.1)
    for other in (np.full(4, 0.1), 0.1):
        costs = {"false_positive": np.full(4, 0.3), "false_negative": other}
        assert [0, 0, 0, 0] == calibrated.predict(rows, **costs).tolist()


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ([1.0, 0.0, 1.0], r"false_positive\[1\] must be a positive"),
        ([1.0, 1.0, np.nan], r"false_positive\[2\] must be a positive"),
        ([1.0, 1.0], "X has 3, false_positive has 2"),
    ],
)
def test_costs_of_rows_that_are_none_are_told(costs, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        CalibratedClassifier(GaussianNB()).fit(X, Y).predict(X[:3], false_positive=costs)


def test_between_is_checked() -> None:
    with pytest.raises(ValueError, match='between must be "step" or "linear"'):
        CalibratedClassifier(GaussianNB(), between="spline").fit(X, Y)


@pytest.mark.parametrize("inner", [GaussianNB(), SGDClassifier(random_state=0)])
def test_calibration_follows_the_stream(inner) -> None:
    model = CalibratedClassifier(inner)
    alone, held = clone(inner), limen.OnlineCalibrator()
    for number, (rows, labels) in enumerate(batches()):
        if number:
            scores = (
                alone.predict_proba(rows)[:, 1]
                if hasattr(alone, "predict_proba")
                else alone.decision_function(rows)
            )
            held.update_many(scores, labels)
        alone.partial_fit(rows, labels, classes=[0, 1])
        model.partial_fit(rows, labels, classes=[0, 1])
        if number == 0:
            own = (
                alone.predict_proba(rows)
                if hasattr(alone, "predict_proba")
                else np.full((len(rows), 2), 0.5)
            )
            assert own.tolist() == model.predict_proba(rows).tolist()
            assert (own[:, 1] > 1 / 6).astype(int).tolist() == (
                model.predict(rows, false_negative=5).tolist()
            )

    assert held._state() == model.calibrator_._state()


# Weights of another magnitude than those before.

FINE = np.random.default_rng(3).random(len(Y)) + 0.1


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e4, 1e12])
@pytest.mark.parametrize("fitted", [True, False])
def test_batches_may_weigh_more_or_less_than_those_before(wrap, scale: float, fitted: bool) -> None:
    """The unit follows: the answer is that of all samples at once."""
    weights = np.where(np.arange(len(Y)) < 200, FINE, FINE * scale)
    inner = GaussianNB().fit(X[:100], Y[:100])
    if fitted:
        model = wrap(inner, cv="prefit").fit(X[:100], Y[:100], sample_weight=weights[:100])
        scores = [inner.predict_proba(X[:100])[:, 1]]
    else:
        model = wrap(GaussianNB()).partial_fit(X[:100], Y[:100], [0, 1], weights[:100])
        scores = []
    for rows in (slice(100, 200), slice(200, 300)):
        scores.append(model.estimator_.predict_proba(X[rows])[:, 1])
        model.partial_fit(X[rows], Y[rows], sample_weight=weights[rows])
    pooled, first = np.concatenate(scores), 0 if fitted else 100
    expected = limen.optimal_threshold(
        pooled, Y[first:], weights=weights[first:], unit=fine_unit([weights[first:]], 1)
    )

    if wrap is ThresholdClassifier:
        assert expected.threshold == model.best_threshold_
        assert expected.loss == pytest.approx(model.optimum_.loss, rel=1e-12)
    else:
        assert expected.threshold == model.calibrator_.threshold()


def test_weights_that_the_caller_overwrites_later_count_as_they_were() -> None:
    kept, overwritten = (
        ThresholdClassifier(GaussianNB()).partial_fit(X[:100], Y[:100], [0, 1]) for _ in range(2)
    )
    weights = FINE[100:200].copy()
    kept.partial_fit(X[100:200], Y[100:200], sample_weight=FINE[100:200])
    overwritten.partial_fit(X[100:200], Y[100:200], sample_weight=weights)
    weights[:] = 1e3
    for either in (kept, overwritten):
        either.partial_fit(X[200:], Y[200:], sample_weight=FINE[200:] * 1e6)

    assert kept.optimum_ == overwritten.optimum_


def test_costs_per_row_may_change_their_magnitude_too() -> None:
    model = ThresholdClassifier(GaussianNB()).partial_fit(
        X[:100], Y[:100], [0, 1], false_negative=FINE[:100]
    )
    for rows, scale in ((slice(100, 200), 1e-6), (slice(200, 300), 1e6)):
        model.partial_fit(X[rows], Y[rows], false_negative=FINE[rows] * scale)

    assert 200 == len(model._held.model)


def test_weights_that_no_unit_holds_together_are_told_and_change_nothing() -> None:
    model = ThresholdClassifier(GaussianNB()).fit(X[:200], Y[:200], sample_weight=FINE[:200])
    before = model._held.model._state(), model.estimator_.class_count_.tolist()
    with pytest.raises(ValueError, match=r"would round to 0 in units of .* one magnitude"):
        model.partial_fit(X[200:], Y[200:], sample_weight=FINE[200:] * 1e18)

    assert before == (model._held.model._state(), model.estimator_.class_count_.tolist())


def test_a_stream_of_small_weights_is_not_rounded_to_a_few_units() -> None:
    """One unit of 2**-20 is a third of such a weight."""
    model = ThresholdClassifier(GaussianNB()).partial_fit(X[:100], Y[:100], [0, 1])
    scores = model.predict_proba(X[100:])[:, 1]
    model.partial_fit(X[100:], Y[100:], sample_weight=3e-6 * FINE[100:])

    assert model.best_threshold_ == (
        limen.optimal_threshold(scores, Y[100:], weights=FINE[100:]).threshold
    )


class Fails(GaussianNB):
    """A classifier whose second batch fails."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if hasattr(self, "class_count_"):
            raise RuntimeError("no room")
        return super().partial_fit(X, y, classes, sample_weight)


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize("weights", [None, FINE[50:100] * 1e12])
def test_a_batch_that_cannot_be_learned_is_not_held(wrap, weights) -> None:
    model = wrap(Fails()).fit(X[:50], Y[:50], sample_weight=FINE[:50])
    pool = model._held
    before = pool.model._state(), model.predict(X).tolist()
    with pytest.raises(RuntimeError, match="no room"):
        model.partial_fit(X[50:100], Y[50:100], sample_weight=weights)

    assert before == (pool.model._state(), model.predict(X).tolist())
    model.estimator_ = GaussianNB().fit(X[:50], Y[:50])
    model.partial_fit(X[50:100], Y[50:100], sample_weight=weights)
    assert 100 == len(pool.model)


def test_a_metric_that_fails_changes_nothing() -> None:
    broken = False

    def metric(tp, fp, fn, tn):
        if broken:
            raise ZeroDivisionError
        return tp - fp

    model = ThresholdClassifier(GaussianNB(), metric=metric).fit(X[:50], Y[:50])
    before = len(model._held.model), model.estimator_.class_count_.tolist(), model.optimum_
    broken = True
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ZeroDivisionError):
            call(X[50:100], Y[50:100])

    assert before == (
        *(len(model._held.model), model.estimator_.class_count_.tolist()),
        model.optimum_,
    )


@pytest.mark.parametrize("name", ["sample_weight", "false_positive", "false_negative"])
@pytest.mark.parametrize("value", [-179, np.nan, np.inf])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_and_costs_per_row_that_are_none_are_told(name, value, method: str) -> None:
    """Whatever the label of the row is: the next fit may need the other cost."""
    given = {name: np.where(np.arange(len(Y)) == 7, value, 1)}
    model = ThresholdClassifier(GaussianNB()).fit(X, Y)
    before = model.optimum_
    with pytest.raises(ValueError, match=rf"{name}\[7\] must be .*at least 0, got {value}"):
        getattr(model, method)(X, Y, **given)

    assert before == model.optimum_


def test_a_row_may_cost_nothing() -> None:
    model = ThresholdClassifier(Unweighted()).fit(X, Y, false_negative=AMOUNTS * (AMOUNTS > 100))

    assert model.optimum_.loss < AMOUNTS.sum()


# Which class is the positive one.

MATTERS = [
    ({"false_negative": 25}, {}),
    ({"false_positive": 0.5}, {}),
    ({"metric": "f1"}, {}),
    ({"min_recall": 0.9}, {}),
    ({"max_positive_rate": 0.1}, {}),
    ({}, {"false_negative": AMOUNTS}),
]


@pytest.mark.parametrize(("made", "told"), MATTERS)
@pytest.mark.parametrize("labels", [NAMES, NAMES.astype(object), Y + 1])
def test_the_positive_class_is_asked_for_where_the_answer_depends_on_it(made, told, labels) -> None:
    first, second = (repr(value) for value in np.unique(labels).tolist())
    asked = (
        rf"pos_label must be given.* y holds {first} \({(Y == 0).sum()} rows\) and {second} "
        rf"\({(Y == 1).sum()} rows\).*pos_label={first} or pos_label={second}"
    )
    model = ThresholdClassifier(GaussianNB(), **made)
    with pytest.raises(ValueError, match=asked):
        model.fit(X, labels, **told)
    with pytest.raises(ValueError, match=asked):
        model.partial_fit(X, labels, np.unique(labels), **told)

    model.set_params(pos_label=np.unique(labels)[0]).fit(X, labels, **told)


@pytest.mark.parametrize("labels", [Y, 2 * Y - 1, Y == 1, Y.astype(float)])
def test_zero_and_one_need_no_word_about_the_positive_class(labels) -> None:
    model = ThresholdClassifier(GaussianNB(), false_negative=25).fit(X, labels)

    assert ThresholdClassifier(GaussianNB(), false_negative=25).fit(X, Y).optimum_ == model.optimum_


def test_at_equal_costs_either_class_will_do() -> None:
    model = ThresholdClassifier(GaussianNB(), false_positive=5, false_negative=5).fit(X, NAMES)

    assert {"fine", "ill"} == set(model.predict(X))


def test_calibrated_answers_at_unequal_costs_ask_for_the_positive_class() -> None:
    model = CalibratedClassifier(GaussianNB()).fit(X, NAMES)
    each = np.full(len(X), 5)

    assert (
        model.predict(X, false_positive=3, false_negative=3).tolist() == model.predict(X).tolist()
    )
    for costs in ({"false_negative": 25}, {"false_positive": each}):
        with pytest.raises(ValueError, match="pos_label='fine' or pos_label='ill'"):
            model.predict(X, **costs)
    with pytest.raises(ValueError, match="pos_label='fine' or pos_label='ill'"):
        CalibratedClassifier(GaussianNB(), false_negative=25).fit(X, NAMES)
    CalibratedClassifier(GaussianNB(), pos_label="ill").fit(X, NAMES).predict(
        X, false_positive=3, false_negative=each
    )


# What to maximise.


@pytest.mark.parametrize("costs", [{"false_positive": 2}, {"false_negative": 25}])
def test_a_metric_and_costs_are_two_aims(costs) -> None:
    with pytest.raises(
        ValueError, match=r"metric='f1' and costs exclude each other.*Leave out one"
    ):
        ThresholdClassifier(GaussianNB(), metric="f1", **costs).fit(X, Y)


@pytest.mark.parametrize(
    ("metric", "error", "told"),
    [
        (f1_score, TypeError, "y_true.* limen needs .*tp, fp, fn, tn.*metric='f1'"),
        (make_scorer(f1_score), TypeError, "limen needs .*tp, fp, fn, tn.*metric='f1'"),
        (lambda estimator, X, y: 0, TypeError, "limen needs .*tp, fp, fn, tn"),
        ("roc_auc", ValueError, "metric must be one of .*'f1'"),
        (3, TypeError, "metric must be a name"),
    ],
)
def test_a_metric_that_is_none_is_told_before_anything_is_fitted(metric, error, told) -> None:
    class Never(GaussianNB):
        def fit(self, *args):
            raise AssertionError

    with pytest.raises(error, match=told):
        ThresholdClassifier(Never(), metric=metric).fit(X, Y)


def test_a_limit_that_is_none_is_told_by_its_name() -> None:
    with pytest.raises(ValueError, match="min_recall must be a share from 0 to 1, got 90"):
        ThresholdClassifier(GaussianNB(), min_recall=90).fit(X, Y)


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize(
    ("inner", "told"),
    [
        (LinearRegression(), r"binary classifier .* got LinearRegression\(\).*optimal_threshold"),
        (make_pipeline(StandardScaler(), LinearRegression()), "binary classifier .* Pipeline"),
        (IsolationForest(n_estimators=2), "binary classifier .* IsolationForest"),
        (LogisticRegression, r"got the class LogisticRegression. Write LogisticRegression\(\)"),
    ],
)
@pytest.mark.parametrize("cv", [2, "prefit"])
def test_what_is_no_classifier_is_told(wrap, inner, told: str, cv) -> None:
    if cv == "prefit" and not isinstance(inner, type):
        inner = clone(inner).fit(X, Y)
    with pytest.raises(TypeError, match=told):
        wrap(inner, cv=cv).fit(X, Y)


class Mute(ClassifierMixin, BaseEstimator):
    """A classifier that learns batches and gives no scores."""

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.unique(y)
        return self


@pytest.mark.parametrize("wrap", BOTH)
def test_a_first_batch_that_gives_no_scores_is_not_the_first(wrap) -> None:
    model = wrap(Mute())
    for _ in range(2):
        with pytest.raises(AttributeError, match="Mute has none of predict_proba"):
            model.partial_fit(X, Y, classes=[0, 1])

    assert not hasattr(model, "estimator_")


# How sure a threshold is.


@pytest.mark.parametrize("costs", [{}, {"false_negative": 5}, {"false_positive": 0.3}])
@pytest.mark.parametrize("weights", [None, WEIGHTS, FINE])
def test_recommended_is_what_recommend_says_of_the_pooled_scores(costs, weights) -> None:
    inner = Unweighted()
    given = {} if weights is None else {"sample_weight": weights}
    models = [ThresholdClassifier(inner, recommended=each, **costs) for each in (True, False)]
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        new, exact = (model.fit(X, Y, **given) for model in models)
    expected = limen.recommend(X[:, 0], Y, weights=weights, **costs)

    assert expected.threshold == new.best_threshold_
    assert expected.optimum.threshold == exact.best_threshold_
    assert exact.optimum_ == new.optimum_
    for model in (new, exact):
        assert expected.interval == model.best_threshold_interval_
        assert expected.reason == model.best_threshold_reason_
    answers = X[:, 0] >= new.best_threshold_
    assert answers.tolist() == (new.predict(X) == 1).tolist()
    price = np.where(Y == 1, costs.get("false_negative", 1), costs.get("false_positive", 1))
    paid = (price * (1 if weights is None else weights))[answers != (Y == 1)].sum()
    assert -paid == pytest.approx(new.best_score_, rel=1e-12)
    assert new.best_score_ <= exact.best_score_
    assert costs != {"false_positive": 0.3} or new.best_threshold_ != exact.best_threshold_


def test_the_interval_is_about_scores_of_rows_not_seen() -> None:
    model = ThresholdClassifier(LogisticRegression(), false_negative=3).fit(X, Y)
    expected = limen.recommend(out_of_fold(LogisticRegression()), Y, false_negative=3)

    assert expected.interval == model.best_threshold_interval_
    inner = LogisticRegression().fit(X[:150], Y[:150])
    model = ThresholdClassifier(inner, cv="prefit").fit(X[150:], Y[150:])
    expected = limen.recommend(inner.predict_proba(X[150:])[:, 1], Y[150:])
    assert expected.interval == model.best_threshold_interval_


@pytest.mark.parametrize("scale", [1e-12, 0.1, 1e12])
def test_weights_of_any_size_have_the_same_interval(scale: float) -> None:
    inner = GaussianNB().fit(X[:150], Y[:150])
    model = ThresholdClassifier(inner, cv="prefit", false_negative=999, recommended=True)
    found = []
    for weights in (FINE[150:], FINE[150:] * scale):
        model.fit(X[150:], Y[150:], sample_weight=weights)
        found.append((model.best_threshold_, model.best_threshold_interval_))

    assert found[0] == found[1]


def test_a_unit_of_the_user_is_the_unit_of_the_interval_too() -> None:
    model = ThresholdClassifier(Unweighted(), unit=0.5)
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        model.fit(X, Y, sample_weight=FINE + 0.5)
    rounded = np.rint((FINE + 0.5) / 0.5)

    assert limen.recommend(X[:, 0], Y, weights=rounded).interval == model.best_threshold_interval_
    assert limen.optimal_threshold(X[:, 0], Y, weights=rounded).threshold == model.best_threshold_


TWICE = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
REFUSED = [
    ({"metric": "f1"}, {}, slice(None), "for costs only, not for a metric or limits"),
    ({"max_positive_rate": 0.4}, {}, slice(None), "for costs only, not for a metric or limits"),
    ({}, {"false_negative": AMOUNTS}, slice(None), "not known for costs per row"),
    ({"cv": TWICE}, {}, slice(None), "need every row at most once, and cv scores some"),
    ({"cv": 2}, {}, np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y)[:4]], "4 samples of label 1"),
]


@pytest.mark.parametrize(("made", "given", "rows", "why"), REFUSED)
@pytest.mark.parametrize("inner", [Unweighted(), GaussianNB()])
def test_where_nothing_is_known_there_is_a_reason_and_no_interval(
    made, given, rows, why, inner
) -> None:
    model = ThresholdClassifier(inner, **made).fit(X[rows], Y[rows], **given)
    before = vars(model).copy()

    assert model.best_threshold_interval_ is None
    assert why in model.best_threshold_reason_
    assert model.optimum_.threshold == model.best_threshold_
    model.set_params(recommended=True)
    with pytest.raises(ValueError, match=rf"{why}.* Set recommended=False for the exact"):
        model.fit(X[rows], Y[rows], **given)
    assert before | {"recommended": True} == vars(model)


def test_a_recommendation_that_cannot_be_is_told_before_anything_is_fitted() -> None:
    class Never(GaussianNB):
        def fit(self, *args):
            raise AssertionError

    for made, given, _, why in REFUSED[:3]:
        with pytest.raises(ValueError, match=why):
            ThresholdClassifier(Never(), recommended=True, **made).fit(X, Y, **given)


def test_the_interval_follows_the_stream() -> None:
    models = [ThresholdClassifier(GaussianNB(), recommended=each) for each in (False, True)]
    alone, scores, labels = GaussianNB(), np.empty(0), np.empty(0, int)
    for number, (rows, answers) in enumerate(batches(30)):
        weights = FINE[:30] if number == 3 else None
        if number:
            scores = np.append(scores, alone.predict_proba(rows)[:, 1])
            labels = np.append(labels, answers)
        alone.partial_fit(rows, answers, [0, 1], weights)
        for model in models:
            model.partial_fit(rows, answers, [0, 1], weights)
        if number == 0:
            for model in models:
                assert model.best_threshold_interval_ is None
                assert "0 samples of label" in model.best_threshold_reason_
            continue
        each = np.ones(len(scores))
        each[60:90] = FINE[:30] if len(scores) > 60 else []
        weighted = None if number < 3 else each
        expected = limen.recommend(scores, labels, weights=weighted)
        exact = limen.optimal_threshold(scores, labels, weights=weighted)

        thresholds = [exact.threshold, expected.threshold]
        assert thresholds == pytest.approx([m.best_threshold_ for m in models], rel=1e-6)
        assert [expected.interval] * 2 == [model.best_threshold_interval_ for model in models]
        assert [exact.threshold] * 2 == [model.optimum_.threshold for model in models]
    assert not hasattr(models[0], "fold_thresholds_")


def test_a_stream_keeps_its_threshold_until_there_are_enough_samples() -> None:
    model = ThresholdClassifier(GaussianNB(), false_negative=9, recommended=True)
    model.partial_fit(X[:50], Y[:50], [0, 1])
    rows = np.r_[50 + np.flatnonzero(Y[50:] == 0)[:9], 50 + np.flatnonzero(Y[50:])[:4]]
    model.partial_fit(X[rows], Y[rows])
    own = GaussianNB().fit(X[:50], Y[:50])

    assert 0.5 == model.best_threshold_
    assert "4 samples of label 1" in model.best_threshold_reason_
    answers = own.predict(X[rows])
    cost = np.sum((answers == 1) & (Y[rows] == 0)) + 9 * np.sum((answers == 0) & (Y[rows] == 1))
    assert -cost == model.best_score_
    rest = np.setdiff1d(np.arange(50, 300), rows)
    model.partial_fit(X[rest], Y[rest])
    assert model.best_threshold_ != 0.5
    assert model.best_threshold_interval_ is not None


def test_rows_that_were_scored_twice_are_remembered_in_a_stream() -> None:
    model = ThresholdClassifier(GaussianNB(), cv=TWICE).fit(X[:200], Y[:200])
    model.partial_fit(X[200:], Y[200:])

    assert model.best_threshold_interval_ is None
    assert "more often" in model.best_threshold_reason_


def test_a_recommended_batch_that_cannot_be_learned_changes_nothing() -> None:
    model = ThresholdClassifier(Fails(), recommended=True).fit(X[:100], Y[:100])
    before = model.best_threshold_, model.best_threshold_interval_, len(model._held.samples())
    with pytest.raises(RuntimeError, match="no room"):
        model.partial_fit(X[100:], Y[100:])

    after = model.best_threshold_, model.best_threshold_interval_, len(model._held.samples())
    assert before == after


@pytest.mark.parametrize(
    ("made", "given"),
    [({"false_negative": 4}, {}), ({"metric": "f1"}, {}), ({}, {"false_negative": AMOUNTS})],
)
def test_each_fold_has_the_threshold_of_its_own_scores(made, given) -> None:
    model = ThresholdClassifier(Unweighted(), cv=3, **made).fit(X, Y, **given)
    expected = []
    for _, score in StratifiedKFold(3).split(X, Y):
        each = {name: column[score] for name, column in given.items()}
        alone = ThresholdClassifier(Unweighted().fit(X, Y), cv="prefit", **made)
        expected.append(alone.fit(X[score], Y[score], **each).best_threshold_)

    assert expected == model.fold_thresholds_.tolist()
    assert [expected[-1]] == alone.fold_thresholds_.tolist()
    assert len(set(expected)) > 1


def test_a_fold_that_keeps_no_limit_has_no_threshold() -> None:
    y = np.where(X[:, 0] > 0, 1, 0)
    y[:10] = 1 - y[:10]
    splits = [(np.arange(300), np.arange(5)), (np.arange(300), np.arange(5, 300))]
    model = ThresholdClassifier(Unweighted(), cv=splits, metric="recall", min_precision=0.9)
    model.fit(X, y)

    assert [True, False] == np.isnan(model.fold_thresholds_).tolist()
    assert np.isfinite(model.best_threshold_)


def test_a_fitted_classifier_that_cannot_go_on_holds_no_scores() -> None:
    """What is saved for use stays small."""
    many, labels = np.tile(X, (20, 1)), np.tile(Y, 20)
    model = ThresholdClassifier(LogisticRegression(), cv=2, recommended=True).fit(many, labels)
    back = pickle.loads(pickle.dumps(model))

    assert len(pickle.dumps(model)) < 5_000
    assert model.best_threshold_interval_ == back.best_threshold_interval_
    assert model.fold_thresholds_.tolist() == back.fold_thresholds_.tolist()


def test_before_a_fit_there_is_no_interval() -> None:
    model = ThresholdClassifier(LogisticRegression())

    assert not hasattr(model, "best_threshold_interval_")
    with pytest.raises(NotFittedError):
        _ = model.best_threshold_reason_


def test_recommended_is_a_parameter_like_any_other() -> None:
    model = ThresholdClassifier(LogisticRegression(), recommended=True)

    assert "ThresholdClassifier(estimator=LogisticRegression(), recommended=True)" == repr(model)
    assert "recommended" in model._repr_html_()
    assert clone(model).recommended
    search = GridSearchCV(ThresholdClassifier(GaussianNB()), {"recommended": [False, True]}, cv=2)
    assert len(search.fit(X, Y).cv_results_["params"]) == 2
