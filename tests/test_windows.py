# SPDX-License-Identifier: Apache-2.0
"""Windows against the plain list of what should be in them, after every step."""

from __future__ import annotations

import argparse
import copy
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import streams
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from streams import SmallNodeCut, SmallNodeThreshold

from limen import (
    Fading,
    Grouped,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    optimal_threshold,
)
from limen.cli import option_values
from limen.times import length_of, length_text

BIG = 2**61  # two of them do not fit together
HOUR = timedelta(hours=1)
START = datetime(2026, 1, 1)


def state_of(model: Any, samples: list[Any]) -> bytes:
    """The bytes of a new model of the same kind that holds these samples."""
    fresh = model.empty()
    for sample in samples:
        fresh.update(*sample)
    return fresh._state()


def samples_in(window: Any) -> list[Any]:
    """The samples of a window, as tuples, in the order in which they leave."""
    stored = window.snapshot()
    rows = len(stored["scores"])
    first, second, bits, labels = (
        [default] * rows if stored[name] is None else stored[name].tolist()
        for name, default in (("firsts", 1), ("seconds", 0), ("bits", 0), ("labels", 0))
    )
    numbers = [Fraction(a, 2**b) for a, b in zip(first, bits, strict=True)]
    others = [Fraction(a, 2**b) for a, b in zip(second, bits, strict=True)]
    if isinstance(window.model, OnlineCut):
        columns = (stored["scores"].tolist(), numbers, others)
    else:
        columns = (stored["scores"].tolist(), labels, numbers)
    return list(zip(*columns, strict=True))


def run(machine: type) -> None:
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=60 * streams.EFFORT, stateful_step_count=30, phases=phases),
    )


few_scores = st.integers(0, 9).map(lambda k: k / 8)
weights = st.sampled_from([1, 1, 2, 3.0, 0.5, 0])
labelled = st.tuples(few_scores, streams.labels) | st.tuples(few_scores, streams.labels, weights)
with_losses = st.tuples(few_scores, st.integers(-1, 2), st.integers(-1, 2))
broken = st.sampled_from([(math.nan, 1, 1), (0.5, "a", 1), (0.5, 1, math.inf), (0.5,), ("a", 1, 1)])


class WindowMachine(RuleBasedStateMachine):
    """`held` is the oracle: a list of samples, or of events, kept by the plainest means."""

    window: Any
    held: list[Any]

    def samples(self) -> list[Any]:
        return self.held

    def draw_sample(self, data: Any) -> Any:
        cuts = isinstance(self.window.model, OnlineCut)
        return data.draw(with_losses if cuts else labelled)

    def counts(self, sample: Any) -> bool:
        if isinstance(self.window.model, OnlineCut):
            return any(sample[1:])
        return len(sample) < 3 or sample[2] != 0

    def columns(self, rows: list[Any]) -> list[Any]:
        """Some weights may be missing; in columns they are all there."""
        full = [row if len(row) == 3 else (*row, 1) for row in rows]
        return [[row[at] for row in full] for at in range(3)]

    @rule(way=st.sampled_from(["pickle", "copy", "bytes"]))
    def come_back(self, way: str) -> None:
        """A copy does not change with the original."""
        original = self.window
        if way == "pickle":
            self.window = pickle.loads(pickle.dumps(original))
        elif way == "copy":
            self.window = copy.copy(original)
            self.disturb(original)
        else:
            self.window = type(original).from_bytes(original.to_bytes())

    def disturb(self, window: Any) -> None:
        raise NotImplementedError

    @invariant()
    def model_holds_the_samples_of_the_window(self) -> None:
        self.window.model._check()

        assert len(self.samples()) == len(self.window)
        assert state_of(self.window.model, self.samples()) == self.window.model._state()
        assert self.window.model.optimum == self.window.optimum
        assert self.window.model.loss == self.window.loss


class LastNMachine(WindowMachine):
    @initialize(n=st.integers(1, 6), cuts=st.booleans())
    def begin(self, n, cuts):
        self.n = n
        self.window = LastN(SmallNodeCut() if cuts else SmallNodeThreshold(false_negative=3), n)
        self.held = []

    def add(self, sample):
        if self.counts(sample):
            self.held.append(sample)
            del self.held[: -self.n]

    def disturb(self, window):
        window.update(0.25, 1, 1)

    @rule(data=st.data())
    def update(self, data):
        sample = self.draw_sample(data)
        self.window.update(*sample)
        self.add(sample)

    @rule(data=st.data(), m=st.sampled_from([0, 1, 2, 5, 9, 40]))
    def update_many(self, data, m):
        rows = [self.draw_sample(data) for _ in range(m)]
        self.window.update_many(*self.columns(rows))
        for row in rows:
            self.add(row)

    @rule(sample=broken)
    def broken_sample(self, sample):
        with pytest.raises((ValueError, TypeError)):
            self.window.update(*sample)

    @rule(data=st.data())
    def broken_batch(self, data):
        rows = [self.draw_sample(data), self.draw_sample(data), (math.nan, 1, 1)]
        with pytest.raises(ValueError, match="nan"):
            self.window.update_many(*self.columns(rows))


