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
from limen.floors import STARTS, at_least, binomial_tail, least_trials, sequences

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


def test_a_sequence_ends_where_a_test_fails() -> None:
    """What comes after a failure is proven only by a sequence that begins after it."""
    trials = np.arange(1, 1001)
    perfect = sequences(trials, trials, 0.9, 0.05)
    least = least_trials(0.9, 0.05 / STARTS)
    assert least - 1 == perfect.argmax()
    assert perfect[least - 1 :].all()

    broken_early = trials - np.minimum(trials, 20) * (trials >= 50)
    proven = sequences(broken_early, trials, 0.9, 0.05)
    starts = np.unique(np.ceil(np.geomspace(least, 1000, STARTS) - 1e-6))
    assert not proven[49 : int(starts[starts > 50][0]) - 1].any()
    assert proven[-1]


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
    with pytest.raises(limen.Infeasible, match="About 80 more samples might do") as caught:
        few.best("recall", min_precision=0.9, confidence=0.95)
    error = caught.value
    assert few.best("recall", min_precision=0.9) == error.nearest
    assert 80 == error.more_samples
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

    assert len(sure) == 3 * len(UNWEIGHTED)
    assert max(sure.values()) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1_000)
    assert np.median(alone) >= 0.4
