# SPDX-License-Identifier: Apache-2.0
"""The classifiers keep river's contract and decide at the exact optimum, sample by sample."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river")
pytest.importorskip("sklearn")  # river's checks take their data from it

from river import checks, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing

import limen
from limen.river import CalibratedClassifier, ThresholdClassifier

STREAM = list(datasets.Phishing().take(400))
BOTH: list[Any] = [ThresholdClassifier, CalibratedClassifier]


def scaled():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def made(wrap, number: int):
    return wrap(**list(wrap._unit_test_params())[number])


# No model is kept here: what lives until the interpreter ends looks like a leak.
CHECKS = [
    pytest.param(wrap, number, check, id=f"{wrap.__name__}-{number}-{check.__name__}")
    for wrap in BOTH
    for number in range(len(list(wrap._unit_test_params())))
    for check in checks.yield_checks(made(wrap, number))
]


@pytest.mark.parametrize(("wrap", "number", "check"), CHECKS)
@pytest.mark.check
@pytest.mark.filterwarnings("default")
def test_the_contract_of_river_is_kept(wrap, number: int, check) -> None:
    check(made(wrap, number))


def test_no_check_is_skipped() -> None:
    assert [set(), set()] == [set(wrap(scaled())._unit_test_skips()) for wrap in BOTH]


def scores_before_learning(stream, weights=None) -> tuple[list[float], list[bool]]:
    inner, scores = scaled(), []
    for at, (x, y) in enumerate(stream):
        scores.append(inner.predict_proba_one(x)[True])
        inner.learn_one(x, y, **({} if weights is None else {"w": weights[at]}))
    return scores, [y for _, y in stream]


@pytest.mark.parametrize("costs", [{}, {"false_negative": 5}, {"false_positive": 0.3}])
def test_the_threshold_is_the_optimum_of_the_scores_given_before_learning(costs) -> None:
    model = ThresholdClassifier(scaled(), **costs)
    for x, y in STREAM:
        model.learn_one(x, y)
    expected = limen.optimal_threshold(*scores_before_learning(STREAM), **costs)

    assert expected == model.optimum
    assert expected.threshold == model.threshold
    for x, _ in STREAM[:50]:
        probability = model.classifier.predict_proba_one(x)
        assert probability == model.predict_proba_one(x)
        assert (probability[True] >= expected.threshold) is model.predict_one(x)


def test_calibrated_probabilities_are_the_isotonic_fit() -> None:
    model = CalibratedClassifier(scaled())
    for x, y in STREAM:
        model.learn_one(x, y)
    held = limen.OnlineCalibrator()
    held.update_many(*scores_before_learning(STREAM))

    assert held._state() == model.held._state()
    for x, _ in STREAM[:50]:
        score = model.classifier.predict_proba_one(x)[True]
        probability = held.probability(score)
        assert {False: 1 - probability, True: probability} == model.predict_proba_one(x)
        for costs in ({}, {"false_negative": 5}, {"false_positive": 3, "false_negative": 2}):
            assert (score >= held.threshold(**costs)) is model.predict_one(x, **costs)
            assert held.threshold(**costs) == model.threshold(**costs)


def test_the_straight_line_between_blocks_may_be_asked_for() -> None:
    model = CalibratedClassifier(scaled(), between="linear", false_negative=5)
    for x, y in STREAM:
        model.learn_one(x, y)
    steps, lines = [], []
    for x, _ in STREAM:
        score = model.classifier.predict_proba_one(x)[True]
        steps.append(model.held.probability(score))
        lines.append(model.held.probability(score, between="linear"))

    assert lines == [model.predict_proba_one(x)[True] for x, _ in STREAM]
    assert lines != steps
    assert model.held.threshold(false_negative=5) == model.threshold()


@pytest.mark.parametrize("wrap", BOTH)
def test_weights_reach_the_classifier_and_the_model(wrap) -> None:
    weights = [1 + at % 3 for at in range(100)]
    model = wrap(scaled())
    for (x, y), weight in zip(STREAM, weights, strict=False):
        model.learn_one(x, y, w=weight)
    scores, labels = scores_before_learning(STREAM[:100], weights)
    held = type(model.held)()
    held.update_many(scores, labels, weights)

    assert held._state() == model.held._state()


class LastTwo:
    """A window of two samples that wants the time of each."""

    def __init__(self, model) -> None:
        self.model = model
        self.samples: list[Any] = []
        self.times: list[Any] = []

    def update(self, *sample, time=None) -> None:
        self.model.update(*sample)
        self.samples.append(sample)
        self.times.append(time)
        if len(self.samples) > 2:
            self.model.revert(*self.samples.pop(0))

    def __getattr__(self, name: str):
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def __len__(self) -> int:
        return len(self.model)


@pytest.mark.parametrize("wrap", BOTH)
def test_a_window_decides_what_is_remembered(wrap) -> None:
    model = wrap(linear_model.LogisticRegression(), window=LastTwo)
    inner, scores = linear_model.LogisticRegression(), []
    for at, (x, y) in enumerate(STREAM[:30]):
        scores.append(inner.predict_proba_one(x)[True])
        inner.learn_one(x, y)
        model.learn_one(x, y, t=at)
    held = type(model.held.model)()
    held.update_many(scores[-2:], [y for _, y in STREAM[28:30]])

    assert held._state() == model.held._state()
    assert list(range(30)) == model.held.times
    assert 0 == len(model.clone().held)


@pytest.mark.parametrize("window", [40, timedelta(minutes=40)])
@pytest.mark.parametrize("wrap", BOTH)
def test_a_number_and_a_period_are_windows(wrap, window) -> None:
    model = wrap(scaled(), window=window)
    begin = datetime(2026, 1, 1)
    for at, (x, y) in enumerate(STREAM[:100]):
        timed = {} if window == 40 else {"t": begin + at * timedelta(minutes=1)}
        model.learn_one(x, y, **timed)
    scores, labels = scores_before_learning(STREAM[:100])
    held = type(model.held.model)()
    held.update_many(scores[-40:], labels[-40:])

    assert held._state() == model.held.model._state()
    assert [model.predict_one(x) for x, _ in STREAM] == [
        pickle.loads(pickle.dumps(model)).predict_one(x) for x, _ in STREAM
    ]


@pytest.mark.parametrize("wrap", BOTH)
def test_any_two_classes_will_do(wrap) -> None:
    plain, named = wrap(naive_bayes.GaussianNB()), wrap(naive_bayes.GaussianNB(), pos_val="bad")
    for x, y in STREAM[:200]:
        plain.learn_one(x, y)
        named.learn_one(x, "bad" if y else "good")
    for x, _ in STREAM[:50]:
        assert ("bad" if plain.predict_one(x) else "good") == named.predict_one(x)
        expected = {"good": plain.predict_proba_one(x)[False]}
        expected["bad"] = plain.predict_proba_one(x)[True]
        assert expected == pytest.approx(named.predict_proba_one(x))


@pytest.mark.parametrize("wrap", BOTH)
def test_a_third_class_is_told_and_changes_nothing(wrap) -> None:
    model = wrap(naive_bayes.GaussianNB(), pos_val="bad")
    for x, y in STREAM[:20]:
        model.learn_one(x, "bad" if y else "good")
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="y must be 'bad' or 'good', got 'ugly'"):
        model.learn_one(STREAM[0][0], "ugly")

    assert before == pickle.dumps(model)


@pytest.mark.parametrize("wrap", BOTH)
def test_until_a_sample_is_scored_the_classifier_answers_by_itself(wrap) -> None:
    model = wrap(naive_bayes.GaussianNB())

    assert naive_bayes.GaussianNB().predict_one(STREAM[0][0]) is model.predict_one(STREAM[0][0])
    assert {False: 0.5, True: 0.5} == model.predict_proba_one(STREAM[0][0])
    model.learn_one(*STREAM[0])
    assert 0 == len(model.held)  # there was nothing to score it with
    model.learn_one(*STREAM[1])
    assert 1 == len(model.held)
    trained = scaled()
    for x, y in STREAM:
        trained.learn_one(x, y)
    fresh = wrap(trained)
    assert [trained.predict_one(x) for x, _ in STREAM] == [fresh.predict_one(x) for x, _ in STREAM]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("wrap", BOTH)
def test_frames_are_learned_row_by_row_and_answered_alike(wrap, library: str) -> None:
    module = pytest.importorskip(library)
    if not hasattr(linear_model.LogisticRegression(), "predict_proba_many"):
        pytest.skip("this river has no mini-batches")
    rows = [{name: float(value) for name, value in x.items()} for x, _ in STREAM]
    labels = [y for _, y in STREAM]
    inner = linear_model.LogisticRegression
    one, many = wrap(inner(), false_negative=5), wrap(inner(), false_negative=5)
    for x, y in zip(rows[:300], labels[:300], strict=True):
        one.learn_one(x, y)
    many.learn_many(module.DataFrame(rows[:300]), module.Series(labels[:300]))
    rest = module.DataFrame(rows[300:])

    assert one.held._state() == many.held._state()
    answers = many.predict_many(rest)
    assert isinstance(answers, module.Series)
    assert [one.predict_one(x) for x in rows[300:]] == list(answers)
    probabilities = np.asarray(many.predict_proba_many(rest))
    expected = [list(one.predict_proba_one(x).values()) for x in rows[300:]]
    assert np.abs(probabilities - np.array(expected)).max() < 1e-12


@pytest.mark.parametrize("wrap", BOTH)
def test_frames_are_scored_row_by_row_where_the_classifier_knows_no_frames(wrap) -> None:
    pandas = pytest.importorskip("pandas")
    model = wrap(preprocessing.StandardScaler() | naive_bayes.GaussianNB(), pos_val="bad")
    for x, y in STREAM[:200]:
        model.learn_one(x, "bad" if y else "good")
    rows = [x for x, _ in STREAM[200:220]]
    answers = model.predict_many(pandas.DataFrame(rows, index=range(7, 27)))

    assert [model.predict_one(x) for x in rows] == answers.tolist()
    assert list(range(7, 27)) == answers.index.tolist()


@pytest.mark.parametrize("wrap", BOTH)
def test_the_classifier_takes_part_in_progressive_validation(wrap) -> None:
    model = preprocessing.StandardScaler() | wrap(linear_model.LogisticRegression())
    accuracy = evaluate.progressive_val_score(STREAM, model, metrics.Accuracy())

    assert accuracy.get() > 0.8


def test_the_cost_of_a_run_is_lower_than_at_one_half() -> None:
    """Not a law, but true of this stream: missed sites cost ten, and 0.5 knows nothing of it."""
    model, half = ThresholdClassifier(scaled(), false_negative=10), scaled()
    cost = {"threshold": 0, "half": 0}
    for x, y in datasets.Phishing():
        for name, answer in (("threshold", model.predict_one(x)), ("half", half.predict_one(x))):
            cost[name] += (10 if y else 1) * (bool(answer) != y)
        model.learn_one(x, y)
        half.learn_one(x, y)

    assert cost["threshold"] < cost["half"]


def test_a_window_may_be_a_function_with_its_arguments_bound() -> None:
    """A lambda cannot be pickled; a partial can."""
    model = ThresholdClassifier(scaled(), window=partial(LastTwo))
    for x, y in STREAM[:10]:
        model.learn_one(x, y)
    back = pickle.loads(pickle.dumps(model))

    assert model.threshold == back.threshold


WEEK = timedelta(days=7)
TIMED = [WEEK, lambda model: limen.LastPeriod(model, WEEK), lambda model: limen.Fading(model, WEEK)]


@pytest.mark.parametrize("window", TIMED)
@pytest.mark.parametrize("inner", [scaled, naive_bayes.GaussianNB])
@pytest.mark.parametrize("wrap", BOTH)
def test_a_window_by_time_asks_for_the_time(wrap, inner, window) -> None:
    """Also of the first sample, which some classifiers cannot score."""
    model = wrap(inner(), window=window)
    with pytest.raises(TypeError, match=r"time.* learn_one\(x, y, t=\.\.\.\)"):
        model.learn_one(*STREAM[0])

    assert str(inner().__dict__.keys()) == str(model.classifier.__dict__.keys())
    model.learn_one(*STREAM[0], t=datetime(2026, 1, 1))


@pytest.mark.parametrize("window", [None, 40, lambda model: limen.Fading(model, 40)])
@pytest.mark.parametrize("wrap", BOTH)
def test_a_time_that_nothing_looks_at_is_told(wrap, window) -> None:
    model = wrap(scaled(), window=window)
    with pytest.raises(TypeError, match=r"t is .*window=timedelta"):
        model.learn_one(*STREAM[0], t=datetime(2026, 1, 1))


class Fails(linear_model.LogisticRegression):
    """A classifier that cannot learn."""

    def learn_one(self, x, y, **kwargs):
        raise RuntimeError("no room")


@pytest.mark.parametrize("window", [None, 40])
@pytest.mark.parametrize("wrap", BOTH)
def test_a_sample_that_cannot_be_learned_is_not_held(wrap, window) -> None:
    model = wrap(Fails(), pos_val="bad", window=window)
    with pytest.raises(RuntimeError, match="no room"):
        model.learn_one(STREAM[0][0], "good")

    assert (0, None) == (len(model.held), model._negative)


@pytest.mark.parametrize(
    "given",
    [{"w": -1}, {"w": float("nan")}, {"w": "much"}, {"t": 3}, {"t": datetime(2026, 1, 2)}],
)
@pytest.mark.parametrize("wrap", BOTH)
def test_a_sample_that_cannot_be_held_is_not_learned(wrap, given) -> None:
    model = wrap(linear_model.LogisticRegression(), window=WEEK)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    model.learn_one(*STREAM[0], t=begin)
    before = dict(model.classifier.weights), len(model.held)
    with pytest.raises((TypeError, ValueError)):
        model.learn_one(*STREAM[1], **{"t": begin, **given})

    assert before == (dict(model.classifier.weights), len(model.held))


@pytest.mark.parametrize("wrap", BOTH)
def test_what_gives_no_probabilities_is_told(wrap) -> None:
    with pytest.raises(TypeError, match=r"classifier must .*predict_proba_one.*LinearRegression"):
        wrap(linear_model.LinearRegression())
    with pytest.raises(TypeError, match=r"class LogisticRegression. Write LogisticRegression\(\)"):
        wrap(linear_model.LogisticRegression)


@pytest.mark.parametrize("wrap", BOTH)
def test_text_labels_ask_for_the_positive_one(wrap) -> None:
    with pytest.raises(ValueError, match=r"y must be True or False, got 'ok'.* by pos_val"):
        wrap(scaled(), false_negative=25).learn_one(STREAM[0][0], "ok")


def test_both_classifiers_say_how_sure_their_threshold_is():
    cut = ThresholdClassifier(scaled(), false_negative=5)
    calibrated = CalibratedClassifier(scaled(), false_negative=5)
    for x, y in STREAM[:200]:
        cut.learn_one(x, y)
        calibrated.learn_one(x, y)
    assert cut.recommended == cut.held.recommended == calibrated.recommended()
    assert cut.interval() == calibrated.interval() == cut.held.interval()
    assert calibrated.interval(0.8, false_negative=1) != calibrated.interval()
    for threshold in (0.01, 0.3, 0.99):
        kept = cut.interval()[0] <= threshold <= cut.interval()[1]
        assert cut.keeps(threshold) == calibrated.keeps(threshold) == kept
