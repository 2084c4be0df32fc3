# SPDX-License-Identifier: Apache-2.0
"""The ledger against going through everything that was ever said, after every call."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
import pytest
import streams
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from streams import SmallNodeCut, SmallNodeThreshold, as_typed, at_the_door

from limen import (
    Fading,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    from_bytes,
    optimal_cut,
)
from limen.memory.base import innermost, of_all

START = datetime(2026, 1, 1)
HOUR = timedelta(hours=1)


class Event:
    """All that was said about one id."""

    def __init__(self, id: Any) -> None:
        self.id = id
        self.state = "waiting"
        self.time: Any = None
        self.score: Any = None
        self.weight: Any = 1
        self.answer: Any = None
        self.outcome: Any = None
        self.turn = -1  # which score this was
        self.group: Any = None


class SlowLedger:
    """What a ledger should know, by the plainest means: lists, and going through them all."""

    def __init__(self, costs: Any, unit: Any, window: Any, periods: dict[str, Any]) -> None:
        self.costs, self.unit, self.window, self.periods = costs, unit, window, periods
        self.events: list[Event] = []
        self.known: dict[Any, Event] = {}
        self.inside: list[Event] = []
        self.clock: Any = None
        self.turns = 0
        self.ever = Fraction(0)
        self.expired = self.refused = 0

    def losses(self, event: Event, outcome: Any) -> tuple[Fraction, Fraction]:
        if len(outcome) == 2:
            return at_the_door(outcome[0], self.unit), at_the_door(outcome[1], self.unit)
        weight = at_the_door(event.weight, self.unit)
        false_positive, false_negative = (as_typed(cost) for cost in self.costs)
        return (
            (weight * false_negative, Fraction(0))
            if outcome[0]
            else (
                Fraction(0),
                weight * false_positive,
            )
        )

    def pending(self) -> int:
        every = {id(event): event for event in (*self.events, *self.known.values())}
        return sum(event.state in ("waiting", "open", "young") for event in every.values())

    def cost(self, event: Event, outcome: Any) -> Fraction:
        return self.losses(event, outcome)[event.answer]

    def old(self, event: Event, period: str) -> bool:
        length = self.periods[period]
        return length is not None and event.time <= self.clock - length

    def young(self, event: Event, outcome: Any) -> bool:
        negative = outcome == (0,) if len(outcome) == 1 else outcome[0] < outcome[1]
        immature = self.periods["maturity"] is not None and not self.old(event, "maturity")
        return negative and immature

    def drop(self, event: Event) -> None:
        event.state = "gone"
        if self.known.get(event.id) is event:
            del self.known[event.id]

    def leave(self, event: Event) -> None:
        self.inside.remove(event)
        self.drop(event)

    def enter(self, event: Event, outcome: Any) -> None:
        event.outcome = outcome
        kind, size = self.window
        self.ever += self.cost(event, outcome)
        if kind == "period" and event.time <= self.clock - size:
            self.refused += self.losses(event, outcome) != (0, 0)
            self.drop(event)
        elif self.losses(event, outcome) == (0, 0):
            event.state = "empty"
        else:
            event.state = "held"
            self.inside.append(event)
            if kind == "n" and len(self.inside) > size:
                self.leave(self.inside[0])

    def change(self, event: Event, outcome: Any) -> None:
        if event.state == "held":
            self.ever -= self.cost(event, event.outcome)
            stays = not self.young(event, outcome) and self.losses(event, outcome) != (0, 0)
            if stays:
                self.ever += self.cost(event, outcome)
                event.outcome = outcome
                return
            self.inside.remove(event)
        if self.young(event, outcome):
            event.state, event.outcome = "young", outcome
        else:
            self.enter(event, outcome)

    def settle(self) -> None:
        kind, size = self.window
        if self.clock is None:
            return
        if kind == "period":
            for event in list(self.inside):
                if event.time <= self.clock - size:
                    self.leave(event)
        for event in sorted(self.events, key=lambda e: (e.time is None, e.time, e.turn)):
            if event.state == "young" and self.old(event, "maturity"):
                self.enter(event, event.outcome)
        for event in list(self.known.values()):
            if event.state in ("waiting", "open", "empty") and self.old(event, "time_to_live"):
                self.expired += event.state != "empty"
                self.drop(event)
            elif event.state in ("young", "held", "empty") and self.old(event, "correctable"):
                del self.known[event.id]

    def tick(self, time: Any) -> None:
        if self.clock is None:
            for event in self.known.values():
                event.time = time
        if self.clock is None or time > self.clock:
            self.clock = time
            self.settle()

    def record(
        self, id: Any, score: Any, weight: Any, time: Any, answer: int, group: Any = None
    ) -> None:
        event = self.known.get(id)
        if event is None:
            event = self.known[id] = Event(id)
            self.events.append(event)
        event.score, event.weight, event.time, event.answer = score, weight, time, answer
        event.turn, event.group = self.turns + 1, group
        self.turns += 1
        if event.outcome is None:
            event.state = "open"
        else:
            self.change(event, event.outcome)
        self.settle()

    def label(self, id: Any, outcome: Any) -> bool:
        event = self.known.get(id)
        if event is None:
            event = self.known[id] = Event(id)
            event.time = self.clock
            self.events.append(event)
        if event.state == "waiting":
            event.outcome = outcome
            return False
        if event.outcome != outcome:
            self.change(event, outcome)
            self.settle()
        return True

    def forget(self, id: Any) -> bool:
        event = self.known.get(id)
        if event is None:
            return False
        if event.state == "held":
            self.ever -= self.cost(event, event.outcome)
            self.inside.remove(event)
        self.drop(event)
        return True


IDS = "abcdefgh"
PERIODS = [None, 2, 4, 7]
WINDOWS = [("all", None), ("n", 2), ("n", 4), ("period", 3), ("period", 6)]
UNITS = [None, None, 0.1]
TIMES = ["steps", "numbers", "datetimes"]
COSTS = [(1, 5), (0.1, 0.3), (Fraction(1, 3), Fraction(2, 7))]
WEIGHTS = [1, 1, 1, 2, 0.5, 0.1, 0]
ANSWERS = [None, None, None, 0, 1]

ids = st.sampled_from(IDS)
periods = st.sampled_from(PERIODS)
few_scores = st.integers(0, 9).map(lambda k: k / 8)
losses = st.tuples(st.integers(-1, 2), st.integers(-1, 2))


def events(groups: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Some scores, whether a label comes with them, and their groups."""
    scores = (ids, few_scores, st.sampled_from(WEIGHTS), st.integers(-3, 2))
    event = st.tuples(*scores, st.sampled_from(ANSWERS), groups, st.booleans())
    return st.lists(event, min_size=1, max_size=4)


