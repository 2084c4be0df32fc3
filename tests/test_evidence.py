# SPDX-License-Identifier: Apache-2.0
"""Evidence for a change of threshold: what it counts, and what it is worth."""

from __future__ import annotations

import copy
import math
import pickle
import signal
from datetime import timedelta
from fractions import Fraction
from itertools import count
from threading import Thread
from typing import Any

import numpy as np
import pytest
import streams
from hypothesis import given
from hypothesis import strategies as st
from interrupts import at_random_moments, require_whole, visited

import limen
from limen import Evidence


def filled(wins: int, losses: int, **given: Any) -> Evidence:
    evidence = Evidence(0.5, 0.4, **given)
    evidence.update_many([0.45] * (wins + losses), [1] * wins + [0] * losses)
    return evidence


@pytest.mark.parametrize(
    ("wins", "losses", "costs", "log"),
    [
        (30, 10, (1, 1), 4.132008),
        (12, 100, (1, 20), 1.985855),
        (400, 5, (20, 1), 6.908233),
        (0, 0, (1, 1), 0.0),
    ],
)
def test_the_evidence_has_the_known_value(wins: int, losses: int, costs: Any, log: float) -> None:
    evidence = filled(wins, losses, false_positive=costs[0], false_negative=costs[1])

    assert log == pytest.approx(evidence.log_value, abs=1e-6)
    assert evidence.value == pytest.approx(math.exp(log), rel=1e-5)
    assert evidence.decided == (log >= math.log(20))


@pytest.mark.parametrize("costs", [(1, 1), (1, 20), (20, 1), (Fraction(1, 3), 0.7)])
@pytest.mark.parametrize("candidate", [0.4, 0.6])
def test_one_sample_is_a_fair_bet_at_no_difference(costs: Any, candidate: float) -> None:
    """The mean over both labels, each as likely as makes either answer cost the same, is 1."""
    positive, negative = map(Fraction, map(str, costs))
    share = float(positive / (positive + negative))
    values = []
    for label in (0, 1):
        evidence = Evidence(0.5, candidate, false_positive=costs[0], false_negative=costs[1])
        evidence.update((0.5 + candidate) / 2, label)
        values.append(evidence.value)

    assert 1 == pytest.approx((1 - share) * values[0] + share * values[1])


def test_only_samples_between_the_two_thresholds_count() -> None:
    for current, candidate in [(0.5, 0.4), (0.4, 0.5)]:
        evidence = Evidence(current, candidate)
        for score in (-math.inf, 0.39, 0.5, 0.7, math.inf):
            for label in (0, 1, None):
                evidence.update(score, label)
        assert (0, 0, 0, 1.0) == (evidence.wins, evidence.losses, evidence.missing, evidence.value)
        evidence.update(0.4, 1)
        assert (1, 0) == ((evidence.wins, evidence.losses)[:: 1 if candidate < current else -1])


def test_infinite_thresholds_and_nan_are_thresholds() -> None:
    never = Evidence(math.nan, 0.5)
    never.update(math.inf, 1)
    always = Evidence(0.5, -math.inf)
    always.update(-math.inf, 0)
    silent = Evidence(0.5, math.nan)
    silent.update(math.inf, 0)

    assert (1, 1, 1) == (never.wins, always.losses, silent.wins)
    for pair in [(0.5, 0.5), (math.nan, math.nan), (0.0, -0.0)]:
        with pytest.raises(ValueError, match="nothing to compare"):
            Evidence(*pair)


def test_a_sample_without_a_label_is_counted_as_missing() -> None:
    evidence = Evidence(0.5, 0.4, age=timedelta(days=30))
    evidence.update(0.45, None)
    evidence.update(0.45, math.nan)
    evidence.update_many([0.45, 0.45, 0.45, 0.9], [1, None, 0, None])
    evidence.update_many(np.array([0.41, 0.42]), np.array([np.nan, 1.0]))

    assert (2, 1, 4) == (evidence.wins, evidence.losses, evidence.missing)
    assert "4 missing" in repr(evidence)
    assert "age=datetime.timedelta(days=30)" in repr(evidence)
    evidence.revert(0.45, None)
    evidence.update(0.45, 1)
    assert (3, 1, 3) == (evidence.wins, evidence.losses, evidence.missing)


def library(name: str) -> Any:
    return pytest.importorskip(name)


