# SPDX-License-Identifier: Apache-2.0
"""Groups along a stream against slow oracles: as bytes, in windows, merged, stored, interrupted."""

from __future__ import annotations

import itertools
import math
import random
import signal
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import interrupted, require_whole
from streams import EFFORT

import limen
from limen import (
    Fading,
    Grouped,
    LastN,
    LastPeriod,
    NotHeld,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
)
from limen.groups import few

PATHS = ["a", "b", ("a", "x"), ("a", "y"), ("c", "x"), ("c", "x", 1), (("a", "x"),)]
SCORES = [-math.inf, -0.0, 0.0, 0.25, 0.5, 0.75, math.inf]


def path_of(group: Any) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


def by_path(rows: list[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of every group and larger group, by hand; a row begins with its group."""
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list, {(): []})
    for group, *row in rows:
        path = path_of(group)
        for depth in range(len(path) + 1):
            found[path[:depth]].append(tuple(row))
    return dict(found)


# Against models that are given the rows of their group, one by one.

MODELS: dict[str, Callable[[], Any]] = {
    "OnlineThreshold": OnlineThreshold,
    "costs": lambda: OnlineThreshold(false_positive=Fraction(1, 3), false_negative=5),
    "unit": lambda: OnlineThreshold(unit=0.5),
    "OnlineCalibrator": OnlineCalibrator,
    "OnlineCut": OnlineCut,
}


def asked(model: Any) -> Any:
    return model.optimum() if model.takes_costs else model.optimum


def require_equal(grouped: Grouped, rows: list[Any], make: Callable[[], Any]) -> None:
    expected = {path: part for path, part in by_path(rows).items() if part or path == ()}
    assert set(expected) == set(grouped)
    assert len(rows) == len(grouped)
    twin = grouped.copy()
    for path, part in expected.items():
        model = make()
        for row in part:
            model.update(*row)
        assert len(part) == grouped.count(path)
        assert repr(asked(model)) == repr(grouped.optimum(path))
        held = twin.model(path)
        held._check()
        assert model._state() == held._state()


samples = st.tuples(
    st.sampled_from(PATHS),
    st.sampled_from(SCORES),
    st.integers(0, 1),
    st.sampled_from([None, None, 1, 2, 0.5]),
)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("most", [2, few.MOST])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_group_equals_a_model_of_its_samples(kind: str, most: int, data: Any) -> None:
    make = MODELS[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "MOST", most)
        grouped = Grouped(make())
        rows: list[Any] = []
        for _ in range(data.draw(st.integers(1, 6))):
            step(grouped, rows, make, data)
        require_equal(grouped, rows, make)
        whole = Grouped(make())
        for group, *row in sorted(rows, key=repr):
            whole.update(group, *row)
        assert whole.to_bytes() == grouped.to_bytes()  # whatever came when, and how


def as_row(kind: Callable[[], Any], sample: tuple[Any, ...]) -> tuple[Any, ...]:
    group, score, label, weight = sample
    if kind is OnlineCut:
        return group, score, label * (weight or 1), (1 - label) * (weight or 1)
    return (group, score, label) if weight is None else (group, score, label, weight)


def step(grouped: Grouped, rows: list[Any], make: Any, data: Any) -> None:
    drawn = [as_row(make, each) for each in data.draw(st.lists(samples, min_size=1, max_size=8))]
    match data.draw(st.sampled_from(["one", "many", "back", "many back", "model", "merge"])):
        case "one":
            for row in drawn:
                grouped.update(*row)
            rows += drawn
        case "many":
            for length in {len(row) for row in drawn}:
                alike = [row for row in drawn if len(row) == length]
                grouped.update_many([row[0] for row in alike], *list(zip(*alike, strict=True))[1:])
            rows += drawn
        case "back":
            for _ in range(min(len(rows), 3)):
                grouped.revert(*rows.pop(data.draw(st.integers(0, len(rows) - 1))))
        case "many back":
            alike = [row for row in rows if rows and len(row) == len(rows[0])][:3]
            if alike:
                grouped.revert_many([row[0] for row in alike], *list(zip(*alike, strict=True))[1:])
            for row in alike:
                rows.remove(row)
        case "model":
            if len(grouped):
                grouped.model(data.draw(st.sampled_from(PATHS)))
        case "merge":
            other = Grouped(make())
            for row in drawn:
                other.update(*row)
            before = other.to_bytes()
            grouped.merge(other)
            rows += drawn
            assert before == other.to_bytes()


def test_a_group_that_grows_becomes_a_model_and_stays_exact() -> None:
    grouped, model = Grouped(OnlineThreshold()), OnlineThreshold()
    for at in range(3 * few.MOST):
        sample = at % 7 / 8, at % 2
        grouped.update("a", *sample)
        model.update(*sample)
        assert model.optimum == grouped.optimum("a")
    for at in range(3 * few.MOST):
        grouped.revert("a", at % 7 / 8, at % 2)

    assert ([()], 0) == (list(grouped), len(grouped))


def test_few_samples_are_taken_back_by_label() -> None:
    grouped, model = Grouped(OnlineThreshold()), OnlineThreshold()
    for sample in [(0.25, 0), (0.5, 1), (0.75, 0), (0.25, 1)]:
        grouped.update("a", *sample)
        model.update(*sample)
    for sample in [(0.25, 0), (0.25, 1)]:
        grouped.revert("a", *sample)
        model.revert(*sample)

    assert (2, model.optimum) == (grouped.count("a"), grouped.optimum("a"))
    assert model._state() == grouped.model("a")._state()


def test_a_value_and_the_path_of_it_are_one_group_of_a_batch() -> None:
    grouped = Grouped(OnlineThreshold())
    grouped.update_many(["a", ("a",), ("a",)], [0.1, 0.2, 0.3], [0, 1, 1])

    assert (3, [(), ("a",)]) == (grouped.count("a"), list(grouped))


def test_a_model_that_was_handed_out_goes_on_with_its_group() -> None:
    grouped = Grouped(OnlineThreshold())
    grouped.update("a", 0.5, 1)
    model = grouped.model("a")
    grouped.update("a", 0.25, 0)
    grouped.update_many(["a", "b"], [0.75, 0.5], [1, 0])

    assert (3, grouped.optimum("a")) == (len(model), model.optimum)
    assert model is grouped.model("a")


def test_the_row_of_an_error_is_that_of_the_call() -> None:
    grouped = Grouped(OnlineThreshold())
    with pytest.raises(ValueError, match=r"weights\[2\]"):
        grouped.update_many(["a", "b", "c"], [0.1, 0.2, 0.3], [0, 1, 0], [1, 1, -1])
    with pytest.raises(ValueError, match=r"scores\[1\]"):
        grouped.update_many(["a", "b"], [0.1, math.nan], [0, 1])

    assert [()] == list(grouped)


def test_what_a_group_does_not_hold_is_not_taken_from_all() -> None:
    grouped = Grouped(OnlineThreshold())
    for group in ["a"] * 40 + ["b"]:
        grouped.update(group, 0.5, 1)
    before = grouped.to_bytes()
    for change in (
        lambda: grouped.revert("c", 0.5, 1),
        lambda: grouped.revert("b", 0.5, 0),
        lambda: grouped.revert_many(["b", "b"], [0.5, 0.5], [1, 1]),
        lambda: grouped.revert(("a", "x"), 0.5, 1),
    ):
        with pytest.raises(NotHeld):
            change()

        assert before == grouped.to_bytes()


def with_ones_and_others() -> Grouped:
    """Groups of a hundred samples of one score, of weight 1 or more."""
    draw = random.Random(1)
    grouped = Grouped(OnlineThreshold())
    for path in [("a", "x"), ("a", "y"), ("b", "x")]:
        for _ in range(100):
            score = draw.randrange(64) / 64
            grouped.update(path, score, int(draw.random() < score))
    for _ in range(100):
        grouped.update(("b", "x"), 0.5, 0)
        grouped.update(("a", "y"), 0.5, 0)
    grouped.update(("a", "x"), 0.5, 1, 2)
    return grouped


# Where the sums are large enough, a model gives back a weight that it never was given.
REFUSED: dict[str, Callable[[Grouped], Any]] = {
    "one": lambda grouped: grouped.revert(("a", "x"), 0.5, 0, 90),
    "many": lambda grouped: grouped.revert_many([("a", "x")], [0.5], [0], [90]),
    "one of two": lambda grouped: grouped.revert_many(
        [("a", "y"), ("a", "x")], [0.5, 0.5], [0, 0], [90, 90]
    ),
    "a larger one": lambda grouped: grouped.revert_many(
        [("b", "x"), ("c",)], [0.5, 0.5], [0, 0], [90, 90]
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_taken_back_leaves_the_squares_of_all_groups(call: str) -> None:
    grouped = with_ones_and_others()
    before, interval = grouped.to_bytes(), grouped.interval(())
    with pytest.raises(NotHeld):
        REFUSED[call](grouped)
    assert grouped.to_bytes() == before
    assert grouped.interval(()) == interval
    grouped.revert_many([("b", "x"), ("a", "y")], [0.5, 0.5], [0, 0], [90, 90])  # by the sums
    assert grouped.to_bytes() != before


def test_a_model_of_your_own_is_asked_for_the_smallest_group_first() -> None:
    class Own(OnlineThreshold):
        pass

    grouped = Grouped(Own())
    grouped.update_many(["a"] + ["b"] * 100, [0.5] * 101, [0] * 101)
    before = grouped.model(())._state()
    with pytest.raises(NotHeld):
        grouped.revert("a", 0.5, 0, 90)
    assert grouped.model(())._state() == before


@pytest.mark.parametrize("make", [OnlineThreshold, OnlineCalibrator])
def test_a_group_of_three_samples_takes_less_than_200_bytes(make: Any) -> None:
    groups = 5_000
    rng = np.random.default_rng(0)
    columns = [(rng.random(groups), rng.integers(0, 2, groups)) for _ in range(3)]
    grouped = Grouped(make())
    grouped.update_many(
        ["user 0000000"], np.array([0.5]), np.array([1])
    )  # NumPy loads a part of itself
    grouped.revert_many(["user 0000000"], [0.5], [1])
    tracemalloc.start()
    try:
        for scores, labels in columns:
            grouped.update_many([f"user {at:07}" for at in range(groups)], scores, labels)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size / groups < 200
    assert all(type(held) is bytes for held in list(grouped._models.held.values())[1:])


def test_a_weight_that_is_no_whole_number_of_units_is_kept() -> None:
    """With a unit of 1000 a weight of 1 is no unit at all."""
    grouped = Grouped(OnlineThreshold(unit=1000))
    with pytest.raises(ValueError, match="unit"):
        grouped.update("a", 0.5, 1)
    grouped.update("a", 0.5, 1, weight=3000)
    grouped.update("a", 0.25, 0, weight=1000)

    assert (2, 0.375) == (grouped.count("a"), limen.from_bytes(grouped.to_bytes()).threshold("a"))


# Windows, and their one clock.

events = st.lists(
    st.tuples(
        st.sampled_from(PATHS),
        st.sampled_from([0.25, 0.5, 0.75]),
        st.integers(0, 1),
        st.integers(0, 40),
    ),
    max_size=30,
)


def last_period(rows: list[Any], period: int, times: list[int]) -> tuple[list[Any], list[bool]]:
    """The events that count at the end, and whether each counted when it came."""
    clock, kept, counted = -math.inf, [], []
    for row, time in itertools.zip_longest(rows, times):
        if row is None:
            clock = max(clock, time)
            continue
        clock = max(clock, time)
        counted.append(time > clock - period)
        if counted[-1]:
            kept.append((time, row))
    return [row for time, row in kept if time > clock - period], counted


@pytest.mark.parametrize("zone", ["numbers", "datetimes", "UTC"])
@settings(max_examples=40, deadline=None)
@given(rows=events, more=events, end=st.integers(0, 60), looks=st.integers(0, 3))
def test_no_group_sees_what_is_too_old_by_the_clock_of_all(
    zone: str, rows: list[Any], more: list[Any], end: int, looks: int
) -> None:
    start = {
        "numbers": 0,
        "datetimes": datetime(2026, 1, 1),
        "UTC": datetime(2026, 1, 1, tzinfo=UTC),
    }
    unit: Any = 1 if zone == "numbers" else timedelta(hours=1)

    def at(time: int) -> Any:
        return start[zone] + time * unit

    def window() -> LastPeriod:
        return LastPeriod(OnlineCalibrator(), 10 * unit)

    grouped, seen = Grouped(window()), Grouped(window())
    answers = []
    for place, (group, score, label, time) in enumerate(rows):
        answers.append(grouped.update(group, score, label, time=at(time)))
        seen.update(group, score, label, time=at(time))
        for look in range(looks):  # looking at a group changes nothing
            seen.threshold(PATHS[(place + look) % len(PATHS)])
    if more:
        groups, scores, labels, times = (list(column) for column in zip(*more, strict=True))
        moments = [at(time) for time in times]
        answers += list(grouped.update_many(groups, scores, labels, times=moments))
        seen.update_many(groups, scores, labels, times=moments)
    grouped.advance(at(end))
    seen.advance(at(end))

    plain = [row[:3] for row in rows + more]
    held, counted = last_period(plain, 10, [row[3] for row in rows + more] + [end])
    assert counted == answers
    assert grouped.to_bytes() == seen.to_bytes() == limen.from_bytes(seen.to_bytes()).to_bytes()
    expected = by_path(held)
    assert set(expected) == set(grouped)
    assert len(held) == len(grouped)
    for path, part in expected.items():
        model = OnlineCalibrator()
        for row in part:
            model.update(*row)
        assert (len(part), model.optimum()) == (grouped.count(path), grouped.optimum(path))
        assert grouped.newest == grouped.model(path).newest
    for path in map(path_of, PATHS):
        if path not in expected:
            assert 0 == grouped.count(path)


@settings(max_examples=40, deadline=None)
@given(rows=events, end=st.integers(0, 60))
def test_samples_fade_by_the_clock_of_all(rows: list[Any], end: int) -> None:
    grouped = Grouped(Fading(OnlineThreshold(), 2, by="time"))
    eager: dict[Any, Fading] = {}
    clock = -math.inf
    for group, score, label, time in [*rows, (None, None, None, end)]:
        clock = max(clock, time)
        paths = [path_of(group)[:depth] for depth in range(len(path_of(group)) + 1)]
        for path in paths if group else ():
            window = eager.setdefault(path, Fading(OnlineThreshold(), 2, by="time"))
            window.advance(clock)
            window.update(score, label, time=time)
        for window in eager.values():
            window.advance(clock)
        if group:
            grouped.update(group, score, label, time=time)
    grouped.advance(end)

    for path, window in eager.items():
        assert len(window) == grouped.count(path)
        if len(window):
            assert abs(window.loss - grouped.model(path).loss) < 1e-6
            assert grouped.model(path).newest == clock


@settings(max_examples=40, deadline=None)
@given(rows=events, more=events)
def test_the_last_n_of_each_group(rows: list[Any], more: list[Any]) -> None:
    grouped = Grouped(LastN(OnlineThreshold(), 3))
    for group, score, label, _ in rows:
        grouped.update(group, score, label)
    if more:
        groups, scores, labels, _ = (list(column) for column in zip(*more, strict=True))
        grouped.update_many(groups, scores, labels)

    for path, part in by_path([row[:3] for row in rows + more]).items():
        model = OnlineThreshold()
        for row in part[-3:]:
            model.update(*row)
        assert (len(model), model.optimum) == (grouped.count(path), grouped.optimum(path))


def test_groups_without_events_do_not_stay_in_memory() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
    for at in range(200):
        grouped.update(f"user {at}", 0.5, 1, time=0)
    for time in range(11, 160):
        grouped.update("busy", 0.5, 1, time=time)

    assert 2 == len(grouped._models.held)


def test_an_event_that_is_too_old_leaves_no_trace_but_where_it_is_counted() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
    grouped.update("a", 0.5, 1, time=100)
    assert grouped.update("b", 0.5, 1, time=5) is False
    counted = grouped.update_many(["c", "a", "a"], [0.5] * 3, [1, 0, 1], times=[5, 95, 6])

    assert [False, True, False] == list(counted)
    assert ([(), ("a",)], 2) == (list(grouped), grouped.count("a"))
    assert 3 == grouped.model(()).refused


def test_late_events_one_by_one_are_those_of_a_batch() -> None:
    """Also in what is counted as refused: the group of all samples alone counts that."""
    rows = [("b", 0.5, 1, 5), ("a", 0.5, 1, 6), ("a", 0.5, 0, 101), ("c", 0.5, 0, 120)]
    single, batch = (Grouped(LastPeriod(OnlineThreshold(), 30)) for _ in range(2))
    for grouped in (single, batch):
        grouped.update("a", 0.5, 1, time=100)
    for group, score, label, time in rows:
        single.update(group, score, label, time=time)
    groups, scores, labels, times = zip(*rows, strict=True)
    batch.update_many(list(groups), scores, labels, times=times)

    assert single.to_bytes() == batch.to_bytes()
    assert (2, 0) == (batch.model(()).refused, batch.model("a").refused)


# Batches against the same rows one by one, where the clock of all is ahead of that of a group.

HEAVY = 3 * 10**18  # two of them do not fit
AHEAD: list[int | None] = [None, 3, 10]
TIMED: dict[str, Callable[[Any], Any]] = {
    "LastPeriod": lambda ahead: LastPeriod(OnlineThreshold(), 10, max_ahead=ahead),
    "LastPeriod of a calibrator": lambda ahead: LastPeriod(
        OnlineCalibrator(), timedelta(hours=10), max_ahead=ahead and timedelta(hours=ahead)
    ),
    "LastPeriod of losses": lambda ahead: LastPeriod(OnlineCut(), 10, max_ahead=ahead),
    "Fading": lambda ahead: Fading(OnlineThreshold(), 500, by="time", max_ahead=ahead),
}


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize(("kind", "heaviest"), [*itertools.product(TIMED, [1, HEAVY])][:-1])
def test_a_batch_is_its_rows_one_by_one(kind: str, ahead: int | None, heaviest: int) -> None:
    refused = 0
    for seed in range(15 * EFFORT):
        draw = random.Random(seed)
        single, batch = (Grouped(TIMED[kind](ahead)) for _ in range(2))
        now = 0
        for _ in range(4):
            rows = []
            for _ in range(draw.choice([1, 5, 20, 80])):
                now += draw.choice([0, 0, 1, 2, 9])
                weight = draw.choice([1, 1, heaviest])
                losses = draw.choice([(weight, 0), (0, weight)])
                labelled = (draw.randint(0, 1), weight)
                time: Any = now + draw.choice([-12, -3, 0, 0, 0, 2, 30])
                if "calibrator" in kind:
                    time = datetime(2026, 1, 1) + timedelta(hours=time)
                row = losses if "losses" in kind else labelled
                rows.append((draw.choice(PATHS), draw.randrange(8) / 8, *row, time))
            before, one_by_one = batch.to_bytes(), single.copy()
            groups, *columns, times = (list(column) for column in zip(*rows, strict=True))
            try:
                expected = [one_by_one.update(group, *row, time=time) for group, *row, time in rows]
            except OverflowError:
                refused += 1
                with pytest.raises(OverflowError):
                    batch.update_many(groups, *columns, times=times)
                assert before == batch.to_bytes()
                continue
            single = one_by_one
            assert expected == list(batch.update_many(groups, *columns, times=times))
            assert single.newest == batch.newest
            assert list(map(batch.count, PATHS)) == list(map(single.count, PATHS))
            if kind == "Fading":  # rounded when it is divided, and a look may be the moment
                assert single.model(())._columns()["state"] == batch.model(())._columns()["state"]
                for path in batch:
                    found = batch.model(path).loss
                    assert abs(single.model(path).loss - found) <= 1e-6 * max(1, found)
            else:
                assert single.to_bytes() == batch.to_bytes()
            assert set(limen.from_bytes(batch.to_bytes())) == set(batch)
    assert (refused > 0) == (heaviest > 1)


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_weight_that_does_not_fit_where_samples_fade_changes_nothing(ahead: Any) -> None:
    refused = 0
    for seed in range(100):
        draw = random.Random(seed)
        grouped = Grouped(Fading(OnlineThreshold(), 5, by="time", max_ahead=ahead))
        now = 0
        for _ in range(4):
            rows = []
            for _ in range(draw.choice([1, 5, 20])):
                now += draw.choice([0, 0, 1, 2, 9])
                weight = draw.choice([1, 1, 1, HEAVY])
                rows.append((draw.choice(PATHS), draw.randrange(8) / 8, weight, now))
            groups, scores, weights, times = (list(column) for column in zip(*rows, strict=True))
            before = grouped.to_bytes()
            try:
                if len(rows) == 1:
                    grouped.update(groups[0], scores[0], 1, weights[0], time=times[0])
                else:
                    grouped.update_many(groups, scores, [1] * len(rows), weights, times=times)
            except OverflowError:
                refused += 1
                assert before == grouped.to_bytes()
    assert refused > 0


def test_a_group_is_told_the_time_within_a_batch() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
    weights = [HEAVY, 1, HEAVY]
    grouped.update_many(["a", "b", "a"], [0.1, 0.2, 0.3], [1] * 3, weights, times=[0, 15, 8])
    assert (2, 1, 1) == (len(grouped), grouped.count("a"), grouped.count("b"))
    faded = Grouped(Fading(OnlineThreshold(), 1, by="time"))
    weights = [4 * 10**18, 1, 4 * 10**18]
    faded.update_many(["a", "b", "a"], [0.1, 0.2, 0.3], [1] * 3, weights, times=[0, 1000, 0])
    assert (1, 0, 1) == (len(faded), faded.count("a"), faded.count("b"))  # 2**-938 is nothing

    ahead = Grouped(LastPeriod(OnlineThreshold(), 100, max_ahead=10))
    ahead.update("a", 0.5, 1, time=10)
    ahead.update_many(["a", "b", "a"], [0.1, 0.2, 0.3], [0, 1, 1], times=[11, 20, 29])
    assert (3, 1, 4) == (ahead.count("a"), ahead.count("b"), len(ahead))
    fading = Grouped(Fading(OnlineThreshold(), 100, by="time", max_ahead=10))
    fading.update_many(["a", "b", "a"], [0.1, 0.2, 0.3], [0, 1, 1], times=[0, 100, 5])
    assert {(), ("a",)} == set(limen.from_bytes(fading.to_bytes()))


def test_what_is_too_far_ahead_is_counted_by_the_group_of_all() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 100, max_ahead=10))
    grouped.update("a", 0.5, 1, time=0)
    assert grouped.update("a", 0.5, 1, time=11) is False
    assert [False] == list(grouped.update_many(["a"], [0.5], [1], times=[11]))
    assert (2, 0) == (grouped.model(()).refused, grouped.model("a").refused)


def test_an_error_in_a_window_changes_nothing() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
    grouped.update("a", 0.5, 1, time=100)
    before = grouped.to_bytes()
    for change in (
        lambda: grouped.update("b", math.nan, 1, time=200),
        lambda: grouped.update("b", 0.5, 1, time="noon"),
        lambda: grouped.update("b", 0.5, 1),
        lambda: grouped.update_many(["a", "b"], [0.5, math.nan], [1, 1], times=[200, 201]),
        lambda: grouped.update_many(["a"], [0.5, 0.6], [1, 1], times=[200, 201]),
        lambda: grouped.advance("noon"),
    ):
        with pytest.raises((ValueError, TypeError)):
            change()

        assert before == grouped.to_bytes()


@pytest.mark.parametrize("window", [lambda: LastN(OnlineThreshold(), 3), OnlineThreshold])
def test_without_a_clock_there_is_nothing_to_advance(window: Any) -> None:
    grouped = Grouped(window())
    with pytest.raises(TypeError, match="no clock to advance"):
        grouped.advance(3)

    assert grouped.newest is None


@pytest.mark.parametrize(
    "window", [lambda: LastN(OnlineThreshold(), 3), lambda: Fading(OnlineThreshold(), 2)]
)
def test_a_weight_that_might_not_fit_in_every_group_is_refused_before_any_change(
    window: Any,
) -> None:
    """All samples may have let go of what a group still holds."""
    grouped = Grouped(window())
    grouped.update("a", 0.5, 1)
    before = grouped.to_bytes()
    for change in (
        lambda: grouped.update("a", 0.5, 1, 2**61),
        lambda: grouped.update("a", 0.5, 1, weight=2**61),
        lambda: grouped.update_many(["a"], [0.5], [1], [2**61]),
    ):
        with pytest.raises(OverflowError, match="too large for groups of"):
            change()

        assert before == grouped.to_bytes()
    for at in range(20):
        grouped.update("ab"[at % 2], 0.5, 1, weight=10**8)
    assert before != grouped.to_bytes()


def test_costs_that_might_not_fit_in_a_window_of_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="might not fit in a group"):
        Grouped(LastN(OnlineThreshold(false_negative=2**50), 10**6))


# Merging.


def part_of(rows: list[Any], **given: Any) -> Grouped:
    grouped = Grouped(OnlineThreshold(), **given)
    for row in rows:
        grouped.update(*row)
    return grouped


def test_merged_groups_are_those_of_one_object() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (PATHS[int(at)], float(score), int(score > 0.5))
        for at, score in zip(
            rng.integers(0, len(PATHS), 300), rng.random(300).round(2), strict=True
        )
    ]
    parts = [part_of(rows[begin::3]) for begin in range(3)]

    assert part_of(rows).to_bytes() == limen.merge(parts).to_bytes()


def test_what_cannot_be_merged_is_refused_with_the_reason() -> None:
    grouped = part_of([("a", 0.5, 1)], at_least=2)
    before = grouped.to_bytes()
    for other, error, reason in (
        (part_of([("a", 0.5, 1)]), ValueError, "at_least is 2 here and 1 there"),
        (Grouped(OnlineThreshold(false_negative=5), at_least=2), ValueError, "false_negative is 1"),
        (Grouped(OnlineCalibrator(), at_least=2), TypeError, "cannot merge OnlineCalibrator"),
        (OnlineThreshold(), TypeError, "both must hold groups"),
        (grouped, ValueError, "same object twice"),
    ):
        with pytest.raises(error, match=reason):
            grouped.merge(other)

        assert before == grouped.to_bytes()
    if not hasattr(LastN, "merge"):
        with pytest.raises(TypeError, match="cannot merge groups of LastN"):
            Grouped(LastN(OnlineThreshold(), 3)).merge(Grouped(LastN(OnlineThreshold(), 3)))


def test_a_merge_that_does_not_fit_changes_nothing() -> None:
    grouped, other = Grouped(OnlineThreshold()), Grouped(OnlineThreshold())
    grouped.update("a", 0.5, 1, 2**61)
    other.update("b", 0.5, 1)
    other.update("c", 0.5, 1, 2**61)
    before = grouped.to_bytes()
    with pytest.raises(OverflowError):
        grouped.merge(other)

    assert before == grouped.to_bytes()


def test_merged_windows_have_one_clock() -> None:
    early, late = (
        Grouped(LastPeriod(OnlineThreshold(), 10)),
        Grouped(LastPeriod(OnlineThreshold(), 10)),
    )
    early.update("idle", 0.5, 1, time=0)
    early.update("a", 0.5, 1, time=5)
    late.update("a", 0.25, 0, time=12)
    early.merge(late)

    assert (0, 2, 2, 12) == (early.count("idle"), early.count("a"), len(early), early.newest)


# Thresholds for new rows.


def drawn(n: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    groups = [PATHS[at] for at in rng.choice(5, n, p=[0.4, 0.3, 0.2, 0.09, 0.01]).tolist()]
    scores = rng.random(n).round(3)
    shift = np.array([0.9 if group == "b" else 0.4 for group in groups])
    return groups, scores, (rng.random(n) < 1 / (1 + np.exp(-12 * (scores - shift)))).astype(int)


@pytest.mark.parametrize("at_least", [1, 50])
@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: OnlineThreshold(false_negative=3), {}),
        (OnlineCalibrator, {"false_negative": 3}),
        (lambda: LastN(OnlineThreshold(false_negative=3), 5_000), {}),
        (lambda: LastPeriod(OnlineCalibrator(unit=0.01), 5_000), {"false_negative": 3}),
    ],
)
def test_recommended_thresholds_are_those_of_the_same_arrays(
    make: Any, given: dict[str, int], at_least: int
) -> None:
    groups, scores, labels = drawn(3_000)
    grouped = Grouped(make(), at_least=at_least)
    times = {"times": range(3_000)} if isinstance(make(), LastPeriod) else {}
    grouped.update_many(groups, scores, labels, **times)
    known: Any = {"false_negative": 3, "scores_are": "ranks"}
    expected = limen.by_group(groups, scores, labels, **known, at_least=at_least, shrink=True)
    found = grouped.recommended(**given)

    assert set(expected) == set(found)
    for path in expected:
        assert expected.recommendation(path) == found.recommendation(path)
    assert ("b",) == found.source("b")
    assert expected.threshold("new") == found.threshold("new")


def test_recommended_thresholds_of_weights_are_those_of_the_same_arrays() -> None:
    groups, scores, labels = drawn(1_000)
    weights = np.random.default_rng(4).choice([0.5, 1, 2, 7], len(scores))
    grouped = Grouped(OnlineThreshold(false_negative=3), at_least=5)
    grouped.update_many(groups, scores, labels, weights)
    known: Any = {"false_negative": 3, "scores_are": "ranks"}
    expected = limen.by_group(
        groups, scores, labels, weights=weights, **known, at_least=5, shrink=True
    )
    found = grouped.recommended()
    for path in expected:
        assert expected.recommendation(path) == found.recommendation(path)


def test_recommended_thresholds_know_what_has_faded() -> None:
    groups, scores, labels = drawn(400)
    grouped = Grouped(Fading(OnlineThreshold(), 100, by="time"))
    grouped.update_many(groups, scores, labels, times=range(400))
    weights = [2.0 ** ((at - 399) / 100) for at in range(400)]
    expected = limen.by_group(
        groups, scores, labels, weights=weights, shrink=True, scores_are="ranks"
    )
    found = grouped.recommended()
    for path in expected:
        one, other = expected.recommendation(path), found.recommendation(path)
        assert (one.threshold, one.source) == (other.threshold, other.source)
        assert one.interval == other.interval


def test_recommended_thresholds_need_labels_and_enough_of_them() -> None:
    light = Grouped(OnlineThreshold())
    light.update_many(["a"] * 20, [0.25, 0.75] * 10, [0, 1] * 10, [100, 1] + [1, 1] * 9)
    for grouped, error, reason in (
        (light, ValueError, r"samples of label 0, whose weights are worth 1\.2"),
        (Grouped(OnlineCut()), TypeError, "OnlineCut does not keep these"),
        (part_of([("a", 0.5, 1)]), ValueError, "1 sample of label 1: it takes 5 of each label"),
    ):
        with pytest.raises(error, match=reason):
            grouped.recommended()
    with pytest.raises(TypeError, match="has its costs already"):
        part_of([]).recommended(false_negative=3)


def test_a_stored_group_that_is_ahead_of_the_clock_is_refused() -> None:
    grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
    grouped.update("a", 0.5, 1, time=3)
    snapshot = grouped.snapshot()
    snapshot["models"][0].advance(4)
    with pytest.raises(ValueError, match="ahead of the clock"):
        Grouped.from_snapshot(snapshot)


# Interrupts.


def started(make: Callable[[], Any]) -> Callable[[], Grouped]:
    def groups() -> Grouped:
        grouped = Grouped(make())
        named = {"times": range(82)} if isinstance(make(), LastPeriod | Fading) else {}
        scores = [at % 8 / 8 for at in range(82)]
        grouped.update_many(
            ["large"] * 40 + [("large", "in it")] * 40 + ["few"] * 2, scores, [0, 1] * 41, **named
        )
        return grouped

    return groups


def look(grouped: Grouped) -> Any:
    told = [grouped.count(group) for group in ("large", ("large", "in it"), "few", "new")]
    return told, grouped.to_bytes(), repr(grouped)


def other() -> Grouped:
    grouped = started(OnlineThreshold)()
    grouped.update("new", 0.5, 1)
    return grouped


CALLS: dict[str, Callable[[Any], Any]] = {
    "update of a new group": lambda g: g.update("new", 0.5, 1),
    "update of a few": lambda g: g.update("few", 0.5, 1, 2),
    "update of a large group": lambda g: g.update(("large", "in it"), 0.5, 1),
    "update_many": lambda g: g.update_many(
        ["new", ("large", "in it"), "few", "large"], [0.5, 0.25, 0.5, 1.0], [0, 1, 1, 0]
    ),
    "update_many with weights": lambda g: g.update_many(
        ["new", ("large", "in it"), "few"], [0.5, 0.25, 0.5], [0, 1, 1], [1, 2, 0.5]
    ),
    "revert": lambda g: g.revert("few", 0.0, 0),
    "revert of a large group": lambda g: g.revert(("large", "in it"), 0.0, 0),
    "revert_many": lambda g: g.revert_many(["few", "few", "large"], [0.0, 0.125, 0.0], [0, 1, 0]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", [OnlineThreshold, OnlineCalibrator])
def test_an_interrupt_leaves_all_groups_as_before_or_as_after(make: Any, call: str) -> None:
    require_whole(started(make), CALLS[call], look)


def test_an_interrupt_of_a_merge_leaves_all_groups_as_before_or_as_after() -> None:
    step = 1 if EFFORT > 1 else 5  # it has hundreds of places, many of them in one loop
    require_whole(started(OnlineThreshold), lambda grouped: grouped.merge(other()), look, step)


def test_an_interrupt_while_an_error_is_taken_back_leaves_all_as_before() -> None:
    """All hold the sample, its large group does not: what all gave up comes back."""
    make = started(OnlineThreshold)
    probe = make()
    probe.update(("other", "x"), 7.0, 1)
    before = look(probe)
    for place in itertools.count(1):
        subject = make()
        subject.update(("other", "x"), 7.0, 1)
        where, _ = interrupted(lambda: subject.revert(("large", "in it"), 7.0, 1), place)  # noqa: B023
        assert before == look(subject)
        if where is None:
            break
    assert place > 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: LastN(OnlineThreshold(), 60),
        lambda: LastPeriod(OnlineThreshold(), 60),
        lambda: Fading(OnlineThreshold(), 20, by="time"),
    ],
)
def test_an_interrupt_leaves_windows_of_groups_as_before_or_as_after(make: Any) -> None:
    named = {} if isinstance(make(), LastN) else {"time": 90}
    require_whole(started(make), lambda grouped: grouped.update("large", 0.5, 1, **named), look)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no setitimer")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # inside a finaliser
def test_ctrl_c_at_any_moment_leaves_sums_that_agree() -> None:
    grouped, rng = started(OnlineThreshold)(), np.random.default_rng(0)
    groups = ["large", ("large", "in it"), "few", "new"]
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a shell ignores it
    told = 0
    try:
        for delay in rng.uniform(1e-5, 3e-4, 200).tolist():
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                for at in range(50):  # some end inside a finaliser, where Python drops them
                    grouped.update(groups[at % 4], at % 8 / 8, at % 2)
                    grouped.update_many(groups, [0.5] * 4, [1, 0, 1, 1])
                    grouped.revert_many(groups, [0.5] * 4, [1, 0, 1, 1])
            except KeyboardInterrupt:
                told += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            counts = [grouped.count(group) for group in ("large", "few", "new")]
            assert sum(counts) == len(grouped)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGINT, heard)
    parts = [grouped.model(group) for group in ("large", "few", "new")]
    assert limen.merge(parts)._state() == grouped.model(())._state()
    assert told > 150


def test_one_score_of_one_group_is_answered_by_one_number() -> None:
    grouped = Grouped(OnlineThreshold())
    grouped.update_many(["DE", "DE", "FR", "FR"], [0.2, 0.4, 0.2, 0.4], [0, 1, 1, 1])
    falling = Grouped(OnlineThreshold(direction="<="))
    falling.update_many(["DE", "DE"], [0.2, 0.4], [1, 0])

    assert [0, 1, 1] == [grouped.predict(group, 0.25) for group in ("DE", "FR", ("FR", "Nice"))]
    assert type(grouped.predict("DE", np.float64(0.3))) is int
    assert (1, 0) == (falling.predict("DE", 0.3), falling.predict("DE", 0.35))
    assert [0] == grouped.predict(["DE"], [0.25]).tolist()


def test_the_repr_shows_what_a_group_has_and_no_empty_model() -> None:
    grouped = Grouped(limen.LastN(OnlineThreshold(false_negative=5), 9), at_least=2)
    grouped.update_many(["DE", "FR", "FR"], [0.2, 0.4, 0.6], [0, 1, 1])
    inside = "LastN(n=9) of OnlineThreshold(false_positive=1, false_negative=5)"

    assert f"<Grouped({inside}, at_least=2): 3 samples, 2 groups>" == repr(grouped)
