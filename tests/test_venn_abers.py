# SPDX-License-Identifier: Apache-2.0
"""Venn-Abers intervals: the fit in exact arithmetic with one more sample of either label."""

from __future__ import annotations

import threading
from fractions import Fraction
from itertools import count
from random import Random

import isotonic_oracle as oracle
import numpy as np
import pytest
import streams
from fits import (
    HARD,
    LIMIT,
    SmallLeafCalibrator,
    any_rows,
    columns,
    exactly,
    held_one_by_one,
    rows_of,
)
from hypothesis import given
from hypothesis import strategies as st
from interrupts import interrupted, visited
from streams import INF, at_the_door

import limen
from limen import Fading, LastN, LastPeriod, Ledger, OnlineCalibrator, OnlineThreshold


def expected(rows, score: float, weight=1) -> tuple[float, float]:
    """Add the sample, fit everything again, and read the fit."""
    low, high = (
        oracle.probability(oracle.pools(oracle.join([*rows, (score, label, weight)])), score)
        for label in (0, 1)
    )
    return float(low), float(high)


def by_updates(model, score: float, **how) -> tuple[float, float]:
    """The same from copies that really hold the sample."""
    found = []
    for label in (0, 1):
        copy = model.copy()
        copy.update(score, label, **how)
        found.append(copy.probability(score))
    return tuple(found)


def pairs(model, scores: list[float]) -> list[tuple[float, float]]:
    low, high = model.probability_interval(scores)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def some() -> OnlineCalibrator:
    model = SmallLeafCalibrator()
    scores, labels = streams.uniform(300, seed=4)
    model.update_many(np.round(scores, 2), labels)
    return model


def faded() -> Fading:
    fading = Fading(SmallLeafCalibrator(), 5)
    fading.update_many(*streams.few_distinct_scores(40))
    return fading


# The numbers.


@given(any_rows, st.lists(streams.scores, max_size=3), st.data())
def test_the_interval_is_the_fit_with_one_more_sample_of_either_label(rows, others, data):
    model = held_one_by_one(*columns(rows))
    held = [row[0] for row in rows]
    near = data.draw(st.lists(st.sampled_from(held), max_size=6)) if held else []
    probes = [*near, *others, -INF, INF]
    answers = [expected(exactly(rows), score) for score in probes]

    assert answers == [model.probability_interval(score) for score in probes]
    assert answers == pairs(model, probes)


@pytest.mark.parametrize("stream", [streams.uniform, streams.ties_everywhere, streams.alternating])
def test_few_scores_of_a_large_model_are_answered_as_many(stream):
    scores, labels = stream(3000, 1)
    model = OnlineCalibrator()
    model.update_many(scores, labels)
    probes = [*scores[:20].tolist(), *(scores[:20] + 0.01).tolist(), -INF, INF]

    everything = pairs(model, probes * 100)  # at once, as they are many
    assert everything[: len(probes)] == pairs(model, probes)
    assert everything[: len(probes)] == [model.probability_interval(score) for score in probes]
    assert everything[: len(probes)] == [by_updates(model, score) for score in probes]


@pytest.mark.parametrize("points_of", HARD)
def test_sums_of_62_bits_need_no_room_for_the_sample(points_of):
    for seed in range(6):
        rows = rows_of(points_of(6 if points_of is HARD[0] else 12, Random(seed)))
        room = LIMIT - 1 - sum(weight for _, _, weight in rows)
        if room:
            rows.append((3.0, seed % 2, room))
        model = held_one_by_one(*columns(rows))
        before = model.to_bytes()
        probes = [-1.0, *sorted({score for score, _, _ in rows}), 2.5, INF]
        answers = [expected(rows, score) for score in probes]

        assert answers == pairs(model, probes)
        assert answers == [model.probability_interval(score) for score in probes]
        with pytest.raises(OverflowError):
            model.update(0.5, 1)
        assert before == model.to_bytes()


@given(st.lists(st.tuples(st.integers(0, 9), streams.labels), max_size=30))
def test_the_calibrated_probability_of_a_held_score_lies_between_the_two(samples):
    model = SmallLeafCalibrator()
    model.update_many([score for score, _ in samples], [label for _, label in samples])
    scores = sorted({float(score) for score, _ in samples})
    low, high = model.probability_interval(scores)

    assert (low <= model.probability(scores)).all()
    assert (model.probability(scores) <= high).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")  # its own, at the highest score