GIVEN, AS_FLOATS = [1, None, 0], [1.0, math.nan, 0.0]
COLUMNS: dict[str, Any] = {  # a label 1, one that has not come and a label 0, of every kind
    "list": lambda: GIVEN,
    "list with NA": lambda: [1, library("pandas").NA, 0],
    "numpy column": lambda: np.array(AS_FLOATS).reshape(-1, 1),
    "numpy column of objects": lambda: np.array(GIVEN, object).reshape(-1, 1),
    "numpy without a masked value": lambda: np.ma.masked_array(AS_FLOATS, [False] * 3),
    "pandas float": lambda: library("pandas").Series(AS_FLOATS, index=[7, 8, 9]),
    "pandas object": lambda: library("pandas").Series(GIVEN, dtype=object),
    "pandas Int64": lambda: library("pandas").Series(GIVEN, dtype="Int64"),
    "pandas boolean": lambda: library("pandas").Series([True, None, False], dtype="boolean"),
    "pandas frame": lambda: library("pandas").DataFrame({"label": AS_FLOATS}),
    "polars whole": lambda: library("polars").Series(GIVEN),
    "polars float": lambda: library("polars").Series(AS_FLOATS),
    "polars boolean": lambda: library("polars").Series([True, None, False]),
    "Arrow whole": lambda: library("pyarrow").array(GIVEN),
    "Arrow boolean": lambda: library("pyarrow").chunked_array([[True, None], [False]]),
    "Arrow nan": lambda: library("pyarrow").array(AS_FLOATS),
    "DuckDB": lambda: library("duckdb").sql("SELECT unnest([1, NULL, 0]) AS label"),
    "DuckDB nan": lambda: library("duckdb").sql("SELECT unnest([1::DOUBLE, 'nan', 0]) AS label"),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_label_that_has_not_come_may_be_missing_in_any_column(kind: str) -> None:
    evidence, alarm = Evidence(0.5, 0.4), limen.Alarm(0.45, min_precision=0.9)
    scores = [0.45, 0.45, 0.45]
    evidence.update_many(scores, COLUMNS[kind]())
    alarm.update_many(scores, COLUMNS[kind]())

    assert (1, 1, 1) == (evidence.wins, evidence.losses, evidence.missing)
    assert (1, 1, 1) == (alarm.confusion.tp, alarm.confusion.fp, alarm.missing)
    evidence.revert_many(scores, COLUMNS[kind]())
    assert (0, 0, 0) == (evidence.wins, evidence.losses, evidence.missing)


@pytest.mark.parametrize("dtype", [int, float, object])
def test_masked_labels_are_refused(dtype: Any) -> None:
    labels = np.ma.masked_array(np.array([1, 1, 0], dtype), mask=[False, True, False])
    for model in (Evidence(0.5, 0.4), limen.Alarm(0.45, min_precision=0.9)):
        with pytest.raises(ValueError, match=r"labels\[1\] is masked"):
            model.update_many([0.45] * 3, labels)
        assert (0, 0) == (len(model), model.missing)


def test_the_worst_value_takes_missing_labels_for_losses() -> None:
    evidence, lost = filled(30, 10), filled(30, 15)
    assert evidence.value == evidence.worst_value
    for _ in range(5):
        evidence.update(0.45, None)

    assert lost.value == evidence.worst_value < evidence.value


samples = st.lists(
    st.tuples(
        st.sampled_from([0.3, 0.4, 0.45, 0.5, 0.6]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0, 1, 0.5, 2, 2.5]),
    ),
    max_size=20,
)


def state(evidence: Evidence) -> bytes:
    return evidence.to_bytes()


@given(samples, samples, st.randoms())
def test_any_order_one_by_one_many_and_merged_leave_the_same_bytes(
    some: list[Any], more: list[Any], random: Any
) -> None:
    def empty() -> Evidence:
        return Evidence(0.5, 0.4, false_negative=3, largest_loss=2.5)

    one, many, left, right = empty(), empty(), empty(), empty()
    for sample in some + more:
        one.update(*sample)
    mixed = some + more
    random.shuffle(mixed)
    if mixed:
        many.update_many(*map(list, zip(*mixed, strict=True)))
    for sample in some:
        left.update(*sample)
    for sample in more:
        right.update(*sample)
    left.merge(right)

    assert state(one) == state(many) == state(left)
    assert one.log_value == many.log_value == left.log_value
    for sample in more:
        one.revert(*sample)
    if more:
        many.revert_many(*map(list, zip(*more, strict=True)))
    fresh = empty()
    for sample in some:
        fresh.update(*sample)
    assert state(fresh) == state(one) == state(many)
    assert fresh.log_value == one.log_value