def settings_of_a_ledger(windows: list[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """What `begin` of a machine needs."""
    given = {"time_to_live": periods, "maturity": periods, "correctable": periods}
    choices = {"costs": COSTS, "unit": UNITS, "window": windows, "times": TIMES}
    chosen = {name: st.sampled_from(values) for name, values in choices.items()}
    return {**chosen, "given": st.fixed_dictionaries(given)}


class LedgerMachine(RuleBasedStateMachine):
    cuts = False
    all_windows: ClassVar[list[Any]] = WINDOWS
    all_groups: ClassVar[list[Any]] = [None]

    @initialize(**settings_of_a_ledger(WINDOWS))
    def begin(self, costs, unit, window, times, given):
        self.times = times
        kind, size = window
        if times == "datetimes":
            given = {name: None if steps is None else steps * HOUR for name, steps in given.items()}
            size = size * HOUR if kind == "period" else size
        if self.cuts:
            model: Any = SmallNodeCut(unit=unit)
        else:
            names = ("false_positive", "false_negative")
            model = SmallNodeThreshold(**dict(zip(names, costs, strict=True)), unit=unit)
        self.empty = model.empty()
        wrap = {"all": lambda m, _: m, "n": LastN, "period": LastPeriod}[kind]
        if kind == "period" and given["maturity"] is not None and given["maturity"] >= size:
            with pytest.raises(ValueError, match="too old for the window"):
                Ledger(self.grouped(wrap(model, size)), **given)
            given = {**given, "maturity": None}
            model = self.empty.empty()
        self.slow = SlowLedger(costs, unit, (kind, size), given)
        self.ledger = Ledger(self.grouped(wrap(model, size)), **given)

    def grouped(self, model):
        """What the ledger is over."""
        return model

    def inner(self):
        return innermost(self.ledger.model)

    def sample(self, event):
        weight = () if self.cuts else (event.weight,)
        return (event.score, *event.outcome, *weight)

    def fresh(self):
        model = self.inner().empty()
        for event in self.slow.inside:
            model.update(*self.sample(event))
        return model

    def threshold(self, group):
        """The one that answers to a score."""
        return self.fresh().threshold

    def one_score(self, id, score, weight, steps, answer, group=None):
        """A score so many steps after the clock."""
        named = {} if group is None else {"group": group}
        clock = self.slow.clock
        if self.times == "steps":
            given, time = None, 1 if clock is None else clock + 1
        elif self.times == "numbers":
            given = time = (0 if clock is None else clock) + steps
        else:
            given = time = (START if clock is None else clock) + steps * HOUR
        event = self.slow.known.get(id)
        if event is not None and event.state != "waiting":
            if (event.score, event.weight, event.group) == (score, weight, group):
                assert event.answer == self.ledger.score(id, score, given, weight, **named)
            else:
                with pytest.raises(ValueError, match="already"):
                    self.ledger.score(id, score, given, weight, **named)
            return
        self.slow.tick(time)
        expected = int(score >= self.threshold(group)) if answer is None else answer

        assert expected == self.ledger.score(id, score, given, weight, answer=answer, **named)
        self.slow.record(id, score, weight, time, expected, group)

    def one_label(self, id, outcome):
        assert self.slow.label(id, outcome) == self.ledger.label(id, *outcome)

    @rule(events=events(st.none()), data=st.data())
    def scores_and_labels(self, events, data):
        outcomes = losses if self.cuts else st.tuples(streams.labels)
        for id, score, weight, steps, answer, group, labelled in events:
            self.one_score(id, score, 1 if self.cuts else weight, steps, answer, group)
            if labelled:
                self.one_label(id, data.draw(outcomes))

    @rule(data=st.data(), some=st.lists(ids, min_size=1, max_size=3))
    def labels(self, data, some):
        outcomes = losses if self.cuts else st.tuples(streams.labels)
        for id in some:
            self.one_label(id, data.draw(outcomes))

    @rule(id=ids)
    def forget(self, id):
        assert self.slow.forget(id) == self.ledger.forget(id)
        assert id not in self.ledger

    @rule(steps=st.integers(-2, 3))
    def advance(self, steps):
        if self.times == "datetimes":
            time = (START if self.slow.clock is None else self.slow.clock) + steps * HOUR
        else:
            time = (0 if self.slow.clock is None else self.slow.clock) + steps
        self.ledger.advance(time)
        self.slow.tick(time)

    @rule(
        id=ids,
        score=st.sampled_from([(float("nan"), 1), (0.5, -1), ("a", 1), (0.5, float("inf"))]),
        outcome=st.sampled_from([(), (2,), ("yes",), (0, 1, 2), (0, float("nan"))]),
    )
    def broken(self, id, score, outcome):
        with pytest.raises((ValueError, TypeError)):
            self.ledger.score("new", score[0], weight=score[1])
        with pytest.raises((ValueError, TypeError)):
            self.ledger.label(id, *outcome)

    @rule(way=st.sampled_from(["pickle", "copy", "bytes"]))
    def come_back(self, way):
        if way == "pickle":
            self.ledger = pickle.loads(pickle.dumps(self.ledger))
        elif way == "copy":
            original, self.ledger = self.ledger, copy.copy(self.ledger)
            for id in IDS:
                original.forget(id)
        else:
            stored = self.ledger.to_bytes()
            self.ledger = from_bytes(stored)

            assert stored == self.ledger.to_bytes()

    @invariant()
    def model_holds_what_counts(self):
        self.inner()._check()

        assert self.fresh()._state() == self.inner()._state()
        assert len(self.slow.inside) == len(self.ledger.model)

    @invariant()
    def ids_are_known_as_long_as_they_should(self):
        assert set(self.slow.known) == set(self.ledger)
        assert len(self.slow.known) == len(self.ledger)
        assert self.slow.expired == self.ledger.expired
        assert self.slow.pending() == self.ledger.pending
        assert self.slow.clock == self.ledger.newest
        if self.slow.window[0] == "period":
            assert self.slow.refused == self.ledger.refused
            assert self.slow.refused == of_all(self.ledger.model).refused
            assert self.slow.clock == self.ledger.model.newest

    @invariant()
    def answers_cost_what_they_cost(self):
        losses = [self.slow.losses(event, event.outcome) for event in self.slow.inside]
        cost = sum(
            (self.slow.cost(event, event.outcome) for event in self.slow.inside), Fraction(0)
        )
        scores = [event.score for event in self.slow.inside]
        cuts = [-1, *scores]
        best = min(
            sum(
                (low if x <= cut else high for x, (low, high) in zip(scores, losses, strict=True)),
                Fraction(0),
            )
            for cut in cuts
        )

        assert float(cost) == self.ledger.cost
        assert float(self.slow.ever) == self.ledger.cost_ever
        assert float(cost - best) == self.ledger.regret


class CutLedgerMachine(LedgerMachine):
    cuts = True


def run_machine(machine: type[LedgerMachine], examples: int, steps: int) -> None:
    """So many examples of at most so many steps, more where there is time."""
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    effort = settings(
        max_examples=examples * streams.EFFORT, stateful_step_count=steps, phases=phases
    )
    run_state_machine_as_test(machine, settings=effort)


def walk_along(machine: type[LedgerMachine], seed: int) -> None:
    """50 steps, more than a machine finds by itself: ledgers with many samples that count."""
    random = Random(seed)
    walk = machine()
    more = {} if machine.all_groups == [None] else {"at_least": random.randint(1, 3)}
    walk.begin(
        costs=random.choice(COSTS),
        unit=random.choice(UNITS),
        window=random.choice(machine.all_windows),
        times=random.choice(TIMES),
        given={
            name: random.choice(PERIODS) for name in ("time_to_live", "maturity", "correctable")
        },
        **more,
    )
    for _ in range(50):
        id = random.choice(IDS)
        outcome: tuple[Any, ...] = (random.randint(0, 1),)
        weight = random.choice(WEIGHTS)
        if machine.cuts:
            outcome, weight = (random.randint(-1, 2), random.randint(-1, 2)), 1
        match random.choices(range(5), [45, 35, 8, 6, 6])[0]:
            case 0:
                steps, answer = random.randint(-3, 2), random.choice(ANSWERS)
                group, score = random.choice(machine.all_groups), random.randint(0, 9) / 8
                walk.one_score(id, score, weight, steps, answer, group)
            case 1:
                walk.one_label(id, outcome)
            case 2:
                walk.advance(random.randint(-2, 3))
            case 3:
                walk.forget(id)
            case 4:
                walk.come_back(random.choice(["pickle", "copy", "bytes"]))
        walk.model_holds_what_counts()
        walk.ids_are_known_as_long_as_they_should()
        walk.answers_cost_what_they_cost()


@pytest.mark.parametrize("machine", [LedgerMachine, CutLedgerMachine])
def test_any_sequence_of_calls_is_what_going_through_everything_gives(machine):
    run_machine(machine, examples=60, steps=25)


@pytest.mark.parametrize("machine", [LedgerMachine, CutLedgerMachine])
def test_long_walks_are_what_going_through_everything_gives(machine):
    for seed in range(100 * streams.EFFORT):
        walk_along(machine, seed)


# Labels.


def test_a_label_may_come_before_its_score():
    ledger = Ledger(OnlineThreshold())

    assert not ledger.label("a", 1)
    assert 0 == len(ledger.model)
    ledger.score("a", 0.9)
    assert 1 == len(ledger.model)


def test_the_same_label_again_changes_nothing():
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.9)
    for label in (1, True, 1.0, np.uint8(1)):
        assert ledger.label("a", label)
    assert ledger.label("a", label=1)

    assert (1, 1.0) == (len(ledger.model), ledger.cost)


def test_a_correction_in_a_window_keeps_its_place():
    ledger = Ledger(LastN(OnlineThreshold(), 2))
    for id, score in (("a", 0.1), ("b", 0.2)):
        ledger.score(id, score)
        ledger.label(id, 0)
    ledger.label("a", 1)
    ledger.score("c", 0.3)
    ledger.label("c", 0)

    assert ["b", "c"] == sorted(ledger)


def test_what_was_taken_out_enters_again_at_the_end():
    """Its old place in line is empty, and does not send it away."""
    ledger = Ledger(LastN(OnlineThreshold(), 2), maturity=100)
    for id in "abc":
        ledger.score(id, 0.5)
    for id, label in (("a", 1), ("a", 0), ("b", 1), ("a", 1), ("c", 1)):
        ledger.label(id, label)

    assert (["a", "c"], 2) == (sorted(ledger), len(ledger.model))


def test_turning_a_label_to_and_fro_takes_no_memory():
    for window in (LastPeriod(OnlineThreshold(), 50), LastN(OnlineThreshold(), 5)):
        ledger = Ledger(window, maturity=20, time_to_live=20, correctable=20)
        ledger.score("a", 0.5)
        sizes = []
        for step in range(4000):
            ledger.label("a", step % 2)
            sizes.append(ledger._memory())

        assert 1 == len(ledger.model)
        assert sizes[-1] == sizes[100]


def test_what_has_left_the_window_is_not_corrected():
    """Its id is not known any more, so the label waits for a score."""
    ledger = Ledger(LastN(OnlineThreshold(), 1))
    for id in "ab":
        ledger.score(id, 0.5, answer=0)
        ledger.label(id, 1)
    before = ledger.model.optimum

    assert not ledger.label("a", 0)
    assert before == ledger.model.optimum
    assert (2.0, 1.0) == (ledger.cost_ever, ledger.cost)


def test_forgotten_places_do_not_pile_up():
    """In a window that never fills, each forgotten entry leaves a gap in the line."""
    ledger = Ledger(LastN(OnlineThreshold(), 3))
    ledger.score("stays", 0.5)
    ledger.label("stays", 1)
    sizes = []
    for step in range(4000):
        ledger.score(step, 0.25)
        ledger.label(step, 0)
        ledger.forget(step)
        sizes.append(ledger._memory())

    assert sizes[-1] == sizes[100]
    assert (1, 1) == (len(ledger.model), len(ledger))


def test_forget_leaves_no_trace_in_the_bytes():
    ledger = Ledger(OnlineThreshold(), time_to_live=100, maturity=10)
    other = copy.copy(ledger)
    for each in (ledger, other):
        each.score("b", 0.25, 1)
        each.label("b", 1)
    ledger.score("secret", 0.123456789, 1)
    ledger.label("secret", 0)
    ledger.forget("secret")

    assert other.to_bytes() == ledger.to_bytes()
    assert b"secret" not in pickle.dumps(ledger)


# Time.


def test_without_times_each_score_is_a_step():
    ledger = Ledger(OnlineThreshold(), time_to_live=3)
    for id in "abcd":
        ledger.score(id, 0.5)

    assert (["b", "c", "d"], 1, 4) == (sorted(ledger), ledger.expired, ledger.newest)


def test_times_are_given_to_all_scores_or_to_none():
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.5, time=3)
    with pytest.raises(ValueError, match="time is missing"):
        ledger.score("b", 0.5)
    other = Ledger(OnlineThreshold())
    other.score("a", 0.5)
    with pytest.raises(ValueError, match="earlier scores have none"):
        other.score("b", 0.5, time=3)
    dated = Ledger(OnlineThreshold(), maturity=HOUR)
    with pytest.raises(ValueError, match="time is missing"):
        dated.score("b", 0.5)
    with pytest.raises(TypeError, match="must be a datetime"):
        dated.score("b", 0.5, time=3)

    assert (["a"], ["a"], []) == (list(ledger), list(other), list(dated))