@pytest.mark.parametrize("digits", [None, 1, 2])
@pytest.mark.parametrize("n", [2, 30, 700])
def test_the_package_venn_abers_gives_the_same_to_the_last_bit(n, digits):
    with np.errstate():  # which it changes for everybody
        package = pytest.importorskip("venn_abers")
    for seed in range(5):
        random = np.random.default_rng(seed)
        scores = random.random(n) if digits is None else random.random(n).round(digits)
        labels = (random.random(n) < scores).astype(int)
        asked = np.concatenate([random.random(200), scores, [0.0, 1.0]])
        theirs = package.VennAbers()
        with np.errstate(all="ignore"):
            theirs.fit(np.column_stack([1 - scores, scores]), labels)
            _, both = theirs.predict_proba(np.column_stack([1 - asked, asked]))
        model = OnlineCalibrator()
        model.update_many(scores, labels)

        assert both.tolist() == [list(pair) for pair in pairs(model, asked)]


# What is given, and what comes back.


def test_one_score_gives_two_floats_and_many_give_two_arrays():
    model = some()
    for score in (1, True, np.float64(1), np.float32(1), np.array(1.0), 1.0):
        found = model.probability_interval(score)
        assert (tuple, [float, float]) == (type(found), [type(value) for value in found])
        assert found == model.probability_interval(1.0)
    for scores in ([0.25], (0.25,), np.array([0.25]), np.array([0.25], np.float32)):
        low, high = model.probability_interval(scores)
        assert [(1,), (1,)] == [low.shape, high.shape]
        assert [np.float64] * 2 == [low.dtype, high.dtype]
        assert [model.probability_interval(0.25)] == pairs(model, scores)
    assert [] == pairs(model, [])


def test_nothing_held_leaves_everything_possible():
    model = OnlineCalibrator()
    for score in (-INF, 0.5, INF):
        assert (0.0, 1.0) == model.probability_interval(score)
    assert [(0.0, 1.0)] * 2 == pairs(model, [-INF, 3])


def test_both_zeros_are_one_score():
    model = OnlineCalibrator()
    model.update_many([-0.0, -1, 1, 0.0], [1, 0, 1, 0])
    expected_pair = expected([(0, 1, 1), (-1, 0, 1), (1, 1, 1), (0, 0, 1)], 0.0)

    assert [expected_pair] * 2 == [model.probability_interval(zero) for zero in (0.0, -0.0)]
    assert [expected_pair] * 2 == pairs(model, [0.0, -0.0])


def test_nan_and_text_are_refused_as_by_probability():
    model = some()
    before = model.to_bytes()
    for scores in (
        float("nan"),
        np.float64("nan"),
        [0.5, float("nan")],
        "high",
        None,
        [[0.5, 0.5]],
    ):
        with pytest.raises((ValueError, TypeError)) as ours:
            model.probability_interval(scores)
        with pytest.raises((ValueError, TypeError)) as theirs:
            model.probability(scores)
        assert (theirs.type, str(theirs.value)) == (ours.type, str(ours.value))
    assert before == model.to_bytes()


# What the new sample weighs.


def test_the_new_sample_weighs_1_whatever_the_others_weigh():
    rows = [(0.2, 0, 7), (0.4, 1, Fraction(1, 4)), (0.4, 0, 3), (0.6, 1, 0.5), (0.8, 1, 100)]
    model = OnlineCalibrator()
    for score, label, weight in rows:
        model.update(score, label, float(weight))
    for score in (0.1, 0.2, 0.3, 0.4, 0.6, 0.8):
        assert expected(exactly(rows), score) == model.probability_interval(score)
        assert by_updates(model, score) == model.probability_interval(score)


@pytest.mark.parametrize("unit", [0.3, 0.01, Fraction(1, 7), 2])
def test_a_weight_of_1_is_rounded_to_the_unit_as_by_update(unit):
    model = SmallLeafCalibrator(unit=unit)
    model.update_many([1, 2, 3, 4, 5], [0, 1, 0, 1, 1], [3, 2, 4, 2, 2])
    if at_the_door(1, unit) == 0:
        with pytest.raises(ValueError, match="rounds to 0 units of 2"):
            model.probability_interval(2.0)
        return
    scores = [0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 6.0]
    answers = [by_updates(model, score) for score in scores]
    assert answers == pairs(model, scores)
    assert answers == [model.probability_interval(score) for score in scores]


@pytest.mark.parametrize("scores", [0.5, [0.5, 0.7]])
def test_a_unit_too_coarse_for_a_weight_of_1_is_refused(scores):
    model = OnlineCalibrator(unit=10)
    model.update(0.5, 1, weight=20)
    before = model.to_bytes()
    message = (
        r"the new sample's weight is 1\.0, which rounds to 0 units of 10 and would be lost\. "
        r"Choose a finer unit, for example unit=1\.0\."
    )
    with pytest.raises(ValueError, match=message):
        model.probability_interval(scores)
    assert before == model.to_bytes()


