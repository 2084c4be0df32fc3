# SPDX-License-Identifier: Apache-2.0
"""The calibrator against pool adjacent violators in exact arithmetic, and against its sibling.

The fit, the probability, the hull and the confusion matrix are those of `isotonic_oracle`; the
threshold, the optimum and the curve of any cost are those of `OnlineThreshold`, bit for bit.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from random import Random

import isotonic_oracle as oracle
import numpy as np
import pytest
import streams
from fits import (
    WAYS,
    SmallLeafCalibrator,
    any_rows,
    assert_fit,
    assert_hull,
    assert_probabilities,
    columns,
    costs,
    crowded_rows,
    exactly,
    held_one_by_one,
    probes_of,
    same,
    whole_arrays,
)
from hypothesis import example, given
from hypothesis import strategies as st
from isotonic_oracle import Point, Pool
from streams import HUGE, INF, NORMAL, TINY, as_typed

import limen
from limen import NotHeld, OnlineCalibrator, OnlineThreshold, Optimum

NAN = math.nan

every_way = pytest.mark.parametrize("blocks_of", WAYS)
both_models = pytest.mark.parametrize("model", [SmallLeafCalibrator, OnlineCalibrator])


# The oracle itself.


def mean(points: list[Point]) -> Fraction:
    positive = sum(point.positive for point in points)
    return Fraction(positive) / (positive + sum(point.negative for point in points))


@given(crowded_rows)
def test_the_oracle_follows_the_formula_of_largest_and_smallest_means(rows):
    """The value at k is the largest, over starts, of the smallest mean, over ends."""
    points = oracle.join(rows)
    fit = oracle.pools(points)
    for k, point in enumerate(points):
        value = max(
            min(mean(points[start : end + 1]) for end in range(k, len(points)))
            for start in range(k + 1)
        )

        assert value == oracle.probability(fit, point.score)


@given(st.lists(st.tuples(st.integers(0, 3), streams.labels, st.integers(1, 3)), max_size=7))
def test_no_ascending_map_on_a_grid_has_a_smaller_square_error_than_the_oracle(rows):
    points = oracle.join(rows)
    fit = oracle.pools(points)

    def error(values):
        return sum(
            point.positive * (1 - value) ** 2 + point.negative * value**2
            for point, value in zip(points, values, strict=True)
        )

    grid = [Fraction(n, 6) for n in range(7)]
    ours = error([oracle.probability(fit, point.score) for point in points])
    for values in itertools.combinations_with_replacement(grid, len(points)):
        assert ours <= error(values)


# The fit.


@every_way
def test_the_fit_of_a_few_samples(blocks_of):
    blocks = blocks_of([0.1, 0.3, 0.2, 0.4, 0.4, 0.5], [0, 0, 1, 1, 0, 1])

    assert [0.1, 0.2, 0.5] == blocks.first.tolist()
    assert [0.1, 0.4, 0.5] == blocks.last.tolist()
    assert [0, 2, 1] == blocks.positive.tolist()
    assert [1, 4, 1] == blocks.weight.tolist()
    assert [1, 4, 1] == blocks.counts.tolist()
    assert [0.0, 0.5, 1.0] == blocks.probabilities.tolist()
    assert [Fraction(0), Fraction(1, 2), Fraction(1)] == blocks.fractions()
    assert 3 == len(blocks)


@every_way
def test_the_arrays_of_a_fit_are_doubles_and_whole_counts(blocks_of):
    blocks = blocks_of([0.1, 0.2], [0, 1], [0.5, 2])
    for name in ("first", "last", "positive", "weight", "probabilities"):
        array = getattr(blocks, name)
        assert (name, np.float64, 1) == (name, array.dtype, array.ndim)
    assert blocks.counts.dtype.kind in "iu"


@every_way
def test_nothing_held_has_no_blocks(blocks_of):
    blocks = blocks_of([], [])

    assert_fit([], blocks)
    assert math.isnan(blocks.probability(0.5))
    assert np.isnan(blocks.probability([0.5, -INF], between="linear")).all()


@every_way
@pytest.mark.parametrize("score", [0.5, -INF, INF, -HUGE, TINY, 0.0])
@pytest.mark.parametrize("label", [0, 1])
def test_one_sample_is_one_block(blocks_of, score, label):
    blocks = blocks_of([score], [label], [3])

    assert_fit([Pool(score, score, 3 * label, 3, 1)], blocks)
    assert float(label) == blocks.probability(0.1) == blocks.probability(score)


@every_way
def test_equal_values_make_one_block(blocks_of):
    blocks = blocks_of([1, 1, 2, 2, 3, 3, 3], [0, 1, 1, 0, 1, 1, 0], [1, 1, 5, 5, 1, 1, 1])

    assert [(1.0, 2.0), (3.0, 3.0)] == list(zip(blocks.first, blocks.last, strict=True))


@every_way
def test_minus_zero_and_zero_are_one_score(blocks_of):
    blocks = blocks_of([-0.0, 0.0, TINY, -TINY], [1, 0, 1, 0])

    assert [-TINY, 0.0, TINY] == blocks.first.tolist()
    assert "0.0" == repr(blocks.first.tolist()[1]) == repr(blocks.last.tolist()[1])
    assert [1, 2, 1] == blocks.counts.tolist()


@every_way
def test_scores_one_ulp_apart_are_different(blocks_of):
    above = [float(np.nextafter(x, INF)) for x in (0.5, 1e300, -1.0, NORMAL, 1e-200)]
    for score, next_score in zip((0.5, 1e300, -1.0, NORMAL, 1e-200), above, strict=True):
        blocks = blocks_of([score, next_score], [0, 1])

        assert [0.0, 1.0] == blocks.probabilities.tolist()
        assert [score, next_score] == blocks.first.tolist()


@every_way
@given(rows=any_rows)
def test_the_fit_is_that_of_pooling_adjacent_violators(blocks_of, rows):
    assert_fit(oracle.pools(oracle.join(exactly(rows))), blocks_of(*columns(rows)))


@given(st.lists(st.tuples(streams.scores, streams.labels, streams.light_weights), max_size=40))
def test_fine_weights_are_rounded_once_and_fitted_exactly(rows):
    fit = oracle.pools(oracle.join(exactly(rows)))
    for blocks_of in WAYS:
        assert_fit(fit, blocks_of(*columns(rows)))


@given(
    st.lists(st.tuples(st.integers(0, 20), streams.labels, st.integers(1, 10**6)), min_size=1).map(
        lambda rows: [(score, label, cents / 100) for score, label, cents in rows]
    )
)
def test_a_unit_makes_cents_exact(rows):
    fit = oracle.pools(oracle.join(exactly(rows, 0.01)))
    for blocks_of in WAYS:
        assert_fit(fit, blocks_of(*columns(rows), unit=0.01))


@pytest.mark.parametrize("unit", [Fraction(1, 3), 7, 0.25])
def test_weights_are_counted_in_the_unit(unit):
    rows = [(n % 5, n % 3 % 2, float(as_typed(unit) * (1 + n % 4))) for n in range(40)]
    fit = oracle.pools(oracle.join(exactly(rows, unit)))
    for blocks_of in WAYS:
        assert_fit(fit, blocks_of(*columns(rows), unit=unit))


@pytest.mark.parametrize("n", [1, 2, 91, 92, 93, 184, 185, 1_000, 5_000])
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_every_shape_of_stream_is_fitted_exactly(shape, n):
    scores, labels = streams.SHAPES[shape](n)
    points = oracle.join(zip(scores.tolist(), labels.tolist(), itertools.repeat(1)))
    model = OnlineCalibrator()
    model.update_many(scores, labels)
    model._check()

    assert_fit(oracle.pools(points), model.blocks())
    assert_fit(oracle.pools(points), limen.isotonic(scores, labels))
    assert_hull(points, model.roc_hull())


@both_models
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_any_order_of_arrival_leaves_the_same_bytes(shape, model):
    scores, labels = streams.SHAPES[shape](300)
    weights = np.random.default_rng(5).integers(0, 2**20, 300) / 2**12
    orders = [np.arange(300), np.argsort(scores), np.argsort(-scores)]
    pickles, fits = set(), set()
    for order in [*orders, *(np.random.default_rng(seed).permutation(300) for seed in range(2))]:
        single, parts = model(), model()
        for n in order:
            single.update(scores[n], labels[n], weights[n])
        for part in np.array_split(order, 5):
            parts.update_many(scores[part], labels[part], weights[part])
        for found in (single, parts):
            found._check()
            pickles.add(pickle.dumps(found))
            fits.add(tuple(found.blocks().fractions()))

    assert (1, 1) == (len(pickles), len(fits))


# Thresholds of every cost, bit for bit those of OnlineThreshold.


def assert_sibling(calibrator: OnlineCalibrator, rows, unit=None, **given_costs) -> None:
    sibling = OnlineThreshold(unit=unit, **given_costs)
    sibling.update_many(*columns(rows))
    found, curve = calibrator.optimum(**given_costs), calibrator.curve(**given_costs)

    assert isinstance(found, Optimum)
    assert sibling.optimum == found
    assert repr(sibling.optimum) == repr(found)
    assert same(sibling.threshold, calibrator.threshold(**given_costs))
    assert sibling.curve().thresholds.tobytes() == curve.thresholds.tobytes()
    assert sibling.curve().losses.tobytes() == curve.losses.tobytes()
    probes = [-INF, -1.0, 0.0, 0.3, 1.0, 2.5, HUGE, INF, *(row[0] for row in rows)]
    answers = calibrator.predict(probes, **given_costs)
    assert sibling.predict(probes).dtype == answers.dtype
    assert sibling.predict(probes).tolist() == answers.tolist()
    assert sibling.predict(0.3) == calibrator.predict(0.3, **given_costs)


@given(rows=any_rows, some=st.lists(costs, min_size=1, max_size=4))
def test_every_cost_gives_what_the_threshold_of_that_cost_gives(rows, some):
    calibrator = held_one_by_one(*columns(rows))
    for false_positive, false_negative in some:
        both = {"false_positive": false_positive, "false_negative": false_negative}
        assert_sibling(calibrator, rows, **both)


@given(
    rows=st.lists(st.tuples(streams.scores, streams.labels, streams.light_weights), max_size=40),
    pair=costs,
)
def test_fine_weights_give_what_the_threshold_of_the_cost_gives(rows, pair):
    calibrator = held_one_by_one(*columns(rows))
    assert_sibling(calibrator, rows, false_positive=pair[0], false_negative=pair[1])


@given(
    rows=st.lists(st.tuples(streams.scores, streams.labels, st.integers(1, 10**9)), max_size=30),
    unit=st.sampled_from([0.01, Fraction(1, 3), 7, 0.125]),
    pair=costs,
)
def test_units_give_what_the_threshold_of_the_cost_gives(rows, unit, pair):
    size = as_typed(unit)
    rows = [(score, label, float(whole * size)) for score, label, whole in rows]
    calibrator = held_one_by_one(*columns(rows), unit=unit)
    assert_sibling(calibrator, rows, unit, false_positive=pair[0], false_negative=pair[1])


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_every_shape_gives_the_thresholds_of_every_cost(shape):
    scores, labels = streams.SHAPES[shape](1_200)
    rows = list(zip(scores.tolist(), labels.tolist(), itertools.repeat(1)))
    calibrator = OnlineCalibrator()
    calibrator.update_many(scores, labels)
    for pair in [(1, 1), (1, 2), (3, 1), (0.1, 0.3), (1, 10**6), (10**6, 1), (7, 13)]:
        assert_sibling(calibrator, rows, false_positive=pair[0], false_negative=pair[1])


def test_costs_are_1_and_1_where_none_are_given():
    calibrator = held_one_by_one([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])

    assert 0.625 == calibrator.threshold()
    assert Optimum(0.5, 0.75, 1.0) == calibrator.optimum()
    assert 0.175 == calibrator.threshold(false_negative=5)
    assert [0, 0, 1] == calibrator.predict([0.1, 0.6, 0.7]).tolist()
    assert [2.0, 1.0, 2.0, 1.0, 2.0] == calibrator.curve().losses.tolist()


def test_the_highest_of_equally_good_cuts_is_chosen_at_every_value_of_the_fit():
    """A cost at the very value of a block leaves that block below the cut."""
    scores, labels = streams.uniform(400)
    points = oracle.join(zip(scores.tolist(), labels.tolist(), itertools.repeat(1)))
    calibrator = held_one_by_one(scores, labels)
    for pool in oracle.pools(points):
        if 0 < pool.value < 1:
            pair = pool.value.numerator, pool.value.denominator - pool.value.numerator
            best = calibrator.optimum(false_positive=pair[0], false_negative=pair[1])

            assert oracle.cheapest(oracle.cuts(points), *pair)[:2] == (best.lower, best.upper)
            assert pool.last == best.lower


def test_losses_beyond_what_a_sum_may_be_are_the_nearest_doubles():
    """The weights fit; weights times costs need far more bits, and decide exactly all the same."""
    rows = [(0.1, 1, 2**59 + 1), (0.2, 0, 2**59), (0.3, 1, 2**59 - 1), (0.4, 0, 2**59 + 3)]
    points = oracle.join(rows)
    calibrator = held_one_by_one(*columns(rows))
    for pair in [
        (2**61 - 1, 2**61 - 3),
        (2**61 - 3, 2**61 - 1),
        (1, 2**61),
        (2**62 - 1, 1),
        (2**59 - 1, 2**59 + 3),
        (2**59, 2**59 + 1),
        (2**59 + 1, 2**59),
        (10**18 + 1, 10**18),
    ]:
        expected = oracle.cheapest(oracle.cuts(points), *pair)
        best = calibrator.optimum(false_positive=pair[0], false_negative=pair[1])
        losses = [float(oracle.loss(cut, *pair)) for cut in oracle.cuts(points)]
        curve = calibrator.curve(false_positive=pair[0], false_negative=pair[1])

        assert (pair, expected.lower, expected.upper) == (pair, best.lower, best.upper)
        assert (pair, float(oracle.loss(expected, *pair))) == (pair, best.loss)
        assert (pair, losses) == (pair, curve.losses.tolist())


@pytest.mark.parametrize("unit", [0.01, Fraction(1, 3), 7, Fraction(2**40 + 1, 3)])
def test_losses_in_any_unit_are_the_nearest_doubles(unit):
    size = as_typed(unit)
    rows = [(n % 7, n * 5 % 3 % 2, float(size * (2**52 + n * n))) for n in range(30)]
    points = oracle.join(exactly(rows, unit))
    calibrator = held_one_by_one(*columns(rows), unit=unit)
    for pair in [(1, 1), (3, 7), (0.1, 0.3), (2**19 - 1, 2**19 + 1), (10**6, 1)]:
        exact = [as_typed(cost) for cost in pair]
        given_costs = {"false_positive": pair[0], "false_negative": pair[1]}
        best = oracle.cheapest(oracle.cuts(points), *exact)
        losses = [float(oracle.loss(cut, *exact)) for cut in oracle.cuts(points)]

        assert float(oracle.loss(best, *exact)) == calibrator.optimum(**given_costs).loss
        assert losses == calibrator.curve(**given_costs).losses.tolist()
        for cut in oracle.cuts(points):
            sums = [float(n) for n in cut.confusion]
            assert sums == list(calibrator.confusion(cut.threshold))
    # Where sums exceed 2**53 units, a double of them is rounded before it is divided.
    assert_fit(oracle.pools(points), calibrator.blocks())
    assert_hull(points, calibrator.roc_hull())


@pytest.mark.parametrize("cost", [0, -1, NAN, INF, "1", None, True, [1]])
@pytest.mark.parametrize("name", ["false_positive", "false_negative"])
def test_a_cost_that_is_not_positive_and_finite_is_refused_by_name(name, cost):
    calibrator = held_one_by_one([0.1, 0.2], [0, 1])
    for call in (calibrator.threshold, calibrator.optimum, calibrator.curve):
        with pytest.raises(ValueError, match=f"{name} must be a positive, finite number"):
            call(**{name: cost})
    with pytest.raises(ValueError, match=f"{name} must be a positive, finite number"):
        calibrator.predict([0.5], **{name: cost})


# Probabilities.


@example(rows=[(-INF, 0, 1), (INF, 1, 1)])
@example(rows=[(-INF, 0, 1), (0.5, 0, 1), (0.5, 1, 1), (INF, 1, 1)])
@example(rows=[(-HUGE, 0, 1), (HUGE, 1, 1)])
@example(rows=[(0.0, 0, 1), (TINY, 1, 1)])
@example(rows=[(TINY, 0, 1), (5 * TINY, 1, 1)])
@example(rows=[(-HUGE, 0, 1), (-HUGE / 2, 1, 1), (-HUGE / 2, 0, 1), (HUGE, 1, 1)])
@given(rows=any_rows.filter(bool))
def test_the_probability_follows_the_rule_inside_and_between_blocks(rows):
    points = oracle.join(exactly(rows))
    fit = oracle.pools(points)
    if not fit:
        return
    probes = [*probes_of(points), INF]
    blocks = whole_arrays(*columns(rows))
    calibrator = held_one_by_one(*columns(rows))

    assert_probabilities(fit, probes, lambda x, rule: blocks.probability(x, between=rule))
    assert_probabilities(fit, probes, lambda x, rule: calibrator.probability(x, between=rule))
    for rule in ("step", "linear"):
        found = calibrator.probability(probes, between=rule).tolist()

        assert blocks.probability(probes, between=rule).tolist() == found
        assert [calibrator.probability(probe, between=rule) for probe in probes] == found
        assert [blocks.probability(probe, between=rule) for probe in probes] == found


@pytest.mark.parametrize("between", ["step", "linear"])
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_a_few_scores_of_many_held_get_what_all_of_them_get(shape, between):
    """Whether few or many scores are asked for decides how they are looked up."""
    scores, labels = streams.SHAPES[shape](2_000)
    calibrator = OnlineCalibrator()
    calibrator.update_many(scores, labels)
    probes = np.concatenate([scores[:300], streams.uniform(300)[0] * 3 - 1, [-INF, INF, 0.0, -0.0]])
    found = calibrator.probability(probes, between=between)
    points = oracle.join(zip(scores.tolist(), labels.tolist(), itertools.repeat(1)))
    fit = oracle.pools(points)

    assert calibrator.blocks().probability(probes, between=between).tolist() == found.tolist()
    for at in range(0, len(probes), 7):
        few = calibrator.probability(probes[at : at + 3], between=between)

        assert found[at : at + 3].tolist() == few.tolist()
        assert found[at] == calibrator.probability(float(probes[at]), between=between)
        expected = float(oracle.probability(fit, float(probes[at]), between))
        assert math.isclose(expected, found[at], rel_tol=1e-13 if between == "linear" else 0)


def test_the_step_is_where_the_threshold_of_the_gap_is():
    calibrator = held_one_by_one([0.25, 0.75], [0, 1])
    below = float(np.nextafter(0.5, 0))

    assert [0.0, 0.0, 1.0, 1.0] == calibrator.probability([0.3, below, 0.5, 0.7]).tolist()
    assert [0.0, 0.25, 0.5, 1.0] == calibrator.probability(
        [0.25, 0.375, 0.5, 0.75], between="linear"
    ).tolist()


def test_the_line_never_leaves_the_values_at_its_ends():
    """Just below the upper end, low + 1 * (high - low) may be more than high in doubles."""
    values = sorted({Fraction(a, b) for b in range(1, 14) for a in range(b + 1)})
    just_below = [float(np.nextafter(1.0, 0)), float(np.nextafter(-1.0, 0))]
    beyond = 0
    for low, high in itertools.combinations(values, 2):
        rows = [
            (score, label, weight)
            for score, value in ((-1.0, low), (1.0, high))
            for label, weight in (
                (1, value.numerator),
                (0, value.denominator - value.numerator),
            )
        ]
        found = whole_arrays(*columns(rows)).probability(just_below, between="linear")
        beyond += float(low) + (float(high) - float(low)) > float(high)

        assert float(low) <= found[1] <= found[0] <= float(high)
    assert beyond


def test_an_infinite_end_gives_the_value_of_the_finite_side():
    calibrator = held_one_by_one([-INF, 0.25, 0.25, INF], [0, 1, 0, 1])

    assert [0.0, 0.5, 0.5, 0.5, 1.0] == calibrator.probability(
        [-INF, -5.0, 0.25, 1e300, INF], between="linear"
    ).tolist()
    assert [0.0, 0.0, 0.5, 0.5, 1.0] == calibrator.probability(
        [-INF, -5.0, 0.25, 1e300, INF]
    ).tolist()


def test_between_two_infinite_ends_the_line_is_the_mean():
    calibrator = held_one_by_one([-INF, INF], [0, 1])

    assert [0.0, 0.5, 0.5, 1.0] == calibrator.probability(
        [-INF, -7.0, HUGE, INF], between="linear"
    ).tolist()
    assert [0.0, 0.0, 0.0, 1.0] == calibrator.probability([-INF, -7.0, HUGE, INF]).tolist()


@pytest.mark.parametrize(
    "number", [0.3, 1, 0, np.float32(0.25), np.float64(0.3), np.int64(1), -INF]
)
@pytest.mark.parametrize("between", ["step", "linear"])
def test_a_number_gives_a_float_and_an_array_gives_an_array(number, between):
    calibrator = held_one_by_one([0.25, 0.5, 0.75], [0, 1, 0])
    for holder in (calibrator, calibrator.blocks()):
        single = holder.probability(number, between=between)
        array = holder.probability(np.array([number, number]), between=between)

        assert float is type(single)
        assert ((2,), np.float64) == (array.shape, array.dtype)
        assert [single, single] == array.tolist()
        assert [] == holder.probability([], between=between).tolist()
        assert np.float64 == holder.probability([], between=between).dtype


def test_nothing_held_gives_nan():
    calibrator = OnlineCalibrator()
    for between in ("step", "linear"):
        assert math.isnan(calibrator.probability(0.5, between=between))
        assert np.isnan(calibrator.probability([0.5, -INF, INF], between=between)).all()


def test_a_nan_score_is_refused_by_probability():
    empty, some = OnlineCalibrator(), held_one_by_one([0.25, 0.75], [0, 1])
    for holder in (empty, some, empty.blocks(), some.blocks()):
        for between in ("step", "linear"):
            with pytest.raises(ValueError, match="nan"):
                holder.probability(NAN, between=between)
            with pytest.raises(ValueError, match=r"scores\[2\] is nan"):
                holder.probability([0.5, 0.6, NAN], between=between)


@pytest.mark.parametrize("between", ["spline", "", None, 1])
def test_an_unknown_rule_between_blocks_is_refused(between):
    calibrator = held_one_by_one([0.25, 0.75], [0, 1])
    for holder in (calibrator, calibrator.blocks()):
        with pytest.raises(ValueError, match=r"between.*step.*linear"):
            holder.probability(0.5, between=between)


@given(
    rows=st.lists(st.tuples(streams.scores, streams.labels, st.integers(1, 2**10)), max_size=40),
    pair=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
def test_the_probability_exceeds_the_share_of_the_cost_exactly_where_the_answer_is_1(rows, pair):
    """For every score there is, even one between two blocks.

    Left out: a score of inf that was never seen, which even a threshold of inf answers 1.
    """
    calibrator = held_one_by_one(*columns(rows))
    given_costs = {"false_positive": pair[0], "false_negative": pair[1]}
    probes = probes_of(oracle.join(rows)) + [INF] * any(row[0] == INF for row in rows)
    answers = calibrator.predict(probes, **given_costs)
    likely = calibrator.probability(probes) > pair[0] / (pair[0] + pair[1])

    assert likely.astype(int).tolist() == answers.tolist()
    if not rows:
        return
    # And at the very values of the fit, where the answer is 0.
    for value in calibrator.blocks().fractions():
        if 0 < value < 1:
            ends = value.numerator, value.denominator - value.numerator
            answers = calibrator.predict(probes, false_positive=ends[0], false_negative=ends[1])
            likely = calibrator.probability(probes) > float(value)

            assert likely.astype(int).tolist() == answers.tolist()


def test_values_of_sums_beyond_double_precision_are_rounded_once_and_ascend():
    """Sums above 2**53 divided as doubles would be rounded thrice, and could even descend."""
    random = np.random.default_rng(8)
    for _ in range(200):
        n = int(random.integers(1, 12))
        whole = random.integers(2**55, 2**58, n).tolist()
        share = [int(w * random.random()) if random.random() < 0.5 else w // 3 for w in whole]
        rows = [
            row
            for at, (w, p) in enumerate(zip(whole, share, strict=True))
            for row in ((at, 1, p), (at, 0, w - p))
        ]
        fit = oracle.pools(oracle.join(rows))
        for blocks_of in WAYS:
            blocks = blocks_of(*columns(rows))

            assert_fit(fit, blocks)
            assert (np.diff(blocks.probabilities) >= 0).all()
            assert (np.diff(blocks.probability(np.arange(-1, n, 0.25))) >= 0).all()


# The hull, and the confusion matrix at any threshold.


def test_the_hull_goes_from_all_to_none():
    hull = held_one_by_one([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], [1, 2, 3, 4]).roc_hull()

    assert [-INF, 0.175, 0.625, INF] == hull.thresholds.tolist()
    assert [6, 6, 4, 0] == hull.tp.tolist()
    assert [4, 3, 0, 0] == hull.fp.tolist()
    assert [0, 0, 2, 6] == hull.fn.tolist()
    assert [0, 1, 4, 4] == hull.tn.tolist()


def test_the_hull_of_nothing_is_one_vertex():
    hull = OnlineCalibrator().roc_hull()

    assert [INF] == hull.thresholds.tolist()
    assert [[0.0]] * 4 == [array.tolist() for array in (hull.tp, hull.fp, hull.fn, hull.tn)]


@given(rows=any_rows)
def test_the_vertices_of_the_hull_are_the_cuts_between_blocks(rows):
    assert_hull(oracle.join(exactly(rows)), held_one_by_one(*columns(rows)).roc_hull())


@given(rows=st.lists(st.tuples(streams.scores, streams.labels, st.integers(1, 2**10)), max_size=40))
def test_every_vertex_is_the_cheapest_cut_of_some_cost_and_no_other_cut_is(rows):
    points = oracle.join(rows)
    calibrator = held_one_by_one(*columns(rows))
    values = [Fraction(0), *(pool.value for pool in oracle.pools(points)), Fraction(1)]
    found = set()
    for low, high in itertools.pairwise(values):
        middle = (low + high) / 2
        if 0 < middle < 1:
            given_costs = {"false_positive": middle, "false_negative": 1 - middle}
            found.add(repr(calibrator.threshold(**given_costs)))
    every = [repr(t) for t in calibrator.roc_hull().thresholds.tolist()]
    ends = [every[0]] * (values[1] == 0) + [every[-1]] * (values[-2] == 1)

    assert {*every} == found | {*ends}


@given(rows=any_rows)
def test_the_confusion_matrix_at_any_threshold_is_the_sum_over_all_samples(rows):
    points = oracle.join(exactly(rows))
    calibrator = held_one_by_one(*columns(rows))
    for threshold in [*probes_of(points), INF, NAN, -0.0]:
        expected = oracle.confusion(points, threshold)
        found = calibrator.confusion(threshold)

        assert (threshold, *map(float, expected)) == (threshold, *found) or threshold != threshold
        assert tuple(map(float, expected)) == tuple(found)
        for name in ("precision", "recall", "false_positive_rate", "positive_rate"):
            rate = getattr(oracle, name)(*expected)
            assert math.isclose(float(rate), getattr(found, name), rel_tol=1e-15)


def test_a_confusion_matrix_is_a_named_tuple_of_floats():
    found = held_one_by_one([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1], [1, 2, 3, 4]).confusion(0.5)

    assert limen.Confusion(tp=4.0, fp=3.0, fn=2.0, tn=1.0) == found
    assert ("tp", "fp", "fn", "tn") == found._fields
    assert {float} == set(map(type, found))
    assert (4 / 7, 4 / 6, 3 / 4, 7 / 10) == (
        found.precision,
        found.recall,
        found.false_positive_rate,
        found.positive_rate,
    )


def test_a_rate_of_nothing_is_0():
    empty = OnlineCalibrator().confusion(0.5)
    none = held_one_by_one([0.1, 0.2], [0, 0]).confusion(NAN)

    assert (0, 0, 0, 0) == empty
    assert (0, 0, 0, 0) == (
        empty.precision,
        empty.recall,
        empty.false_positive_rate,
        empty.positive_rate,
    )
    assert (0, 0, 0, 2) == none
    assert (0, 0) == (none.precision, none.recall)


def test_a_nan_threshold_answers_0_even_to_infinity():
    calibrator = held_one_by_one([INF, 0.5], [0, 1])

    assert (1, 1, 0, 0) == calibrator.confusion(-INF)
    assert (0, 1, 1, 0) == calibrator.confusion(INF)
    assert (0, 0, 1, 1) == calibrator.confusion(NAN)
    assert math.isnan(calibrator.roc_hull().thresholds[-1])


@both_models
def test_the_confusion_matrix_at_the_threshold_of_a_cost_costs_the_loss(model):
    scores, labels = streams.crowded_at_one_end(3_000)
    calibrator = model()
    calibrator.update_many(scores, labels)
    for cost in (1, 2, 5, 19, 100):
        best = calibrator.optimum(false_negative=cost)
        found = calibrator.confusion(best.threshold)

        assert best.loss == found.fp + cost * found.fn
        assert labels.sum() == found.tp + found.fn
        assert 3_000 == sum(found)


# What is refused leaves everything as it was.


@pytest.fixture
def calibrator():
    """Some samples, among them fine weights, so that there is something to be damaged."""
    calibrator = SmallLeafCalibrator()
    calibrator.update_many(*streams.uniform(50), np.arange(50) / 4)
    return calibrator


def refused(model, error, words, call, *given_arguments):
    """The call raises an error of exactly this kind with these words; the bytes stay."""
    before = pickle.dumps(model), model.blocks().fractions(), model.optimum(), len(model)
    with pytest.raises(error) as caught:
        call(*given_arguments)
    model._check()

    assert error is caught.type
    for word in words:
        assert word in str(caught.value)
    assert before == (pickle.dumps(model), model.blocks().fractions(), model.optimum(), len(model))
    return str(caught.value)


def test_a_nan_score_is_refused(calibrator):
    for change in (calibrator.update, calibrator.revert):
        refused(calibrator, ValueError, ["score", "nan", "order"], change, NAN, 1, 1)
    for change in (calibrator.update_many, calibrator.revert_many):
        rows = [0.1, 0.2, NAN, NAN], [1, 1, 1, 1]
        refused(calibrator, ValueError, ["scores[2]", "nan"], change, *rows)
    with pytest.raises(ValueError, match=r"scores\[2\] is nan"):
        limen.isotonic([0.1, 0.2, NAN], [1, 1, 1])


@pytest.mark.parametrize("label", [2, -1, 0.5, NAN, "spam", None])
def test_a_label_other_than_0_and_1_is_refused(calibrator, label):
    for change in (calibrator.update, calibrator.revert):
        refused(calibrator, ValueError, ["label must be 0 or 1"], change, 0.5, label)
    for change in (calibrator.update_many, calibrator.revert_many):
        rows = [0.25, 0.5, 0.75], [0, 1, label]
        refused(calibrator, ValueError, ["labels must be 0 or 1", "labels[2]"], change, *rows)
    with pytest.raises(ValueError, match=r"labels must be 0 or 1.*labels\[1\]"):
        limen.isotonic([0.1, 0.2], [1, label])


@pytest.mark.parametrize("weight", [-1, -0.5, NAN, INF, -INF, -(2**70)])
def test_a_weight_that_is_negative_or_not_finite_is_refused(calibrator, weight):
    for change in (calibrator.update, calibrator.revert):
        refused(calibrator, ValueError, ["weight must be"], change, 0.5, 1, weight)
    rows = [0.25, 0.5, 0.75], [0, 1, 1], [1, 0, weight]
    for change in (calibrator.update_many, calibrator.revert_many):
        refused(calibrator, ValueError, ["weights[2]"], change, *rows)
    with pytest.raises(ValueError, match=r"weights\[2\]"):
        whole_arrays(*rows)


def test_a_score_or_weight_that_is_not_a_number_is_refused(calibrator):
    for change in (calibrator.update, calibrator.revert):
        refused(calibrator, TypeError, ["score", "'0.5'"], change, "0.5", 1)
        refused(calibrator, TypeError, ["weight", "'2'"], change, 0.5, 1, "2")


def test_lengths_that_differ_are_refused(calibrator):
    for change in (calibrator.update_many, calibrator.revert_many):
        words = ["scores has 2", "labels has 3"]
        refused(calibrator, ValueError, words, change, [0.1, 0.2], [0, 1, 1])
        refused(calibrator, ValueError, ["weights has 1"], change, [0.1, 0.2], [0, 1], [3])
    with pytest.raises(ValueError, match="scores has 2, labels has 3"):
        limen.isotonic([0.1, 0.2], [0, 1, 1])


def test_swapped_scores_and_labels_are_recognised(calibrator):
    words = ["labels[0]", "cores come first"]
    refused(calibrator, ValueError, words, calibrator.update_many, [0, 1, 1], [0.2, 0.7, 1])


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_weight_0_is_the_same_as_leaving_the_row_out(calibrator, zero):
    before = pickle.dumps(calibrator), len(calibrator)
    for score in (0.5, INF, 123.0, float(streams.uniform(50)[0][0])):
        for label in (0, 1):
            calibrator.update(score, label, zero)
            calibrator.revert(score, label, zero)
            calibrator.update_many([score], [label], [zero])
            calibrator.revert_many([score], [label], [zero])

    assert before == (pickle.dumps(calibrator), len(calibrator))
    assert [0.5] == limen.isotonic(
        [0.2, 0.5, 0.9], [0, 1, 0], weights=[zero, 1, zero]
    ).first.tolist()


def test_reverting_what_is_not_held_is_refused():
    model = SmallLeafCalibrator()
    model.update_many([0.25, 0.25, 0.5, 0.75], [0, 1, 1, 0], [1, 2, 0.5, 2**40])
    for sample in [
        (0.3, 1),
        (0.25, 1, 3),
        (0.25, 1, 2.25),
        (0.25, 0, 2),
        (0.5, 0, 0.5),
        (0.5, 1, 0.25),
        (0.75, 0, 2**40 + 1),
        (0.75, 0, 2**39),
        (0.75, 1, 2**40),
        (INF, 1),
        (-INF, 0),
        (0.5, 1, 2.0**-20),
        (0.5, 1, 2**62),
        (0.5, 1, 1e300),
    ]:
        words = ["cannot revert", repr(sample[0])]
        refused(model, NotHeld, words, model.revert, *sample)
        refused(model, NotHeld, words, model.revert_many, *([value] for value in sample))


def test_reverting_many_changes_nothing_when_one_is_not_held(calibrator):
    scores, labels = streams.uniform(50)
    rows = scores[1:30].copy(), labels[1:30], np.arange(1, 30) / 4
    rows[0][17] = 0.123
    refused(calibrator, NotHeld, ["0.123"], calibrator.revert_many, *rows)
    rows[0][17] = scores[18]
    calibrator.revert_many(*rows)
    calibrator._check()
    other = SmallLeafCalibrator()
    other.update_many(scores[30:], labels[30:], np.arange(30, 50) / 4)

    assert pickle.dumps(other) == pickle.dumps(calibrator)


@pytest.mark.parametrize("weight", [2**62, 2**63, 2**64, 2**70, 1e19, 1e20, 1e30, 1e300])
def test_weights_that_would_overflow_are_refused_before_anything_changes(calibrator, weight):
    refused(calibrator, OverflowError, [], calibrator.update, 0.5, 1, weight)
    rows = [0.1, 0.5, 0.9], [0, 1, 1], [1, weight, 2]
    refused(calibrator, OverflowError, [], calibrator.update_many, *rows)
    with pytest.raises(OverflowError):
        whole_arrays(*rows)


@both_models
def test_a_sum_that_overflows_at_last_leaves_what_was_held(model):
    full = model()
    rows = [(0.1, 0, 2**60), (0.2, 1, 2**60), (0.3, 0, 2**61 - 1)]
    full.update_many(*columns(rows))
    for score in (0.1, 0.2, 0.25, 0.3, -INF):
        for label in (0, 1):
            told = refused(full, OverflowError, ["2**62", "unit="], full.update, score, label)
            refused(full, OverflowError, ["2**62"], full.update_many, [score], [label])
    many = np.full(2_000, 0.5), np.ones(2_000), np.full(2_000, 2**52)
    refused(full, OverflowError, ["2**62"], full.update_many, *many)
    with pytest.raises(OverflowError, match=r"2\*\*62"):
        whole_arrays(*columns([*rows, (0.4, 1, 1)]))
    coarse = model(unit=float(told.split("unit=")[1].split(",")[0].split(" ")[0].rstrip(".")))
    coarse.update_many(*columns(rows))

    assert 3 == len(full) == len(coarse)
    assert_fit(oracle.pools(oracle.join(rows)), full.blocks())
    assert_fit(oracle.pools(oracle.join(rows)), whole_arrays(*columns(rows)))


def test_a_finer_weight_that_would_make_the_rest_overflow_is_refused():
    """Measured in 2**-20, what is held already is a million times as many units."""
    model = SmallLeafCalibrator()
    model.update(0.1, 0, 2**50)
    refused(model, OverflowError, ["2**62", "unit="], model.update, 0.2, 1, 2.0**-20)
    refused(model, OverflowError, ["2**62"], model.update_many, [0.2], [1], [2.0**-20])
    model.update(0.2, 1, 2.0**-11)

    assert 2 == len(model)
    assert [0.0, 1.0] == model.blocks().probabilities.tolist()


def test_a_weight_that_would_be_lost_names_a_finer_unit(calibrator):
    words = ["weight", "1e-09", "unit="]
    refused(calibrator, ValueError, words, calibrator.update, 0.5, 1, 1e-9)
    rows = [0.25, 0.5], [0, 1], [0, 1e-9]
    refused(calibrator, ValueError, ["weights[1]", "unit="], calibrator.update_many, *rows)
    with pytest.raises(ValueError, match=r"weights\[1\].*unit="):
        whole_arrays(*rows)


@pytest.mark.parametrize("weight", [0.5, 2.0**-20, 3 * 2.0**-17, 0.1])
def test_a_finer_weight_that_comes_and_goes_leaves_no_trace(weight):
    model = SmallLeafCalibrator()
    model.update_many([0.1, 0.5, 0.9, 0.3], [0, 1, 1, 1], [1, 2, 3, 5])
    before, fit = pickle.dumps(model), model.blocks().fractions()
    model.update(0.7, 0, weight)
    model._check()

    assert before != pickle.dumps(model)
    model.revert(0.7, 0, weight)
    assert (before, fit) == (pickle.dumps(model), model.blocks().fractions())


def test_room_does_not_depend_on_samples_that_are_gone():
    """A fine weight that came and went does not make the object overflow earlier."""
    model = OnlineCalibrator()
    model.update(0.1, 0, 1)
    model.update(0.2, 0, 2.0**-20)
    model.revert(0.2, 0, 2.0**-20)
    model.update(0.3, 0, 2**61)
    fresh = OnlineCalibrator()
    fresh.update_many([0.3, 0.1], [0, 0], [2**61, 1])

    assert pickle.dumps(fresh) == pickle.dumps(model)


@pytest.mark.parametrize("unit", [0, -0.01, NAN, INF, "1", True])
def test_a_unit_that_is_not_positive_and_finite_is_refused(unit):
    with pytest.raises(ValueError, match="unit must be a positive, finite number"):
        OnlineCalibrator(unit=unit)
    with pytest.raises(ValueError, match="unit must be a positive, finite number"):
        limen.isotonic([0.1], [1], unit=unit)


# Empty, and as an object.


@both_models
def test_a_new_object_answers_everything(model):
    new = model()
    new._check()

    assert (0, INF, Optimum(None, None, 0.0)) == (len(new), new.threshold(), new.optimum())
    assert ([INF], [0.0]) == (new.curve().thresholds.tolist(), new.curve().losses.tolist())
    assert [0, 0] == new.predict([0.5, -INF]).tolist()
    assert 0 == len(new.blocks())
    new.update_many([], [], [])
    new.revert_many([], [])
    assert pickle.dumps(model()) == pickle.dumps(new) == pickle.dumps(new.copy())


@both_models
def test_reverting_everything_leaves_the_empty_state(model):
    scores, labels = streams.crowded_at_one_end(1_000)
    calibrator = model()
    calibrator.update_many(scores, labels)
    order = np.random.default_rng(3).permutation(1_000)
    calibrator.revert_many(scores[order[:500]], labels[order[:500]])
    for n in order[500:]:
        calibrator.revert(scores[n], labels[n])
    calibrator._check()

    assert pickle.dumps(model()) == pickle.dumps(calibrator)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, OnlineCalibrator.copy])
def test_a_copy_and_its_original_change_apart(way, calibrator):
    other = way(calibrator)
    before = pickle.dumps(calibrator)
    other.update(0.123, 1, 2.5)

    assert type(calibrator) is type(other)
    assert before == pickle.dumps(calibrator)
    assert len(calibrator) + 1 == len(other)
    other.revert(0.123, 1, 2.5)
    assert before == pickle.dumps(other)


def test_a_pickle_keeps_the_unit_and_all_answers():
    model = OnlineCalibrator(unit=0.01)
    model.update_many([0.1, 0.2, 0.3], [0, 1, 0], [0.07, 0.29, 1.13])
    other = pickle.loads(pickle.dumps(model))
    other._check()

    assert model.blocks().fractions() == other.blocks().fractions()
    assert model.optimum(false_negative=3) == other.optimum(false_negative=3)
    other.revert(0.3, 0, 1.13)
    with pytest.raises(ValueError, match="1/100"):
        other.update(0.3, 0, 0.004)


@pytest.mark.parametrize("kept", [0, 1, 10, 100])
def test_a_cut_short_or_changed_pickle_never_answers_wrongly(kept, calibrator):
    """Damage is an error, not a calibrator with other samples."""
    whole = pickle.dumps(calibrator)
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever pickle makes of it
        pickle.loads(whole[: len(whole) * kept // 200])


def test_attributes_of_a_subclass_are_kept():
    class Named(OnlineCalibrator):
        def __init__(self, name):
            super().__init__(unit=0.5)
            self.name = [name]

    named = Named("first")
    named.update(0.5, 1, 2.5)
    shallow, deep = copy.copy(named), copy.deepcopy(named)

    assert named.name is shallow.name
    assert named.name == deep.name
    assert named.name is not deep.name
    assert [2.5] == deep.blocks().weight.tolist()


def test_it_says_what_it_is(calibrator):
    assert "SmallLeafCalibrator" in repr(calibrator)
    assert "49 samples" in repr(calibrator)


def test_fits_handed_out_do_not_change_with_the_object(calibrator):
    blocks, hull = calibrator.blocks(), calibrator.roc_hull()
    fractions, vertices = blocks.fractions(), hull.tp.tolist()
    calibrator.update_many(*streams.uniform(500, seed=4))

    assert fractions == blocks.fractions()
    assert vertices == hull.tp.tolist()
    assert blocks.probability(0.5) == float(fractions[(blocks.first <= 0.5).sum() - 1])


@pytest.mark.parametrize("threshold", ["0.5", None, 1j, [0.5]])
def test_a_threshold_that_is_not_a_number_is_refused(calibrator, threshold):
    with pytest.raises(TypeError, match=r"^threshold"):
        calibrator.confusion(threshold)


def test_answers_can_be_pickled(calibrator):
    blocks, hull, best = calibrator.blocks(), calibrator.roc_hull(), calibrator.best("f1")
    others = pickle.loads(pickle.dumps((blocks, hull, best, calibrator.confusion(0.5))))

    assert blocks.fractions() == others[0].fractions()
    assert blocks.probability(0.3) == others[0].probability(0.3)
    assert hull.tp.tolist() == others[1].tp.tolist()
    assert (best, calibrator.confusion(0.5)) == others[2:]


def test_damaged_bytes_are_refused_and_never_believed(calibrator):
    """One changed byte is an error, or other samples that fit together."""
    whole = calibrator._state()
    random = Random(7)
    for _ in range(1_500):
        damaged = bytearray(whole)
        damaged[random.randrange(len(whole))] = random.randrange(256)
        other = SmallLeafCalibrator()
        try:
            other._restore(bytes(damaged))
        except ValueError:
            assert 0 == len(other)
            continue
        other._check()
        assert bytes(damaged) == other._state() or len(other) == len(calibrator)
        assert other.blocks().counts.sum() == len(other)


# Several threads.


@both_models
def test_threads_sharing_one_object_leave_what_one_thread_would(model):
    scores, labels = streams.few_distinct_scores(6_000)
    scores = scores + np.repeat(np.arange(100), 60)
    weights = np.random.default_rng(9).integers(1, 64, 6_000) / 8
    shared = model()
    ready = threading.Barrier(4)

    def many(part):
        ready.wait()
        for piece in np.array_split(part, 10):
            shared.update_many(scores[piece], labels[piece], weights[piece])
            shared.revert_many(scores[piece[::2]], labels[piece[::2]], weights[piece[::2]])

    def single(part):
        ready.wait()
        for n in part.tolist():
            shared.update(scores[n], labels[n], weights[n])
            if n % 2 == 0:
                shared.revert(scores[n], labels[n], weights[n])

    def read():
        ready.wait()
        for _ in range(40):
            blocks = shared.blocks()
            assert (np.diff(blocks.probabilities) > 0).all()
            assert shared.best("f1").value >= 0
            assert not np.isnan(shared.probability(scores)).any() or not len(blocks)
            shared._check()

    parts = np.arange(6_000)[:2_000], np.arange(6_000)[2_000:4_000], np.arange(6_000)[4_000:]
    jobs = [lambda: many(parts[0]), lambda: many(parts[1]), lambda: single(parts[2]), read]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(job) for job in jobs]:
                future.result()
    finally:
        sys.setswitchinterval(interval)
    shared._check()
    alone = model()
    for part in parts[:2]:
        for piece in np.array_split(part, 10):
            alone.update_many(scores[piece[1::2]], labels[piece[1::2]], weights[piece[1::2]])
    odd = parts[2][1::2]
    alone.update_many(scores[odd], labels[odd], weights[odd])

    assert pickle.dumps(alone) == pickle.dumps(shared)


# A third opinion.


def test_scikit_learn_fits_the_same_where_scores_are_well_apart():
    isotonic = pytest.importorskip("sklearn.isotonic")
    for seed in range(12):
        random = np.random.default_rng(seed)
        n = int(random.integers(2, 400))
        scores = random.permutation(n)[: n // 2 + 1].repeat(random.integers(1, 3)) / 64
        labels = (random.random(len(scores)) < scores / scores.max()).astype(int)
        weights = random.integers(1, 100, len(scores)) / 4
        other = isotonic.IsotonicRegression(out_of_bounds="clip")
        other.fit(scores, labels, sample_weight=weights)
        calibrator = OnlineCalibrator()
        calibrator.update_many(scores, labels, weights)
        between = random.uniform(scores.min() - 1, scores.max() + 1, 500)
        for probes in (scores, between):
            found = calibrator.probability(probes, between="linear")

            assert np.allclose(other.predict(probes), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("apart", [2.0**-53, 4 * 2.0**-53, 9e-16])
def test_scikit_learn_merges_scores_that_are_told_apart_here(apart):
    """It takes scores closer than 1e-15 for one, at any size of the scores."""
    isotonic = pytest.importorskip("sklearn.isotonic")
    lower, upper = 1 - 2 * apart, 1 - apart
    for pair in [(lower, upper), (0.0, apart), (1e-300, 1e-200)]:
        merged = isotonic.isotonic_regression  # the function alone does not merge
        assert [0.0, 1.0] == merged([0, 1]).tolist()
        other = isotonic.IsotonicRegression(out_of_bounds="clip").fit(pair, [0, 1])

        assert [0.5, 0.5] == other.predict(pair).tolist()
        assert [0.0, 1.0] == limen.isotonic(pair, [0, 1]).probability(pair).tolist()
        assert [0.0, 1.0] == held_one_by_one(pair, [0, 1]).probability(pair).tolist()
