# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's scorers: the best of all cuts, by asking them at every one."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    fbeta_score,
    get_scorer,
    make_scorer,
)
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB

import limen
from limen.sklearn import ThresholdClassifier, candidates
from limen.sklearn.scoring import read_scoring

X, Y = make_classification(240, 6, weights=[0.7], flip_y=0.2, random_state=3)
X[:, 0] = np.round(X[:, 0], 1)  # ties
NAMES = np.array(["fine", "ill"])[Y]
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(Y))
FRACTIONS = np.random.default_rng(2).uniform(size=len(Y))
FOLDS = StratifiedKFold(3)

KNOWN = [
    "accuracy",
    "balanced_accuracy",
    "f1",
    "jaccard",
    "matthews_corrcoef",
    "precision",
    "recall",
    make_scorer(f1_score),
    make_scorer(fbeta_score, beta=2),
    make_scorer(fbeta_score, beta=0.5, average="binary"),
    make_scorer(cohen_kappa_score),
]
UNKNOWN = [
    "f1_macro",
    make_scorer(cohen_kappa_score, weights="linear"),
    make_scorer(
        lambda y, answers: -float((confusion_matrix(y, answers) * [[0, 3], [7, -1]]).sum())
    ),
    make_scorer(lambda y, answers: float((y != answers).mean()), greater_is_better=False),
]


class First(ClassifierMixin, BaseEstimator):
    """A classifier whose score is the first feature, rounded so that there are ties."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


class Fixed(ClassifierMixin, BaseEstimator):
    """A classifier with known scores that decides at a threshold: the oracle's."""

    def __init__(self, scores=None, threshold=None, names=(0, 1)) -> None:
        self.scores = scores
        self.threshold = threshold
        self.names = names

    @property
    def classes_(self):
        return np.array(self.names)

    def predict(self, X):
        return self.classes_[(self.scores >= self.threshold).astype(int)]


def brute_force(scoring, scores, y, sample_weight=None) -> dict[float, float]:
    """Ask scikit-learn's scorer at a threshold in every gap, and outside both ends."""
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    distinct = np.unique(scores)
    thresholds = [-math.inf, *(distinct[1:] + distinct[:-1]) / 2, math.inf]
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    with np.errstate(all="ignore"):
        return {
            at: scorer(Fixed(scores, at, tuple(np.unique(y))), np.zeros((len(y), 1)), y, **given)
            for at in thresholds
        }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("scoring", KNOWN + UNKNOWN)
def test_the_best_by_any_scorer_is_the_best_of_all_cuts(scoring) -> None:
    model = ThresholdClassifier(First(), scoring=scoring, cv=FOLDS).fit(X, Y)
    worth = brute_force(scoring, X[:, 0], Y)

    assert max(worth.values()) == pytest.approx(model.best_score_, rel=1e-12)
    assert max(worth.values()) == pytest.approx(worth[model.best_threshold_], rel=1e-12)
    tied = [at for at, value in worth.items() if value > max(worth.values()) - 1e-12]
    if scoring in KNOWN:
        assert max(tied) == model.best_threshold_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("weights", [WEIGHTS, FRACTIONS])
@pytest.mark.parametrize("scoring", ["f1", "matthews_corrcoef", "f1_macro"])
def test_weights_count_in_the_scorer(scoring, weights) -> None:
    model = ThresholdClassifier(First(), scoring=scoring).fit(X, Y, sample_weight=weights)
    worth = brute_force(scoring, X[:, 0], Y, weights)

    assert max(worth.values()) == pytest.approx(model.best_score_, rel=1e-9)


@pytest.mark.parametrize("scoring", KNOWN + UNKNOWN)
def test_a_scorer_is_known_exactly_where_it_is_a_metric_of_limen(scoring) -> None:
    assert (scoring in KNOWN) == (read_scoring(scoring, None).metric is not None)
    assert read_scoring(make_scorer(f1_score, greater_is_better=False), None).metric is None


