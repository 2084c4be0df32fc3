# SPDX-License-Identifier: Apache-2.0
"""The calibrator step by step: any sequence of calls, many steps, and sums of many bits."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction
from random import Random
from typing import Any

import isotonic_oracle as oracle
import numpy as np
import pytest
import streams
from fits import (
    HARD,
    WAYS,
    SmallLeafCalibrator,
    assert_fit,
    assert_hull,
    assert_probabilities,
    columns,
    every_size,
    exactly,
    held_one_by_one,
    probes_of,
    rows_of,
    same,
    two_lines_through_one_point,
    whole_arrays,
)
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from isotonic_oracle import Point
from streams import INF, TINY, as_typed, at_the_door

import limen
from limen import NotHeld, OnlineCalibrator, Optimum

NAN = math.nan

every_way = pytest.mark.parametrize("blocks_of", WAYS)
both_models = pytest.mark.parametrize("model", [SmallLeafCalibrator, OnlineCalibrator])


# Any sequence of calls.


class CalibratorMachine(RuleBasedStateMachine):
    """Update, revert, batches, pickle and copy in any order; all answers after each step.

    A grain is a fraction fine enough to make every weight whole.
    """

    grain = Fraction(1, 2**20 * 3 * 100)

    @initialize(
        unit=st.sampled_from([None, None, None, 0.01, Fraction(1, 3)]),
        light=st.booleans(),
        crowded=st.booleans(),
    )
    def begin(self, unit, light, crowded):
        self.unit = unit
        self.crowded = crowded
        if unit is None:
            self.weights = streams.light_weights if light else streams.weights
        elif unit == 0.01:
            self.weights = st.integers(1, 2**34) | st.integers(1, 999).map(lambda n: n / 100)
        else:
            self.weights = st.integers(1, 2**38) | st.integers(1, 9).map(lambda n: Fraction(n, 3))
        if crowded and unit is None:
            self.weights = st.integers(1, 3)
        self.model = self.make()
        self.held: list[tuple[float, int, Any]] = []

    def make(self):
        return SmallLeafCalibrator(unit=self.unit)

    def scores(self):
        return st.integers(0, 30).map(float) if self.crowded else streams.scores

    def add(self, rows):
        self.held += [row for row in rows if row[2] != 0]

    def points(self):
        rows = [
            (score, label, int(at_the_door(weight, self.unit) / self.grain))
            for score, label, weight in self.held
        ]
        return oracle.join(rows)

    def draw_row(self, data):
        return (data.draw(self.scores()), data.draw(streams.labels), data.draw(self.weights))

    @rule(data=st.data())
    def update(self, data):
        row = self.draw_row(data)
        self.model.update(*row)
        self.add([row])

    @rule(data=st.data())
    def update_without_weight(self, data):
        row = self.draw_row(data)
        self.model.update(*row[:2])
        self.add([(*row[:2], 1)])

    @rule(data=st.data(), count=st.integers(0, 16))
    def update_many(self, data, count):
        rows = [self.draw_row(data) for _ in range(count)]
        self.model.update_many(*columns(rows))
        self.add(rows)

    @rule(data=st.data(), count=st.integers(0, 30))
    def update_many_without_weights(self, data, count):
        rows = [(*self.draw_row(data)[:2], 1) for _ in range(count)]
        self.model.update_many(*columns(rows)[:2])
        self.add(rows)

    @rule(data=st.data(), count=st.integers(0, 10))
    def merge(self, data, count):
        rows = [self.draw_row(data) for _ in range(count)]
        other = self.make()
        other.update_many(*columns(rows))
        self.model.merge(other)
        self.add(rows)

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 10**6))
    def revert(self, number):
        self.model.revert(*self.held.pop(number % len(self.held)))

    @precondition(lambda self: self.held)
    @rule(numbers=st.lists(st.integers(0, 10**6), max_size=12))
    def revert_many(self, numbers):
        rows = [self.held.pop(n % len(self.held)) for n in numbers[: len(self.held)]]
        self.model.revert_many(*columns(rows))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 10**6))
    def revert_more_than_is_held(self, number):
        score = self.held[number % len(self.held)][0]
        there = [row[1:] for row in self.held if row[0] == score]
        weight = math.ceil(sum(Fraction(weight) for _, weight in there)) + 1
        before = pickle.dumps(self.model)
        for label in (0, 1):
            with pytest.raises(NotHeld):
                self.model.revert(score, label, weight)
            with pytest.raises(NotHeld):
                self.model.revert_many([score], [label], [weight])

        assert before == pickle.dumps(self.model)

    @rule(score=streams.scores)
    def revert_a_score_that_is_not_held(self, score):
        if any(score == row[0] for row in self.held):
            return
        before = pickle.dumps(self.model)
        with pytest.raises(NotHeld):
            self.model.revert(score, 1, 1)
        with pytest.raises(NotHeld):
            self.model.revert_many([score], [1], [1])

        assert before == pickle.dumps(self.model)

    @rule()
    def pickle_and_unpickle(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @rule(way=st.sampled_from([copy.copy, copy.deepcopy, OnlineCalibrator.copy]))
    def copy(self, way):
        """The original goes on changing without the copy."""
        original, self.model = self.model, way(self.model)
        assert type(original) is type(self.model)
        if self.held:
            original.revert(*self.held[0])

    @invariant()
    def the_fit_is_exact(self):
        self.model._check()
        points = self.points()

        assert len(self.held) == len(self.model)
        assert_fit(oracle.pools(points), self.model.blocks(), self.grain)
        assert_fit(
            oracle.pools(points),
            whole_arrays(*columns(self.held), unit=self.unit),
            self.grain,
        )
        assert_hull(points, self.model.roc_hull(), self.grain)

    @invariant()
    def thresholds_are_exact(self):
        every = oracle.cuts(self.points())
        for pair in [(1, 1), (1, 5), (0.1, 0.3), (19, 2)]:
            given_costs = {"false_positive": pair[0], "false_negative": pair[1]}
            exact = [as_typed(cost) * self.grain for cost in pair]
            best = oracle.cheapest(every, *exact)
            expected = Optimum(best.lower, best.upper, float(oracle.loss(best, *exact)))

            assert (pair, expected) == (pair, self.model.optimum(**given_costs))
            assert same(best.threshold, self.model.threshold(**given_costs))

    @invariant()
    def the_curve_has_every_cut(self):
        every = oracle.cuts(self.points())
        curve = self.model.curve(false_negative=3)
        thresholds = [cut.threshold for cut in every]

        assert [float(oracle.loss(cut, 1, 3) * self.grain) for cut in every] == (
            curve.losses.tolist()
        )
        assert np.array_equal(thresholds, curve.thresholds, equal_nan=True)

    @invariant()
    def probabilities_follow_the_rule(self):
        points = self.points()
        fit = oracle.pools(points)
        if fit:
            probes = [*probes_of(points[:8]), INF]
            assert_probabilities(
                fit, probes, lambda x, rule: self.model.probability(x, between=rule)
            )

    @invariant()
    def confusion_matrices_are_exact(self):
        points = self.points()
        for threshold in [*(point.score for point in points[::3]), 0.3, NAN, INF, -INF]:
            expected = [float(n * self.grain) for n in oracle.confusion(points, threshold)]

            assert expected == list(self.model.confusion(threshold))

    @invariant()
    def the_best_cuts_are_exact(self):
        every = oracle.cuts(self.points())
        for name in ("f1", "mcc", "balanced_accuracy"):
            expected = oracle.best(every, oracle.METRICS[name])
            found = self.model.best(name)

            assert (name, *expected[:2]) == (name, found.lower, found.upper)
        bounds = {"min_precision": Fraction(3, 5), "max_positive_rate": Fraction(1, 2)}
        allowed = oracle.feasible(every, bounds)
        if allowed:
            expected = oracle.best(allowed, oracle.recall)
            found = self.model.best("recall", **bounds)
        else:
            expected = oracle.nearest(every, bounds)
            with pytest.raises(limen.Infeasible) as caught:
                self.model.best("recall", **bounds)
            found = caught.value.nearest

        assert expected[:2] == (found.lower, found.upper)

    @invariant()
    def bytes_are_those_of_a_fresh_object(self):
        other = self.make()
        other.update_many(*columns(self.held[::-1]))

        assert pickle.dumps(other) == pickle.dumps(self.model)


def test_any_sequence_of_calls_answers_like_the_oracle():
    # What is left out explains a failure at great length and slowly.
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    run_state_machine_as_test(
        CalibratorMachine,
        settings=settings(max_examples=40 * streams.EFFORT, stateful_step_count=25, phases=phases),
    )


# A hundred thousand steps with an exact answer after each: many short runs with few scores.


def unit_weights(random):
    return 1


def small_weights(random):
    return random.randrange(1, 4)


def weights_of_any_size(random):
    """From 1 to 2**53: most sums are one large sample and dust."""
    return random.getrandbits(random.randrange(1, 54)) + 1


def weights_that_agree_in_many_bits(random):
    """Any two differ by a billionth of a billionth: slopes differ in the last bits only."""
    return 2**53 + random.randrange(-2, 3)


def multiples_of_a_large_number(random):
    """Many values are exactly equal, and sums large."""
    return (2**31 - 1) * random.randrange(1, 5) * 2**18


def fine_weights(random):
    return random.randrange(1, 2**12) / 2 ** random.randrange(13)


class Sums:
    """Whole weights of either label per place of some ascending scores, in grains."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores
        self.places = [[0, 0, 0] for _ in scores]

    def change(self, place: int, label: int, grains: int, sign: int) -> None:
        self.places[place][1 - label] += sign * grains
        self.places[place][2] += sign

    def points(self) -> list[Point]:
        return [
            Point(score, *sums)
            for score, sums in zip(self.scores, self.places, strict=True)
            if sums[2]
        ]


