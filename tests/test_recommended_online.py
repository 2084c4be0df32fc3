# SPDX-License-Identifier: Apache-2.0
"""What models answer about sureness equals what `limen.recommend` finds in the same samples."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest

import limen


class SmallThreshold(limen.OnlineThreshold):
    """With nodes so small that they split and merge all the time."""

    __slots__ = ()
    _capacities: ClassVar[tuple[int, int]] = (4, 4)


class SmallCalibrator(limen.OnlineCalibrator):
    """The same."""

    __slots__ = ()
    _capacities: ClassVar[tuple[int, int]] = (4, 0)


COSTS = [(1, 1), (1, 5), (20, 1), (3, 7)]
LEVELS = (0.8, 0.95)

Sample = tuple[float, int, float]


def expected(held: list[Sample], fp: int, fn: int) -> tuple[Any, ...]:
    """What whole arrays say: the threshold and the interval, at two levels."""
    scores, labels, weights = (np.array(column) for column in zip(*held, strict=True))
    found = []
    for level in LEVELS:
        try:
            told = limen.recommend(
                scores,
                labels.astype(int),
                weights=weights,
                false_positive=fp,
                false_negative=fn,
                confidence=level,
                scores_are="ranks",
            )
        except ValueError:
            return (None, (-math.inf, math.inf)) * 2
        found += [told.threshold, told.interval]
    return tuple(found)


def answers(model: Any, costs: dict[str, int]) -> tuple[Any, ...]:
    recommended = model.recommended(**costs) if costs else model.recommended
    return tuple(
        value for level in LEVELS for value in (recommended, model.interval(level, **costs))
    )


def same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # of which nan equals nan


def drawn(random: np.random.Generator, kind: str) -> Sample:
    score = random.normal()
    if kind in ("ties", "weighted ties"):
        score = round(score * 2) / 2
    if kind == "infinite" and random.random() < 0.4:
        score = random.choice([-math.inf, math.inf])
    label = int(random.random() < 1 / (1 + math.exp(-max(-30, min(30, 2 * score)))))
    weight = 1.0
    if kind.startswith("weighted"):
        weight = float(random.choice([0.25, 0.5, 1, 1, 2, 3]))
    return float(score), label, weight


@pytest.mark.parametrize("kind", ["plain", "ties", "infinite", "weighted", "weighted ties"])
@pytest.mark.parametrize("seed", range(2))
def test_after_every_step_a_model_says_what_whole_arrays_say(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    fp, fn = COSTS[int(random.integers(len(COSTS)))]
    costs = {"false_positive": fp, "false_negative": fn}
    cut, calibrator = SmallThreshold(**costs), SmallCalibrator()
    held: list[Sample] = []
    for step in range(90):
        if held and random.random() < (0.3 if step < 60 else 0.6):
            sample = held.pop(int(random.integers(len(held))))
            cut.revert(*sample)
            calibrator.revert(*sample)
        else:
            held.append(drawn(random, kind))
            cut.update(*held[-1])
            calibrator.update(*held[-1])
        if not held:
            continue
        wanted = expected(held, fp, fn)
        assert same(answers(cut, {}), wanted), step
        assert same(answers(calibrator, costs), wanted), step
    cut._check()
    calibrator._check()


@pytest.mark.parametrize("kind", ["plain", "ties", "weighted", "weighted ties"])
def test_many_samples_come_go_merge_and_are_stored(kind: str) -> None:
    random = np.random.default_rng(5)
    held = [drawn(random, kind) for _ in range(3000)]

    def columns(part: list[Sample]) -> tuple[Any, ...]:
        scores, labels, weights = zip(*part, strict=True)
        return np.array(scores), np.array(labels), np.array(weights)

    for costs in ({"false_positive": 1, "false_negative": 5},):
        for model in (SmallThreshold(**costs), limen.OnlineThreshold(**costs), SmallCalibrator()):
            asked = costs if model.takes_costs else {}
            model.update_many(*columns(held[:1500]))
            other = model.empty()
            other.update_many(*columns(held[1500:2500]))
            for sample in held[2500:]:
                other.update(*sample)
            model.merge(other)
            wanted = expected(held, **{"fp": 1, "fn": 5})
            assert same(answers(model, asked), wanted)
            twin = type(model).from_bytes(model.to_bytes())
            assert same(answers(twin, asked), wanted)
            assert twin.to_bytes() == model.to_bytes()
            twin.revert_many(*columns(held[200:1700]))
            left = held[:200] + held[1700:]
            assert same(answers(twin, asked), expected(left, 1, 5))
            twin._check()
            fresh = model.empty()
            fresh.update_many(*columns(left))
            assert fresh.to_bytes() == twin.to_bytes()


def test_more_scores_than_bins_give_the_same_bins() -> None:
    random = np.random.default_rng(3)
    scores = np.round(random.normal(size=20_000), 4)
    labels = (random.random(20_000) < 1 / (1 + np.exp(-2 * scores))).astype(int)
    for fp, fn in COSTS:
        given: Any = {"false_positive": fp, "false_negative": fn, "scores_are": "ranks"}
        wanted = limen.recommend(scores, labels, **given)
        costs = {"false_positive": fp, "false_negative": fn}
        cut, calibrator = limen.OnlineThreshold(**costs), limen.OnlineCalibrator()
        cut.update_many(scores, labels)
        calibrator.update_many(scores, labels)
        assert (cut.recommended, cut.interval()) == (wanted.threshold, wanted.interval)
        assert calibrator.recommended(**costs) == wanted.threshold
        assert calibrator.interval(**costs) == wanted.interval


@pytest.mark.parametrize("kind", ["infinite", "weighted ties"])
def test_after_every_step_a_memory_says_what_whole_arrays_say(kind: str) -> None:
    random = np.random.default_rng(21)
    costs = {"false_positive": 1, "false_negative": 5}
    stream = [drawn(random, kind) for _ in range(70)]
    last = limen.LastN(SmallThreshold(**costs), 30)
    period = limen.LastPeriod(SmallCalibrator(), 25)
    ledger = limen.Ledger(SmallThreshold(**costs), maturity=4)
    groups = limen.Grouped(SmallCalibrator())
    turned = limen.LastN(SmallCalibrator(direction="<="), 30)
    for at, sample in enumerate(stream):
        score, label, weight = sample
        last.update(*sample)
        turned.update(-score, label, weight)
        period.update(*sample, time=at)
        groups.update("ab"[at % 2], *sample)
        ledger.score(at, score, time=at, weight=weight)
        ledger.label(at, 1 - label)
        ledger.label(at, label)
        recent = expected(stream[max(0, at - 29) : at + 1], 1, 5)
        assert same(answers(last, {}), recent), at
        assert same(answers(period, costs), expected(stream[max(0, at - 24) : at + 1], 1, 5)), at
        found = turned.recommended(**costs)
        low, high = turned.interval(0.8, **costs)
        assert same((None if found is None else 0.0 - found, (0.0 - high, 0.0 - low)), recent[:2])
        known = [s for i, s in enumerate(stream[: at + 1]) if s[1] or i <= at - 4]
        assert not known or same(answers(ledger, {}), expected(known, 1, 5)), at
        own = expected(stream[at % 2 : at + 1 : 2], 1, 5)
        assert same(groups.interval("ab"[at % 2], confidence=0.8, **costs), own[1]), at


def test_every_memory_that_has_an_interval_says_whether_to_keep_a_threshold() -> None:
    random = np.random.default_rng(22)
    scores, labels, _ = zip(*(drawn(random, "plain") for _ in range(200)), strict=True)
    fading = limen.Fading(limen.OnlineThreshold(), 50)
    grouped = limen.Grouped(limen.OnlineThreshold())
    turned = limen.Grouped(limen.OnlineThreshold(direction="<="))
    fading.update_many(scores, labels)
    grouped.update_many(["a", "b"] * 100, scores, labels)
    turned.update_many(["a", "b"] * 100, [-score for score in scores], labels)
    for threshold in np.linspace(-2, 2, 41).tolist():
        low, high = fading.interval()
        assert fading.keeps(threshold) == (low <= threshold <= high)
        whole = limen.recommend(scores[::2], labels[::2], current=threshold)
        assert grouped.keeps("a", threshold) == whole.keep
        assert turned.keeps("a", -threshold) == whole.keep
    with pytest.raises(TypeError, match="has its costs already"):
        grouped.keeps("a", 0.5, false_negative=5)


def test_scores_turned_round_have_no_recommendation_from_few_samples_either() -> None:
    calibrator = limen.OnlineCalibrator(direction="<=")
    for model in (calibrator, limen.LastN(calibrator.empty(), 9)):
        assert model.recommended(false_negative=2) is None
    assert limen.OnlineThreshold(direction="<=").recommended is None


def test_windows_answer_for_the_samples_in_them() -> None:
    random = np.random.default_rng(4)
    stream = [drawn(random, "plain") for _ in range(300)]
    last = limen.LastN(limen.OnlineThreshold(false_negative=5), 100)
    period = limen.LastPeriod(limen.OnlineCalibrator(), 100)
    for time, (score, label, _) in enumerate(stream):
        last.update(score, label)
        period.update(score, label, time=time)
    wanted = expected(stream[200:], 1, 5)
    assert same(answers(last, {}), wanted)
    assert same(answers(period, {"false_positive": 1, "false_negative": 5}), wanted)


def test_what_fades_is_worth_as_much_as_its_weights() -> None:
    random = np.random.default_rng(6)
    stream = [drawn(random, "plain") for _ in range(400)]
    ties = [drawn(random, "ties") for _ in range(400)]
    for samples in (stream, ties):
        fading = limen.Fading(limen.OnlineThreshold(false_negative=2), 64)
        for score, label, _ in samples:
            fading.update(score, label)
        weights = [2.0 ** ((at - len(samples) + 1) / 64) for at in range(len(samples))]
        told = limen.recommend(
            [s for s, _, _ in samples],
            [y for _, y, _ in samples],
            weights=weights,
            false_negative=2,
            scores_are="ranks",
        )
        assert fading.recommended == told.threshold
        assert fading.interval() == told.interval


def test_what_fades_is_kept_up_between_reads() -> None:
    random = np.random.default_rng(11)
    fading = limen.Fading(SmallThreshold(false_negative=2), 40)
    samples: list[Sample] = []
    for at in range(700):
        samples.append(drawn(random, "ties" if at % 2 else "plain"))
        fading.update(*samples[-1][:2])
        if at % 7 or at < 20:
            continue
        # The weights that it holds: those of the newest samples, rounded to its places.
        twin = limen.from_bytes(fading.to_bytes())  # makes all sums anew
        assert same(answers(fading, {}), answers(twin, {})), at
        fading.model._check()


def test_a_model_without_weights_again_is_asked_as_before() -> None:
    cut = SmallThreshold()
    random = np.random.default_rng(12)
    held = [drawn(random, "plain") for _ in range(40)]
    for sample in held:
        cut.update(*sample)
    cut.update(0.5, 1, 2.5)
    assert same(answers(cut, {}), expected([*held, (0.5, 1, 2.5)], 1, 1))
    cut.revert(0.5, 1, 2.5)
    assert same(answers(cut, {}), expected(held, 1, 1))


def test_a_ledger_answers_for_the_labels_that_came() -> None:
    random = np.random.default_rng(7)
    stream = [drawn(random, "plain") for _ in range(200)]
    ledger = limen.Ledger(limen.OnlineThreshold())
    for name, (score, _, _) in enumerate(stream):
        ledger.score(name, score)
    for name, (_, label, _) in enumerate(stream[:150]):
        ledger.label(name, 1 - label)
        ledger.label(name, label)  # a correction
    ledger.forget(3)
    held = [sample for name, sample in enumerate(stream[:150]) if name != 3]
    assert same(answers(ledger, {}), expected(held, 1, 1))


@pytest.mark.parametrize("kind", ["plain", "ties", "infinite"])
def test_a_threshold_is_kept_where_whole_arrays_keep_it(kind: str) -> None:
    random = np.random.default_rng(10)
    held = [drawn(random, kind) for _ in range(60)]
    scores, labels, _ = (list(column) for column in zip(*held, strict=True))
    cut, calibrator = SmallThreshold(false_negative=2), SmallCalibrator()
    cut.update_many(scores, labels)
    calibrator.update_many(scores, labels)
    for threshold in [*scores, *(s + 0.01 for s in scores), -math.inf, math.inf, math.nan]:
        told = limen.recommend(scores, labels, false_negative=2, current=threshold)
        assert cut.keeps(threshold) == told.keep, threshold
        assert calibrator.keeps(threshold, false_negative=2) == told.keep, threshold


def test_a_group_answers_for_its_own_samples() -> None:
    random = np.random.default_rng(9)
    stream = [drawn(random, "plain") for _ in range(300)]
    grouped = limen.Grouped(limen.OnlineCalibrator())
    windows = limen.Grouped(limen.LastPeriod(limen.OnlineThreshold(false_negative=5), 100))
    for time, (score, label, _) in enumerate(stream):
        grouped.update("ab"[time % 2], score, label)
        windows.update("ab"[time % 2], score, label, time=time)
    told = expected(stream[::2], 1, 5)
    recent = expected(stream[201::2], 1, 5)
    assert grouped.interval("a", false_negative=5) == told[3]
    assert grouped.interval("new", confidence=0.8) == grouped.interval((), confidence=0.8)
    assert windows.interval("b") == recent[3]
    with pytest.raises(TypeError, match="has its costs already"):
        windows.interval("b", false_negative=5)


def test_of_too_few_samples_nothing_is_known_and_the_threshold_is_kept() -> None:
    cut = limen.OnlineThreshold()
    for weights in (None, [100, 1, 1, 1, 1, 1, 1, 1, 1]):
        cut.update_many([0.5] * 9, [0, *[1] * 8] if weights is None else [0] * 9, weights)
        assert cut.recommended is None
        assert cut.interval() == (-math.inf, math.inf)
        assert cut.keeps(0.1)
    assert limen.OnlineCalibrator().recommended(false_negative=2) is None
    with pytest.raises(ValueError, match=r"confidence must be one of 0\.8"):
        cut.interval(0.5)