@pytest.mark.parametrize("scoring", KNOWN)
def test_a_known_scorer_is_never_asked(scoring, monkeypatch) -> None:
    def never(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(type(make_scorer(f1_score)), "__call__", never)
    ThresholdClassifier(First(), scoring=scoring, cv=FOLDS).fit(X, Y)


def test_a_scorer_may_look_at_the_rows() -> None:
    """The third feature is the amount at stake, and scikit-learn's tuner could not see it."""

    def saved(estimator, rows, y):
        return float(np.abs(rows[:, 2])[(estimator.predict(rows) == 1) & (y == 1)].sum()) - float(
            (estimator.predict(rows) == 1).sum()
        )

    model = ThresholdClassifier(First(), scoring=saved, cv="prefit")
    model.set_params(estimator=First().fit(X, Y)).fit(X, Y)
    distinct = np.unique(X[:, 0])
    worth = [
        np.abs(X[:, 2])[(X[:, 0] >= at) & (Y == 1)].sum() - (X[:, 0] >= at).sum()
        for at in [*distinct, math.inf]
    ]

    assert max(worth) == pytest.approx(model.best_score_)


def test_the_folds_score_rows_they_were_not_fitted_on() -> None:
    scoring = make_scorer(cohen_kappa_score)
    model = ThresholdClassifier(GaussianNB(), scoring=scoring, cv=FOLDS).fit(X, Y)
    scores = np.empty(len(Y))
    for learn, score in FOLDS.split(X, Y):
        scores[score] = GaussianNB().fit(X[learn], Y[learn]).predict_proba(X[score])[:, 1]

    assert max(brute_force(scoring, scores, Y).values()) == pytest.approx(model.best_score_)
    assert 3 == len(model.fold_thresholds_)
    for fold, (_, score) in zip(model.fold_thresholds_, FOLDS.split(X, Y), strict=True):
        worth = brute_force(scoring, scores[score], Y[score])
        assert max(worth.values()) == pytest.approx(worth[fold])


@pytest.mark.parametrize("seed", [0])
def test_beyond_the_limit_a_scorer_is_asked_at_the_hull_and_around_the_best(
    seed, monkeypatch
) -> None:
    """Kappa is best on the hull, so nothing is lost; and the number of questions stays small."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 12_000)
    rows = (rng.normal(size=12_000) + 0.5 * y)[:, None]
    asked = []

    def kappa(truth, answers):
        asked.append(1)
        tp, fp = (answers & truth).sum(), (answers & ~truth & 1).sum()
        fn, tn = truth.sum() - tp, (1 - truth).sum() - fp
        chance = (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)
        return (len(y) * (tp + tn) - chance) / (len(y) ** 2 - chance)

    inner = First().fit(rows, y)
    model = ThresholdClassifier(inner, scoring=make_scorer(kappa), cv="prefit").fit(rows, y)
    few = len(asked)
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(rows[:, 0], y)
    tried = model.set_params(store_cv_results=True).fit(rows, y).cv_results_["thresholds"]
    assert set(calibrator.roc_hull().thresholds) <= set(tried)
    asked.clear()
    monkeypatch.setattr(candidates, "ALL_ASKED", 10**6)
    every = ThresholdClassifier(inner, scoring=make_scorer(kappa), cv="prefit").fit(rows, y)

    assert few <= 2 * 256 + 100 < len(asked)
    assert (every.best_threshold_, every.best_score_) == (model.best_threshold_, model.best_score_)


def test_thresholds_are_the_only_ones_tried() -> None:
    given = np.array([0.9, -0.5, 0.25, 0.0])
    model = ThresholdClassifier(
        First(), scoring="f1", thresholds=given, cv=FOLDS, store_cv_results=True
    ).fit(X, Y)
    worth = [f1_score(Y, X[:, 0] >= at) for at in given]

    assert given[np.argmax(worth)] == model.best_threshold_
    assert max(worth) == pytest.approx(model.best_score_)
    assert given.tolist() == model.cv_results_["thresholds"].tolist()
    assert worth == pytest.approx(model.cv_results_["scores"])
    for values, (_, score) in zip(model.cv_results_["fold_scores"], FOLDS.split(X, Y), strict=True):
        assert [f1_score(Y[score], X[score, 0] >= at) for at in given] == pytest.approx(values)
    exact = ThresholdClassifier(First(), scoring="f1", cv=FOLDS).fit(X, Y)
    assert exact.optimum_ == model.optimum_


def test_a_number_of_thresholds_is_that_of_scikit_learn() -> None:
    """One split and no ties: the same grid, and the same score at each of its thresholds."""
    inner = LogisticRegression().fit(X, Y)
    asked = {"scoring": "balanced_accuracy", "thresholds": 37, "store_cv_results": True}
    theirs = TunedThresholdClassifierCV(inner, cv="prefit", refit=False, **asked).fit(X, Y)
    ours = ThresholdClassifier(inner, cv="prefit", **asked).fit(X, Y)

    assert theirs.cv_results_["thresholds"] == pytest.approx(ours.cv_results_["thresholds"])
    assert theirs.cv_results_["scores"] == pytest.approx(ours.cv_results_["scores"])
    assert theirs.best_score_ == pytest.approx(ours.best_score_)
    assert ours.best_score_ <= ours.optimum_.value


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ({"false_negative": 5}, {}),
        ({"false_positive": 0.3}, {"sample_weight": WEIGHTS}),
        ({"metric": "mcc"}, {"sample_weight": FRACTIONS}),
        ({"metric": lambda tp, fp, fn, tn: tp - fp}, {}),
        ({}, {"false_negative": FRACTIONS}),
        ({"scoring": "f1_macro"}, {}),
    ],
)
def test_the_results_hold_the_best_of_every_cut(made, given) -> None:
    model = ThresholdClassifier(First(), cv=FOLDS, store_cv_results=True, **made)
    results = model.fit(X, Y, **given).cv_results_

    assert results["scores"].max() == pytest.approx(model.best_score_, rel=1e-12)
    at = np.flatnonzero(results["scores"] >= results["scores"].max() - 1e-12)[-1]
    assert model.best_threshold_ == results["thresholds"][at]
    assert (3, len(results["thresholds"])) == results["fold_scores"].shape
    costs = [made.get(name, 1) for name in ("false_positive", "false_negative")]
    if not {"metric", "scoring"} & set(made):
        times = given.get("sample_weight", np.ones(len(Y)))
        missed = given.get("false_negative", costs[1] * np.ones(len(Y)))
        for threshold, value in zip(results["thresholds"], results["scores"], strict=True):
            above = X[:, 0] >= threshold
            loss = (times * costs[0])[above & (Y == 0)].sum() + (times * missed)[
                ~above & (Y == 1)
            ].sum()
            assert -loss == pytest.approx(value)
    model.set_params(store_cv_results=False).fit(X, Y, **given)
    assert not hasattr(model, "cv_results_")


@pytest.mark.parametrize(
    "scoring",
    ["balanced_accuracy", "accuracy", "matthews_corrcoef", make_scorer(cohen_kappa_score)],
)
def test_a_scorer_that_treats_both_classes_alike_needs_no_positive_class(scoring) -> None:
    by_name = ThresholdClassifier(GaussianNB(), scoring=scoring).fit(X, NAMES)

    assert ThresholdClassifier(GaussianNB(), scoring=scoring).fit(X, Y).optimum_ == by_name.optimum_


def test_the_positive_class_is_that_of_the_scorer() -> None:
    scoring = make_scorer(f1_score, pos_label="fine")
    model = ThresholdClassifier(First(), scoring=scoring, cv=FOLDS).fit(X, NAMES)
    worth = brute_force(make_scorer(f1_score), -X[:, 0], 1 - Y)

    assert max(worth.values()) == pytest.approx(model.best_score_)
    assert ((-X[:, 0] >= model.best_threshold_) == (model.predict(X) == "fine")).all()
    with pytest.raises(ValueError, match="pos_label='fine' or pos_label='ill'"):
        ThresholdClassifier(First(), scoring="f1").fit(X, NAMES)
    other = ThresholdClassifier(First(), scoring=scoring, pos_label="ill", cv=FOLDS).fit(X, NAMES)
    assert other.best_score_ == pytest.approx(model.best_score_)


def test_with_routing_the_scorer_gets_what_it_asks_for() -> None:
    seen = []

    def gain(y, answers, amount):
        seen.append(len(amount))
        return amount[(y == 1) & (answers == 1)].sum() - 0.5 * (answers == 1).sum()

    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(gain).set_score_request(amount=True)
        model = ThresholdClassifier(First(), scoring=scorer, cv=FOLDS)
        model.fit(X, Y, amount=FRACTIONS)
        best = max(
            gain(Y, (X[:, 0] >= at).astype(int), FRACTIONS)
            for at in [*np.unique(X[:, 0]), math.inf]
        )
        assert best == pytest.approx(model.best_score_)
        ignored = get_scorer("f1").set_score_request(sample_weight=False)
        inner = First().set_fit_request(sample_weight=True)
        weighed = ThresholdClassifier(inner, scoring=ignored).fit(X, Y, sample_weight=WEIGHTS)
        # Before 1.7 a scorer that was never asked about weights did not take any.
        if "sample_weight" in get_scorer("f1").get_metadata_routing().score.requests:
            with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
                ThresholdClassifier(inner, scoring="f1").fit(X, Y, sample_weight=WEIGHTS)
    assert ThresholdClassifier(First(), scoring="f1").fit(X, Y).optimum_ == weighed.optimum_
    assert {240, 80} == set(seen)


def test_fit_parameters_reach_the_classifier_without_routing() -> None:
    class Curious(First):
        def fit(self, X, y, sample_weight=None, note=None, each=None):
            assert "hello" == note
            assert len(each) == len(y)
            return super().fit(X, y)

    ThresholdClassifier(Curious(), cv=3).fit(X, Y, note="hello", each=list(range(len(Y))))
    with pytest.raises(ValueError, match="'groups' is no parameter of the classifier's fit"):
        ThresholdClassifier(Curious(), cv=3).fit(X, Y, note="hello", each=Y, groups=Y)


@pytest.mark.parametrize(
    ("made", "error", "told"),
    [
        ({"scoring": "f1", "metric": "f1"}, ValueError, "are two aims"),
        ({"scoring": "f1", "false_negative": 5}, ValueError, "and costs exclude each other"),
        ({"scoring": "roc_auc"}, ValueError, "looks at scores instead of answers"),
        ({"scoring": "f2"}, ValueError, "f2"),
        ({"scoring": f1_score}, TypeError, "make_scorer"),
        ({"scoring": limen.metrics.f1}, TypeError, "write metric=limen.metrics.f1"),
        ({"scoring": 3}, TypeError, "scoring must be a name or a scorer, got 3"),
        ({"scoring": lambda estimator, X, y: [1, 2]}, ValueError, "must return one number"),
        ({"scoring": lambda estimator, X, y: math.nan}, ValueError, "nan at every cut"),
        (
            {"scoring": lambda estimator, X, y: estimator.predict(X[:3]).sum()},
            ValueError,
            "asks for answers to 3 rows, and 240 rows were set aside",
        ),
        ({"scoring": "f1_macro", "min_recall": 0.5}, ValueError, "a scorer that limen must ask"),
        ({"thresholds": 5, "min_recall": 0.5}, ValueError, "cannot be combined with thresholds"),
        ({"thresholds": 0}, ValueError, "thresholds must be at least 1, got 0"),
        ({"thresholds": []}, ValueError, "at least one"),
        ({"thresholds": [0.5, math.nan]}, ValueError, r"thresholds\[1\] is nan"),
        ({"thresholds": 5, "recommended": True}, ValueError, "thresholds allows some"),
        ({"scoring": "f1", "recommended": True}, ValueError, "exist for costs only"),
    ],
)
def test_what_cannot_be_scored_is_told(made, error, told) -> None:
    with pytest.raises(error, match=told):
        ThresholdClassifier(First(), cv=FOLDS, **made).fit(X, Y)


def test_a_stream_follows_known_scorers_only() -> None:
    model = ThresholdClassifier(GaussianNB(), scoring="f1").fit(X[:120], Y[:120])
    named = ThresholdClassifier(GaussianNB(), metric="f1").fit(X[:120], Y[:120])

    assert (
        named.partial_fit(X[120:], Y[120:]).optimum_ == model.partial_fit(X[120:], Y[120:]).optimum_
    )
    for made in ({"scoring": "f1_macro"}, {"thresholds": 10}):
        with pytest.raises(ValueError, match="partial_fit does not work with"):
            ThresholdClassifier(GaussianNB(), **made).partial_fit(X, Y, [0, 1])
    with pytest.warns(UserWarning, match="scoring takes no sample_weight"):
        ThresholdClassifier(
            First(), scoring=make_scorer(lambda y, answers: float((y == answers).mean()))
        ).fit(X, Y, sample_weight=WEIGHTS)