def test_weights_bet_in_proportion() -> None:
    """A weight of half the bound stakes half as much; a bound of one sample is no weights."""
    plain = filled(9, 4, false_negative=3)
    same = Evidence(0.5, 0.4, false_negative=3, largest_loss=1)
    same.update_many([0.45] * 13, [1] * 9 + [0] * 4, [1] * 13)
    scaled = Evidence(0.5, 0.4, false_negative=3, largest_loss=7)
    scaled.update_many([0.45] * 13, [1] * 9 + [0] * 4, [7] * 13)
    light = Evidence(0.5, 0.4, false_negative=3, largest_loss=10)
    light.update_many([0.45] * 13, [1] * 9 + [0] * 4, [1] * 13)

    assert plain.log_value == same.log_value
    assert plain.log_value == pytest.approx(scaled.log_value)
    assert 0 < light.log_value < plain.log_value


@pytest.mark.parametrize("candidate", [0.4, 0.6])
def test_a_weighted_bet_is_fair(candidate: float) -> None:
    """Whatever the weights, a mean difference of cost of 0 leaves a mean value of 1."""
    weights, rng = [0.5, 1, 3, 10], np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(8)).reshape(2, 4)
    cost = chances @ np.array(weights) * np.array([2, 5])
    chances /= cost[:, None] / cost.mean()  # now both labels cost the same in the mean
    chances /= chances.sum()
    mean = 0.0
    for label in (0, 1):
        for weight, chance in zip(weights, chances[label], strict=True):
            evidence = Evidence(0.5, candidate, false_positive=2, false_negative=5, largest_loss=50)
            evidence.update((0.5 + candidate) / 2, label, weight)
            mean += chance * evidence.value

    assert 1 == pytest.approx(mean)


def test_a_loss_beyond_the_bound_leaves_no_evidence_until_it_is_reverted() -> None:
    evidence = Evidence(0.5, 0.4, largest_loss=3)
    evidence.update_many([0.45] * 50, [1] * 50, [3] * 50)
    before = evidence.log_value
    evidence.update(0.45, 0, 3.5)

    assert evidence.beyond == 1
    assert (0.0, -math.inf, False) == (evidence.value, evidence.log_value, evidence.decided)
    assert "1 beyond largest_loss" in repr(evidence)
    evidence.revert(0.45, 0, 3.5)
    assert before == evidence.log_value
    evidence.update(0.45, 1, 1000)  # a win may be as large as it likes
    assert evidence.beyond == 0


def test_weights_need_a_bound_fixed_before() -> None:
    evidence = Evidence(0.5, 0.4)
    with pytest.raises(ValueError, match="largest_loss"):
        evidence.update(0.45, 1, 2)
    with pytest.raises(ValueError, match="largest_loss"):
        evidence.update_many([0.45, 0.45], [1, 0], [1, 2])
    with pytest.raises(ValueError, match=r"weights\[1\] must be a number of at least 0, got -1"):
        evidence.update_many([0.45, 0.45], [1, 0], [1, -1])
    evidence.update_many([0.45, 0.45], [1, 0], [1.0, 0.0])

    assert (1, 0) == (evidence.wins, evidence.losses)


@pytest.mark.parametrize(
    ("sample", "error", "words"),
    [
        ((math.nan, 1), ValueError, "score is nan"),
        (("0.4", 1), TypeError, "score must be a number"),
        ((0.45, 2), ValueError, "label must be 0, 1 or None"),
        ((0.9, "1"), ValueError, "label must be 0, 1 or None"),
        ((0.45, 1, -1), ValueError, "weight must be a number of at least 0, got -1"),
        ((0.45, 1, math.inf), ValueError, "weight must be"),
        ((0.45, 1, math.nan), ValueError, "weight must be"),
        ((0.45, 1, "x"), ValueError, "weight must be"),
    ],
)
def test_what_is_no_sample_is_refused(sample: Any, error: Any, words: str) -> None:
    evidence = Evidence(0.5, 0.4, largest_loss=2)
    stored = state(evidence)
    for change in (evidence.update, evidence.revert):
        with pytest.raises(error, match=words):
            change(*sample)

    assert stored == state(evidence)