def test_the_same_score_again_needs_no_time():
    ledger = Ledger(OnlineThreshold(), maturity=HOUR)
    ledger.score("a", 0.5, START, answer=1)
    ledger.label("b", 1)

    assert (1, [1, 1]) == (ledger.score("a", 0.5), ledger.score_many(["a"] * 2, [0.5] * 2).tolist())
    with pytest.raises(ValueError, match="time is missing"):
        ledger.score("b", 0.5)
    with pytest.raises(ValueError, match="time is missing"):
        ledger.score_many(["a", "b"], [0.5, 0.5])


def test_times_of_another_kind_are_refused():
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.5, time=START)
    for time in (START.replace(tzinfo=UTC), 3):
        with pytest.raises(TypeError, match="time"):
            ledger.score("b", 0.5, time=time)
        with pytest.raises(TypeError, match="time"):
            ledger.advance(time)
    with pytest.raises(TypeError, match="needs a time"):
        ledger.advance(None)

    assert (START, ["a"]) == (ledger.newest, list(ledger))


def test_periods_are_all_of_one_kind():
    with pytest.raises(TypeError, match="all numbers or all timedeltas"):
        Ledger(OnlineThreshold(), time_to_live=3, maturity=HOUR)
    with pytest.raises(TypeError, match="period=3"):
        Ledger(LastPeriod(OnlineThreshold(), 3), maturity=HOUR)
    with pytest.raises(ValueError, match="correctable must be a positive"):
        Ledger(OnlineThreshold(), correctable=0)