# Windows, ledgers, groups.


def test_windows_ledgers_and_groups_pass_it_on():
    samples = [(0.1, 0), (0.3, 1), (0.2, 0), (0.4, 0), (0.5, 1)]
    last, period = LastN(OnlineCalibrator(), 4), LastPeriod(OnlineCalibrator(), 4)
    ledger = Ledger(LastN(OnlineCalibrator(), 4))
    grouped = limen.Grouped(OnlineCalibrator())
    for time, (score, label) in enumerate(samples):
        last.update(score, label)
        period.update(score, label, time=time)
        ledger.score(time, score, time)
        ledger.label(time, label)
        if time:
            grouped.update("a", score, label)
    answer = expected([(*sample, 1) for sample in samples[1:]], 0.4)

    for model in (last, period, ledger, grouped.model("a")):
        assert answer == model.probability_interval(0.4)
        assert [answer] == pairs(model, [0.4])


@pytest.mark.parametrize("wrap", [lambda m: LastN(m, 3), lambda m: Fading(m, 3), Ledger])
def test_a_model_without_probabilities_has_no_intervals(wrap):
    assert not hasattr(wrap(OnlineThreshold()), "probability_interval")


@pytest.mark.parametrize("half_life", [1, 2.5, 100])
@pytest.mark.parametrize("by", ["samples", "time"])
def test_fading_answers_for_the_next_sample_at_its_full_weight(by, half_life):
    fading = Fading(OnlineCalibrator(), half_life, by=by)
    assert (0.0, 1.0) == fading.probability_interval(0.5)
    for step, (score, label) in enumerate([(0.2, 0), (0.4, 1), (0.3, 0), (0.4, 0), (0.6, 1)]):
        now = {"time": step / 3} if by == "time" else {}
        fading.update(score, label, **now)
        before = fading.to_bytes()
        for asked in (0.1, 0.2, 0.35, 0.4, 0.6, 0.9):
            answer = by_updates(fading, asked, **now)
            assert answer == fading.probability_interval(asked)
            assert [answer] * 40 == pairs(fading, [asked] * 40)
        assert before == fading.to_bytes()


def test_fading_answers_at_a_time_between_samples():
    fading = Fading(OnlineCalibrator(), 2, by="time")
    for time in (0, 2, 4):
        fading.update(0.5, time % 4 == 0, time=time)
    fading.advance(4.7)  # the weights held are powers of 2, that of a new sample is not
    assert by_updates(fading, 0.5, time=4.7) == fading.probability_interval(0.5)


def test_fading_refuses_a_next_sample_of_more_units_than_there_are():
    fading = Fading(OnlineCalibrator(unit=1e-17), 0.25)  # each weighs 16 times the one before
    fading.update_many([0.2, 0.4], [0, 1])
    before = fading.to_bytes()
    for scores in (0.3, [0.3]):
        with pytest.raises(OverflowError, match="Choose a coarser unit, for example unit=1e-14"):
            fading.probability_interval(scores)
    assert before == fading.to_bytes()


# Nobody ever sees the sample.


@pytest.mark.parametrize("scores", [0.5, 1, [0.1, 0.5, 0.9], np.linspace(0, 1, 400)])
def test_a_question_leaves_every_byte_as_it_was(scores):
    model = some()
    before, memory = model.to_bytes(), model._memory()
    model.probability_interval(scores)
    model._check()
    assert (before, memory) == (model.to_bytes(), model._memory())


@pytest.mark.parametrize("scores", [0.5, 1, [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("make", [some, faded])
def test_an_interrupt_leaves_every_byte_as_it_was(make, scores):
    model = make()
    before = model.to_bytes()
    for place in count(1):
        where, _ = interrupted(lambda: model.probability_interval(scores), place)
        assert before == model.to_bytes(), where
        if where is None:
            break
    assert place > 1


@pytest.mark.parametrize("make", [some, faded])
def test_a_signal_handler_sees_no_more_than_is_held(make):
    model, seen = make(), []
    before = model.to_bytes()
    for place in count(1):
        call = lambda: model.probability_interval([0.1, 0.5])  # noqa: E731
        if visited(call, place, lambda: seen.append(model.to_bytes())) is None:
            break
    assert {before} == set(seen)


def test_threads_see_no_more_than_is_held_while_another_asks():
    model = some()
    before, answers, wrong = model.to_bytes(), pairs(model, [0.1, 0.5]), []
    done = threading.Event()
    scores = np.random.default_rng(1).random(60_000)

    def look():
        while not done.is_set():
            if before != model.to_bytes() or answers != pairs(model, [0.1, 0.5]):
                wrong.append(True)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        model.probability_interval(scores)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