class LastPeriodMachine(WindowMachine):
    @initialize(
        period=st.sampled_from([5, 2.5, timedelta(hours=5)]), cuts=st.booleans(), utc=st.booleans()
    )
    def begin(self, period, cuts, utc):
        self.period = period
        self.zero = START.replace(tzinfo=UTC) if utc else START
        model = SmallNodeCut() if cuts else SmallNodeThreshold(false_negative=3)
        self.window = LastPeriod(model, period)
        self.newest = None
        self.refused = 0
        self.held = []  # of times and samples

    def samples(self):
        return [sample for _, sample in self.held]

    def time(self, steps):
        """Whole and half steps, as numbers or datetimes."""
        if isinstance(self.period, timedelta):
            return self.zero + steps / 2 * HOUR
        return steps / 2 if steps % 2 else steps // 2

    def advance_to(self, time):
        if self.newest is None or time > self.newest:
            self.newest = time
        self.held = [event for event in self.held if self.inside(event[0])]

    def inside(self, time):
        return self.newest is None or self.newest - self.period < time

    def add(self, sample, time):
        if not self.inside(time):
            self.refused += self.counts(sample)
            return False
        if self.counts(sample):
            self.held.append((time, sample))
        self.advance_to(time)
        return True

    def disturb(self, window):
        window.update(0.25, 1, 1, time=self.time(1_000))

    @rule(data=st.data(), steps=st.integers(0, 30))
    def update(self, data, steps):
        sample, time = self.draw_sample(data), self.time(steps)

        assert self.add(sample, time) == self.window.update(*sample, time=time)

    @rule(data=st.data(), back=st.integers(0, 12))
    def update_near_the_newest(self, data, back):
        sample = self.draw_sample(data)
        time = self.time(0) if self.newest is None else self.newest - back / 2 * self.one()

        assert self.add(sample, time) == self.window.update(*sample, time=time)

    def one(self):
        return HOUR if isinstance(self.period, timedelta) else 1

    @rule(steps=st.integers(0, 40))
    def advance(self, steps):
        self.window.advance(self.time(steps))
        self.advance_to(self.time(steps))

    @rule(data=st.data(), steps=st.lists(st.integers(0, 40), max_size=12))
    def update_many(self, data, steps):
        rows = [self.draw_sample(data) for _ in steps]
        times = [self.time(step) for step in steps]
        expected = [self.add(row, time) for row, time in zip(rows, times, strict=True)]

        assert expected == self.window.update_many(*self.columns(rows), times=times).tolist()

    @rule(sample=broken, steps=st.integers(0, 60))
    def broken_sample(self, sample, steps):
        if self.inside(self.time(steps)):
            with pytest.raises((ValueError, TypeError)):
                self.window.update(*sample, time=self.time(steps))

    @rule(data=st.data(), steps=st.integers(41, 60))
    def broken_batch(self, data, steps):
        rows = [self.draw_sample(data), (math.nan, 1, 1), self.draw_sample(data)]
        times = [self.time(steps + more) for more in range(3)]
        with pytest.raises(ValueError, match="nan"):
            self.window.update_many(*self.columns(rows), times=times)

    @rule(time=st.sampled_from([math.nan, math.inf, "noon", None, True, START, 5]))
    def broken_time(self, time):
        other = datetime if isinstance(self.period, timedelta) else int
        if isinstance(time, other) and time is not True and self.zero.tzinfo is None:
            return
        if time == START and self.newest is None:
            return
        if time == 5 and time is not True and not isinstance(self.period, timedelta):
            return
        with pytest.raises((ValueError, TypeError)):
            self.window.update(0.5, 1, 1, time=time)
        with pytest.raises((ValueError, TypeError)):
            self.window.update_many([0.5], [1], [1], times=[time])
        with pytest.raises((ValueError, TypeError)):
            self.window.advance(time)

    @invariant()
    def newest_and_refused_are_told(self):
        assert self.newest == self.window.newest
        assert self.refused == self.window.refused


@pytest.mark.parametrize("machine", [LastNMachine, LastPeriodMachine])
def test_any_sequence_of_calls_leaves_what_a_plain_list_would_hold(machine):
    run(machine)