@pytest.mark.parametrize("maturity", [20, 30])
@pytest.mark.parametrize("step", [1, timedelta(days=1)])
def test_negatives_that_could_never_count_are_refused_with_the_ledger(maturity, step):
    """Only positives would count, and the answer to everything would be 1."""
    told = rf"maturity={re.escape(repr(maturity * step))} .* period={re.escape(repr(20 * step))}"
    window = LastPeriod(OnlineThreshold(), 20 * step)
    with pytest.raises(ValueError, match=f"{told}.*too old for the window"):
        Ledger(window, maturity=maturity * step)
    ledger = Ledger(window, maturity=20 * step - step / 4)
    start = START if isinstance(step, timedelta) else 0
    ledger.score("a", 0.5, start)
    ledger.label("a", 0)
    ledger.advance(start + 20 * step - step / 4)

    assert 1 == len(ledger.model)


def test_negatives_that_would_have_faded_are_refused_with_the_ledger():
    with pytest.raises(ValueError, match=r"maturity=60 .* half_life=1: .* faded to nothing"):
        Ledger(Fading(OnlineThreshold(), 1, by="time"), maturity=60)
    for window in (
        Fading(OnlineThreshold(), 1, by="time"),
        Fading(OnlineThreshold(), 1),
        LastN(OnlineThreshold(), 20),
    ):
        maturity = 60 if not isinstance(window, Fading) or window.settings["by"] != "time" else 25
        ledger = Ledger(window, maturity=maturity, time_to_live=5, correctable=10)
        ledger.score("a", 0.5, 0)
        ledger.label("a", 0)
        ledger.advance(maturity)

        assert 1 == len(ledger.model)


