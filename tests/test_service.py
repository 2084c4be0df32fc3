# SPDX-License-Identifier: Apache-2.0
"""What a service meets: labels that come again, scores that come again, clocks that are wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import streams

from limen import (
    Fading,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    from_bytes,
)

START = datetime(2026, 1, 1)
HOUR = timedelta(hours=1)


# When a label was determined.


def labelled(*labels: tuple[int, Any]) -> Ledger:
    """A ledger of one id, with these labels and what they are as of."""
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.5, 0, answer=0)
    for label, as_of in labels:
        assert ledger.label("a", label, as_of=as_of)
    return ledger


@pytest.mark.parametrize(
    ("labels", "cost"),
    [
        ([(1, 5), (0, 7), (1, 5)], 0.0),  # the old one again undoes nothing
        ([(1, 5), (0, 5)], 0.0),  # of one time, the one that comes later
        ([(1, 5), (0, 4.5)], 1.0),
        ([(1, 5), (0, None), (1, 5)], 1.0),  # without a time it counts, and any may follow
        ([(1, None), (0, 5)], 0.0),
        ([(1, 5), (1, 9), (0, 7)], 1.0),  # the same label again is known as of later
    ],
)
def test_a_label_that_is_older_than_the_one_known_changes_nothing(labels, cost):
    ledger = labelled(*labels)

    assert cost == ledger.cost
    assert cost == from_bytes(ledger.to_bytes()).cost
    assert ledger.to_bytes() == from_bytes(ledger.to_bytes()).to_bytes()


def test_a_label_that_waits_is_replaced_by_newer_ones_only():
    ledger = Ledger(OnlineThreshold())
    for label, as_of in ((1, 5), (0, 4), (1, 6), (0, 5.5)):
        assert not ledger.label("a", label, as_of=as_of)
    ledger = from_bytes(ledger.to_bytes())
    ledger.score("a", 0.5, 0, answer=0)

    assert 1.0 == ledger.cost


def test_labels_of_losses_are_as_of_a_time_too():
    ledger = Ledger(OnlineCut(), time_to_live=9 * HOUR)
    ledger.score("a", 0.5, START, answer=1)
    ledger.label("a", 0, 3, as_of=START + 2 * HOUR)
    ledger.label("a", below=0, above=5, as_of=START + HOUR)

    assert 3.0 == ledger.cost
    with pytest.raises(TypeError, match="as_of must be a datetime"):
        ledger.label("a", 0, 5, as_of=3)
    with pytest.raises(TypeError, match="time zone"):
        ledger.label("a", 0, 5, as_of=START.replace(tzinfo=UTC))
    assert 3.0 == ledger.cost


def test_labels_may_be_as_of_datetimes_where_scores_have_no_times():
    ledger = Ledger(OnlineThreshold())
    ledger.label("a", 1, as_of=START.replace(tzinfo=UTC))
    ledger.score("a", 0.5, answer=0)
    back = from_bytes(ledger.to_bytes())
    for each in (ledger, back):
        each.label("a", 0, as_of=START.replace(tzinfo=UTC) - HOUR)
        with pytest.raises(TypeError, match=r"as_of is .* time zone"):
            each.label("a", 0, as_of=START)
        with pytest.raises(TypeError, match=r"as_of\[0\] must be a datetime"):
            each.label_many(["a"], [0], as_of=[3])

        assert (1.0, 1) == (each.cost, each.newest)


def test_the_first_time_may_be_of_another_kind_than_as_of():
    ledger = Ledger(OnlineThreshold())
    ledger.label("a", 1, as_of=START.replace(tzinfo=UTC))
    ledger.score("a", 0.5, 3)
    with pytest.raises(TypeError, match="must be a number"):
        ledger.score("b", 0.5, START)

    assert 3 == ledger.newest


@pytest.mark.parametrize("as_of", [None, 7, 7.5])
def test_a_service_reads_what_is_known_of_an_id(as_of):
    ledger = Ledger(OnlineThreshold(), time_to_live=10)
    assert ledger._known("a") is None
    ledger.label("a", 1, as_of=as_of)
    assert (None, None, 1, as_of, None) == ledger._known("a")
    ledger.score("a", 0.25, 1, answer=1)
    assert (0.25, 1, 1, as_of, 1) == ledger._known("a")
    ledger.score("b", 0.5, 2, answer=0)
    assert (0.5, 0, None, None, 2) == from_bytes(ledger.to_bytes())._known("b")
    ledger.advance(12)  # the score of b has run out
    assert ledger._known("b") is None


# Scores that come again after their id was dropped.


def test_what_is_older_than_the_horizon_is_answered_but_not_recorded():
    ledger = Ledger(OnlineThreshold(), correctable=10, horizon=10)
    ledger.score("a", 0.5, 0)
    ledger.label("a", 1)
    ledger.advance(10)

    assert "a" not in ledger
    assert 1 == ledger.score("a", 0.5, 0)  # comes again
    assert ("a" in ledger, ledger.refused) == (False, 1)
    ledger.label("a", 1)  # waits, as any label without a score
    assert 1 == len(ledger.model)
    ledger.score("b", 0.5, 1)
    assert ("b" in ledger, ledger.refused) == (True, 1)


def test_without_a_horizon_what_comes_again_counts_twice():
    ledger = Ledger(OnlineThreshold(), correctable=10)
    for _ in range(2):
        ledger.score("a", 0.5, 0)
        ledger.label("a", 1)
        ledger.advance(10)

    assert 2 == len(ledger.model)


def test_a_score_that_comes_again_while_it_is_known_is_not_refused():
    ledger = Ledger(OnlineThreshold(), horizon=10)
    ledger.score("a", 0.5, 0, answer=1)
    ledger.advance(100)

    assert (1, 0) == (ledger.score("a", 0.5, 0), ledger.refused)


def test_over_last_n_the_horizon_follows_what_was_sent_away():
    ledger = Ledger(LastN(OnlineThreshold(), 2), horizon=1000)
    for time in range(5):
        ledger.score(time, 0.5, time)
        ledger.label(time, 1)
    for time in range(5):  # all of them come again
        ledger.score(time, 0.5, time)
        ledger.label(time, 1)

    assert (2, [3, 4], 3) == (len(ledger.model), [id for id in ledger if id > 2], ledger.refused)


@pytest.mark.parametrize("name", ["time_to_live", "correctable", "period"])
def test_a_horizon_is_not_longer_than_an_id_is_known(name):
    periods = {} if name == "period" else {name: 5}
    model = LastPeriod(OnlineThreshold(), 5) if name == "period" else OnlineThreshold()
    with pytest.raises(ValueError, match=rf"horizon=6 must not be longer than {name}.*=5"):
        Ledger(model, horizon=6, **periods)
    assert 5 == Ledger(model, horizon=5, **periods).settings["horizon"]


# Clocks that are wrong.


@pytest.mark.parametrize("step", [1, 0.5, HOUR])
@pytest.mark.parametrize("kind", ["LastPeriod", "Fading"])
def test_an_event_too_far_ahead_is_refused_and_sends_nothing_away(kind, step):
    make = LastPeriod if kind == "LastPeriod" else lambda *a, **b: Fading(*a, by="time", **b)
    window: Any = make(OnlineThreshold(), 50 * step, max_ahead=10 * step)
    zero = START if isinstance(step, timedelta) else 0
    for time in range(50):
        window.update(time / 64, time % 2, time=zero + time * step)

    assert not window.update(0.5, 1, time=zero + 10**6 * step)
    assert [False, True] == list(
        window.update_many([0.5, 0.5], [1, 1], times=[zero + 60 * step, zero + 59 * step])
    )
    assert (zero + 59 * step, 2) == (window.newest, window.refused)
    assert window.to_bytes() == from_bytes(window.to_bytes()).to_bytes()
    assert {"max_ahead": 10 * step} == {
        "max_ahead": from_bytes(window.to_bytes()).settings["max_ahead"]
    }
    window.advance(zero + 1000 * step)  # an order, not an event
    assert zero + 1000 * step == window.newest


def test_the_first_event_is_never_too_far_ahead():
    window = LastPeriod(OnlineThreshold(), 5, max_ahead=1)

    assert window.update(0.5, 1, time=10**9)


def test_a_score_too_far_ahead_is_answered_but_not_recorded():
    ledger = Ledger(LastPeriod(OnlineThreshold(), 5), max_ahead=3)
    ledger.score("a", 0.5, 0)
    ledger.label("a", 1)

    assert 1 == ledger.score("b", 0.5, 4)
    assert (0, ["a"], 1, 1) == (ledger.newest, list(ledger), len(ledger.model), ledger.refused)


def test_max_ahead_is_a_period_like_the_others():
    with pytest.raises(TypeError, match="all numbers or all timedeltas"):
        LastPeriod(OnlineThreshold(), 5, max_ahead=HOUR)
    with pytest.raises(ValueError, match="max_ahead must be a positive"):
        Ledger(OnlineThreshold(), max_ahead=0)
    with pytest.raises(ValueError, match="max_ahead is a time"):
        Fading(OnlineThreshold(), 5, max_ahead=3)


# Many at once.


def some_ledger(random: Random, model: Any) -> Ledger:
    window = random.choice(
        [
            lambda m: m,
            lambda m: LastN(m, 7),
            lambda m: LastPeriod(m, 12),
            lambda m: Fading(m, 5, by="time"),
        ]
    )
    periods = {name: random.choice([None, 5, 9]) for name in ("time_to_live", "correctable")}
    maturity = random.choice([None, 3])
    return Ledger(window(model), maturity=maturity, max_ahead=random.choice([None, 6]), **periods)


@pytest.mark.parametrize("cuts", [False, True])
def test_many_calls_at_once_are_what_they_are_one_by_one(cuts):
    for seed in range(40):
        random = Random(seed)
        single = some_ledger(random, OnlineCut() if cuts else OnlineThreshold(false_negative=3))
        many = single.copy()
        now = 0
        for _ in range(12):
            rows = random.choice([0, 1, 3, 20])
            ids = [f"id {random.randrange(10**6)}" for _ in range(rows)]
            scores = [random.randrange(8) / 8 for _ in ids]
            times = [now + random.randint(-4, 3) for _ in ids]
            weights = None if cuts else [random.choice([1, 2, 0.5, 0]) for _ in ids]
            answers = random.choice([None, [random.randint(0, 1) for _ in ids]])
            told = [
                single.score(
                    id,
                    scores[at],
                    times[at],
                    1 if weights is None else weights[at],
                    answer=None if answers is None else answers[at],
                )
                for at, id in enumerate(ids)
            ]

            assert told == many.score_many(ids, scores, times, weights, answers=answers).tolist()
            assert single.to_bytes() == many.to_bytes()
            some = [*ids, *random.sample(list(single), min(len(single), 5))]
            random.shuffle(some)
            width = 2 if cuts else 1
            columns = [[random.randint(0, 1) for _ in some] for _ in range(width)]
            as_of = random.choice([None, [now + random.randint(-3, 3) for _ in some]])
            known = [
                single.label(id, *(column[at] for column in columns), as_of=as_of and as_of[at])
                for at, id in enumerate(some)
            ]
            assert known == many.label_many(some, *columns, as_of=as_of).tolist()
            assert single.to_bytes() == many.to_bytes()
            now += random.randint(0, 4)
        many._check()


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "c"],
        ("a", "b", "c"),
        np.array(["a", "b", "c"]),
        np.array(["a", "b", "c"], object),
        np.array([b"a", b"b", b"c"]),
        np.array([3, -(2**63), 5]),
        np.array([3, 4, 2**64 - 1], np.uint64),
        np.arange(6, dtype=np.int32)[::2],
        [1, "a", (2, b"c")],
        [UUID(int=1), UUID(int=2), 2**70],
    ],
    ids=repr,
)
def test_ids_come_in_any_column(ids):
    ledger = Ledger(OnlineThreshold())
    ledger.score_many(ids, [0.1, 0.2, 0.3])
    plain = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)

    assert set(plain) == set(ledger)
    assert [True] * 3 == ledger.label_many(ids, [0, 1, 1]).tolist()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_ids_and_times_come_out_of_frames(library):
    frames: Any = pytest.importorskip(library)
    times = [START, START + HOUR]
    if library == "pyarrow":
        ids, when = frames.array(["a", "b"]), frames.array(times)
    else:
        ids, when = frames.Series(["a", "b"]), frames.Series(times)
    ledger = Ledger(LastPeriod(OnlineThreshold(), 9 * HOUR))
    ledger.score_many(ids, [0.1, 0.2], when)
    ledger.label_many(ids, [0, 1], as_of=when)

    assert (["a", "b"], times[1], 2) == (list(ledger), ledger.newest, len(ledger.model))


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda it: it.score_many(["x", "y"], [0.5, float("nan")]),
            ValueError,
            r"scores\[1\] is nan",
        ),
        (lambda it: it.score_many(["x", None], [0.5, 0.5]), TypeError, r"ids\[1\] is None"),
        (lambda it: it.score_many(["x", "a"], [0.5, 0.7]), ValueError, r"'a' has score 0\.5"),
        (lambda it: it.score_many(["x"], [0.5, 0.7]), ValueError, "ids has 1, scores has 2"),
        (lambda it: it.score_many(["x"], [0.5], [1, 2]), ValueError, "times has 2"),
        (
            lambda it: it.score_many(["x"], [0.5], [START]),
            TypeError,
            r"times\[0\] must be a number",
        ),
        (lambda it: it.score_many(["x"], [0.5], [2]), ValueError, "earlier scores have none"),
        (lambda it: it.score_many(["x"], [0.5], None, [-1]), ValueError, r"weights\[0\] must be"),
        (lambda it: it.score_many(["x"], [0.5], answers=[2]), ValueError, "answers must be 0 or 1"),
        (lambda it: it.label_many(["a", "b"], [1, 2]), ValueError, "labels must be 0 or 1"),
        (lambda it: it.label_many(["a", "b"], [1]), ValueError, "ids has 2, labels has 1"),
        (lambda it: it.label_many(["a"], [1], [0]), TypeError, "takes the ids and labels"),
        (lambda it: it.label_many(["a", "a"], [1, 1], as_of=[1]), ValueError, "as_of has 1"),
        (
            lambda it: it.score_many(["x", "w"], [0.5, 0.5], None, [2**61, 2**61]),
            OverflowError,
            r"2\*\*62 units",
        ),
    ],
)
def test_an_error_in_one_row_leaves_all_as_it_was(call, error, told):
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.5)
    for waiting in ("x", "w"):
        ledger.label(waiting, 1)
    before = ledger.to_bytes()
    with pytest.raises(error, match=told):
        call(ledger)

    assert before == ledger.to_bytes()


def test_losses_come_in_two_columns():
    ledger = Ledger(OnlineCut())
    ledger.score_many(["a", "b"], [0.1, 0.9], answers=[1, 1])
    ledger.label_many(["a", "b"], [0, 2.5], [3, 0])

    assert 3.0 == ledger.cost
    with pytest.raises(TypeError, match="takes losses"):
        ledger.score_many(["c"], [0.5], weights=[2])
    with pytest.raises(TypeError, match="below and above"):
        ledger.label_many(["a"], [1])


def test_a_calibrator_answers_many_at_the_costs_of_the_ledger():
    scores, labels = streams.uniform(300, seed=2)
    costs = {"false_positive": 1, "false_negative": 4}
    plain = Ledger(OnlineThreshold(**costs))
    every = Ledger(OnlineCalibrator(), **costs)
    for begin in range(0, 300, 25):
        part = slice(begin, begin + 25)
        ids = np.arange(begin, begin + 25)
        for ledger in (plain, every):
            ledger.label_many(ids, labels[part])

        assert (
            plain.score_many(ids, scores[part]).tolist()
            == every.score_many(ids, scores[part]).tolist()
        )
        assert (plain.cost, plain.regret) == (every.cost, every.regret)


# Several machines, one answer.


def test_windows_of_one_clock_are_merged_into_what_one_window_holds():
    random = Random(4)
    for make in (
        lambda: LastPeriod(OnlineThreshold(false_negative=3), 20),
        lambda: LastPeriod(OnlineCut(unit=0.1), 20.5),
        lambda: LastPeriod(OnlineCalibrator(), 20, max_ahead=100),
    ):
        parts, whole = [make() for _ in range(3)], make()
        events = [
            (random.random(), random.randint(0, 1), random.randint(1, 3), random.randrange(60))
            for _ in range(200)
        ]
        for score, label, weight, time in sorted(events, key=lambda event: event[3]):
            random.choice(parts).update(score, label, weight, time=time)
            whole.update(score, label, weight, time=time)
        before = [part.to_bytes() for part in parts[1:]]
        parts[0].merge(*parts[1:])

        assert whole.to_bytes() == parts[0].to_bytes()
        assert before == [part.to_bytes() for part in parts[1:]]


def test_ledgers_over_disjoint_ids_are_merged_into_what_one_ledger_knows():
    periods = {"time_to_live": 30, "maturity": 4, "correctable": 25}
    one, other = (Ledger(LastPeriod(OnlineThreshold(), 40), **periods) for _ in range(2))
    whole = Ledger(LastPeriod(OnlineThreshold(), 40), **periods)
    random = Random(5)
    for time in range(60):
        name = ("west", "east")[random.randrange(2)]
        for ledger in (one if name == "west" else other, whole):
            ledger.score((name, time), 0.5, time, answer=time % 2)
        if time >= 3 and random.random() < 0.8:
            for ledger in (one, other, whole):
                for where in ("west", "east"):
                    if (where, time - 3) in ledger:
                        ledger.label((where, time - 3), time % 3 == 0)
    one.merge(other)

    assert set(whole) == set(one)
    assert (whole.cost, whole.cost_ever, whole.regret) == (one.cost, one.cost_ever, one.regret)
    assert whole.model.model._state() == one.model.model._state()
    one._check()


@pytest.mark.parametrize(
    ("one", "other", "error", "told"),
    [
        (
            lambda: LastN(OnlineThreshold(), 3),
            lambda: LastN(OnlineThreshold(), 3),
            ValueError,
            "which samples came before which",
        ),
        (
            lambda: LastPeriod(OnlineThreshold(), 3),
            lambda: LastPeriod(OnlineThreshold(), 4),
            ValueError,
            "period is 3 here and 4 there",
        ),
        (
            lambda: LastPeriod(OnlineThreshold(), 3),
            lambda: LastPeriod(OnlineThreshold(false_negative=2), 3),
            ValueError,
            "false_negative is",
        ),
        (
            lambda: LastPeriod(OnlineThreshold(), 3),
            lambda: LastPeriod(OnlineCut(), 3),
            ValueError,
            "cannot merge",
        ),
        (
            lambda: LastPeriod(OnlineThreshold(), 3),
            lambda: Fading(OnlineThreshold(), 3, by="time"),
            TypeError,
            "cannot merge Fading into LastPeriod",
        ),
        (
            lambda: Ledger(OnlineThreshold()),
            lambda: Ledger(LastPeriod(OnlineThreshold(), 3)),
            ValueError,
            "cannot merge",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused_with_the_reason(one, other, error, told):
    first = one()
    before = first.to_bytes()
    with pytest.raises(error, match=told):
        first.merge(other())
    with pytest.raises(ValueError, match="same object twice"):
        first.merge(first)

    assert before == first.to_bytes()


def test_an_id_that_both_know_is_named():
    one, other = Ledger(OnlineThreshold()), Ledger(OnlineThreshold())
    for ledger in (one, other):
        ledger.score("a", 0.5, 1)
    other.score("b", 0.5, 2)
    with pytest.raises(ValueError, match="both know the id 'a'"):
        one.merge(other)

    assert ["a"] == list(one)
