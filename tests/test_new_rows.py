# SPDX-License-Identifier: Apache-2.0
"""What answers cost on rows that did not choose them, and what one threshold saves."""

from __future__ import annotations

import math
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest

from limen.trust.new_rows import cost_of_answers, saving


def rows(n: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.random.Generator]:
    draw = np.random.default_rng(seed)
    return (draw.random(n) < share).astype(np.uint8), draw


def test_the_cost_of_a_row_is_a_mean_with_its_standard_error() -> None:
    labels, draw = rows(400, 0.3)
    answers = draw.random(400) < 0.4
    each = [
        (0.5 if answer else 0) if label == 0 else (0 if answer else 7)
        for label, answer in zip(labels.tolist(), answers.tolist(), strict=True)
    ]
    found = cost_of_answers(labels, answers, false_positive=0.5, false_negative=7)
    error = stdev(each) * math.sqrt(399 / 400) / 20
    reach = NormalDist().inv_cdf(0.975) * error

    assert found.mean == pytest.approx(mean(each))
    assert found.standard_error == pytest.approx(error)
    assert found.interval == pytest.approx((mean(each) - reach, mean(each) + reach))
    assert sum(value > 0 for value in each) == found.errors


def test_without_an_error_the_cost_may_still_be_three_in_all_rows() -> None:
    labels, _ = rows(300, 0.5)
    found = cost_of_answers(labels, labels.view(bool), false_negative=5)

    assert (0.0, 0, True) == (found.mean, found.errors, found.few)
    assert found.interval == pytest.approx((0.0, 5 * math.log(20) / 300))


def test_weights_count_in_cost_and_saving() -> None:
    labels = np.array([0, 1, 1, 0, 1], np.uint8)
    weights = np.array([1, 2, 3, 4, 0.5])
    first, second = np.zeros(5, bool), np.array([True, True, False, False, True])

    cost = [
        cost_of_answers(labels, each, weights, false_negative=2).mean for each in (first, second)
    ]
    found = saving(labels, first, second, weights, false_negative=2)

    assert cost == pytest.approx([11 / 10.5, 7 / 10.5])
    assert found.per_row == pytest.approx(cost[0] - cost[1])
    assert found.shares[0] == pytest.approx(4 / 11)
    assert 3 == found.rows


def test_the_saving_turns_round_with_its_sides() -> None:
    labels, draw = rows(200, 0.4, seed=3)
    first, second = draw.random(200) < 0.5, draw.random(200) < 0.5
    there = saving(labels, first, second, false_negative=3)
    back = saving(labels, second, first, false_negative=3)

    assert there.per_row == pytest.approx(-back.per_row)
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))


def test_equal_answers_save_nothing_and_no_cost_has_no_share() -> None:
    labels, _ = rows(50, 0.5)
    found = saving(labels, labels.view(bool), labels.view(bool))

    assert (0.0, (0.0, 0.0), None, 0) == (found.per_row, found.interval, found.shares, found.rows)
    assert not found.distinguishable


@pytest.mark.parametrize("false_negative", [1, 5, 20])
@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize("between", [4, 5, 12, 30])
def test_where_nothing_is_saved_at_most_one_in_twenty_claims_it(
    false_negative: int, raised: bool, between: int
) -> None:
    """Every number of labels 1 among the rows between, with its chance at equal cost."""
    share = 1 / (1 + false_negative)  # of labels 1, at which either answer costs the same
    first = np.full(between, not raised)
    claims = 0.0
    for ones in range(between + 1):
        chance = math.exp(
            math.lgamma(between + 1)
            - math.lgamma(ones + 1)
            - math.lgamma(between - ones + 1)
            + ones * math.log(share)
            + (between - ones) * math.log(1 - share)
        )
        if chance < 1e-9:
            continue
        labels = np.repeat(np.array([1, 0], np.uint8), [ones, between - ones])
        found = saving(labels, first, ~first, false_negative=false_negative)
        claims += chance * found.distinguishable

    assert claims <= 0.05


def test_a_clear_saving_is_seen() -> None:
    labels, draw = rows(2_000, 0.5, seed=1)
    first = draw.random(2_000) < 0.5
    found = saving(labels, first, labels.view(bool))

    assert found.distinguishable
    assert 1.0 == found.shares[0] == found.shares[2]
    assert found.interval[0] < 0.5 < found.interval[1]


def test_a_rare_and_expensive_label_that_was_not_seen_is_not_ruled_out() -> None:
    weights = np.linspace(1, 2, 12)  # unequal, so that no exact interval widens this one
    labels, none = np.zeros(12, np.uint8), np.zeros(12, bool)

    assert saving(labels, ~none, none, weights).distinguishable
    assert not saving(labels, ~none, none, weights, false_negative=20).distinguishable