def test_a_stored_ledger_whose_negatives_never_count_comes_back_as_it_was():
    """It was made before this was refused; what it knows is not lost."""
    ledger = Ledger(LastPeriod(OnlineThreshold(), 20), maturity=10)
    ledger.score("a", 0.5, 0)
    ledger.label("a", 1)
    old = Ledger.from_snapshot({**ledger.snapshot(), "maturity": 30})
    for back in (from_bytes(old.to_bytes()), pickle.loads(pickle.dumps(old)), old.copy()):
        assert (1, 30) == (len(back.model), back.settings["maturity"])
        back.label("a", 0)
        back.advance(50)
        assert 0 == len(back.model)


@pytest.mark.parametrize("time", [2**63, -(2**63) - 1, 10**400])
def test_whole_times_have_64_bits(time):
    ledger = Ledger(OnlineThreshold(), maturity=2.5)
    with pytest.raises(ValueError, match=r"time is .* whole times have 64 bits"):
        ledger.score("a", 0.5, time)

    assert (0, None) == (len(ledger), ledger.newest)


def test_the_largest_whole_times_are_exact():
    ledger = Ledger(OnlineThreshold(), maturity=2)
    ledger.score("a", 0.5, 2**63 - 3)
    ledger.label("a", 0)
    held = []
    for time in (2**63 - 2, 2**63 - 1):
        ledger.advance(time)
        held.append(len(ledger.model))

    assert [0, 1] == held


def test_a_young_negative_waits_and_a_positive_does_not():
    ledger = Ledger(OnlineThreshold(), maturity=timedelta(days=30))
    ledger.score("good", 0.2, START)
    ledger.score("bad", 0.8, START)
    ledger.label("good", 0)
    ledger.label("bad", 1)

    assert 1 == len(ledger.model)
    ledger.advance(START + timedelta(days=30) - timedelta(microseconds=1))
    assert 1 == len(ledger.model)
    ledger.advance(START + timedelta(days=30))
    assert (2, 0.5) == (len(ledger.model), ledger.threshold)


def test_a_negative_counts_at_once_when_it_is_just_old_enough():
    ledger = Ledger(OnlineThreshold(), maturity=10)
    ledger.score("a", 0.5, 0)
    ledger.advance(10)
    ledger.label("a", 0)

    assert 1 == len(ledger.model)


def test_only_what_got_no_label_or_no_score_is_counted_as_expired():
    ledger = Ledger(OnlineThreshold(), time_to_live=10)
    ledger.score("of no weight", 0.5, 0, weight=0)
    ledger.label("of no weight", 1)
    ledger.score("without a label", 0.5, 0)
    ledger.label("without a score", 1)
    ledger.advance(10)

    assert (0, 2) == (len(ledger), ledger.expired)


def test_what_is_too_old_by_now_does_not_answer():
    ledger = Ledger(LastPeriod(OnlineThreshold(), 10))
    ledger.score("a", 0.5, 0)
    ledger.label("a", 1)

    assert 1 == ledger.score("b", 0.5, 9)
    assert 0 == ledger.score("c", 0.5, 10)


