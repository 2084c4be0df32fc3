# SPDX-License-Identifier: Apache-2.0
"""Floors in force: the alarm against plain formulas, and at the null."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import limen

SAMPLES = ([0.9] * 6 + [0.1] * 5, [1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0])


def wealth(losses: list[float], allowed: float) -> float:
    """The evidence by its formula: bets one after the other."""
    total = 0.0
    for j in range(1, 17):
        odds = 2 ** (j / 4) * allowed / (1 - allowed)
        stake = (odds / (1 + odds) - allowed) / (allowed * (1 - allowed))
        total += math.prod(1 + stake * (loss - allowed) for loss in losses)
    return total / 16


@pytest.mark.parametrize(
    ("limit", "losses", "allowed", "rate"),
    [
        ({"min_precision": 0.9}, [0] * 4 + [1] * 2, 0.1, 4 / 6),
        ({"min_recall": 0.75}, [0] * 4 + [1], 0.25, 4 / 5),
        ({"max_false_positive_rate": 0.2}, [1] * 2 + [0] * 4, 0.2, 2 / 6),
        (
            {"max_cost": 0.5, "false_positive": 2, "false_negative": 5},
            [0.4] * 2 + [1] + [0] * 8,
            0.1,
            9 / 11,
        ),
    ],
)
def test_the_evidence_is_the_wealth_of_bets(
    limit: dict[str, Any], losses: list[float], allowed: float, rate: float
) -> None:
    alarm = limen.Alarm(0.5, **limit)
    alarm.update_many(*SAMPLES)
    assert alarm.value == pytest.approx(wealth(losses, allowed))
    assert alarm.rate == pytest.approx(rate)


def test_the_bound_is_where_the_evidence_would_just_be_enough() -> None:
    alarm = limen.Alarm(0.5, min_precision=0.9)
    alarm.update_many([0.9] * 100, [1] * 60 + [0] * 40)
    assert alarm.raised
    assert wealth([0] * 60 + [1] * 40, 1 - alarm.bound) == pytest.approx(20)
    assert 0.6 < alarm.bound < 0.9
    good = limen.Alarm(0.5, min_precision=0.9)
    good.update_many([0.9] * 100, [1] * 95 + [0] * 5)
    assert not good.raised
    assert good.bound > 0.95


@pytest.mark.parametrize("limit", ["min_precision", "min_recall", "max_cost"])
def test_at_the_null_few_alarms_are_ever_raised(limit: str) -> None:
    random = np.random.default_rng(8)
    raised = 0
    for _ in range(200):
        lost = random.random(600) < 0.2
        alarm = limen.Alarm(0.5, **{limit: 0.2 if limit == "max_cost" else 0.8})
        scores = np.where(lost, 0.1, 0.9) if limit == "min_recall" else np.full(600, 0.9)
        labels = np.ones(600, int) if limit == "min_recall" else 1 - lost
        for start in range(0, 600, 20):
            alarm.update_many(scores[start : start + 20], labels[start : start + 20])
            if alarm.raised:
                raised += 1
                break
    assert raised <= 17  # 5 % of 200, and two standard errors


def test_one_by_one_many_at_once_merged_and_stored_are_the_same() -> None:
    one = limen.Alarm(0.5, min_precision=0.9, age=30)
    for score, label in zip(*SAMPLES, strict=True):
        one.update(score, label)
    one.update(0.7, None)
    many, other = one.copy(), limen.Alarm(0.5, min_precision=0.9, age=30)
    other.update_many(SAMPLES[0], [None, *SAMPLES[1][1:]])
    other.revert(0.9, None)
    other.update(SAMPLES[0][0], SAMPLES[1][0])
    other.update(0.7, float("nan"))
    assert other.to_bytes() == one.to_bytes() == many.to_bytes()
    assert limen.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
    assert pickle.loads(pickle.dumps(one)).value == one.value
    many.merge(other)
    assert (len(many), many.missing) == (22, 2)
    many.revert_many(*SAMPLES)
    assert many.confusion == one.confusion


def test_what_makes_no_alarm_is_refused_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="exactly one of min_precision"):
        limen.Alarm(0.5)
    with pytest.raises(ValueError, match="got min_precision and min_recall"):
        limen.Alarm(0.5, min_precision=0.9, min_recall=0.9)
    with pytest.raises(ValueError, match="never be broken"):
        limen.Alarm(0.5, max_cost=3)
    alarm = limen.Alarm(0.5, min_recall=0.9)
    with pytest.raises(ValueError, match="label must be 0, 1 or None"):
        alarm.update(0.5, 2)
    with pytest.raises(ValueError, match="score is nan"):
        alarm.update(float("nan"), 1)
    with pytest.raises(limen.NotHeld):
        alarm.revert(0.5, 1)
    with pytest.raises(limen.NotHeld):
        alarm.revert_many([0.5], [1])
    with pytest.raises(ValueError, match="cannot merge: threshold"):
        alarm.merge(limen.Alarm(0.4, min_recall=0.9))
    assert len(alarm) == 0
    assert str(alarm) == "Recall is not known to be below 0.9: no samples yet."