def test_a_sample_that_is_not_held_cannot_be_taken_back() -> None:
    evidence = filled(2, 1)
    with pytest.raises(limen.NotHeld, match="Nothing was changed"):
        evidence.revert(0.45, None)
    with pytest.raises(limen.NotHeld, match="Nothing was changed"):
        evidence.revert_many([0.45] * 4, [1, 0, 0, 1])

    assert (2, 1, 0) == (evidence.wins, evidence.losses, evidence.missing)


@pytest.mark.parametrize(
    ("other", "error", "words"),
    [
        (Evidence(0.5, 0.3), ValueError, "candidate is 0.4 here and 0.3 there"),
        (Evidence(0.5, 0.4, false_negative=2), ValueError, "false_negative is 1 here and 2"),
        (Evidence(0.5, 0.4, age=7), ValueError, "age is 30 here and 7 there"),
        ("0.4", TypeError, "cannot merge str"),
    ],
)
def test_only_evidence_about_the_same_is_merged(other: Any, error: Any, words: str) -> None:
    evidence = filled(2, 1, age=30)
    with pytest.raises(error, match=words):
        evidence.merge(other)
    with pytest.raises(ValueError, match="same object twice"):
        evidence.merge(evidence)

    assert 3 == len(evidence)


def test_bytes_files_pickles_and_copies_bring_back_the_same(tmp_path: Any) -> None:
    evidence = Evidence(0.5, math.nan, age=timedelta(hours=9), largest_loss=Fraction(7, 2))
    evidence.update_many([0.6, 0.7, 0.8, 0.9], [1, 0, None, 0], [0.25, 2, 1, 2])
    evidence.save(tmp_path / "evidence.limen")
    others = [
        limen.from_bytes(evidence.to_bytes()),
        limen.load(tmp_path / "evidence.limen"),
        pickle.loads(pickle.dumps(evidence)),
        copy.deepcopy(evidence),
        evidence.copy(),
    ]

    for other in others:
        assert repr(evidence) == repr(other)
        assert state(evidence) == state(other)
        other.update(0.6, 1)
    assert "1 wins" not in repr(others[0])
    assert 1 == evidence.losses


def test_a_subclass_comes_back_as_itself() -> None:
    class Named(Evidence):
        def __init__(self) -> None:
            super().__init__(0.5, 0.4)

    assert Named is type(Named().copy())
    assert Named is type(Named.from_bytes(Named().to_bytes()))


def test_made_up_bytes_are_refused() -> None:
    class Wrong(Evidence):
        def snapshot(self) -> dict[str, Any]:
            parts = super().snapshot()
            parts["wins"] = (np.array([1]), np.array([-3]))
            return parts

    with pytest.raises(ValueError, match="wins holds -3 samples of weight 1"):
        limen.from_bytes(Wrong(0.5, 0.4).to_bytes())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Evidence(0.0, 0.4), Evidence(-0.0, 0.4)),
        (Evidence(0.5, -0.0), Evidence(0.5, 0)),
        (Evidence(0.5, math.nan), Evidence(0.5, math.nan)),
        (Evidence(0.5, 0.4, age=30), Evidence(0.5, 0.4, age=30.0)),
        (Evidence(0.5, 0.4, confidence=0), Evidence(0.5, 0.4, confidence=0.0)),
        (limen.Alarm(0.0, min_recall=0.9, age=30), limen.Alarm(-0.0, min_recall=0.9, age=30.0)),
    ],
)
def test_equal_terms_are_the_same_however_they_are_written(one: Any, other: Any) -> None:
    scores = [0.2, 0.45, 0.7]
    one.update_many(scores, [1, 1, 1])
    other.update_many(scores, [1, 1, 1])
    held = len(one)
    one.merge(other)

    assert 2 * held == len(one) > 0


@pytest.mark.parametrize("wrong", ["0.4", None, [0.4]])
def test_a_threshold_is_a_number(wrong: Any) -> None:
    with pytest.raises(TypeError, match="candidate must be a threshold"):
        Evidence(0.5, wrong)
    with pytest.raises(TypeError, match="current must be a threshold"):
        Evidence(wrong, 0.5)


@pytest.mark.parametrize("confidence", [1, -0.1, "0.95", math.nan])
def test_no_confidence_but_a_share_below_1(confidence: Any) -> None:
    with pytest.raises(ValueError, match="confidence must be"):
        Evidence(0.5, 0.4, confidence=confidence)


def test_the_confidence_asked_for_decides() -> None:
    sure, surer = filled(30, 10), filled(30, 10, confidence=0.99)

    assert sure.decided
    assert not surer.decided