def test_negatives_of_one_time_enter_in_the_order_of_their_scores():
    """Also after a copy, a pickle or a file, whatever order the ids have."""
    for way in (
        copy.copy,
        lambda it: pickle.loads(pickle.dumps(it)),
        lambda it: from_bytes(it.to_bytes()),
    ):
        ledger = Ledger(LastN(OnlineThreshold(), 1), maturity=10)
        for id in "cab":
            ledger.score(id, 0.5, 0)
        for id in "bca":
            ledger.label(id, 0)
        back = way(ledger)
        back.advance(10)

        assert ["b"] == list(back)


def test_ids_that_cannot_be_corrected_any_more_take_no_memory():
    ledger = Ledger(OnlineThreshold(), time_to_live=50, correctable=20)
    for step in range(1_000):
        ledger.score(step, step % 7 / 8)
        if step % 3:
            ledger.label(step, step % 2)

        assert len(ledger) <= 70
    assert 666 == len(ledger.model)
    assert ledger._memory() < 40_000
    assert 334 == ledger.expired + len([id for id in ledger if id % 3 == 0])


# Money.


def test_sums_do_not_drift():
    """A tenth, ten times, is one; in floats it is not."""
    ledger = Ledger(OnlineThreshold(false_positive=0.1, false_negative=0.3))
    for step in range(10):
        ledger.score(step, 0.5, answer=1)
        ledger.label(step, 0)

    assert (1.0, 1.0) == (ledger.cost, ledger.regret)
    for step in range(10):
        ledger.label(step, 1)
    assert (0.0, 0.0) == (ledger.cost, ledger.regret)


def test_regret_is_exact_for_large_whole_losses():
    ledger = Ledger(OnlineThreshold())
    large = 2**51
    for id, score, label in (("a", 0.9, 0), ("b", 0.1, 1)):
        ledger.score(id, score, weight=large + (id == "a"), answer=1 - label)
        ledger.label(id, label)

    assert (2**52 + 1, 2**51 + 1) == (ledger.cost, ledger.regret)


def test_thresholds_that_move_may_beat_every_single_one():
    ledger = Ledger(OnlineThreshold())
    for id, score, label in (("a", 0.9, 0), ("b", 0.1, 1)):
        ledger.score(id, score, answer=label)
        ledger.label(id, label)

    assert (0.0, 1.0, -1.0) == (ledger.cost, ledger.loss, ledger.regret)


def test_the_answer_is_that_of_the_threshold_of_the_moment():
    ledger = Ledger(OnlineThreshold())
    answers = []
    for step, (score, label) in enumerate([(0.5, 1), (0.6, 1), (0.1, 0), (0.2, 0), (0.3, 1)]):
        answers.append(ledger.score(step, score))
        ledger.label(step, label)

    assert [0, 1, 1, 0, 0] == answers


def test_a_cut_takes_losses_instead_of_labels():
    ledger = Ledger(OnlineCut())
    ledger.score("a", 0.9, answer=1)
    ledger.label("a", 0, 5)
    ledger.score("b", 0.5, answer=0)
    ledger.label("b", below=2, above=0)

    assert (7.0, optimal_cut([0.9, 0.5], [0, 2], [5, 0])) == (ledger.cost, ledger.optimum)
    with pytest.raises(TypeError, match="takes losses"):
        ledger.score("c", 0.5, weight=2)
    with pytest.raises(TypeError, match="below and above"):
        ledger.label("b", 1)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: LastN(model, 50)])
def test_a_model_without_costs_of_its_own_takes_those_of_the_ledger(wrap):
    costs = {"false_positive": 0.1, "false_negative": 0.7}
    scores, labels = streams.uniform(60, seed=9)
    ledger = Ledger(wrap(OnlineCalibrator()), **costs)
    plain = Ledger(wrap(OnlineThreshold(**costs)))
    for step, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        assert plain.score(step, score) == ledger.score(step, score)
        assert plain.label(step, label) == ledger.label(step, label)

        assert (plain.cost, plain.regret) == (ledger.cost, ledger.regret)
    assert plain.threshold == ledger.threshold(**costs)


# The face.


def test_the_same_score_again_gives_the_same_answer():
    ledger = Ledger(OnlineThreshold())
    ledger.score("a", 0.5, answer=1)
    ledger.label("a", 0)

    assert 1 == ledger.score("a", 0.5)
    with pytest.raises(ValueError, match=r"'a' has score 0\.5 and weight 1 already"):
        ledger.score("a", 0.6)
    assert (1.0, 1) == (ledger.cost, len(ledger.model))


@pytest.mark.parametrize("answer", [2, -1, 0.5, "yes"])
def test_an_answer_is_0_or_1(answer):
    ledger = Ledger(OnlineThreshold())
    with pytest.raises(ValueError, match="answer must be 0 or 1"):
        ledger.score("a", 0.5, answer=answer)

    assert 0 == len(ledger)


def test_a_weight_that_no_model_takes_is_refused_with_the_score():
    ledger = Ledger(OnlineThreshold(unit=0.01))
    with pytest.raises(ValueError, match="finer unit"):
        ledger.score("a", 0.5, weight=0.001)
    with pytest.raises(OverflowError):
        ledger.score("a", 0.5, weight=2**62)

    assert (0, None) == (len(ledger), ledger.newest)


def test_a_coarse_unit_does_not_refuse_labels():
    ledger = Ledger(OnlineThreshold(unit=100))
    ledger.score("a", 0.5, weight=300)

    assert ledger.label("a", 1)
    assert 300.0 == ledger.cost