def ascending(count: int, random) -> list[float]:
    """Distinct scores of one kind or another, awkward ones among them."""
    kind = random.randrange(4)
    if kind == 0:
        return [float(n) for n in range(count)]
    if kind == 1:
        first = np.float64(1 - 2.0**-50).view(np.int64)
        return (first + np.arange(count)).view(np.float64).tolist()
    if kind == 2:
        return [-INF, *(TINY * (n - count // 2) + 0.0 for n in range(count - 2)), INF]
    return sorted({random.choice(streams.AWKWARD_SCORES) + 0.0 for _ in range(2 * count)})


class Walk:
    """Random insertions and deletions, in turns more of the one and of the other."""

    def __init__(self, random, scores: list[float], weight_of: Any) -> None:
        self.random, self.weight_of = random, weight_of
        self.sums = Sums(scores)
        self.model = SmallLeafCalibrator()
        self.held: list[tuple[int, int, Any]] = []
        self.growing = True

    def step(self) -> None:
        random, held = self.random, self.held
        if random.random() < 0.02:
            self.growing = not self.growing
        if not held or random.random() < (0.75 if self.growing else 0.25):
            place = random.randrange(len(self.sums.scores))
            label, weight = random.randrange(2), self.weight_of(random)
            held.append((place, label, weight))
            self.model.update(self.sums.scores[place], label, weight)
            self.sums.change(place, label, int(weight * 2**12), 1)
        else:
            at = random.randrange(len(held))
            held[at], held[-1] = held[-1], held[at]
            place, label, weight = held.pop()
            self.model.revert(self.sums.scores[place], label, weight)
            self.sums.change(place, label, int(weight * 2**12), -1)

    def compare(self) -> None:
        points, model = self.sums.points(), self.model
        fit = oracle.pools(points)
        blocks = model.blocks()

        assert [pool.first for pool in fit] == blocks.first.tolist()
        assert [pool.last for pool in fit] == blocks.last.tolist()
        assert [pool.count for pool in fit] == blocks.counts.tolist()
        assert [pool.positive / 2**12 for pool in fit] == blocks.positive.tolist()
        assert [pool.weight / 2**12 for pool in fit] == blocks.weight.tolist()
        assert [pool.positive / pool.weight for pool in fit] == blocks.probabilities.tolist()
        assert len(self.held) == len(model)

    def compare_one_of_each(self) -> None:
        """One cost, often the very value of a block; one score; one threshold."""
        points, model, random = self.sums.points(), self.model, self.random
        fit = oracle.pools(points)
        score = random.choice(self.sums.scores)
        pair = random.randrange(1, 20), random.randrange(1, 20)
        if fit and random.random() < 0.5:
            pool = random.choice(fit)
            if 0 < pool.positive < pool.weight:
                pair = pool.value.numerator, pool.value.denominator - pool.value.numerator
        best = oracle.cheapest(oracle.cuts(points), *pair)
        found = model.optimum(false_positive=pair[0], false_negative=pair[1])
        sums = [n / 2**12 for n in oracle.confusion(points, score)]

        assert (best.lower, best.upper) == (found.lower, found.upper)
        assert float(Fraction(oracle.loss(best, *pair), 2**12)) == found.loss
        assert sums == list(model.confusion(score))
        if fit:
            assert float(oracle.probability(fit, score)) == model.probability(score)


# Weights, how many of them fit into one object at a time, and how many distinct scores.
WALKS = [
    (unit_weights, 8),
    (unit_weights, 40),
    (small_weights, 16),
    (small_weights, 100),
    (weights_of_any_size, 24),
    (weights_that_agree_in_many_bits, 12),
    (weights_that_agree_in_many_bits, 40),
    (multiples_of_a_large_number, 24),
    (fine_weights, 12),
    (fine_weights, 60),
]


@pytest.mark.parametrize(("weight_of", "places"), WALKS)
def test_thousands_of_steps_stay_exact_one_by_one(weight_of, places):
    """Each kind from empty in every run of five hundred; the same at length in C++."""
    for run in range(5 * streams.EFFORT):
        random = Random(f"{weight_of.__name__} {places} {run}")
        walk = Walk(random, ascending(places, random), weight_of)
        for step in range(500):
            walk.step()
            walk.compare()
            if step % 5 == 0:
                walk.compare_one_of_each()
            if step % 20 == 0 or not walk.held:
                walk.model._check()
        for place, label, weight in walk.held:
            walk.model.revert(walk.sums.scores[place], label, weight)
        walk.model._check()

        assert pickle.dumps(SmallLeafCalibrator()) == pickle.dumps(walk.model)


@both_models
def test_batches_of_any_size_in_and_out_stay_exact(model):
    """Small batches go in one by one, large ones rebuild the tree: both must agree."""
    random = np.random.default_rng(21)
    scores = streams.uniform(700)[0]
    calibrator = model()
    held = np.empty((0, 3), np.int64)
    for _ in range(120):
        if random.random() < 0.55 or not len(held):
            m = int(2 ** random.uniform(0, 10))
            rows = np.column_stack(
                [
                    random.integers(0, len(scores), m),
                    random.integers(0, 2, m),
                    random.integers(0, 9, m),
                ]
            )
            calibrator.update_many(scores[rows[:, 0]], rows[:, 1], rows[:, 2])
            held = np.concatenate([held, rows[rows[:, 2] > 0]])
        else:
            gone = random.random(len(held)) < random.choice([0.01, 0.1, 0.5, 1.0])
            rows, held = held[gone], held[~gone]
            calibrator.revert_many(scores[rows[:, 0]], rows[:, 1], rows[:, 2])
        calibrator._check()
        points = oracle.join(
            (scores[place], label, weight) for place, label, weight in held.tolist()
        )

        assert_fit(oracle.pools(points), calibrator.blocks())
        assert len(held) == len(calibrator)


@both_models
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_a_sliding_window_equals_a_fresh_object_on_the_window(shape, model):
    scores, labels = streams.SHAPES[shape](900)
    window = 300
    calibrator = model()
    for n in range(len(scores)):
        calibrator.update(scores[n], labels[n])
        if n >= window:
            calibrator.revert(scores[n - window], labels[n - window])
        if n % 75 == 0:
            calibrator._check()
            part = slice(max(0, n - window + 1), n + 1)
            fresh = model()
            fresh.update_many(scores[part], labels[part])
            rows = zip(scores[part].tolist(), labels[part].tolist(), itertools.repeat(1))

            assert pickle.dumps(fresh) == pickle.dumps(calibrator)
            assert_fit(oracle.pools(oracle.join(rows)), calibrator.blocks())


# Sums of up to 62 bits: products of two and three of them decide.


@pytest.mark.parametrize("points_of", HARD)
def test_sums_that_doubles_cannot_tell_apart_are_fitted_exactly(points_of):
    for seed in range(40):
        random = Random(seed)
        points = points_of(random.choice([3, 7, 20, 50, 150]), random)
        rows = rows_of(points)
        random.shuffle(rows)
        fit = oracle.pools(points)
        for blocks_of in WAYS:
            assert_fit(fit, blocks_of(*columns(rows)))


@pytest.mark.parametrize("points_of", HARD)
def test_sums_that_doubles_cannot_tell_apart_stay_exact_step_by_step(points_of):
    for seed in range(12):
        random = Random(seed)
        all_rows = rows_of(points_of(random.choice([10, 24, 40]), random))
        random.shuffle(all_rows)
        calibrator = SmallLeafCalibrator()
        held = []
        for turn in range(2 * len(all_rows)):
            if turn < len(all_rows):
                held.append(all_rows[turn])
                calibrator.update(*held[-1])
            else:
                calibrator.revert(*held.pop(random.randrange(len(held))))
            calibrator._check()
            fit = oracle.pools(oracle.join(held))
            blocks = calibrator.blocks()

            assert [(pool.first, pool.last) for pool in fit] == list(
                zip(blocks.first.tolist(), blocks.last.tolist(), strict=True)
            )
            assert [pool.value for pool in fit] == blocks.fractions()


def test_where_two_edges_meet_is_decided_by_all_bits():
    """With products of three sums in doubles, 36 of these 400 bridges would be wrong."""
    for seed in range(400):
        points = two_lines_through_one_point(6, Random(seed))
        rows = rows_of(points)
        calibrator = SmallLeafCalibrator()
        calibrator.update_many(*columns(rows))
        calibrator._check()

        assert_fit(oracle.pools(points), calibrator.blocks())
        # Change by change, the bridge between the leaves is built again or bent.
        for row in rows[::3]:
            calibrator.revert(*row)
            calibrator._check()
        for row in rows[::3]:
            calibrator.update(*row)
            calibrator._check()
        assert_fit(oracle.pools(points), calibrator.blocks())


@pytest.mark.parametrize("points_of", HARD)
def test_costs_at_and_next_to_the_values_of_the_fit_are_decided_exactly(points_of):
    for seed in range(8):
        random = Random(seed)
        points = points_of(random.choice([5, 24, 60]), random)
        every = oracle.cuts(points)
        calibrator = held_one_by_one(*columns(rows_of(points)))
        for pool in random.sample(oracle.pools(points), min(6, len(oracle.pools(points)))):
            for off in (-1, 0, 1):
                pair = max(1, pool.positive + off), max(1, pool.weight - pool.positive)
                best = oracle.cheapest(every, *pair)
                found = calibrator.optimum(false_positive=pair[0], false_negative=pair[1])
                loss = float(oracle.loss(best, *pair))

                assert (best.lower, best.upper, loss) == (found.lower, found.upper, found.loss)


def pools_in_doubles(points: list[Point]) -> list[tuple[float, float]]:
    """What pooling makes of the same sums when it compares rounded values."""
    found: list[list[float]] = []
    for score, positive, negative, _ in points:
        found.append([score, score, float(positive), float(positive) + float(negative)])
        while len(found) > 1 and found[-2][2] / found[-2][3] >= found[-1][2] / found[-1][3]:
            _, last, *sums = found.pop()
            found[-1][1] = last
            found[-1][2] += sums[0]
            found[-1][3] += sums[1]
    return [(first, last) for first, last, *_ in found]


@pytest.mark.parametrize("points_of", [f for f in HARD if f is not every_size])
def test_plain_doubles_would_give_wrong_fits_of_these_sums(points_of):
    """Otherwise the tests above would prove little."""
    wrong = 0
    for seed in range(40):
        random = Random(seed)
        points = points_of(random.choice([3, 7, 20, 50, 150]), random)
        exact = [(pool.first, pool.last) for pool in oracle.pools(points)]
        wrong += exact != pools_in_doubles(points)

    assert wrong >= 20


def test_a_hundred_million_samples_of_weight_1_next_to_a_fine_one_are_exact():
    """What a unit of 2**-20 costs in bits must not cost an answer."""
    weights = [(10**8 // 40) + n % 3 for n in range(40)]
    rows = [(float(n), n * 7 % 5 % 2, weight) for n, weight in enumerate(weights)]
    rows += [(float(n) + 0.5, n % 2, 2.0**-20) for n in range(20)]
    fit = oracle.pools(oracle.join(exactly(rows)))
    for blocks_of in WAYS:
        assert_fit(fit, blocks_of(*columns(rows)))