def test_much_evidence_is_infinite_and_its_logarithm_is_not() -> None:
    evidence = filled(100_000, 10)

    assert math.inf == evidence.value
    assert math.isfinite(evidence.log_value)
    assert evidence.decided


def test_threads_lose_no_sample() -> None:
    evidence = Evidence(0.5, 0.4)

    def work() -> None:
        for _ in range(2_000):
            evidence.update(0.45, 1)
            evidence.log_value  # noqa: B018

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8_000 == evidence.wins
    assert filled(8_000, 0).log_value == evidence.log_value


def begun() -> Evidence:
    evidence = Evidence(0.5, 0.4, largest_loss=3)
    evidence.update_many([0.45] * 6, [1, 0, 0, None, 1, 0], [1, 1, 2, 1, 2, 0.5])
    return evidence


CHANGES = {
    "update": lambda evidence: evidence.update(0.45, 1),
    "update with a new weight": lambda evidence: evidence.update(0.45, 0, 3),
    "revert": lambda evidence: evidence.revert(0.45, 0, 2),
    "update_many": lambda evidence: evidence.update_many([0.45] * 3, [1, 0, None], [1, 3, 1]),
    "revert_many": lambda evidence: evidence.revert_many([0.45] * 3, [1, 0, None], [1, 2, 1]),
    "merge": lambda evidence: evidence.merge(begun(), begun()),
}
READS = {"log_value": lambda evidence: evidence.log_value, "to_bytes": state}


@pytest.mark.parametrize("name", CHANGES)
def test_an_interrupt_leaves_all_of_a_change_or_nothing(name: str) -> None:
    def look(evidence: Evidence) -> Any:
        seen = state(evidence), evidence.log_value
        evidence.update(0.45, 1)  # it goes on
        return *seen, evidence.log_value, state(evidence)

    step = 5 if name == "merge" and streams.EFFORT == 1 else 1
    require_whole(begun, CHANGES[name], look, step)


@pytest.mark.parametrize("name", [*CHANGES, *READS])
@pytest.mark.parametrize("handled", CHANGES)
def test_a_signal_handler_may_change_the_same_evidence_at_any_place(
    name: str, handled: str
) -> None:
    """A finaliser is the same: Python code that runs in the middle of another call."""
    act, handler = (CHANGES | READS)[name], CHANGES[handled]

    def twice() -> Evidence:
        evidence = begun()
        evidence.merge(begun())
        return evidence

    def run(evidence: Evidence, place: int) -> None:
        where.append(visited(lambda: act(evidence), place, lambda: handler(evidence)))

    both, where = twice(), ["at the beginning"]
    act(both)
    handler(both)
    # A merge has 2,000 places. Each pair begins at another one, so that each has its turn.
    step = 1 if streams.EFFORT > 1 else 17 if "merge" in (name, handled) else 5
    first = 1 + (7 * list(CHANGES).index(handled) + len(name)) % step
    for place in count(first, step):
        evidence = twice()
        running = Thread(target=run, args=(evidence, place), daemon=True)
        running.start()
        running.join(streams.PATIENCE)
        assert not running.is_alive(), "it waits for itself"
        if where[-1] is None:
            return
        assert state(both) == state(evidence), where[-1]
        assert both.log_value == evidence.log_value, where[-1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_real_signals_lose_no_sample() -> None:
    evidence, handled, told = Evidence(0.5, 0.4), [], 0

    def handler() -> None:
        evidence.update(0.45, 0)
        handled.append(evidence.value)

    with at_random_moments(handler):
        while len(handled) < 200:
            evidence.update(0.45, 1)
            evidence.update_many([0.45] * 10, [1] * 10)
            told += 11

    assert (told, len(handled)) == (evidence.wins, evidence.losses)


def test_a_finaliser_may_use_the_same_evidence() -> None:
    evidence = Evidence(0.5, 0.4)

    class Score(float):
        def __del__(self) -> None:
            evidence.update(0.45, 0)

    for _ in range(100):
        evidence.update(Score(0.45), 1)

    assert (100, 100) == (evidence.wins, evidence.losses)


def test_threads_that_change_many_at_once_lose_no_sample() -> None:
    evidence = Evidence(0.5, 0.4)

    def work() -> None:
        for _ in range(300):
            evidence.update_many([0.45] * 3, [1, 1, 0])
            evidence.update(0.45, 0)
            evidence.revert_many([0.45], [1])

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (1_200, 2_400) == (evidence.wins, evidence.losses)
