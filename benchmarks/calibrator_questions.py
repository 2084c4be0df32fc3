# SPDX-License-Identifier: Apache-2.0
"""The questions about every cost at once, against scikit-learn's isotonic regression."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.questions import Undo, arrivals
from benchmarks.timing import Finding, faster_by, in_turns, slower_by, within
from benchmarks.workloads import by_sorting, samples
from limen import Blocks, OnlineCalibrator, isotonic
from limen.units import _exact_costs as exact_costs


def held(n: int) -> OnlineCalibrator:
    calibrator = OnlineCalibrator()
    scores, labels = samples("uniform", n)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        calibrator.update(score, label)
    return calibrator


def refit(scores: np.ndarray, labels: np.ndarray) -> IsotonicRegression:
    return IsotonicRegression(out_of_bounds="clip").fit(scores, labels)


def verify(blocks: Blocks, scores: np.ndarray, labels: np.ndarray) -> None:
    expected = refit(scores, labels).predict(scores)
    assert np.allclose(blocks.probability(scores), expected, rtol=0, atol=1e-12)


def updating(calibrator: OnlineCalibrator, stream: list[tuple[float, int]]) -> Callable[[], Undo]:
    def work() -> Undo:
        for score, label in stream:
            calibrator.update(score, label)

        def undo() -> None:
            for score, label in stream:
                calibrator.revert(score, label)

        return undo

    return work


def update_against_refit() -> Iterator[Finding]:
    """How long does one update of the isotonic fit take against fitting again?"""
    for n, promise in ((10_000, 1_000), (100_000, 5_000), (1_000_000, 20_000)):
        scores, labels = samples("uniform", n)
        calibrator = held(n)
        verify(calibrator.blocks(), scores, labels)
        stream = arrivals(2_000, seed=5)

        def fit(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            refit(scores, labels)

        runs = in_turns(
            {"limen": updating(calibrator, stream), "scikit-learn": fit},
            rounds=7,
            per={"limen": len(stream), "scikit-learn": 1},
        )
        verify(calibrator.blocks(), scores, labels)
        yield faster_by(
            "update of the isotonic fit against IsotonicRegression.fit",
            f"{n:,}",
            runs,
            "scikit-learn",
            promise,
            "ns per sample",
        )


def update_growth() -> Iterator[Finding]:
    """How does the time of one update of the isotonic fit grow with the samples held?"""
    small, large = held(10_000), held(1_000_000)
    stream = arrivals(2_000, seed=3)
    runs = in_turns(
        {"limen": updating(large, stream), "limen at 10,000": updating(small, stream)},
        rounds=15,
        per=len(stream),
    )
    yield slower_by(
        "one update of the isotonic fit at 1,000,000 against one at 10,000",
        "1,000,000",
        runs,
        "limen at 10,000",
        5,
        "ns per sample",
    )
    each = sys.getsizeof(large) / large._distinct()
    yield Finding(
        "memory of the calibrator per distinct score, added one by one",
        "1,000,000",
        each,
        None,
        "bytes",
        promise="at most 90 bytes",
        kept=each <= 90,
    )


def reading_the_fit() -> Iterator[Finding]:
    """How long does it take to read a threshold or a probability at a million samples?"""
    n, calls = 1_000_000, 2_000
    scores, labels = samples("uniform", n)
    calibrator = held(n)
    assert calibrator.threshold(false_negative=5) == by_sorting(scores, labels, false_negative=5)
    verify(calibrator.blocks(), scores, labels)
    costs = [round(1 + cost / 100, 2) for cost in range(calls)]
    asked = [score for score, _ in arrivals(calls, seed=6)]

    def thresholds() -> None:
        for cost in range(1, calls + 1):
            calibrator.threshold(false_positive=1, false_negative=cost)

    def new_thresholds() -> None:
        exact_costs.cache_clear()
        for cost in costs:
            calibrator.threshold(false_positive=0.1, false_negative=cost)

    def probabilities() -> None:
        for score in asked:
            calibrator.probability(score)

    def confusions() -> None:
        for score in asked:
            calibrator.confusion(score)

    for what, work, promise in (
        ("threshold(false_positive=1, false_negative=c), 2,000 costs", thresholds, 1_000),
        ("the same with costs of two decimals, never seen before", new_thresholds, None),
        ("probability(score)", probabilities, None),
        ("confusion(threshold)", confusions, None),
    ):
        runs = in_turns({"limen": work}, rounds=15, per=calls)
        yield within(what, f"{n:,}", runs, promise, "ns per call")


def by_two_updates(calibrator: OnlineCalibrator, score: float) -> tuple[float, float]:
    found = []
    for label in (0, 1):
        calibrator.update(score, label)
        found.append(calibrator.probability(score))
        calibrator.revert(score, label)
    return found[0], found[1]


def probability_intervals() -> Iterator[Finding]:
    """How long does the Venn-Abers interval of a score take against the two updates it is about?"""
    n = 1_000_000
    calibrator = held(n)
    asked = [score for score, _ in arrivals(2_000, seed=8)]
    many, _ = samples("uniform", n, seed=9)
    both = [(score, label) for score in asked for label in (0, 1)]
    expected = [by_two_updates(calibrator, score) for score in asked]
    assert expected == [calibrator.probability_interval(score) for score in asked]
    many[: len(asked)] = asked
    low, high = calibrator.probability_interval(many)
    assert expected == list(zip(low.tolist(), high.tolist(), strict=True))[: len(asked)]

    def one_by_one() -> None:
        for score in asked:
            calibrator.probability_interval(score)

    def at_once() -> None:
        calibrator.probability_interval(many)

    for what, work, scores in (
        ("probability_interval of one score", one_by_one, len(asked)),
        ("probability_interval of 1,000,000 scores at once", at_once, n),
    ):
        runs = in_turns(
            {"limen": work, "two updates": updating(calibrator, both)},
            rounds=9,
            per={"limen": scores, "two updates": len(asked)},
        )
        question = f"{what} against two updates"
        yield slower_by(question, f"{n:,}", runs, "two updates", 5, "ns per score")


def whole_fit() -> Iterator[Finding]:
    """How long does the fit of a whole array take?"""
    for n, promise in ((1_000_000, 3), (100_000, None)):
        scores, labels = samples("uniform", n)
        verify(isotonic(scores, labels), scores, labels)

        def ours(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            isotonic(scores, labels)

        def theirs(scores: np.ndarray = scores, labels: np.ndarray = labels) -> None:
            refit(scores, labels)

        runs = in_turns({"limen": ours, "scikit-learn": theirs}, rounds=7, per=n)
        yield faster_by(
            "limen.isotonic against IsotonicRegression.fit, unsorted",
            f"{n:,}",
            runs,
            "scikit-learn",
            promise,
            "ns per sample",
        )


QUESTIONS = (
    update_against_refit,
    update_growth,
    reading_the_fit,
    probability_intervals,
    whole_fit,
)
