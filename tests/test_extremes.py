# SPDX-License-Identifier: Apache-2.0
"""Extreme values and careless use, through the public face only."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import streams
from hypothesis import example, given
from hypothesis import strategies as st

from limen import (
    LastN,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    Optimum,
    optimal_threshold,
)

# Optima of any gap.

pairs = st.tuples(streams.scores, streams.scores).filter(lambda pair: pair[0] < pair[1])
finite_gaps = st.tuples(streams.finite_scores, streams.finite_scores).filter(
    lambda pair: pair[0] < pair[1]
)


def sigmoid(power: float) -> float:
    if power >= 0:
        return 1 / (1 + math.exp(-power))
    return math.exp(power) / (1 + math.exp(power))


@example((float(np.nextafter(2.0, 0)), 2.0))
@example((-streams.HUGE, streams.HUGE))
@example((0.0, streams.TINY))
@example((1e300, float(np.nextafter(1e300, streams.INF))))
@given(finite_gaps)
def test_the_sigmoid_of_any_finite_gap_decides_like_the_threshold(gap):
    """Wide and narrow gaps alike: a slope that overflows or cancels would answer wrongly."""
    optimum = Optimum(lower=gap[0], upper=gap[1], loss=0.0)
    slope, offset = optimum.as_sigmoid()

    assert math.isfinite(slope)
    assert slope > 0
    assert math.isfinite(offset)
    assert [0, 1] == [int(sigmoid(slope * score + offset) >= 0.5) for score in gap]


@given(st.lists(st.tuples(streams.scores, streams.labels), max_size=20))
def test_the_bins_of_any_optimum_decide_like_the_threshold(rows):
    """Also with infinite scores, and when everybody gets the same answer."""
    scores = [score for score, _ in rows]
    optimum = optimal_threshold(scores, [label for _, label in rows])
    (_, middle, _), (low, high) = optimum.as_bins()

    assert (0.0, 1.0) == (low, high)
    assert optimum.predict(scores).tolist() == [int(score >= middle) for score in scores]


@given(pairs)
def test_predict_separates_the_two_ends_of_any_gap(gap):
    assert [0, 1] == Optimum(*gap, loss=0.0).predict(list(gap)).tolist()


# Numbers that are not quite floats.


@pytest.mark.parametrize("score", [2**53 + 1, 2**63 + 1, 2**64 + 1, 2**70 + 1, -(2**70) - 1])
def test_a_whole_score_without_a_double_of_its_own_is_refused_at_any_size(score):
    """Two scores would silently become one."""
    cut = OnlineThreshold()
    with pytest.raises(ValueError, match="exact float64"):
        cut.update(score, 1)
    with pytest.raises(ValueError, match=r"scores\[1\].*exact float64"):
        cut.update_many([0, score], [0, 1])
    with pytest.raises(ValueError, match=r"scores\[1\].*exact float64"):
        optimal_threshold([0, score], [0, 1])

    assert 0 == len(cut)


@pytest.mark.parametrize("score", [2**53 + 2, 2**63, 2**64, 2**70, -(2**80)])
def test_a_whole_score_with_a_double_of_its_own_is_taken_at_any_size(score):
    single, many = OnlineThreshold(), OnlineThreshold()
    single.update(score, 1)
    many.update_many([score], [1])

    assert float(score) == single.optimum.upper
    assert single._state() == many._state()


@pytest.mark.parametrize("weight", [Fraction(3, 2), Decimal("1.5"), np.float32(1.5), 1.5])
def test_a_weight_of_any_kind_of_number_leaves_the_same_bytes(weight):
    expected = OnlineThreshold()
    expected.update(0.5, 1, 3)
    expected.update(0.5, 1, 1.5)
    single, many = OnlineThreshold(), OnlineThreshold()
    single.update(0.5, 1, Fraction(3))
    single.update(0.5, 1, weight)
    many.update_many([0.5, 0.5], [1, 1], [Decimal(3), weight])

    assert expected._state() == single._state() == many._state()


# Units that become finer.


def test_dyadic_weights_refine_the_unit_without_changing_answers():
    """Twenty times finer, step by step: what was there before counts as much as ever."""
    scores, labels = streams.uniform(300)
    refined, plain = (streams.SmallNodeThreshold(false_negative=2) for _ in range(2))
    refined.update_many(scores, labels, np.arange(300))
    plain.update_many(scores, labels, np.arange(300))
    for bits in range(1, 21):
        refined.update(0.5, bits % 2, 2.0**-bits)
        refined._check()
        refined.revert(0.5, bits % 2, 2.0**-bits)
        refined._check()

        assert plain.optimum == refined.optimum
        assert plain.curve().losses.tolist() == refined.curve().losses.tolist()
        assert plain._state() == refined._state()


def test_adding_and_removing_1e14_leaves_no_trace_in_tenths():
    """With doubles the same left a permanent error of 0.16."""
    cut = OnlineThreshold(unit=0.1)
    for n in range(100):
        cut.update(n, n % 2, 0.1 * (1 + n % 7))
    before = cut._state(), cut.loss
    cut.update(50.5, 0, 1e14)
    cut.revert(50.5, 0, 1e14)

    assert before == (cut._state(), cut.loss)


@pytest.mark.parametrize("order", [1, -1])
def test_ties_of_a_tenth_and_three_tenths_are_ties_in_any_window(order):
    """A window slides over costs of 0.1 and 0.3; ties must not depend on what went before."""
    labels = np.array([0, 0, 0, 1] * 100)[::order]
    scores = np.arange(400) % 37
    cut = OnlineThreshold(false_positive=0.1, false_negative=0.3)
    for n in range(400):
        cut.update(scores[n], labels[n])
        if n >= 60:
            cut.revert(scores[n - 60], labels[n - 60])
        window = slice(max(0, n - 59), n + 1)
        whole = streams.whole_losses(labels[window], 1, 3)
        best = streams.sorted_best(scores[window], *whole)

        assert (n, best.lower, best.upper) == (n, cut.optimum.lower, cut.optimum.upper)
        assert best.ties == len(cut.curve().cheapest)
        assert best.loss / 10 == cut.loss


# Subclasses.


class Named(OnlineThreshold):
    def __init__(self, name: Any = "", **given: object) -> None:
        super().__init__(**given)
        self.name = name


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda cut: cut.copy(), lambda cut: pickle.loads(pickle.dumps(cut))],
    ids=["copy", "deepcopy", "method", "pickle"],
)
def test_the_attributes_of_a_subclass_survive_a_copy(duplicate):
    cut = Named("fraud", false_negative=5)
    cut.update(0.5, 1)
    other = duplicate(cut)

    assert (Named, "fraud", 1) == (type(other), other.name, len(other))
    assert cut._state() == other._state()


class CarelessThreshold(OnlineThreshold):
    def __init__(self) -> None:
        pass


class CarelessCut(OnlineCut):
    def __init__(self) -> None:
        pass


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("model", [CarelessThreshold, CarelessCut])
@pytest.mark.parametrize(
    "use",
    [
        lambda cut: cut.update(0.5, 1, 1),
        lambda cut: cut.revert(0.5, 1, 1),
        lambda cut: cut.update_many([0.5], [1], [1]),
        lambda cut: cut.revert_many([0.5], [1], [1]),
        lambda cut: cut.threshold,
        lambda cut: cut.loss,
        lambda cut: cut.optimum,
        lambda cut: cut.predict([0.5]),
        lambda cut: cut.curve(),
        lambda cut: cut.copy(),
        len,
        repr,
        copy.deepcopy,
        pickle.dumps,
        sys.getsizeof,
    ],
)
def test_a_subclass_that_forgets_its_base_is_told_so_by_everything(use, model):
    with pytest.raises(RuntimeError, match=r"super\(\)\.__init__"):
        use(model())


def test_a_deep_copy_of_a_subclass_shares_no_attribute():
    cut = Named(name=["fraud"])
    shallow, deep = copy.copy(cut), copy.deepcopy(cut)
    cut.name.append("spam")

    assert (["fraud", "spam"], ["fraud"]) == (shallow.name, deep.name)


# What was accepted can always be taken back.

large = [2**61, 2**60, 2**61 - 1, 2**41, 2.0**61, 2.0**60, 2.0**42]
near_the_limit = st.one_of(
    st.sampled_from([0.5, 0.25, 1.5, 2.0**-20, 0.1, 1, 3, *large]),
    st.sampled_from([0.5, *large]),
    st.integers(1, 2**62 - 1),
    st.builds(lambda k, bits: k / 2**bits, st.integers(1, 2**20), st.integers(0, 20)),
)
few_scores = st.sampled_from([0.25, 0.5, 0.75])


def taken_in(model, samples, many):
    """Add samples one by one or at once; return those that were accepted."""
    accepted: list[Any] = []
    for part in [samples] if many else [[sample] for sample in samples]:
        with contextlib.suppress(OverflowError):
            if many:
                model.update_many(*map(list, zip(*part, strict=True)))
            else:
                model.update(*part[0])
            accepted += part
    return accepted


def taken_back(model, samples, many):
    if many:
        model.revert_many(*map(list, zip(*samples, strict=True)))
    else:
        for sample in samples:
            model.revert(*sample)


def weights_alike(samples):
    """Whether arrays hold the numbers as they are: whole ones beyond 2**53 stay whole."""
    columns = list(zip(*samples, strict=True))[1:]
    return all(len(set(map(type, column))) == 1 for column in columns)


@pytest.mark.parametrize("kind", ["threshold", "even costs", "cut", "calibrator"])
def test_what_was_accepted_can_be_taken_back_in_any_order(kind):
    """Also what needs finer places than the sums it went into, next to the limit of 2**62."""
    make = {
        "threshold": OnlineThreshold,
        "even costs": lambda: OnlineThreshold(false_positive=8, false_negative=3),
        "cut": OnlineCut,
        "calibrator": OnlineCalibrator,
    }[kind]
    loss = near_the_limit | near_the_limit.map(lambda number: -number) | st.just(0)
    numbers = (
        st.tuples(few_scores, loss, loss)
        if kind == "cut"
        else st.tuples(few_scores, streams.labels, near_the_limit)
    )
    batches = st.lists(
        st.tuples(st.lists(numbers, min_size=1, max_size=4), st.booleans()), max_size=6
    )

    @given(batches, st.randoms(use_true_random=False))
    def walk(added, random):
        model, held = make(), []
        for samples, many in added:
            held += taken_in(model, samples, many and weights_alike(samples))
            if random.random() < 0.2:
                model = copy.copy(model)
        random.shuffle(held)
        while held:
            size = random.randint(1, len(held))
            leaving, held = held[:size], held[size:]
            taken_back(model, leaving, random.random() < 0.5 and weights_alike(leaving))
            model._check()
        assert 0 == len(model)
        assert make()._state() == model._state()

    walk()


def test_halves_beside_a_large_weight_are_refused_or_can_be_taken_back():
    """Two halves make a whole, which needs no places; each of them does."""
    for model in (OnlineThreshold(), OnlineCalibrator(), OnlineThreshold(false_negative=2)):
        model.update(0.5, 1, 0.5)
        model.update(0.5, 1, 0.5)
        for held in (model, copy.copy(model), pickle.loads(pickle.dumps(model))):
            with pytest.raises(OverflowError, match=r"2\*\*62 units of 2\*\*-1"):
                held.update(0.9, 0, 2**61)
            held.revert(0.5, 1, 0.5)
            held.revert_many([0.5], [1], [0.5])
            held.update(0.9, 0, 2**61)

            assert 1 == len(held)


def test_a_window_near_the_limit_never_holds_more_than_it_should():
    window = LastN(OnlineThreshold(), 2)
    for weight in (0.5, 0.5, 2**61, 3, 3, 3):
        with contextlib.suppress(OverflowError):
            window.update(0.5, 1, weight)

        assert len(window) <= 2
        assert len(window) == len(window.model)
