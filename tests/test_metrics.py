# SPDX-License-Identifier: Apache-2.0
"""The best cut by any metric, under floors and ceilings, against a sweep over all cuts."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import isotonic_oracle as oracle
import numpy as np
import pytest
import streams
from fits import (
    HARD,
    SmallLeafCalibrator,
    any_rows,
    columns,
    costs,
    exactly,
    held_one_by_one,
    rows_of,
    same,
    whole_points,
)
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from streams import HUGE, INF, as_typed

import limen
from limen import Infeasible, OnlineCalibrator, metrics
from limen.names import METRIC_NAMES

NAN = math.nan

betas = st.sampled_from([1, 2, 0.5, 3, Fraction(1, 3), 0.1, 10])
every_metric = pytest.mark.parametrize("name", oracle.METRICS)


def value_of(name: str, exact: Any) -> float:
    """The metric itself, of the number that orders alike."""
    if name == "mcc":
        return math.copysign(math.sqrt(abs(exact)), exact)
    return float(exact)


def assert_best(expected: oracle.Cut, found: Any) -> None:
    """The same gap, with its threshold, its confusion matrix and its answers."""
    probes = [-INF, -1.0, 0.0, 0.3, 7.0, HUGE, INF]
    answers = [int(probe >= expected.threshold) for probe in probes]

    assert expected[:2] == (found.lower, found.upper)
    assert same(expected.threshold, found.threshold)
    assert tuple(map(float, expected.confusion)) == tuple(found.confusion)
    assert isinstance(found.confusion, limen.Confusion)
    assert answers == found.predict(probes).tolist()
    assert answers[3] == found.predict(0.3)


# Each metric against the sweep.


@every_metric
@example(rows=[])
@example(rows=[(0.5, 1, 1)])
@example(rows=[(0.5, 0, 1)])
@example(rows=[(INF, 0, 1), (-INF, 1, 1)])
@example(rows=[(1.0, 0, 1), (2.0, 0, 2), (3.0, 0, 1)])
@example(rows=[(1.0, 1, 1), (2.0, 1, 2), (3.0, 1, 1)])
@example(rows=[(1.0, 1, 1), (2.0, 0, 1)])
@settings(max_examples=50)
@given(rows=any_rows)
def test_the_best_cut_of_a_named_metric_is_the_best_of_all(name, rows):
    every = oracle.cuts(oracle.join(exactly(rows)))
    expected = oracle.best(every, oracle.METRICS[name])
    found = held_one_by_one(*columns(rows)).best(name)

    assert_best(expected, found)
    value = value_of(name, oracle.METRICS[name](*expected.confusion))
    assert math.isclose(value, found.value, rel_tol=1e-14, abs_tol=1e-15)


@given(rows=any_rows, beta=betas)
def test_the_best_cut_of_an_f_measure_is_the_best_of_all(rows, beta):
    metric = oracle.fbeta(as_typed(beta))
    expected = oracle.best(oracle.cuts(oracle.join(exactly(rows))), metric)
    found = held_one_by_one(*columns(rows)).best(metrics.fbeta(beta))

    assert_best(expected, found)
    assert math.isclose(float(metric(*expected.confusion)), found.value, rel_tol=1e-14)


@given(rows=any_rows, pair=costs)
def test_the_best_cut_of_a_cost_is_the_optimum(rows, pair):
    calibrator = held_one_by_one(*columns(rows))
    given_costs = {"false_positive": pair[0], "false_negative": pair[1]}
    found = calibrator.best(metrics.cost(**given_costs))
    optimum = calibrator.optimum(**given_costs)

    assert (optimum.lower, optimum.upper, optimum.loss) == (found.lower, found.upper, found.value)
    assert_best(
        oracle.cheapest(oracle.cuts(oracle.join(exactly(rows))), *map(as_typed, pair)), found
    )


def test_the_cost_is_1_and_1_where_none_is_given():
    calibrator = held_one_by_one([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])

    assert (0.625, 1.0) == (
        calibrator.best(metrics.cost()).threshold,
        calibrator.best(metrics.cost()).value,
    )
    assert 0.175 == calibrator.best(metrics.cost(false_negative=5)).threshold


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_every_shape_of_stream_has_its_best_cuts(shape):
    """Hundreds of cuts, of which the hull has few: the best of all is one of the few."""
    scores, labels = streams.SHAPES[shape](400)
    every = oracle.cuts(
        oracle.join((x, y, 1) for x, y in zip(scores.tolist(), labels.tolist(), strict=True))
    )
    calibrator = OnlineCalibrator()
    calibrator.update_many(scores, labels)
    for name, metric in oracle.METRICS.items():
        found = calibrator.best(name)

        assert (name, *oracle.best(every, metric)[:2]) == (name, found.lower, found.upper)


def test_a_few_samples_have_the_best_cuts_of_textbooks():
    calibrator = held_one_by_one([0.1, 0.3, 0.5, 0.7, 0.9], [0, 0, 1, 0, 1])

    for name, threshold, value in [
        ("f1", 0.4, 0.8),
        ("jaccard", 0.4, 2 / 3),
        ("balanced_accuracy", 0.4, 5 / 6),
        ("youden", 0.4, 2 / 3),
        ("accuracy", 0.8, 0.8),
        ("precision", 0.8, 1.0),
        ("recall", 0.4, 1.0),
        ("specificity", INF, 1.0),
    ]:
        found = calibrator.best(name)
        assert (name, threshold, value) == (name, found.threshold, found.value)
    assert 0.4 == calibrator.best("mcc").threshold
    assert math.isclose(2 / 3, calibrator.best("mcc").value)


@every_metric
def test_nothing_held_has_one_cut_and_it_is_the_best(name):
    found = OnlineCalibrator().best(name)

    assert (None, None, INF) == (found.lower, found.upper, found.threshold)
    assert (0, 0, 0, 0) == found.confusion
    assert [0, 0] == found.predict([-INF, 0.5]).tolist()


@pytest.mark.parametrize("name", ["precision", "recall", "f1", "jaccard", "mcc"])
def test_an_undefined_metric_counts_as_0(name):
    """Without positives all cuts are equally bad, and the highest is chosen."""
    found = held_one_by_one([0.1, 0.5], [0, 0]).best(name)

    assert (0.0, 0.5, None) == (found.value, found.lower, found.upper)


# Exact where doubles are not.


def small_rows(random: np.random.Generator, most: int) -> list[tuple[float, int, int]]:
    """Few scores and weights of 1 or 2, so that exact ties are common."""
    n = int(random.integers(2, most))
    scores = random.integers(0, n, n).astype(float).tolist()
    labels = random.integers(0, 2, n).tolist()
    return list(zip(scores, labels, random.integers(1, 3, n).tolist(), strict=True))


def hard_rows(random: np.random.Generator, rows: Any = None) -> list[tuple[float, int, int]]:
    """Weights times 2**56, give or take a unit: what was a tie differs in the last bits."""
    return [
        (score, label, weight * 2**56 + int(random.integers(-1, 2)))
        for score, label, weight in rows or small_rows(random, 12)
    ]


def ties_of(rows: list[tuple[float, int, int]], metric: oracle.Metric) -> int:
    """How many cuts that answer 1 to some and 0 to others are as good as the best one."""
    every = oracle.cuts(oracle.join(rows))
    best = oracle.best(every, metric)
    value = metric(*best.confusion)
    return sum(cut != best and metric(*cut.confusion) == value for cut in every[1:-1])


@every_metric
def test_equally_good_cuts_give_the_highest(name):
    random = np.random.default_rng(14)
    metric = oracle.METRICS[name]
    ties = 0
    for _ in range(300):
        rows = small_rows(random, 9)
        expected = oracle.best(oracle.cuts(oracle.join(rows)), metric)
        found = held_one_by_one(*columns(rows)).best(name)
        ties += ties_of(rows, metric) > 0

        assert (rows, *expected[:2]) == (rows, found.lower, found.upper)
    assert ties >= 10


@every_metric
def test_metrics_that_agree_in_all_digits_are_told_apart(name):
    """Doubles see ties where there are none; cuts are compared as fractions."""
    random = np.random.default_rng(12)
    metric = oracle.METRICS[name]
    rounded = 0
    for _ in range(1_000):
        rows = small_rows(random, 9)
        if not ties_of(rows, metric):
            continue
        rows = hard_rows(random, rows)
        every = oracle.cuts(oracle.join(rows))
        expected = oracle.best(every, metric)
        in_doubles = max(reversed(every), key=lambda cut: float(metric(*cut.confusion)))
        rounded += in_doubles != expected

        assert_best(expected, held_one_by_one(*columns(rows)).best(name))
    if name not in ("recall", "specificity"):
        assert rounded >= 2


@every_metric
@pytest.mark.parametrize("points_of", HARD)
def test_metrics_of_scores_that_say_next_to_nothing_are_told_apart(name, points_of):
    """Every cut is right about as often as chance: a metric is the difference of large numbers."""
    metric = oracle.METRICS[name]
    for seed in range(12):
        random = Random(seed)
        points = points_of(random.choice([3, 7, 20, 50]), random)
        expected = oracle.best(oracle.cuts(points), metric)
        found = held_one_by_one(*columns(rows_of(points))).best(name)

        assert_best(expected, found)
        value = value_of(name, metric(*expected.confusion))
        assert math.isclose(value, found.value, rel_tol=1e-14)


@pytest.mark.parametrize("beta", [1, 2, 0.5, 1000, 1e-3, 1e-100, 1e100])
def test_f_measures_and_costs_of_large_sums_are_told_apart(beta):
    random = np.random.default_rng(13)
    for _ in range(20):
        rows = hard_rows(random)
        every = oracle.cuts(oracle.join(rows))
        calibrator = held_one_by_one(*columns(rows))
        price = as_typed(beta)

        assert_best(oracle.best(every, oracle.fbeta(price)), calibrator.best(metrics.fbeta(beta)))
        if 1e-9 < beta < 1e9:
            cost = metrics.cost(false_negative=beta)
            assert_best(oracle.cheapest(every, 1, price), calibrator.best(cost))


# A function of one's own.


def test_a_function_is_asked_about_all_cuts_at_once():
    rows = [(0.1, 0, 1), (0.25, 1, 2.5), (0.5, 0, 3), (0.75, 1, 4), (0.75, 0, 1)]
    every = oracle.cuts(oracle.join(exactly(rows)))
    asked = []

    def metric(tp, fp, fn, tn):
        asked.append((tp, fp, fn, tn))
        return tp - fp

    found = held_one_by_one(*columns(rows)).best(metric)

    for arrays in asked:
        for array, name in zip(arrays, ("tp", "fp", "fn", "tn"), strict=True):
            assert np.float64 == array.dtype
            if len(asked) == 1:
                assert [float(getattr(cut, name)) for cut in every] == array.tolist()
    assert_best(oracle.best(every, lambda tp, fp, fn, tn: tp - fp), found)
    assert 3.0 == found.value


@given(rows=any_rows)
def test_a_function_need_not_have_its_best_cut_on_the_hull(rows):
    """Answer 1 to as near a third of all as can be: no cost says so."""

    def metric(tp, fp, fn, tn):
        return -abs(tp + fp - (fn + tn) / 2)

    points = oracle.join(exactly(rows))
    assume(all(weight.denominator <= 2**20 for point in points for weight in point[1:3]))
    assume(sum(point.positive + point.negative for point in points) < 2**30)
    expected = oracle.best(oracle.cuts(points), metric)

    assert_best(expected, held_one_by_one(*columns(rows)).best(metric))


@given(rows=st.lists(st.tuples(streams.scores, streams.labels, st.integers(1, 9)), max_size=30))
def test_a_function_of_ones_own_agrees_with_the_metric_it_repeats(rows):
    calibrator = held_one_by_one(*columns(rows))

    def mistakes(tp, fp, fn, tn):
        return -(fp + 3 * fn)

    def twice_accuracy(tp, fp, fn, tn):
        return 2 * (tp + tn)

    cost = calibrator.best(metrics.cost(false_negative=3))
    accuracy = calibrator.best("accuracy")
    for found, other in [
        (calibrator.best(mistakes), cost),
        (calibrator.best(twice_accuracy), accuracy),
    ]:
        assert (other.lower, other.upper) == (found.lower, found.upper)
        assert other.confusion == found.confusion
    assert cost.value == -calibrator.best(mistakes).value


def test_a_metric_of_ones_own_is_compared_without_rounding():
    """A gain, say, whose terms are large and cancel out: it is no share, and not a cost."""
    gain = metrics.Metric("gain", lambda tp, fp, fn, tn: (tp - fp, 1 + 0 * tp))
    for seed in range(40):
        random = Random(seed)
        points = whole_points(
            [(2**56 + random.randrange(-9, 9), 2**56 + random.randrange(-9, 9)) for _ in range(3)]
        )
        expected = oracle.best(oracle.cuts(points), lambda tp, fp, fn, tn: tp - fp)

        assert_best(expected, held_one_by_one(*columns(rows_of(points))).best(gain))


@pytest.mark.parametrize("name", ["f2", "f 1", "", "recal", "cost"])
def test_an_unknown_metric_is_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"balanced_accuracy.*mcc"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(name)


@pytest.mark.parametrize("beta", [0, -1, NAN, INF, "2", None, True])
def test_a_beta_that_is_not_positive_and_finite_is_refused(beta):
    with pytest.raises((ValueError, TypeError), match="beta"):
        metrics.fbeta(beta)


@pytest.mark.parametrize(
    "beta", [1e-200, 1e200, 5e-324, HUGE, 10**400], ids=lambda beta: str(beta)[:8]
)
def test_a_beta_beyond_all_reason_is_refused_by_name(beta):
    with pytest.raises((ValueError, OverflowError), match="beta"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(metrics.fbeta(beta))


@pytest.mark.parametrize("cost", [0, -1, NAN, INF, "2", None])
def test_a_cost_that_is_not_positive_and_finite_is_refused(cost):
    with pytest.raises(ValueError, match="false_negative must be a positive, finite number"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(metrics.cost(false_negative=cost))


@pytest.mark.parametrize("metric", [None, 1, 0.5, ["f1"]])
def test_what_is_neither_a_name_nor_callable_is_refused(metric):
    with pytest.raises((ValueError, TypeError), match="metric"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(metric)


def test_a_function_that_answers_with_the_wrong_number_of_values_is_refused():
    with pytest.raises(ValueError, match="metric"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(lambda tp, fp, fn, tn: tp[:1])


def of_labels(y_true, y_pred, *, labels=None):
    raise AssertionError


def of_a_model(estimator, rows, y_true, sample_weight=None):
    raise AssertionError


@pytest.mark.parametrize("metric", [of_labels, of_a_model, lambda y, p: 0, lambda a, b, c, d, e: 0])
def test_a_metric_of_labels_and_answers_is_told_what_to_write(metric):
    with pytest.raises(TypeError, match=r"a function of .*; limen needs .*tp, fp, fn, tn.*'f1'"):
        held_one_by_one([0.1, 0.2], [0, 1]).best(metric)


@pytest.mark.parametrize(
    "metric", [lambda *weights: weights[0], partial(lambda a, *rest: rest[0], 1)]
)
def test_a_function_may_take_its_arguments_in_any_way(metric):
    assert 1.0 == held_one_by_one([0.1, 0.2], [0, 1]).best(metric).value


# Floors and ceilings.


def best_or_nearest(calibrator: OnlineCalibrator, metric: Any, bounds: dict[str, Any]) -> Any:
    """Whether some cut meets the bounds, and the cut that was answered."""
    try:
        return True, calibrator.best(metric, **bounds)
    except Infeasible as error:
        return False, error.nearest


def sweep(
    every: list[oracle.Cut], metric: oracle.Metric, bounds: dict[str, Any]
) -> tuple[bool, oracle.Cut]:
    exact = {name: as_typed(bound) for name, bound in bounds.items()}
    allowed = oracle.feasible(every, exact)
    if allowed:
        return True, oracle.best(allowed, metric)
    return False, oracle.nearest(every, exact)


rates = st.sampled_from([0, 0.0, 0.02, 0.1, 0.3, 1 / 3, Fraction(1, 3), 0.5, 0.7, 0.9, 1, 1.0])
some_bounds = st.dictionaries(st.sampled_from([*oracle.BOUNDS]), rates, min_size=1)


@every_metric
@example(rows=[], bounds={"min_precision": 0.5})
@example(rows=[], bounds={"min_recall": 0})
@example(rows=[], bounds={"max_positive_rate": 0})
@example(rows=[(0.5, 1, 1)], bounds={"max_false_positive_rate": 0})
@example(rows=[(0.5, 0, 1)], bounds={"min_recall": 0.1})
@example(rows=[(0.5, 0, 1)], bounds={"min_precision": 0.1, "max_positive_rate": 0.9})
@example(rows=[(INF, 0, 1), (0.5, 1, 1)], bounds={"min_precision": 0.9})
@settings(max_examples=60)
@given(rows=any_rows, bounds=some_bounds)
def test_the_best_of_the_allowed_cuts_is_found(name, rows, bounds):
    every = oracle.cuts(oracle.join(exactly(rows)))
    possible, expected = sweep(every, oracle.METRICS[name], bounds)
    found_possible, found = best_or_nearest(held_one_by_one(*columns(rows)), name, bounds)

    assert possible == found_possible
    assert_best(expected, found)
    if possible:
        value = value_of(name, oracle.METRICS[name](*expected.confusion))
        assert math.isclose(value, found.value, rel_tol=1e-14, abs_tol=1e-15)


@given(rows=any_rows, bounds=some_bounds, pair=costs, beta=betas)
def test_costs_and_f_measures_obey_floors_and_ceilings(rows, bounds, pair, beta):
    every = oracle.cuts(oracle.join(exactly(rows)))
    calibrator = held_one_by_one(*columns(rows))
    exact = [as_typed(cost) for cost in pair]
    for metric, ours in [
        (
            oracle.negative_cost(*exact),
            metrics.cost(false_positive=pair[0], false_negative=pair[1]),
        ),
        (oracle.fbeta(as_typed(beta)), metrics.fbeta(beta)),
    ]:
        possible, expected = sweep(every, metric, bounds)
        found_possible, found = best_or_nearest(calibrator, ours, bounds)

        assert possible == found_possible
        assert_best(expected, found)


@given(
    rows=st.lists(st.tuples(streams.scores, streams.labels, st.integers(1, 9)), max_size=30),
    bounds=some_bounds,
)
def test_a_function_of_ones_own_obeys_floors_and_ceilings(rows, bounds):
    def metric(tp, fp, fn, tn):
        return tp * 3 - fp * fp + fn * tn

    every = oracle.cuts(oracle.join(rows))
    possible, expected = sweep(every, metric, bounds)
    found_possible, found = best_or_nearest(held_one_by_one(*columns(rows)), metric, bounds)

    assert possible == found_possible
    assert_best(expected, found)


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_every_shape_of_stream_obeys_floors_and_ceilings(shape):
    """The best allowed cut often lies inside a block, where no cost would put it."""
    scores, labels = streams.SHAPES[shape](300)
    every = oracle.cuts(
        oracle.join((x, y, 1) for x, y in zip(scores.tolist(), labels.tolist(), strict=True))
    )
    calibrator = SmallLeafCalibrator()
    calibrator.update_many(scores, labels)
    for bounds in [
        {"min_precision": 0.9},
        {"min_recall": 0.95},
        {"max_false_positive_rate": 0.05},
        {"max_positive_rate": 0.02},
        {"min_precision": 0.8, "min_recall": 0.8},
        {"min_recall": 0.6, "max_false_positive_rate": 0.3, "max_positive_rate": 0.5},
    ]:
        for name in ("recall", "precision", "f1", "mcc", "accuracy"):
            possible, expected = sweep(every, oracle.METRICS[name], bounds)
            found_possible, found = best_or_nearest(calibrator, name, bounds)

            assert (name, bounds, possible, *expected[:2]) == (
                name,
                bounds,
                found_possible,
                found.lower,
                found.upper,
            )


def test_the_best_allowed_cut_may_lie_inside_a_block():
    """At most two thirds may be answered 1: the block from 1 to 4 is cut in two."""
    calibrator = held_one_by_one(np.arange(6.0), [0, 1, 1, 0, 0, 1])
    found = calibrator.best("recall", max_positive_rate=0.67)

    assert [0.0, 1.0, 5.0] == calibrator.blocks().first.tolist()
    assert (1.0, 2.0, 1.5, 2 / 3) == (found.lower, found.upper, found.threshold, found.value)
    assert (2, 2, 1, 1) == found.confusion


@pytest.mark.parametrize("tenths", range(1, 10))
@pytest.mark.parametrize("unit", [None, 0.01])
def test_a_bound_is_the_decimal_that_was_typed(tenths, unit):
    """0.9 is nine tenths, though the double nearest to it is a little more; so for 0.3, less."""
    bound = tenths / 10
    model = OnlineCalibrator(unit=unit)
    model.update_many([1, 1, 0, 0], [1, 0, 1, 0], [tenths, 10 - tenths, 10 - tenths, tenths])
    finer = Fraction(1, 10**18)

    assert 1.0 == model.best("specificity", min_recall=bound).upper
    assert 0.0 == model.best("specificity", min_recall=as_typed(bound) + finer).upper
    assert 1.0 == model.best("specificity", min_precision=bound).upper
    assert 1.0 == model.best("recall", max_false_positive_rate=(10 - tenths) / 10).upper
    less = Fraction(10 - tenths, 10) - finer
    assert None is model.best("recall", max_false_positive_rate=less).upper
    assert 1.0 == model.best("recall", max_positive_rate=0.5).upper


def test_bounds_between_neighbouring_doubles_are_told_apart():
    """Sums of 2**60: the rate and the bound differ by less than doubles can say."""
    rows = [(1.0, 1, 2**60 - 1), (0.0, 1, 1), (0.0, 0, 2**59)]
    calibrator = held_one_by_one(*columns(rows))
    exact = Fraction(2**60 - 1, 2**60)

    assert 1.0 == calibrator.best("specificity", min_recall=exact).upper
    assert 0.0 == calibrator.best("specificity", min_recall=exact + Fraction(1, 2**70)).upper
    assert 0.0 == calibrator.best("specificity", min_recall=1).upper
    share = Fraction(2**60 - 1, 2**60 + 2**59)
    assert 1.0 == calibrator.best("recall", max_positive_rate=share).upper
    assert None is calibrator.best("recall", max_positive_rate=share - Fraction(1, 2**70)).upper


def test_no_bound_and_a_ceiling_of_1_demand_nothing():
    calibrator = held_one_by_one([0.1, 0.2], [0, 0])
    nothing = {"max_false_positive_rate": 1, "max_positive_rate": 1.0}

    for bounds in (nothing, dict.fromkeys([*nothing, "min_precision", "min_recall"])):
        found = calibrator.best("accuracy", **bounds)
        assert (0.2, None, 1.0) == (found.lower, found.upper, found.value)


@pytest.mark.parametrize("zero", [0, 0.0, Fraction(0)])
def test_a_share_of_nothing_does_not_even_meet_a_floor_of_0(zero):
    calibrator = held_one_by_one([0.1, 0.2], [0, 0])
    found = calibrator.best("accuracy", min_precision=zero)
    assert (0.1, 0.2, 0.5) == (found.lower, found.upper, found.value)
    with pytest.raises(Infeasible, match="no cut meets min_recall"):
        calibrator.best("accuracy", min_recall=zero)


def test_answering_1_to_nobody_meets_no_floor_of_precision():
    calibrator = held_one_by_one([0.1, 0.2], [1, 0])
    found = calibrator.best("specificity", min_precision=0.5)

    assert (None, 0.1) == (found.lower, found.upper)
    with pytest.raises(Infeasible):
        calibrator.best("specificity", min_precision=0.51)


def test_without_positives_no_floor_of_recall_can_be_met():
    with pytest.raises(Infeasible, match="recall"):
        held_one_by_one([0.1, 0.2], [0, 0]).best("accuracy", min_recall=0.001)


def test_without_negatives_every_ceiling_of_false_positives_is_met():
    calibrator = held_one_by_one([0.1, 0.2], [1, 1])

    assert 1.0 == calibrator.best("recall", max_false_positive_rate=0).value


# What cannot be met.


def test_what_cannot_be_met_is_said_and_the_nearest_is_carried():
    calibrator = held_one_by_one([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0], [1, 1, 2, 1])
    before = pickle.dumps(calibrator)
    with pytest.raises(Infeasible) as caught:
        calibrator.best("recall", min_precision=0.9)
    nearest = caught.value.nearest

    assert isinstance(caught.value, ValueError)
    assert (0.2, 0.3) == (nearest.lower, nearest.upper)
    assert 0.25 == nearest.threshold
    assert (2, 1, 1, 1) == nearest.confusion
    assert [0, 1] == nearest.predict([0.2, 0.25]).tolist()
    for word in ("min_precision", "0.9", "0.66"):
        assert word in str(caught.value)
    assert before == pickle.dumps(calibrator)


def test_the_message_names_only_what_cannot_be_met():
    calibrator = held_one_by_one([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0])
    with pytest.raises(Infeasible, match=r"min_recall|min_precision") as caught:
        calibrator.best("f1", min_recall=0.9, min_precision=0.9)

    assert "max_positive_rate" not in str(caught.value)
    # One of these can be met.
    with pytest.raises(Infeasible, match=r"min_precision=0.9") as caught:
        calibrator.best("f1", min_precision=0.9, min_recall=0.5, max_positive_rate=1)
    assert "min_recall" not in str(caught.value)
    assert "max_positive_rate" not in str(caught.value)
    # Each of these can be met, but not both.
    with pytest.raises(Infeasible, match=r"min_recall=0.9.*max_positive_rate=0.5.*together"):
        calibrator.best("f1", min_recall=0.9, max_positive_rate=0.5)


def test_an_error_that_says_what_cannot_be_met_survives_pickling():
    with pytest.raises(Infeasible) as caught:
        held_one_by_one([0.1, 0.2], [1, 0]).best("recall", min_precision=0.9)
    other = pickle.loads(pickle.dumps(caught.value))

    assert str(caught.value) == str(other)
    assert caught.value.nearest.threshold == other.nearest.threshold


def test_shortfalls_are_compared_as_differences_of_rates():
    """Of two cuts the one that misses the floor of recall by less, though it misses both."""
    random = np.random.default_rng(15)
    for _ in range(200):
        rows = small_rows(random, 12)
        every = oracle.cuts(oracle.join(rows))
        calibrator = held_one_by_one(*columns(rows))
        for bounds in [
            {"min_precision": 1, "min_recall": 1},
            {"min_precision": 0.9, "min_recall": 0.7, "max_positive_rate": 0.3},
            {"min_recall": 0.8, "max_false_positive_rate": 0.1},
        ]:
            possible, expected = sweep(every, oracle.recall, bounds)
            found_possible, found = best_or_nearest(calibrator, "recall", bounds)

            assert possible == found_possible
            assert (rows, *expected[:2]) == (rows, found.lower, found.upper)


@pytest.mark.parametrize("bound", [-0.1, 1.1, 2, -1, NAN, INF, -INF, 90, "0.9", True])
@pytest.mark.parametrize("name", oracle.BOUNDS)
def test_a_bound_outside_0_to_1_is_refused_by_name(name, bound):
    with pytest.raises(ValueError, match=name) as caught:
        held_one_by_one([0.1, 0.2], [0, 1]).best("f1", **{name: bound})

    assert not isinstance(caught.value, Infeasible)


@every_metric
def test_bounds_of_large_sums_are_exact(name):
    random = np.random.default_rng(16)
    for _ in range(40):
        rows = hard_rows(random)
        every = oracle.cuts(oracle.join(rows))
        some = every[int(random.integers(len(every)))]
        off = Fraction(int(random.integers(-1, 2)), 2**80)
        exact = {
            "min_precision": oracle.precision(*some.confusion) + off,
            "max_false_positive_rate": oracle.false_positive_rate(*some.confusion) + off,
        }
        bounds = {bound: min(max(rate, Fraction(0)), Fraction(1)) for bound, rate in exact.items()}
        calibrator = held_one_by_one(*columns(rows))
        for one in bounds.items():
            possible, expected = sweep(every, oracle.METRICS[name], dict([one]))
            found_possible, found = best_or_nearest(calibrator, name, dict([one]))

            assert possible == found_possible
            assert_best(expected, found)


@pytest.mark.parametrize(
    "metric",
    [metrics.f1, metrics.mcc, metrics.fbeta(0.5), metrics.cost(false_negative=Fraction(5, 2))],
)
def test_metrics_can_be_pickled_and_copied(metric):
    for other in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert metric.name == other.name
        assert metric(3, 1, 2, 4) == other(3, 1, 2, 4)


def test_a_function_is_asked_once():
    asked = []

    def counting(tp, fp, fn, tn):
        asked.append(len(tp))
        return tp - fp

    held_one_by_one([0.1, 0.2], [0, 1]).best(counting)

    assert [3] == asked


def test_an_array_is_no_cost():
    with pytest.raises(ValueError, match=r"false_positive must be a positive, finite number"):
        held_one_by_one([0.1], [1]).threshold(false_positive=np.array([1, 2]))


def test_every_metric_is_listed_under_its_name() -> None:
    found = {name: each for name, each in vars(metrics).items() if isinstance(each, metrics.Metric)}

    assert list(found) == [each.name for each in found.values()]
    assert set(found) == set(METRIC_NAMES)