def test_long_walks_leave_what_a_plain_list_would_hold():
    """Windows that are fuller than those the machines come up with."""
    for seed in range(60):
        random = Random(seed)
        walk = LastPeriodMachine() if seed % 2 else LastNMachine()
        period = random.choice([5, 2.5, timedelta(hours=5)])
        chosen = {"period": period, "utc": seed % 4 == 1} if seed % 2 else {"n": seed % 13 + 1}
        walk.begin(cuts=False, **chosen)
        for now in range(60):
            rows = [(random.random(), random.randint(0, 1), random.randint(0, 3)) for _ in "abc"]
            steps = [now + random.choice([1, 0, 0, -1, -3, -8, -11]) for _ in rows]
            times = {"times": [walk.time(step) for step in steps]} if seed % 2 else {}
            if random.random() < 0.3:
                walk.window.update_many(*walk.columns(rows), **times)
                for at, row in enumerate(rows):
                    walk.add(row, *[given[at] for given in times.values()])
            else:
                for at, row in enumerate(rows):
                    given = [value[at] for value in times.values()]
                    walk.window.update(*row, **dict(zip(["time"], given, strict=False)))
                    walk.add(row, *given)
            if random.random() < 0.1:
                walk.come_back(random.choice(["pickle", "copy", "bytes"]))
            walk.model_holds_the_samples_of_the_window()
        if seed % 2:
            walk.newest_and_refused_are_told()


# Many samples at once.


@pytest.mark.parametrize("batch", [1, 7, 300, 5_000])
def test_update_many_equals_update_one_by_one(batch):
    scores, labels = streams.uniform(2_000)
    single, many = LastN(OnlineThreshold(), 300), LastN(OnlineThreshold(), 300)
    for begin in range(0, len(scores), batch):
        many.update_many(scores[begin : begin + batch], labels[begin : begin + batch])
    for score, label in zip(scores, labels, strict=True):
        single.update(score, label)

    assert single.to_bytes() == many.to_bytes()
    assert optimal_threshold(scores[-300:], labels[-300:]) == many.optimum


def test_update_many_of_late_events_equals_update_one_by_one():
    random = np.random.default_rng(5)
    scores, labels = streams.uniform(3_000)
    times = np.arange(3_000) - np.where(
        random.random(3_000) < 0.2, random.integers(0, 700, 3_000), 0
    )
    single = LastPeriod(OnlineThreshold(), 500)
    many = LastPeriod(OnlineThreshold(), 500)
    rows = zip(scores.tolist(), labels.tolist(), times.tolist(), strict=True)
    told = [single.update(score, label, time=time) for score, label, time in rows]
    parts = [slice(0, 10), slice(10, 1_500), slice(1_500, 3_000)]
    batches = [many.update_many(scores[p], labels[p], times=times[p]) for p in parts]

    assert told == np.concatenate(batches).tolist()
    assert single.refused == many.refused == told.count(False) > 0
    assert single.to_bytes() == many.to_bytes()
    assert np.count_nonzero(times > times.max() - 500) == len(many)


def test_rows_without_weight_take_no_place_in_a_batch():
    window = LastN(OnlineThreshold(), 3)
    window.update_many([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 1], [1, 0, 1, 1])
    cut = LastN(OnlineCut(), 3)
    cut.update_many([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 1], [0, 0, 0, 1])
    window.update(0.5, 1, weight=0)

    assert [(0.1, 1, 1), (0.3, 0, 1), (0.4, 1, 1)] == samples_in(window)
    assert [(0.1, 1, 0), (0.3, 1, 0), (0.4, 1, 1)] == samples_in(cut)


# Room: what does not fit together may fit one after the other.


@pytest.mark.parametrize("kind", ["one", "many"])
def test_the_oldest_makes_room_for_the_new(kind):
    window = LastN(OnlineThreshold(), 1)
    for score in (0.1, 0.2, 0.3):
        if kind == "one":
            window.update(score, 1, BIG + 1)
        else:
            window.update_many([score], [1], [BIG + 1])

    assert [(0.3, 1, BIG + 1)] == samples_in(window)
    assert state_of(window.model, [(0.3, 1, BIG + 1)]) == window.model._state()


@pytest.mark.parametrize("kind", ["one", "many"])
def test_the_old_events_make_room_for_the_new(kind):
    window = LastPeriod(OnlineThreshold(), 10)
    for time, score in ((1, 0.1), (11, 0.2), (30, 0.3)):
        if kind == "one":
            assert window.update(score, 1, BIG + 1, time=time)
        else:
            assert [True] == window.update_many([score], [1], [BIG + 1], times=[time]).tolist()

    assert (30, 1) == (window.newest, len(window))
    assert state_of(window.model, [(0.3, 1, BIG + 1)]) == window.model._state()


def filled_last_n() -> LastN:
    window = LastN(OnlineThreshold(), 2)
    window.update(0.1, 1, 5)
    window.update(0.2, 1, BIG)
    return window


