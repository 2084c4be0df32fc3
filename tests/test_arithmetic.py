# SPDX-License-Identifier: Apache-2.0
"""Whole units: nothing drifts, nothing is lost without a word, and equal means equal."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from limen import OnlineCut, OnlineThreshold, optimal_cut, optimal_threshold
from limen.units import exact_costs, exact_unit

EMPTY = OnlineThreshold()._state()


@pytest.mark.parametrize(
    ("costs", "whole"),
    [
        ((1, 5), (1, 5, 1)),
        ((100, 500), (1, 5, 100)),
        ((0.1, 0.3), (1, 3, Fraction(1, 10))),
        ((Fraction(1, 3), 1), (1, 3, Fraction(1, 3))),
        ((Decimal("0.25"), 2), (1, 8, Fraction(1, 4))),
        ((1e-9, 1), (1, 10**9, Fraction(1, 10**9))),
        ((1.5, 2.25), (2, 3, Fraction(3, 4))),
    ],
)
def test_costs_are_the_numbers_that_were_typed(costs, whole) -> None:
    assert whole == exact_costs(*costs)


def test_a_computed_cost_is_rounded_to_the_finest_unit() -> None:
    positive, negative, scale = exact_costs(1 / 3, 1)

    assert Fraction(round(Fraction(1, 3) * 2**20), 2**20) == positive * scale
    assert 1 == negative * scale


@pytest.mark.parametrize("cost", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_a_cost_that_is_not_positive_and_finite_is_refused_by_name(cost) -> None:
    with pytest.raises(ValueError, match="false_negative must be a positive, finite number"):
        OnlineThreshold(false_negative=cost)


@pytest.mark.parametrize("unit", [0, -0.01, float("nan"), float("inf"), "1", True])
def test_a_unit_that_is_not_positive_and_finite_is_refused(unit) -> None:
    with pytest.raises(ValueError, match="unit must be a positive, finite number"):
        OnlineThreshold(unit=unit)


def test_a_cost_that_would_round_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="scale both up"):
        OnlineThreshold(false_positive=1.2345678912e-7)


def test_costs_that_need_too_many_digits_are_refused() -> None:
    with pytest.raises(OverflowError, match="fewer digits"):
        OnlineThreshold(false_positive=1, false_negative=2**62)


@pytest.mark.parametrize("unit", [1e-30, 2**62, Fraction(1, 2**62)])
def test_a_unit_out_of_range_is_refused(unit) -> None:
    with pytest.raises(ValueError, match="below 2"):
        exact_unit(unit)


def test_a_tenth_and_three_tenths_tie_with_three_tenths() -> None:
    """Three false alarms at 0.1 cost exactly one miss at 0.3, so the highest cut wins."""
    scores, labels = [1, 2, 2, 2], [1, 0, 0, 0]
    best = optimal_threshold(scores, labels, false_positive=0.1, false_negative=0.3)

    assert (2.0, None, 0.3) == (best.lower, best.upper, best.loss)


def test_adding_and_removing_a_huge_weight_leaves_no_trace() -> None:
    cut = OnlineThreshold()
    cut.update(0.5, 1, 0.1)
    before = cut._state()
    cut.update(0.3, 0, 10**11)
    cut.revert(0.3, 0, 10**11)

    assert before == cut._state()


@pytest.mark.parametrize("weight", [0.5, 0.25, 2.0**-20, 3 * 2.0**-17, 0.1])
def test_a_finer_weight_that_comes_and_goes_leaves_no_trace(weight: float) -> None:
    cut = OnlineThreshold(false_negative=3)
    cut.update_many([0.1, 0.5, 0.9], [0, 1, 1], [1, 2, 3])
    before, optimum = cut._state(), cut.optimum
    cut.update(0.7, 0, weight)
    cut._check()

    assert before != cut._state()
    cut.revert(0.7, 0, weight)
    assert (before, optimum) == (cut._state(), cut.optimum)


def test_halves_that_make_a_whole_can_be_taken_back_one_by_one() -> None:
    cut = OnlineThreshold()
    for _ in range(2):
        cut.update(0.5, 1, 0.5)
    whole = OnlineThreshold()
    whole._restore(cut._state())
    whole.revert(0.5, 1, 0.5)

    half = OnlineThreshold()
    half.update(0.5, 1, 0.5)

    assert half._state() == whole._state()
    whole.revert(0.5, 1, 0.5)
    assert EMPTY == whole._state()


def test_cents_are_exact() -> None:
    random.seed(0)
    cents = [random.randrange(1, 10**6) for _ in range(2000)]
    cut = OnlineThreshold(unit=0.01)
    for amount in cents:
        cut.update(0.5, 0, amount / 100)
    cut.update(0.4, 1, (sum(cents) + 1) / 100)

    # A single cent decides: answering 0 to all would cost one more.
    assert (sum(cents) / 100, -math.inf) == (cut.loss, cut.threshold)


@pytest.mark.parametrize("unit", [None, 0.01, Fraction(1, 3), 7])
def test_the_unit_of_a_loss_is_the_nearest_whole_number(unit) -> None:
    size = Fraction(1, 2**20) if unit is None else exact_unit(unit)
    for weight in (5.0, 5.3, 12.345, 1e6 + 0.005, 4.5, 10.5, 17.5):
        cut = OnlineCut(unit=unit)
        cut.update(0.5, weight, weight)

        assert float(round(Fraction(weight) / size) * size) == cut.loss


LIMIT = 2**62


def test_sums_just_below_the_limit_are_exact() -> None:
    cut = OnlineThreshold()
    cut.update(0.5, 0, LIMIT - 2)
    cut.update(0.4, 1, 1)

    assert 1.0 == cut.loss
    cut._check()


@pytest.mark.parametrize("fraction", [False, True])
def test_a_sum_at_the_limit_is_refused_with_a_unit_that_works(fraction: bool) -> None:
    weights = [LIMIT // 4, LIMIT // 4, 0.5] if fraction else [LIMIT // 2, LIMIT // 2 - 1, 1]
    cut = OnlineThreshold()
    for weight in weights[:2]:
        cut.update(0.5, 1, weight)
    before = cut._state()
    with pytest.raises(OverflowError, match=r"unit=\S+") as caught:
        cut.update(0.5, 1, 0.1 if fraction else weights[2])

    assert before == cut._state()
    named = float(str(caught.value).split("unit=")[1].split(",")[0])
    coarse = OnlineThreshold(unit=named)
    for weight in weights[:2]:
        coarse.update(0.5, 1, weight)
    assert 0.0 == coarse.loss


def test_room_does_not_depend_on_samples_that_are_gone() -> None:
    """A fine weight that came and went does not make the object overflow earlier."""
    cut = OnlineThreshold()
    cut.update(0.1, 0, 1)
    cut.update(0.2, 0, 2.0**-20)
    cut.revert(0.2, 0, 2.0**-20)
    cut.update(0.3, 0, 2**61)
    fresh = OnlineThreshold()
    fresh.update_many([0.3, 0.1], [0, 0], [2**61, 1])

    assert fresh._state() == cut._state()


@pytest.mark.parametrize("weight", [1e-9, 2.0**-22, 1e-300, 5e-324])
def test_a_weight_that_would_be_lost_is_refused_with_a_unit_that_works(weight: float) -> None:
    cut = OnlineThreshold()
    with pytest.raises(ValueError, match=r"would be lost.*unit=\S+") as caught:
        cut.update(0.5, 0, weight)

    assert EMPTY == cut._state()
    if weight < 1e-18:
        return
    named = float(str(caught.value).split("unit=")[1].split(". ")[0])
    fine = OnlineThreshold(unit=named)
    fine.update(0.5, 0, weight)
    assert 1 == len(fine)


def test_losses_too_are_lost_only_with_a_word() -> None:
    with pytest.raises(ValueError, match="above is 1e-09"):
        OnlineCut().update(0.5, 1, 1e-9)
    with pytest.raises(ValueError, match=r"below\[1\] is 1e-09"):
        optimal_cut([0.5, 0.6], [1, 1e-9], [0, 0])


def test_a_loss_that_is_no_double_is_the_nearest_one() -> None:
    cut = OnlineCut(unit=Fraction(1, 3))
    cut.update(0.5, 2**55 + 1, 2**55 + 1)

    assert float(2**55 + 1) == cut.loss
