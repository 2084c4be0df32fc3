# SPDX-License-Identifier: Apache-2.0
"""Floors that hold on new rows: exact binomial tails, and sequences of tests fixed in advance."""

from __future__ import annotations

import json
import math
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen import OnlineCalibrator
from limen.floors import (
    _rough_tail,
    _sizes,
    at_least,
    binomial_tail,
    how_many,
    least_trials,
    passes,
    sequences,
    starts,
)

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from benchmarks.trust_floors import DEMANDS, UNWEIGHTED, broken  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "trust" / "floors.json"


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_tail_is_that_of_exact_sums(share: Fraction) -> None:
    for trials in (1, 2, 7, 15, 16, 17, 40):
        chances = [
            math.comb(trials, hits) * share**hits * (1 - share) ** (trials - hits)
            for hits in range(trials + 1)
        ]
        exact = [float(sum(chances[hits:])) for hits in range(trials + 2)]
        tails = binomial_tail(np.arange(trials + 2), trials, float(share))

        assert exact == pytest.approx(tails.tolist(), rel=1e-12)


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.3, 0.5, 0.8, 0.95, 0.999999])
def test_the_tail_is_that_of_scipy(share: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    trials = (10 ** rng.uniform(0, 7, 400)).astype(int)
    spread = 4 * rng.standard_normal(400) * np.sqrt(trials * share * (1 - share))
    hits = np.clip(np.rint(trials * share + spread), 0, trials).astype(int)

    expected = stats.binom.sf(hits - 1, trials, share)
    assert expected.tolist() == pytest.approx(binomial_tail(hits, trials, share).tolist(), rel=1e-8)


def test_a_share_of_0_or_1_is_certain() -> None:
    assert [1, 0] == binomial_tail([0, 1], 5, 0.0).tolist()
    assert [1, 1, 0] == binomial_tail([0, 5, 6], 5, 1.0).tolist()


def test_29_hits_without_a_miss_are_the_least_for_nine_tenths() -> None:
    assert (29, math.inf, 1) == tuple(least_trials(floor, 0.05) for floor in (0.9, 1.0, 0.0))
    assert [False, True] == at_least(np.array([28, 29]), 29, 0.9, 0.05).tolist()
    assert not at_least(np.array([28]), 28, 0.9, 0.05).any()


@pytest.mark.parametrize("share", [1e-6, 0.065, 0.5, 0.9, 0.999])
def test_bounds_decide_as_the_exact_tail_does(share: float) -> None:
    rng = np.random.default_rng(0)
    trials = (10 ** rng.uniform(0, 6, 2_000)).astype(int)
    spread = 3 * rng.standard_normal(2_000) * np.sqrt(trials * share * (1 - share))
    hits = np.clip(np.rint(trials * share + spread) + rng.integers(-1, 3, 2_000), 0, trials)
    exact = binomial_tail(hits, trials, share)
    rough = _rough_tail(hits, trials, share, 0.005, 0.05)

    decided = np.where(exact <= 0.005, 0, np.where(exact > 0.05, 1, exact))
    assert np.all((rough == exact) | (rough == decided))
    assert (exact <= 0.01).tolist() == passes(hits, trials, share, 0.01).tolist()
    assert (exact <= 0.7).tolist() == passes(hits, trials, share, 0.7).tolist()


def test_a_tail_does_not_depend_on_those_computed_with_it() -> None:
    hits, trials = np.array([29, 100, 850_900, 9_100]), np.array([29, 101, 1_000_000, 10_000])
    together = binomial_tail(hits, trials, 0.85)

    assert together.tolist() == [
        binomial_tail([h], [n], 0.85)[0] for h, n in zip(hits, trials, strict=True)
    ]


@pytest.mark.parametrize("share", [0.065, 0.5, 0.9, 0.99])
def test_the_size_of_a_test_is_its_largest_tail_below_the_level(share: float) -> None:
    sizes = _sizes(share, 0.0125, 400)
    for trials in (1, 2, 30, 111, 400):
        tails = binomial_tail(np.arange(trials + 2), trials, share)

        assert sizes[trials] == pytest.approx(tails[tails <= 0.0125].max(), abs=1e-12)


@pytest.mark.parametrize("floor", [0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("most", [1, 29, 300, 100_000])
def test_sequences_begin_where_a_test_can_pass(floor: float, most: int) -> None:
    begin = starts(floor, 0.05, most)
    many = how_many(floor, 0.05, most)

    assert len(begin) <= many
    assert (many == 0) == (least_trials(floor, 0.05) > most)
    if many:
        assert least_trials(floor, 0.05 / many) <= begin[0]
        assert begin[-1] <= max(begin[0], most)
        assert passes(begin, begin, floor, 0.05 / many).all()


def test_a_sequence_ends_where_a_test_fails() -> None:
    """What comes after a failure is proven only by a sequence that begins after it."""
    trials = np.arange(1, 1001)
    begin = starts(0.9, 0.05, 1000)
    perfect = sequences(trials, trials, 0.9, 0.05)
    assert begin[0] - 1 == perfect.argmax()
    assert perfect[begin[0] - 1 : 250].all()

    broken_early = trials - np.minimum(trials, 20) * (trials >= 50)
    proven = sequences(broken_early, trials, 0.9, 0.05)
    later = begin[passes(broken_early[begin - 1], begin, 0.9, 0.05 / len(begin)) & (begin > 50)]
    assert not proven[49 : int(later[0]) - 1].any()
    assert proven[int(later[0]) - 1]


def test_a_sequence_takes_over_the_shares_of_those_it_reaches() -> None:
    """All of the error where the last one begins, if the first has come so far; else its own."""
    trials, begin = np.arange(1, 1001), starts(0.9, 0.05, 1000)
    last, level = int(begin[-1]), 0.05 / len(begin)
    tails = binomial_tail(np.arange(last + 1), last, 0.9)
    enough = int(np.argmax(tails <= 0.05))
    assert level < tails[enough] <= 0.05
    hits = trials.copy()
    hits[last - 1 :] -= last - enough

    assert sequences(hits, trials, 0.9, 0.05)[last - 1]
    hits[last - 100 : last - 1] = 0
    assert not sequences(hits, trials, 0.9, 0.05)[last - 1]


@pytest.mark.parametrize("floor", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("good", [0, 100])
def test_no_more_than_5_of_100_false_proofs(floor: float, good: int) -> None:
    """At no cut better than the floor; or, after some hits for sure, from one cut on."""
    rng, trials, runs = np.random.default_rng(1), np.arange(1, 401), 300
    chances = np.full(400, floor)
    chances[:good] = 1
    worse = math.ceil(good / floor) if good else 0
    chances[good:worse] = 0
    null = np.cumsum(chances) <= floor * trials + 1e-9
    false = 0
    for _ in range(runs):
        hits = np.cumsum(rng.random(400) < chances)
        false += bool((sequences(hits, trials, floor, 0.05) & null).any())

    assert false / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def held(scores: Any, labels: Any, weights: Any = None, **given: Any) -> OnlineCalibrator:
    model = OnlineCalibrator(**given)
    model.update_many(scores, labels, weights)
    return model


def logistic(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n)
    return scores, (rng.random(n) < 1 / (1 + np.exp(-3 * scores))).astype(int)


def test_recall_and_rates_that_rise_with_the_cut_take_the_last_that_is_proven() -> None:
    stats = pytest.importorskip("scipy.stats")
    scores, labels = logistic(2_000)
    model, ones = held(scores, labels), int(labels.sum())
    cut = model.best("specificity", min_recall=0.9, confidence=0.95).confusion
    most = {"metric": lambda tp, fp, fn, tn: tp + fp, "confidence": 0.95}
    alarms = model.best(**most, max_false_positive_rate=0.1).confusion
    answered = model.best(**most, max_positive_rate=0.3).confusion

    for wrong, trials, share in (
        (cut.fn, ones, 0.1),
        (alarms.fp, 2_000 - ones, 0.1),
        (answered.tp + answered.fp, 2_000, 0.3),
    ):
        assert (
            stats.binom.cdf(wrong, trials, share)
            <= 0.05
            < stats.binom.cdf(wrong + 1, trials, share)
        )


def test_a_confidence_is_more_careful_than_the_samples_alone() -> None:
    model = held(*logistic(2_000))
    alone = model.best("recall", min_precision=0.9)
    sure = model.best("recall", min_precision=0.9, confidence=0.95)
    surer = model.best("recall", min_precision=0.9, confidence=0.999)

    assert alone.threshold < sure.threshold < surer.threshold
    assert alone.confusion.precision >= 0.9
    assert sure.confusion.precision > 0.9


def test_several_demands_hold_together() -> None:
    model = held(*logistic(5_000))
    both = model.best("f1", min_precision=0.8, min_recall=0.7, confidence=0.95)
    each = model.best("f1", min_precision=0.8, confidence=0.975)

    assert both.confusion.precision > 0.8
    assert both.confusion.recall > 0.7
    assert each.confusion.precision > 0.8


def test_equal_scores_stay_together() -> None:
    scores, labels = logistic(2_000)
    model = held(np.round(scores), labels)
    found = model.best("recall", min_precision=0.8, confidence=0.95)

    assert found.upper in set(np.round(scores))
    assert found.confusion.precision > 0.8


def test_answering_1_to_all_or_to_none_needs_no_proof() -> None:
    model = held([0.1, 0.2, 0.3], [0, 1, 1])

    assert -math.inf == model.best("f1", min_recall=0.9, confidence=0.95).threshold
    assert math.inf == model.best("f1", max_false_positive_rate=0, confidence=0.95).threshold
    assert model.best("f1", max_positive_rate=1, confidence=0.95) == model.best("f1")


def test_too_few_samples_say_how_many_more() -> None:
    few = held([i / 20 for i in range(20)], [0] * 10 + [1] * 10)
    with pytest.raises(limen.Infeasible, match="About 40 more samples might do") as caught:
        few.best("recall", min_precision=0.9, confidence=0.95)
    error = caught.value
    assert few.best("recall", min_precision=0.9) == error.nearest
    assert 40 == error.more_samples
    again = pickle.loads(pickle.dumps(error))
    assert (str(error), error.more_samples) == (str(again), again.more_samples)

    many = held([i / 100 for i in range(100)], [0] * 50 + [1] * 50)
    assert many.best("recall", min_precision=0.9, confidence=0.95).confusion.precision == 1
    with pytest.raises(limen.Infeasible, match="No number of samples would do") as caught:
        many.best("recall", min_precision=1, confidence=0.95)
    assert caught.value.more_samples is None


def test_what_no_cut_meets_on_the_samples_is_said_as_ever() -> None:
    model = held([0.1, 0.2, 0.3], [1, 0, 0])
    with pytest.raises(limen.Infeasible, match="no cut meets min_precision") as alone:
        model.best("recall", min_precision=0.9)
    with pytest.raises(limen.Infeasible) as sure:
        model.best("recall", min_precision=0.9, confidence=0.95)
    assert str(alone.value) == str(sure.value)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (held([0.1, 0.9], [0, 1], [1, 2]), {"min_recall": 0.9}, "samples of weight 1 each"),
        (held([0.1, 0.9], [0, 1], [0.5, 1.5]), {"min_recall": 0.9}, "samples of weight 1 each"),
        (held([0.1, 0.9], [0, 1], unit=0.01), {"min_recall": 0.9}, "without unit"),
        (held([0.1, 0.9], [0, 1]), {}, "there is none"),
    ],
)
def test_a_confidence_that_cannot_be_had_is_refused(model: Any, given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.best("f1", **given, confidence=0.95)


@pytest.mark.parametrize("confidence", [1, -0.1, "0.95", math.nan])
def test_no_confidence_but_a_share_below_1(confidence: Any) -> None:
    with pytest.raises(ValueError, match="confidence must be"):
        held([0.1, 0.9], [0, 1]).best("f1", min_recall=0.9, confidence=confidence)


@pytest.mark.parametrize("demand", DEMANDS)
@pytest.mark.parametrize("name", ["smooth", "jump left"])
def test_new_rows_hardly_ever_break_a_guaranteed_floor(name: str, demand: str) -> None:
    assert broken(UNWEIGHTED[name], demand, 300, 100, 1, 0.95)["broken"] <= 0.09


def test_new_rows_often_break_a_floor_met_on_the_samples_alone() -> None:
    assert broken(UNWEIGHTED["smooth"], "min_precision", 300, 100, 1, None)["broken"] >= 0.3


def test_the_recorded_shares_of_broken_floors_are_at_most_5_of_100() -> None:
    told = json.loads(RESULT.read_text())["floors"]
    sure = {name: each["broken"] for name, each in told.items() if name.endswith("0.95")}
    alone = [each["broken"] for name, each in told.items() if name.endswith("None")]

    assert len(sure) == 2 * 3 * len(UNWEIGHTED)
    assert max(sure.values()) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1_000)
    assert np.median(alone) >= 0.4


def test_the_recorded_procedure_finds_a_cut_more_often_than_eight_plain_sequences() -> None:
    told = json.loads(RESULT.read_text())["floors"].values()
    both = [
        (each["no cut"], each["no cut by eight plain sequences"]) for each in told if len(each) > 4
    ]

    assert len(both) == 2 * len(UNWEIGHTED)
    assert sum(ours for ours, _ in both) < sum(plain for _, plain in both)
    assert all(ours <= plain + 0.03 for ours, plain in both)