def filled_last_period() -> LastPeriod:
    window = LastPeriod(OnlineThreshold(), 10)
    window.update(0.1, 1, 5, time=1)
    window.update(0.15, 0, 5, time=3)
    window.update(0.17, 0, 5, time=2)
    window.update(0.2, 1, BIG, time=5)
    return window


def test_losses_that_never_fit_change_nothing():
    """The first of a batch may fit, and even send others away; then it must come back."""
    window = filled_last_n()
    before = window.to_bytes()
    with pytest.raises(OverflowError, match="unit"):
        window.update(0.3, 1, BIG)
    with pytest.raises(OverflowError, match="unit"):
        window.update_many([0.3, 0.4, 0.5], [1, 1, 1], [1, 1, 2 * BIG - 1])

    assert before == window.to_bytes()
    assert state_of(window.model, samples_in(window)) == window.model._state()


def test_events_that_never_fit_change_nothing():
    window = filled_last_period()
    before, newest = window.to_bytes(), window.newest
    with pytest.raises(OverflowError, match="unit"):
        window.update(0.3, 1, BIG, time=12)  # two have left by then, but not the large one
    with pytest.raises(OverflowError, match="unit"):
        window.update_many([0.3, 0.4], [1, 1], [1, 2 * BIG - 1], times=[12, 13])

    assert (before, newest) == (window.to_bytes(), window.newest)
    window.advance(12)
    assert 2 == len(window)
    window.advance(15)
    assert 0 == len(window)


# Times.


def test_an_event_counts_exactly_while_its_time_lies_in_the_period():
    window = LastPeriod(OnlineThreshold(), timedelta(days=3))
    day = [START + timedelta(days=number) for number in range(10)]
    tick = timedelta(microseconds=1)

    assert window.update(0.5, 1, time=day[5])
    assert window.update(0.4, 1, time=day[2] + tick)
    assert not window.update(0.3, 1, time=day[2])
    assert (2, 1) == (len(window), window.refused)
    window.advance(day[5] + tick)
    assert 1 == len(window)
    window.advance(day[8] - tick)
    assert 1 == len(window)
    window.advance(day[8])
    assert 0 == len(window)


def test_an_earlier_advance_changes_nothing():
    window = LastPeriod(OnlineThreshold(), 10)
    window.update(0.5, 1, time=100)
    window.advance(50)

    assert (100, 1) == (window.newest, len(window))
    assert not window.update(0.5, 1, time=90)


def test_event_that_river_keeps_too_long_is_refused():
    """The TimeRolling of river counts an event of any age until a newer one arrives."""
    river_utils = pytest.importorskip("river.utils")
    rolling = river_utils.TimeRolling(OnlineThreshold, period=timedelta(days=3))
    window = LastPeriod(OnlineThreshold(), timedelta(days=3))
    for days, score in ((40, 0.9), (10, 0.1)):
        rolling.update(score, 1, t=START + timedelta(days=days))
        window.update(score, 1, time=START + timedelta(days=days))

    assert (2, 1) == (len(rolling.obj), len(window))


def test_times_with_a_zone_are_compared_in_utc():
    """On the night when clocks go back, half past two comes twice."""
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    second = first.replace(fold=1)
    window = LastPeriod(OnlineThreshold(), timedelta(hours=1))

    assert window.update(0.5, 1, time=first)
    assert window.update(0.6, 1, time=second)
    assert 1 == len(window)
    assert datetime(2026, 10, 25, 1, 30, tzinfo=UTC) == window.newest


def test_zones_may_differ_but_all_must_have_one():
    window = LastPeriod(OnlineThreshold(), timedelta(hours=3))
    east = timezone(timedelta(hours=2))
    window.update(0.5, 1, time=datetime(2026, 1, 1, 12, tzinfo=UTC))
    window.update(0.5, 1, time=datetime(2026, 1, 1, 12, tzinfo=east))

    assert 2 == len(window)
    for call in (
        lambda: window.update(0.5, 1, time=START),
        lambda: window.advance(START),
        lambda: window.update_many([0.5, 0.5], [1, 1], times=[window.newest, START]),
    ):
        with pytest.raises(TypeError, match="time zone"):
            call()
    assert 2 == len(window)


@pytest.mark.parametrize("dtype", ["M8[ns]", "M8[us]", "M8[s]", "M8[D]"])
def test_numpy_datetimes_are_taken(dtype):
    times = np.array(["2026-01-01", "2026-01-05"], dtype)
    window = LastPeriod(OnlineThreshold(), np.timedelta64(3, "D"))

    assert window.update(0.1, 1, time=times[0])
    assert [True, True] == window.update_many([0.5, 0.6], [1, 1], times=times).tolist()
    assert (datetime(2026, 1, 5), timedelta(days=3)) == (window.newest, window.period)