def overfull() -> Ledger:
    ledger = Ledger(OnlineThreshold(false_negative=3), maturity=10)
    ledger.score("large", 0.5, 1, weight=2**60)
    ledger.label("large", 1)
    ledger.score("b", 0.6, 1, weight=2**59)
    return ledger


def test_a_label_for_which_there_is_no_room_changes_nothing():
    ledger = overfull()
    before = ledger.to_bytes()
    with pytest.raises(OverflowError):
        ledger.label("b", 1)

    assert before == ledger.to_bytes()
    assert ledger.label("b", 0)


def test_a_correction_for_which_there_is_no_room_changes_nothing():
    ledger = overfull()
    ledger.label("b", 0)
    ledger.advance(100)
    before = ledger.to_bytes()
    with pytest.raises(OverflowError):
        ledger.label("b", 1)

    assert before == ledger.to_bytes()


def test_a_waiting_label_for_which_there_is_no_room_waits_on():
    ledger = overfull()
    ledger.label("c", 1)
    with pytest.raises(OverflowError):
        ledger.score("c", 0.6, 1, weight=2**59)

    assert not ledger.label("c", 1)
    ledger.forget("large")
    ledger.score("c", 0.6, 1, weight=2**59)
    assert 1 == len(ledger.model)


def test_a_negative_for_which_there_is_no_room_matures_later():
    ledger = Ledger(OnlineThreshold(), maturity=10)
    ledger.score("young", 0.5, 1, weight=2**61)
    ledger.label("young", 0)
    ledger.score("large", 0.5, 1, weight=2**61)
    ledger.label("large", 1)
    with pytest.raises(OverflowError):
        ledger.advance(11)
    ledger.forget("large")
    ledger.advance(12)

    assert 1 == len(ledger.model)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: LastN(model, 5)])
def test_a_model_that_holds_samples_is_refused(wrap):
    model = wrap(OnlineThreshold())
    model.update(0.5, 1)
    with pytest.raises(ValueError, match="samples already"):
        Ledger(model)


def test_a_window_belongs_to_one_ledger():
    window = LastN(OnlineThreshold(), 5)
    period = LastPeriod(OnlineThreshold(), 5)
    Ledger(window), Ledger(period)
    with pytest.raises(ValueError, match="another ledger"):
        Ledger(window)
    for call in (
        lambda: window.update(0.5, 1),
        lambda: window.update_many([0.5], [1]),
        lambda: period.update(0.5, 1, time=1),
        lambda: period.update(0.5, 1, time=-100),
        lambda: period.advance(1),
        lambda: window.copy(),
        lambda: period.to_bytes(),
        lambda: pickle.dumps(window),
    ):
        with pytest.raises(RuntimeError, match="belongs to a Ledger"):
            call()

    assert (0, 0, 0) == (len(window), len(period), period.refused)


def test_costs_are_given_once():
    with pytest.raises(ValueError, match="to the model only"):
        Ledger(OnlineThreshold(), false_negative=5)
    with pytest.raises(ValueError, match="to the model only"):
        Ledger(OnlineCut(), false_positive=5)


def test_ids_of_two_kinds_are_two_ids():
    ledger = Ledger(OnlineThreshold())
    ids = ["1", 1, b"1", (1,), ("1",), ((1,),), UUID(int=1), 2**64 + 1, (2**64 + 1,), "", b"", ()]
    for at, id in enumerate(ids):
        ledger.score(id, 0.5)
        ledger.label(id, 1)

        assert at + 1 == len(ledger)
        assert id in ledger
    assert set(ids) == set(ledger) == set(pickle.loads(pickle.dumps(ledger)))


@pytest.mark.parametrize(
    ("id", "same"),
    [
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (True, 1),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        ((np.int32(1), np.str_("b")), (1, "b")),
    ],
)
def test_ids_of_numpy_are_their_plain_values(id, same):
    ledger = Ledger(OnlineThreshold())
    ledger.score(id, 0.5)

    assert [same] == list(ledger)
    assert type(same) is type(next(iter(ledger)))
    assert ledger.forget(same)


@pytest.mark.parametrize(
    "id", [None, 1.0, [1], frozenset({1}), object(), START, (1, None), np.bool_(True), {}]
)
def test_what_is_no_id_is_refused_with_a_sentence(id):
    ledger = Ledger(OnlineThreshold())
    for call in (
        lambda: ledger.score(id, 0.5),
        lambda: ledger.label(id, 1),
        lambda: ledger.forget(id),
        lambda: id in ledger,
    ):
        with pytest.raises(TypeError, match=r"id is .* An id is a str, an int, bytes"):
            call()
    with pytest.raises(TypeError, match=r"ids\[1\] is .* An id is a str"):
        ledger.score_many(["a", id], [0.5, 0.5])

    assert 0 == len(ledger)


def test_reads_pass_through_a_window_to_the_model():
    ledger = Ledger(LastN(OnlineThreshold(), 5))
    for id, score, label in (("a", 0.9, 1), ("b", 0.1, 0)):
        ledger.score(id, score)
        ledger.label(id, label)

    assert (0.5, 0.0) == (ledger.threshold, ledger.loss)
    assert [0, 1] == ledger.predict([0.2, 0.7]).tolist()
    assert not hasattr(ledger, "update")
    assert "2 ids, cost 2.0, regret 2.0" in repr(ledger)


