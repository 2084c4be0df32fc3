# SPDX-License-Identifier: Apache-2.0
"""Samples that fade, against a plain list of samples weighed by their age."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen import Fading, Ledger, OnlineCalibrator, OnlineCut, OnlineThreshold, metrics


def exact_curve(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, false_negative: float = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct scores, and the loss of the cut below each of them and above all."""
    distinct, at = np.unique(scores, return_inverse=True)
    below = np.bincount(at, weights * labels * false_negative, len(distinct))
    above = np.bincount(at, weights * (1 - labels), len(distinct))
    missed = np.concatenate([[0], np.cumsum(below)])
    return distinct, missed + above.sum() - np.concatenate([[0], np.cumsum(above)])


def loss_at(threshold: float, distinct: np.ndarray, losses: np.ndarray) -> float:
    return float(losses[np.searchsorted(distinct, threshold)])


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The better threshold drifts from low to high scores."""
    random = np.random.default_rng(seed)
    scores = random.integers(0, 400, n) / 400
    middle = np.linspace(0.2, 0.8, n)
    return scores, (random.random(n) < 1 / (1 + np.exp(12 * (middle - scores)))).astype(int)


@pytest.mark.parametrize("half_life", [0.5, 3, 40, 1000])
def test_the_cut_is_as_good_as_the_accuracy_promised(half_life) -> None:
    scores, labels = stream(3000)
    fading = Fading(OnlineThreshold(false_negative=3), half_life)
    for n, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True), 1):
        fading.update(score, label)
        if n % 50 and n > 20:
            continue
        weights = 2.0 ** ((np.arange(n) - (n - 1)) / half_life)
        distinct, losses = exact_curve(scores[:n], labels[:n], weights, 3)
        margin = 3 * len(distinct) * 2.0**-29
        fading.model._check()

        assert loss_at(fading.threshold, distinct, losses) <= losses.min() + margin
        assert math.isclose(losses.min(), fading.loss, abs_tol=margin)


def weights_held(fading: Fading) -> np.ndarray:
    """What each sample counts, lowest score first, when all labels are 1."""
    return np.diff(fading.curve().losses)


@pytest.mark.parametrize("half_life", [3, 7.3, 1000])
@pytest.mark.parametrize("before", [10**9, 10**15])
def test_the_accuracy_promised_holds_after_any_number_of_samples(half_life, before: int) -> None:
    fading = Fading.from_snapshot(
        {**Fading(OnlineThreshold(), half_life).snapshot(), "count": before}
    )
    for k in range(60):
        fading.update(k, 1)
    expected = 2.0 ** ((np.arange(60) - 59) / half_life)

    assert np.abs(expected - weights_held(fading)).max() <= 2.0**-30


@pytest.mark.parametrize(
    ("half_life", "start", "step"),
    [
        (timedelta(milliseconds=3), datetime(1, 1, 1), timedelta(milliseconds=1)),
        (3, 0, 1),
        (0.75, 0.5, 0.25),
    ],
)
def test_the_accuracy_promised_holds_after_any_time(half_life, start, step) -> None:
    fading = Fading(OnlineThreshold(), half_life, by="time")
    fading.advance(start)
    for k in range(60):
        fading.update(k, 1, time=start + (2 * 10**13 + k) * step)
    expected = 2.0 ** ((np.arange(60) - 59) / 3)

    assert np.abs(expected - weights_held(fading)).max() <= 2.0**-30


def test_what_answers_cost_is_as_accurate_after_a_billion_samples() -> None:
    empty = Ledger(Fading(OnlineThreshold(), 3)).snapshot()
    ledger = Ledger.from_snapshot({**empty, "count": 10**9})
    for k in range(30):
        ledger.score(k, 0.5, answer=0)
        ledger.label(k, 1)
    expected = float((2.0 ** ((np.arange(30) - 29) / 3)).sum())

    assert math.isclose(expected, ledger.cost, rel_tol=1e-14)


@pytest.mark.parametrize("half_life", [1e-5, 1])
@pytest.mark.parametrize("far", [1e308, 2**62])
@pytest.mark.parametrize(
    "act",
    [
        lambda fading, far: fading.advance(far),
        lambda fading, far: fading.update(0.5, 1, time=far),
        lambda fading, far: fading.update(0.5, 1, 0, time=far),
    ],
)
def test_a_time_too_far_away_is_told_and_changes_nothing(half_life, far, act) -> None:
    fading = Fading(OnlineThreshold(), half_life, by="time")
    fading.update(0.5, 1, time=0)
    before = fading.to_bytes()
    with pytest.raises(ValueError, match=r"time is .* half_life=.* Nothing was changed"):
        act(fading, far)

    assert (before, 0) == (fading.to_bytes(), fading.newest)
    assert not fading.update(0.5, 1, time=-far)
    ledger = Ledger(Fading(OnlineThreshold(), half_life, by="time"))
    ledger.score("a", 0.5, 0)
    with pytest.raises(ValueError, match="Nothing was changed"):
        ledger.advance(far)
    assert 0 == ledger.newest


def test_memory_is_bounded_by_the_half_life_and_not_by_the_stream() -> None:
    fading = Fading(OnlineThreshold(), half_life=10)
    random = np.random.default_rng(1)
    most = 0
    for score in random.random(5000).tolist():
        fading.update(score, score > 0.5)
        most = max(most, len(fading))

    assert 300 <= most <= 420
    assert most > len(fading.model) - 1


def test_a_threshold_follows_a_world_that_turned() -> None:
    fading, lasting = Fading(OnlineThreshold(), half_life=50), OnlineThreshold()
    for turned in (False, True):
        for k in range(1000):
            score = (k * 37 % 1000) / 1000
            label = score >= (0.3 if turned else 0.7)
            fading.update(score, label)
            lasting.update(score, label)

    assert math.isclose(0.3, fading.threshold, abs_tol=0.05)
    assert not math.isclose(0.3, lasting.threshold, abs_tol=0.05)


events = st.lists(
    st.tuples(
        st.integers(0, 5).map(lambda k: k / 4),
        st.booleans(),
        st.sampled_from([1, 2, 0.5]),
        st.integers(0, 300),
    ),
    min_size=1,
    max_size=25,
)


@given(events=events, late=st.integers(0, 200))
def test_events_count_by_their_own_time_in_any_order(events, late) -> None:
    fading = Fading(OnlineCalibrator(), half_life=10, by="time")
    newest, held = -math.inf, []
    for score, label, weight, time in events:
        newest = max(newest, time)
        if fading.update(score, label, weight, time=time):
            held.append((score, label, weight, time))
        else:
            assert weight * 2 ** ((time - newest) / 10) < 2.0**-29
    fading.advance(newest + late)
    columns = np.array(held, dtype=float).T
    weights = columns[2] * 2.0 ** ((columns[3] - newest - late) / 10)
    distinct, losses = exact_curve(columns[0], columns[1], weights)
    margin = len(events) * 2.0**-29

    assert newest + late == fading.newest
    assert loss_at(fading.threshold(), distinct, losses) <= losses.min() + margin
    assert math.isclose(losses.min(), fading.optimum().loss, abs_tol=margin)
    tp, fp, _, _ = fading.confusion(0.5)
    above = columns[0] >= 0.5
    assert math.isclose((weights * columns[1])[above].sum(), tp, abs_tol=margin)
    assert math.isclose((weights * (1 - columns[1]))[above].sum(), fp, abs_tol=margin)


def test_datetimes_and_their_half_life() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    fading = Fading(OnlineThreshold(), timedelta(days=7))
    fading.update(0.5, 1, time=start)
    fading.update(0.5, 0, time=start)
    fading.advance(start + timedelta(days=14))

    assert 0.25 == fading.loss
    with pytest.raises(TypeError, match="with a time zone"):
        fading.update(0.5, 1, time=datetime(2026, 2, 1))


def test_sums_of_the_calibrator_are_in_terms_of_the_newest_sample() -> None:
    fading = Fading(OnlineCalibrator(), half_life=1)
    for score, label in [(0.2, 0), (0.6, 1), (0.4, 1), (0.8, 1)]:
        fading.update(score, label)

    assert (1.75, 0.0, 0.0, 0.125) == fading.confusion(0.3)
    assert 1.75 == fading.roc_hull().tp[0]
    assert [0.125, 1.75] == fading.blocks().weight.tolist()
    assert (1.0, 1.75) == (fading.best("f1").value, fading.best("f1").confusion.tp)
    assert 1.75 == fading.best(metrics.cost(), max_positive_rate=0).value
    assert 1.75 == fading.best(lambda tp, fp, fn, tn: tp).value
    with pytest.raises(limen.Infeasible) as caught:
        fading.best("f1", min_recall=1, max_positive_rate=0.5)
    assert 1.25 == caught.value.nearest.confusion.tp
    assert 0.125 == fading.curve().losses[0]


def test_losses_fade_too() -> None:
    fading = Fading(OnlineCut(), half_life=1)
    fading.update(0.2, -1, 4)
    fading.update(0.6, 2, 0)

    assert (0.4, -0.5) == (fading.threshold, fading.loss)


def test_an_error_changes_nothing() -> None:
    fading = Fading(OnlineThreshold(), half_life=2)
    fading.update_many([0.2, 0.7], [0, 1])
    before = fading.to_bytes()
    for call in (
        lambda: fading.update(math.nan, 1),
        lambda: fading.update(0.5, 2),
        lambda: fading.update(0.5),
        lambda: fading.update(),
        lambda: fading.update("a", 1),
        lambda: fading.update(0.5, 1, -1),
        lambda: fading.update(0.5, 1, "much"),
        lambda: fading.update(0.5, 1, time=3),
        lambda: fading.update(0.5, 1, 2**61),
        lambda: fading.update_many([0.1, 0.2], [0, 3]),
        lambda: fading.update_many([0.1, 0.2], [0, 1], times=[1, 2]),
        lambda: fading.advance(None),
    ):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            call()

        assert before == fading.to_bytes()


def test_an_error_when_everything_is_due_to_be_divided_changes_nothing() -> None:
    fading = Fading(OnlineThreshold(), half_life=1, by="time")
    fading.update(0.5, 1, time=0)
    before = fading.to_bytes()
    with pytest.raises(ValueError, match="nan"):
        fading.update(math.nan, 1, time=25)

    assert before == fading.to_bytes()
    assert fading.update(0.25, 0, time=25)
    assert (0.375, 0.0) == (fading.threshold, fading.loss)


def test_large_weights_make_room_for_themselves() -> None:
    fading = Fading(OnlineThreshold(), half_life=1e6)
    for k in range(60):
        fading.update(k / 64, k % 2, 2**36)
    fading.model._check()
    _, losses = exact_curve(
        np.arange(60) / 64,
        np.arange(60) % 2,
        2.0**36 * 2.0 ** ((np.arange(60) - 59) / 1e6),
    )

    assert math.isclose(losses.min(), fading.loss, rel_tol=1e-9)


def test_a_sample_without_weight_ages_nothing() -> None:
    fading = Fading(OnlineThreshold(), half_life=1)
    fading.update(0.5, 1)
    before = fading.to_bytes()

    assert fading.update(0.7, 1, 0)
    assert before == fading.to_bytes()


def test_a_long_pause_forgets_everything() -> None:
    fading = Fading(OnlineThreshold(), half_life=1, by="time")
    fading.update(0.5, 1, time=0)
    fading.update(0.6, 0, time=10**9)

    assert (1, math.inf) == (len(fading), fading.threshold)
    fading.advance(10**12)
    assert 0 == len(fading)


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda fading: fading.copy(),
        lambda fading: pickle.loads(pickle.dumps(fading)),
        lambda fading: Fading.from_bytes(fading.to_bytes()),
    ],
)
@pytest.mark.parametrize("model", [OnlineThreshold, OnlineCalibrator])
def test_a_copy_goes_on_alike_and_its_own_way(again, model) -> None:
    scores, labels = stream(200)
    fading = Fading(model(), half_life=3)
    fading.update_many(scores[:100], labels[:100])
    other = again(fading)
    before = other.to_bytes()
    for score, label in zip(scores[100:].tolist(), labels[100:].tolist(), strict=True):
        fading.update(score, label)

    assert before == other.to_bytes()
    other.update_many(scores[100:], labels[100:])
    assert fading.to_bytes() == other.to_bytes()


@pytest.mark.parametrize(
    ("half_life", "by"), [(0, None), (-1, None), (timedelta(0), None), (5, "weeks"), ("5", None)]
)
def test_half_lives_that_make_no_sense_are_refused(half_life, by) -> None:
    with pytest.raises((ValueError, TypeError), match=r"half_life|by must"):
        Fading(OnlineThreshold(), half_life, by=by)
    with pytest.raises(ValueError, match="by must"):
        Fading(OnlineThreshold(), timedelta(1), by="samples")


# ---- under a ledger ----


def faded_cost(entries: list[dict[str, Any]], now: float, half_life: float) -> float:
    return sum(
        (entry["answer"] != entry["label"]) * 2.0 ** ((entry["at"] - now) / half_life)
        for entry in entries
    )


@settings(max_examples=60)
@given(data=st.data(), by=st.sampled_from(["samples", "time"]))
def test_a_ledger_joins_corrects_and_forgets_what_fades(data, by) -> None:
    half_life = 5
    ledger = Ledger(Fading(OnlineThreshold(), half_life, by=by))
    known: dict[int, dict[str, Any]] = {}
    entered = clock = 0
    for id in range(data.draw(st.integers(1, 25))):
        clock += data.draw(st.integers(0, 4))
        score = data.draw(st.integers(0, 4)) / 4
        answer = ledger.score(id, score, time=clock)
        label = int(data.draw(st.booleans()))
        ledger.label(id, label)
        at = entered if by == "samples" else clock
        known[id] = {"score": score, "label": label, "answer": answer, "at": at}
        entered += 1
        other = data.draw(st.integers(0, id))
        act = data.draw(st.sampled_from(["nothing", "correct", "forget"]))
        if act == "correct" and other in known:
            known[other]["label"] ^= 1
            ledger.label(other, known[other]["label"])
        elif act == "forget":
            known.pop(other, None)
            ledger.forget(other)
        if data.draw(st.integers(0, 9)) == 0:
            ledger = pickle.loads(pickle.dumps(ledger))
        if data.draw(st.integers(0, 9)) == 0:
            ledger = Ledger.from_bytes(ledger.to_bytes())
    now = entered - 1 if by == "samples" else clock
    entries = list(known.values())
    columns = np.array([[e["score"], e["label"], e["at"]] for e in entries], float).reshape(-1, 3).T
    distinct, losses = exact_curve(columns[0], columns[1], 2.0 ** ((columns[2] - now) / half_life))
    margin = 40 * 2.0**-29
    ledger.model.model._check()

    assert loss_at(ledger.threshold, distinct, losses) <= losses.min() + margin
    assert math.isclose(losses.min(), ledger.loss, abs_tol=margin)
    cost = faded_cost(entries, now, half_life)
    assert math.isclose(cost, ledger.cost, abs_tol=1e-9)
    assert math.isclose(cost - losses.min(), ledger.regret, abs_tol=margin)


class DividedMeanwhile:
    """A model to which another thread comes between its answer and the scale of its sums."""

    meanwhile: Any = None

    def _answered(self, found: Any) -> Any:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


class DividedThreshold(DividedMeanwhile, OnlineThreshold):
    @property
    def loss(self) -> float:
        return self._answered(super().loss)

    @property
    def optimum(self) -> Any:
        return self._answered(super().optimum)

    def curve(self) -> Any:
        return self._answered(super().curve())


class DividedCalibrator(DividedMeanwhile, OnlineCalibrator):
    def optimum(self, **costs: Any) -> Any:
        return self._answered(super().optimum(**costs))

    def confusion(self, threshold: float) -> Any:
        return self._answered(super().confusion(threshold))

    def roc_hull(self) -> Any:
        return self._answered(super().roc_hull())

    def blocks(self) -> Any:
        return self._answered(super().blocks())

    def best(self, metric: Any, **demands: Any) -> Any:
        return self._answered(super().best(metric, **demands))

    def _probability_interval(self, *given: Any) -> Any:
        return self._answered(super()._probability_interval(*given))


@pytest.mark.parametrize(
    ("model", "read"),
    [
        (DividedThreshold, lambda f: f.loss),
        (DividedThreshold, lambda f: f.optimum.loss),
        (DividedThreshold, lambda f: f.curve().losses.tolist()),
        (DividedCalibrator, lambda f: f.optimum(false_negative=5).loss),
        (DividedCalibrator, lambda f: tuple(f.confusion(0.5))),
        (DividedCalibrator, lambda f: f.roc_hull().fn.tolist()),
        (DividedCalibrator, lambda f: f.blocks().weight.tolist()),
        (DividedCalibrator, lambda f: tuple(f.best("f1").confusion)),
        (DividedCalibrator, lambda f: f.best(lambda tp, fp, fn, tn: tp - fp).value),
        (DividedCalibrator, lambda f: f.probability_interval(0.5)),
    ],
)
def test_a_sum_is_right_while_another_thread_lets_all_be_divided(model: Any, read: Any) -> None:
    fading = Fading(model(), 8, by="time")
    for time in range(60):
        fading.update(time % 7 / 8, time * 3 % 5 < 2, time=time)
    later = fading.copy()
    later.advance(100)
    fading.model.meanwhile = lambda: fading.advance(100)

    found = read(fading)

    assert fading._base() > 0  # all was divided meanwhile
    assert found == pytest.approx(read(later), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("later", [62, 64, 80, 100, 1_000, 10**6])
def test_a_large_weight_fades_however_long_that_takes(later):
    fading = Fading(OnlineThreshold(), 1, by="time")
    fading.update(0.1, 0, 2**60, time=0)
    fading.advance(later)

    due = 2.0 ** max(60 - later, -1_000)
    held = fading.curve().losses[0] if len(fading) else 0
    assert abs(held - due) <= 2**-30 + due * 2**-20


def test_what_counts_nothing_beside_a_large_weight_is_not_held():
    for make in (OnlineThreshold, OnlineCalibrator):
        fading = Fading(make(), 2, by="time")
        fading.update(0.5, 1, 2**55, time=0)
        fading.update(0.25, 0, 1, time=-1)

        assert fading.to_bytes() == fading.copy().to_bytes()
        fading.model._check()