@pytest.mark.parametrize(
    "time", [np.datetime64("NaT"), np.datetime64(1, "ns"), "2026-01-01", 5, None, START.date()]
)
def test_what_is_no_datetime_is_refused_with_its_place(time):
    window = LastPeriod(OnlineThreshold(), timedelta(days=3))
    with pytest.raises(TypeError, match="time must be a datetime"):
        window.update(0.5, 1, time=time)
    with pytest.raises(TypeError, match=r"times\[1\] must be a datetime"):
        window.update_many([0.5, 0.5], [1, 1], times=[START, time])

    assert (0, None) == (len(window), window.newest)


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, 1e300, np.float64("nan")])
def test_times_from_where_no_period_can_be_told_are_refused(time):
    window = LastPeriod(OnlineThreshold(), 10)
    window.update(0.5, 1, time=3.0)
    if time != -math.inf:
        with pytest.raises(ValueError, match="time"):
            window.update(0.5, 1, time=time)
    with pytest.raises(ValueError, match="time"):
        window.advance(time)
    with pytest.raises(ValueError, match="time"):
        window.update_many([0.5], [1], times=[time])
    with pytest.raises(ValueError, match="time"):
        window.update_many([0.5], [1], times=np.array([time]))

    assert (1, 3.0) == (len(window), window.newest)


@pytest.mark.parametrize("zone", [None, UTC])
@pytest.mark.parametrize("period", [timedelta(days=3), timedelta.max])
def test_a_period_may_begin_before_the_first_of_all_days(period, zone):
    window = LastPeriod(OnlineThreshold(), period)
    first, last = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)

    assert window.update(0.5, 1, time=first)
    assert window.update(0.5, 1, time=first + timedelta(days=1))
    assert [True] == window.update_many([0.5], [1], times=[first]).tolist()
    assert (3, first + timedelta(days=1)) == (len(window), window.newest)
    assert window.to_bytes() == pickle.loads(pickle.dumps(window)).to_bytes()
    assert window.to_bytes() == LastPeriod.from_bytes(window.to_bytes()).to_bytes()
    window.advance(last)
    assert (3 if period == timedelta.max else 0) == len(window)


class Timestamp(datetime):
    """As pandas has: finer than a datetime."""

    nanosecond = 0


def test_subclasses_of_datetime_become_plain_ones():
    window = LastPeriod(OnlineThreshold(), timedelta(days=3))
    fine = Timestamp(2026, 1, 2)
    window.update(0.5, 1, time=Timestamp(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1))))
    fine.nanosecond = 5

    assert datetime is type(window.newest)
    assert datetime(2026, 1, 1, 11, tzinfo=UTC) == window.newest
    with pytest.raises(ValueError, match="microsecond"):
        window.update(0.5, 1, time=fine)


@pytest.mark.parametrize("period", [0, -1, math.nan, math.inf, timedelta(0), "day", None, True])
def test_a_period_must_be_positive(period):
    with pytest.raises(ValueError, match="period must be a positive number or timedelta"):
        LastPeriod(OnlineThreshold(), period)