class Named(Ledger):
    """A subclass with an argument and an attribute of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(OnlineThreshold())
        self.notes = [name]


def test_copies_of_a_subclass_share_nothing():
    ledger = Named("fraud")
    ledger.score("a", 0.5)
    deep = copy.deepcopy(ledger)
    back = pickle.loads(pickle.dumps(ledger))
    deep.notes.append("deep")
    deep.label("a", 1)

    assert (["fraud"], ["fraud"], 0) == (ledger.notes, back.notes, len(ledger.model))
    assert Named is type(deep) is type(back) is type(ledger.copy())


def test_threads_may_share_a_ledger():
    ledger = Ledger(LastN(OnlineThreshold(), 100))

    def work(name: str) -> None:
        for step in range(500):
            ledger.score((name, step), step % 10 / 10)
            ledger.label((name, step), step % 2)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.model.model._check()

    assert (100, 100, 2_000) == (len(ledger.model), len(ledger), ledger.newest)
    for id in list(ledger):
        ledger.forget(id)
    assert (0, 0.0, 0.0) == (len(ledger.model), ledger.cost, ledger.loss)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: LastN(model, 5)])
def test_nothing_but_the_ledger_changes_its_model(wrap):
    model = OnlineThreshold()
    ledger = Ledger(wrap(model))
    ledger.score("a", 0.5)
    ledger.label("a", 1)
    before = ledger.to_bytes()
    for call in (
        lambda: model.update(0.5, 1),
        lambda: model.update(0.5, 1, 2),
        lambda: model.revert(0.5, 1),
        lambda: model.update_many([0.5], [1]),
        lambda: model.revert_many([0.5], [1]),
        lambda: model.merge(OnlineThreshold()),
        lambda: model._restore(OnlineThreshold()._state()),
    ):
        with pytest.raises(RuntimeError, match="this model belongs to a"):
            call()

    assert before == ledger.to_bytes()
    model.copy().update(0.5, 1)  # a copy belongs to nobody


def test_a_model_is_free_again_when_its_memory_is_gone():
    model = OnlineThreshold()
    LastN(model, 3).update(0.5, 1)
    model.update(0.7, 0)

    assert 2 == len(model)


# What is given is read before anything is locked, so that it may use the ledger itself.


def test_a_number_may_use_the_ledger_that_reads_it():
    ledger = Ledger(OnlineThreshold())

    class Number:
        def __float__(self) -> float:
            ledger.score("b", 0.25)
            return ledger.regret + 1.0

    ledger.score("a", Number(), weight=Number())
    ledger.label("a", Number())
    assert len(ledger) == 2


def test_an_id_may_use_the_ledger_that_looks_for_it():
    ledger = Ledger(OnlineThreshold())

    class Id(UUID):
        @property
        def int(self) -> int:
            ledger.score("b", 0.25)
            return ledger.forget("b") + 4

        def __init__(self) -> None: ...

    ledger.score(Id(), 0.5)
    assert [UUID(int=5)] == list(ledger)


def test_a_finaliser_may_use_the_ledger_that_is_being_asked():
    ledger = Ledger(OnlineThreshold())

    class Number:
        def __float__(self) -> float:
            gc.collect()  # as any allocation may
            return 0.5

    class Trash:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            finalised.append(ledger.to_bytes())

    finalised: list[bytes] = []
    ledger.score(0, 0.5)
    Trash()
    ledger.score(1, Number(), weight=Number())
    assert 1 == len(finalised)
    assert 2 == len(ledger)


@pytest.mark.parametrize("name", ["time_to_live", "maturity", "correctable"])
def test_a_time_from_which_a_period_cannot_be_told_is_refused(name):
    ledger = Ledger(OnlineThreshold(), **{name: 100})
    far = 1.7e18  # minus 100 it is itself
    for call in (
        lambda: ledger.score("b", 0.5, far),
        lambda: ledger.score_many(["a", "b"], [0.5, 0.5], times=[1.0, far]),
        lambda: ledger.advance(far),
    ):
        with pytest.raises(
            ValueError, match=r"no period of 100 can be represented.*Nothing was changed"
        ):
            call()

    assert ([], 0, None) == (list(ledger), ledger.expired, ledger.newest)
    ledger.score("b", 0.5, int(far))  # whole numbers are exact
    assert ledger.to_bytes() == ledger.copy().to_bytes()


def test_ledgers_are_merged_with_the_calendar_of_their_labels():
    def book(id, as_of, time=1):
        made = Ledger(OnlineThreshold())
        made.score(id, 0.5, time)
        if as_of is not None:
            made.label(id, 1, as_of=as_of)
        return made

    west, east = book("a", None), book("b", datetime(2026, 1, 1))
    west.merge(east)

    assert west._known("b") == east._known("b")
    with pytest.raises(TypeError, match="as_of must be a datetime"):
        west.label("b", 0, as_of=5)
    assert west.label("b", 0, as_of=datetime(2026, 1, 2))
    before = west.to_bytes()
    for other in (5, datetime(2026, 1, 1, tzinfo=UTC)):
        with pytest.raises(TypeError, match="cannot merge: as_of is of another kind"):
            west.merge(book("c", other))
    with pytest.raises(TypeError, match="cannot merge: times are of another kind"):
        west.merge(book("c", None, datetime(2026, 1, 1)))
    assert before == west.to_bytes()


def test_after_the_last_whole_number_there_is_no_step():
    ledger = Ledger(OnlineThreshold())
    ledger.advance(2**63 - 1)
    with pytest.raises(ValueError, match="no step after the newest"):
        ledger.score("b", 0.5)