# The face.


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", None, True])
def test_n_must_be_a_whole_number_of_at_least_one(n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        LastN(OnlineThreshold(), n)


class Mean:
    """A model of another library."""

    def update(self, value: float) -> None: ...
    def revert(self, value: float) -> None: ...
    def __len__(self) -> int:
        return 0


class Doubled(OnlineThreshold):
    """A model whose own update a window would pass by."""

    def update(self, score: Any, label: Any, weight: Any = 1) -> None:
        super().update(score, label, 2 * weight)


@pytest.mark.parametrize(
    "window", [lambda model: LastN(model, 5), lambda model: LastPeriod(model, 5)]
)
@pytest.mark.parametrize(
    ("model", "error", "told"),
    [
        (lambda: OnlineThreshold, TypeError, r"Write OnlineThreshold\(\)"),
        (lambda: LastN(OnlineThreshold(), 3), TypeError, "must be an OnlineThreshold"),
        (lambda: 3, TypeError, "must be an OnlineThreshold, OnlineCut or OnlineCalibrator, got 3"),
        (Mean, TypeError, "must be an OnlineThreshold"),
        (Doubled, TypeError, r"Doubled has its own update\(\), which would never be called"),
    ],
)
def test_what_is_no_model_is_refused(window, model, error, told):
    with pytest.raises(error, match=told):
        window(model())


def test_n_may_be_larger_than_any_memory():
    window = LastN(OnlineThreshold(), 10**30)
    window.update(0.5, 1)

    assert (10**30, 1) == (window.n, len(LastN.from_bytes(window.to_bytes())))


def test_a_model_that_holds_samples_is_refused():
    model = OnlineThreshold()
    model.update(0.5, 1)
    with pytest.raises(ValueError, match="1 samples already"):
        LastN(model, 5)


def test_arguments_may_be_named():
    window = LastN(OnlineThreshold(), 2)
    window.update(score=0.5, label=1, weight=2)
    window.update(0.25, label=0)
    window.update_many(scores=[0.1], labels=[0])
    period = LastPeriod(OnlineCut(), 2)
    period.update(0.5, time=1, above=3, below=2)

    assert [(0.25, 0, 1), (0.1, 0, 1)] == samples_in(window)
    assert state_of(period.model, [(0.5, 2, 3)]) == period.model._state()


@pytest.mark.parametrize(
    "call",
    [
        lambda window: window.update(),
        lambda window: window.update(0.5),
        lambda window: window.update(0.5, weight=1),
        lambda window: window.update(0.5, 1, w=1),
        lambda window: window.update(0.5, 1, score=0.5),
        lambda window: window.update(0.5, 1, 1, 1),
        lambda window: window.update_many([0.5], weights=[1]),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_added(call):
    window = LastN(OnlineThreshold(), 2)
    with pytest.raises(TypeError):
        call(window)

    assert 0 == len(window)


def test_a_time_is_asked_for():
    window = LastPeriod(OnlineThreshold(), 3)
    with pytest.raises(TypeError, match="time"):
        window.update(0.5, 1)
    with pytest.raises(ValueError, match=r"times has 1, scores has 2|scores has 2, .*times has 1"):
        window.update_many([0.5, 0.6], [1, 1], times=[1])

    assert 0 == len(window)


@pytest.mark.parametrize("make", [LastN, LastPeriod])
def test_what_changes_the_model_is_not_passed_on(make):
    window = make(OnlineThreshold(), 3)

    assert not hasattr(window, "revert")
    assert not hasattr(window, "revert_many")
    assert not hasattr(window, "probability")
    with pytest.raises(AttributeError):
        window.model = OnlineThreshold()


def test_reads_pass_through_to_the_model():
    window = LastN(OnlineThreshold(), 3)
    window.update_many([0.1, 0.3, 0.7], [0, 0, 1])

    assert window.model.threshold == window.threshold
    assert [0, 1] == window.predict([0.2, 0.99]).tolist()
    assert window.model.curve().losses.tolist() == window.curve().losses.tolist()
    assert repr(window.model) in repr(window)


class Named(LastN):
    """A subclass with an argument and an attribute of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(OnlineThreshold(), 2)
        self.notes = [name]


def test_copies_of_a_subclass_share_nothing():
    window = Named("fraud")
    window.update(0.5, 1)
    deep = copy.deepcopy(window)
    back = pickle.loads(pickle.dumps(window))
    deep.notes.append("deep")
    deep.update(0.7, 0)

    assert (["fraud"], ["fraud"], 1) == (window.notes, back.notes, len(window))
    assert Named is type(deep) is type(back) is type(window.copy())


# river.


def test_river_rolling_around_our_class_gives_the_same_answers():
    river_utils = pytest.importorskip("river.utils")
    scores, labels = streams.uniform(600, seed=3)
    rolling = river_utils.Rolling(OnlineThreshold, window_size=50, false_negative=5)
    window = LastN(OnlineThreshold(false_negative=5), 50)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        rolling.update(score, label)
        window.update(score, label)

        assert (rolling.threshold, rolling.loss) == (window.threshold, window.loss)
    assert rolling.obj._state() == window.model._state()


def test_river_time_rolling_gives_the_same_answers_while_nothing_comes_too_late():
    river_utils = pytest.importorskip("river.utils")
    random = np.random.default_rng(7)
    scores, labels = streams.uniform(600, seed=4)
    period = timedelta(hours=50)
    rolling = river_utils.TimeRolling(OnlineThreshold, period=period)
    window = LastPeriod(OnlineThreshold(), period)
    for step, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        time = START + HOUR * (step - int(random.integers(0, 40)) * int(step > 60))
        if window.newest is None or time > window.newest - period:
            rolling.update(score, label, t=time)
            window.update(score, label, time=time)

            assert (rolling.threshold, rolling.loss) == (window.threshold, window.loss)


# Columns of equal samples are equal, however they were written.


@settings(max_examples=20)
@given(st.lists(st.tuples(few_scores, streams.labels, st.integers(1, 3)), max_size=8))
def test_the_way_samples_are_written_does_not_show_in_the_bytes(rows):
    ways = product(
        [float, np.float32, Fraction],
        [int, bool, float, np.uint8],
        [int, float, np.int32, Fraction],
    )
    plain = LastN(OnlineThreshold(), 5)
    for row in rows:
        plain.update(*row)
    for ways_of_one in ways:
        other = LastN(OnlineThreshold(), 5)
        for row in rows:
            other.update(*(way(value) for way, value in zip(ways_of_one, row, strict=True)))

        assert plain.to_bytes() == other.to_bytes()


def test_the_order_of_arrival_shows_only_where_it_matters():
    one, other = LastPeriod(OnlineThreshold(), 10), LastPeriod(OnlineThreshold(), 10)
    events = [(0.5, 1, 5), (0.5, 0, 5), (0.4, 1, 7), (0.3, 0, 1)]
    for score, label, time in events:
        one.update(score, label, time=time)
    for score, label, time in reversed(events):
        other.update(score, label, 1.0, time=float(time))

    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("large", [2**53 + 1, 2**58 + 1])
def test_weights_beyond_doubles_are_stored_exactly(large):
    window = LastN(OnlineThreshold(), 5)
    window.update(0.5, 1, large)
    window.update(0.6, 0, 0.5)
    back = LastN.from_bytes(window.to_bytes())
    period = LastPeriod(OnlineCut(), 5)
    period.update(0.5, large, 0.5, time=2)
    period.update(0.5, large, 0.25, time=1)

    assert window.model._state() == back.model._state()
    assert [(0.5, 1, large), (0.6, 0, Fraction(1, 2))] == samples_in(window) == samples_in(back)
    assert period.model._state() == LastPeriod.from_bytes(period.to_bytes()).model._state()


@given(rows=st.lists(labelled, max_size=40), n=st.integers(1, 6))
def test_a_calibrator_in_a_window_holds_what_the_window_does(rows, n) -> None:
    last, period = LastN(OnlineCalibrator(), n), LastPeriod(OnlineCalibrator(), n)
    counted = []
    for step, row in enumerate(rows):
        last.update(*row)
        period.update(*row, time=step)
        if len(row) < 3 or row[2] != 0:
            counted.append((step, row))
        fresh, recent = OnlineCalibrator(), OnlineCalibrator()
        for _, sample in counted[-n:]:
            fresh.update(*sample)
        for when, sample in counted:
            if step - n < when:
                recent.update(*sample)

        assert fresh._state() == last.model._state()
        assert recent._state() == period.model._state()
        assert fresh.threshold(false_negative=3) == last.threshold(false_negative=3)


@pytest.mark.parametrize(
    "time",
    [
        *(math.inf, -math.inf, math.nan),
        *(pytest.param(sign * 10**400, id=f"{sign}e400") for sign in (1, -1)),
        *(2**63, -(2**63) - 1),
    ],
)
def test_a_time_that_is_none_is_told_and_not_counted_as_refused(time) -> None:
    window = LastPeriod(OnlineThreshold(), 2.5)
    window.update(0.5, 1, time=type(time)(7))
    before = window.to_bytes()
    for call in (
        lambda: window.update(0.5, 1, time=time),
        lambda: window.update(0.5, 1, 0, time=time),
        lambda: window.update_many([0.5], [1], times=[time]),
        lambda: window.advance(time),
    ):
        with pytest.raises(ValueError, match=r"time.* must be finite|whole times have 64 bits"):
            call()
        assert before == window.to_bytes()

    assert (7, 0) == (window.newest, window.refused)
    assert window.update(0.5, 1, time=9.5)
    assert 1 == len(window)


BEYOND = 2**53 + 1  # the first whole number that no float64 tells from the next


def mixed(many: int) -> list[tuple[float, int, Any]]:
    """Samples in which one float weight stands beside whole ones that no float holds."""
    return [(k / 64, k % 2, 0.5 if k == 3 else BEYOND) for k in range(many)]


@pytest.mark.parametrize("many", [16, 17, 40])
def test_weights_that_no_array_holds_together_leave_as_they_came(many: int) -> None:
    samples = mixed(many)
    by_number, by_time = LastN(OnlineThreshold(), many), LastPeriod(OnlineThreshold(), many)
    for at, sample in enumerate(samples):
        by_number.update(*sample)
        by_time.update(*sample, time=at)
    new = [(0.5, 1, 3)] * (many - 1)
    by_number.update_many(*zip(*new, strict=True))
    by_time.update_many(*zip(*new, strict=True), times=[2 * many - 2] * (many - 1))

    assert state_of(by_number.model, [samples[-1], *new]) == by_number.model._state()
    assert state_of(by_time.model, [samples[-1], *new]) == by_time.model._state()
    by_time.advance(10 * many)
    assert 0 == len(by_time) == len(by_time.model)


def test_losses_that_no_array_holds_together_leave_as_they_came() -> None:
    window = LastPeriod(OnlineCut(), 40)
    for at in range(40):
        window.update(at / 64, 0.5 if at == 3 else BEYOND, 1, time=at)
    window.advance(100)

    assert 0 == len(window) == len(window.model)


def test_a_batch_that_is_taken_back_leaves_mixed_weights_as_they_were() -> None:
    window = LastN(OnlineThreshold(), 40)
    for sample in mixed(40):
        window.update(*sample)
    before = window.model._state(), window.to_bytes()
    with pytest.raises(OverflowError):
        window.update_many([0.5] * 40, [1] * 40, [BIG] * 40)

    assert before == (window.model._state(), window.to_bytes())


@pytest.mark.parametrize("held", [0, 1])
def test_a_window_that_goes_by_time_takes_no_batch_without_times(held):
    for make in (
        lambda: LastPeriod(OnlineThreshold(), 3),
        lambda: Fading(OnlineThreshold(), 3, by="time"),
    ):
        window = make()
        for _ in range(held):
            window.update(0.5, 1, time=100)
        before = window.to_bytes()
        with pytest.raises(TypeError, match=r"times are missing.*Nothing was changed"):
            window.update_many([0.5], [1], times=None)
        with pytest.raises(TypeError, match=r"times are missing.*Nothing was changed"):
            Grouped(make()).update_many(["a"], [0.5], [1], times=None)

        assert before == window.to_bytes()


@pytest.mark.parametrize(
    "times",
    [
        np.array(["20000-01-01"], "M8[us]"),
        np.array(["-0100-01-01"], "M8[D]"),
        np.array([2**62], "M8[s]"),  # would wrap around to 1970
        np.array(["2026-01-01", "NaT"], "M8[us]"),
    ],
)
def test_dates_that_no_datetime_has_are_refused(times):
    window = LastPeriod(OnlineThreshold(), timedelta(days=1))
    with pytest.raises(TypeError, match=r"times\[\d\] must be a datetime"):
        window.update_many([0.5] * len(times), [1] * len(times), times=times)
    with pytest.raises(TypeError, match="time must be a"):
        LastPeriod(OnlineThreshold(), 10).update(0.5, 1, time=times[-1])
    with pytest.raises(ValueError, match="period must be a positive number or timedelta"):
        LastPeriod(OnlineThreshold(), np.timedelta64(10**15, "s"))

    assert window.newest is None
    assert [True] == window.update_many(
        [0.5], [1], times=np.array(["2026-01-01"], "M8[s]")
    ).tolist()


@pytest.mark.parametrize("rows", [1, 100])
def test_a_sample_of_weight_0_that_is_too_old_is_not_counted_as_refused(rows) -> None:
    """It is left out in any case."""
    window = LastPeriod(OnlineThreshold(), 10, max_ahead=50)
    window.update(0.5, 1, time=100)
    for time in (50, 200):
        window.update(0.4, 0, time=time, weight=0)
        nothing = np.zeros(rows)
        window.update_many(nothing, nothing.astype(int), nothing, times=nothing + time)
    assert (0, 1, 100) == (window.refused, len(window), window.newest)
    window.update(0.4, 0, time=50)

    assert 1 == window.refused


def test_a_label_of_weight_0_that_matures_too_late_is_not_counted_as_refused() -> None:
    ledger = Ledger(LastPeriod(OnlineThreshold(), 10), maturity=5)
    for id, weight in (("nothing", 0), ("something", 1)):
        ledger.score(id, 0.4, 100, weight=weight)
    ledger.score("late", 0.4, 200)
    for id, refused in (("nothing", 0), ("something", 1)):
        ledger.label(id, 0)
        assert refused == ledger.refused


# ---- lengths of time as they are typed -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("36h", timedelta(hours=36)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("1.5h", timedelta(minutes=90)),
        ("007d", timedelta(days=7)),
        ("0.000001s", timedelta(microseconds=1)),
        ("0.1s", timedelta(seconds=0.1)),
        ("999999999d", timedelta(days=999_999_999)),
    ],
)
def test_a_length_of_time_means_the_same_to_commands_and_the_service(text, length) -> None:
    assert length == timedelta(microseconds=length_of(text)) == option_values.period(text)
    assert length == timedelta(microseconds=length_of(length_text(length)))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "d",
            "0d",
            "0.0h",
            "-1d",
            "+1d",
            "1 d",
            "1D",
            "1y",
            "1ms",
            "1e3s",
            "1_0d",
            ".5h",
            "1.h",
        ),
        *("7d ", "7d\n", "\uff17d", "1d12h", "nand", "0.0000000001s", "0.0000001s", "1000000000d"),
        "1" * 5000 + "d",
    ],
)
def test_what_is_no_length_of_time_is_refused_in_one_sentence(text) -> None:
    sentence = r"must be a length of time: a number and one of s, m, h, d, w, such as 90s, 12h"
    with pytest.raises(ValueError, match=sentence):
        length_of(text, "memory.length")
    with pytest.raises(argparse.ArgumentTypeError, match=sentence):
        option_values.period(text)
