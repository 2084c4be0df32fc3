# SPDX-License-Identifier: Apache-2.0
"""A ledger over groups against going through everything, in each group, after every call."""

from __future__ import annotations

import contextlib
import gc
import math
import pickle
import sys
import threading
from datetime import datetime, timedelta
from random import Random
from time import sleep
from typing import Any

import numpy as np
import pytest
import streams
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from interrupts import require_whole
from test_ledger import (
    LedgerMachine,
    events,
    run_machine,
    settings_of_a_ledger,
    walk_along,
)

from limen import (
    Fading,
    Grouped,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
    from_bytes,
)
from limen.groups.models import key_of
from limen.memory.base import innermost

GROUPS = ["a", "b", ("a", 1), ("a", 2), ("a", 1, "x"), 7]
WINDOWS = [("all", None), ("period", 3), ("period", 6)]

groups = st.sampled_from(GROUPS)


def path_of(group: Any) -> tuple[Any, ...]:
    return group if isinstance(group, tuple) else (group,)


class GroupsMachine(LedgerMachine):
    all_windows = WINDOWS
    all_groups = GROUPS

    @initialize(**settings_of_a_ledger(WINDOWS), at_least=st.integers(1, 3))
    def begin(self, costs, unit, window, times, given, at_least=2):
        self.at_least = at_least
        super().begin(costs, unit, window, times, given)

    def grouped(self, model):
        return Grouped(model, at_least=self.at_least)

    def members(self, path):
        return [e for e in self.slow.inside if path_of(e.group)[: len(path)] == path]

    def of_group(self, path):
        model = self.empty.empty()
        for event in self.members(path):
            model.update(*self.sample(event))
        return model

    def threshold(self, group):
        path = path_of(group)
        while path and len(self.members(path)) < self.at_least:
            path = path[:-1]
        return self.of_group(path).threshold

    @rule(events=events(groups), data=st.data())
    def scores_and_labels(self, events, data):
        super().scores_and_labels(events, data)

    @rule(group=groups)
    def directly(self, group):
        with pytest.raises(TypeError, match="belong to a Ledger"):
            self.ledger.model.update(group, 0.5, 1)
        with pytest.raises(RuntimeError, match=r"belongs to a (Ledger|LastPeriod)"):
            innermost(self.ledger.model.model(group)).update(0.5, *[1] * (1 + self.cuts))

    @invariant()
    def model_holds_what_counts(self):
        self.ledger._check()
        model = self.ledger.model
        paths = {path_of(e.group)[:d] for e in self.slow.inside for d in range(9)} | {()}

        assert paths == set(model)
        for path in paths | set(map(path_of, GROUPS)) | {("never", "seen")}:
            assert len(self.members(path)) == model.count(path)
            assert self.threshold(path) == model.threshold(path)
        for path in paths:
            held = innermost(model._models.held[key_of(path)])
            assert self.of_group(path)._state() == held._state()
        assert len(self.slow.inside) == len(model)

    @invariant()
    def the_group_of_each_id_is_known(self):
        for id in self.ledger:
            event, number = self.slow.known[id], self.ledger._group_of(id)
            if event.state == "waiting":
                assert number is None
            else:
                assert self.ledger._number(event.group) == number


class CutGroupsMachine(GroupsMachine):
    cuts = True


@pytest.mark.parametrize("machine", [GroupsMachine, CutGroupsMachine])
def test_any_sequence_of_calls_is_what_going_through_everything_gives(machine):
    run_machine(machine, examples=40, steps=20)


@pytest.mark.parametrize("machine", [GroupsMachine, CutGroupsMachine])
def test_long_walks_are_what_going_through_everything_gives(machine):
    for seed in range(40 * streams.EFFORT):
        walk_along(machine, seed)


@pytest.mark.parametrize(("make", "more"), [(OnlineThreshold, 700), (OnlineCalibrator, 2000)])
def test_a_group_of_few_samples_takes_little_more_than_its_model(make: Any, more: int) -> None:
    ledger, own = Ledger(Grouped(make())), make()
    for id, score in enumerate([0.25, 0.5, 0.75]):
        ledger.score(id, score, group="a")
        ledger.label(id, 1)
        own.update(score, 1)

    # Memory for the next sample is there before it comes, also for one of an equal score.
    assert sys.getsizeof(ledger.model.model("a")) <= sys.getsizeof(own) + more


# ---- samples that fade ----


def cheapest(samples: list[tuple[float, int, float]]) -> float:
    """The loss of the cheapest cut of scores, labels and weights; a missed 1 costs 5."""
    cuts = [-math.inf, *(score for score, _, _ in samples)]
    return min(
        sum(weight * (5 * label if score <= cut else 1 - label) for score, label, weight in samples)
        for cut in cuts
    )


@pytest.mark.parametrize("seed", range(6))
def test_every_group_fades_by_the_one_clock(seed: int) -> None:
    random = Random(seed)
    half_life = random.choice([2, 3, 10])
    model = Grouped(Fading(OnlineThreshold(false_negative=5), half_life, by="time"), at_least=2)
    ledger = Ledger(model, maturity=random.choice([None, 3]))
    maturity = ledger.settings["maturity"] or 0
    known: dict[int, list[Any]] = {}
    clock = 0
    for step in range(150):
        moves = random.choice([0, 1, 1, 2, -3, 15 * half_life if step % 40 == 7 else 1])
        time = max(clock + moves, 0)
        clock = max(clock, time)
        group = random.choice(GROUPS[: 2 + 4 * (step < 40 or step > 100)])
        ledger.score(step, score := random.randint(0, 9) / 8, time, group=group)
        known[step] = [score, None, time, path_of(group)]
        for _ in range(2):
            id = random.choice(list(known))
            known[id][1] = random.randint(0, 1)
            ledger.label(id, known[id][1])
        if step % 10 == 3:
            ledger.forget(id := random.choice(list(known)))
            del known[id]
        if step % 25 == 5:
            ledger = from_bytes(ledger.to_bytes())
        if step % 25 == 15:
            clock += random.randint(0, 12) * half_life
            ledger.advance(clock)
        ledger._check()
        for path in [(), *map(path_of, GROUPS)]:
            weights = [
                (score, label, 2.0 ** ((time - clock) / half_life))
                for score, label, time, of in known.values()
                if of[: len(path)] == path
                and (label == 1 or (label == 0 and clock - time >= maturity))
            ]
            counting = sum(weight > 2.0**-29 for _, _, weight in weights)
            assert counting <= ledger.model.count(path)
            if ledger.model.count(path) < 2:
                continue
            assert ledger.model.source(path) == path
            found = ledger.model.optimum(path).loss
            assert found == pytest.approx(cheapest(weights), abs=1e-6)


def test_a_group_that_was_idle_for_long_does_not_answer() -> None:
    ledger = Ledger(Grouped(Fading(OnlineThreshold(), 1, by="time")))
    ledger.score("a", 0.25, time=0, group="idle")
    ledger.label("a", 1)
    ledger.advance(60)  # of this sample less than 2**-59 is left

    assert ledger.model.count("idle") == 0
    assert list(ledger.model) == [()]
    assert ledger.score("b", 0.5, time=60, group="idle") == 0


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "make",
    [
        lambda: OnlineThreshold(),
        lambda: OnlineCalibrator(),
        lambda: LastPeriod(OnlineThreshold(), 20),
        lambda: Fading(OnlineThreshold(), 1, by="time"),
        lambda: Fading(OnlineThreshold(), 5, by="time"),
    ],
)
def test_a_batch_is_the_same_as_one_by_one(make: Any, seed: int) -> None:
    random = Random(seed)
    given = {
        "maturity": random.choice([None, 2]),
        "correctable": random.choice([None, 9]),
        "max_ahead": random.choice([None, 12]),
    }
    many, single = (Ledger(Grouped(make(), at_least=2), **given) for _ in range(2))
    clock = 0
    for _ in range(12):
        rows = random.randint(1, 12)
        names = [random.randint(0, 60) for _ in range(rows)]
        names = [id for id in dict.fromkeys(names) if id not in many]
        clock += random.choice([0, 3, 25])
        times = [max(0, clock + random.randint(-4, 3)) for _ in names]
        scores = [random.randint(0, 9) / 8 for _ in names]
        where = [random.choice(GROUPS) for _ in names]
        answers = many.score_many(names, scores, times, groups=where)
        assert answers.tolist() == [
            single.score(*row[:3], group=row[3])
            for row in zip(names, scores, times, where, strict=True)
        ]
        some = [random.randint(0, 60) for _ in range(rows)]
        labels = [random.randint(0, 1) for _ in some]
        assert many.label_many(some, labels).tolist() == [
            single.label(id, label) for id, label in zip(some, labels, strict=True)
        ]
        many._check()
        assert many.to_bytes() == single.to_bytes()


def test_an_idle_group_fades_also_where_its_negative_comes_of_age_too_late() -> None:
    def ledger() -> Ledger:
        made = Ledger(Grouped(Fading(OnlineThreshold(), 1, by="time")), maturity=2)
        made.score_many(["p", "n"], [0.5, 0.25], [0, 0], groups=["idle", "idle"])
        made.label_many(["p", "n"], [1, 0])
        return made

    single, many = ledger(), ledger()
    single.score("x", 0.5, 60, group="busy")
    many.score_many(["x"], [0.5], [60], groups=["busy"])

    assert single.refused == 1
    assert single.to_bytes() == many.to_bytes()


# ---- one by one ----


def book(window: Any = None, **given: Any) -> Ledger:
    """A ledger over groups that has held, young, open and waiting ids."""
    ledger = Ledger(Grouped(OnlineThreshold() if window is None else window, at_least=2), **given)
    for time in range(6):
        ledger.score(time, time / 8, time, group=["a", ("b", "c"), ("b", "d")][time % 3])
    for id, label in ((0, 1), (1, 0), (2, 0), (3, 1), (4, 0), ("early", 1)):
        ledger.label(id, label)
    return ledger


def test_events_of_any_group_move_the_time_of_all() -> None:
    ledger = Ledger(Grouped(LastPeriod(OnlineThreshold(), 10)), time_to_live=5, maturity=2)
    ledger.score("a", 0.25, 0, group="idle")
    ledger.label("a", 0)
    ledger.score("open", 0.5, 0, group="idle")

    ledger.score("b", 0.5, 2, group="busy")
    assert ledger.model.count("idle") == 1  # old enough
    ledger.score("c", 0.5, 5, group="busy")
    assert "open" not in ledger
    ledger.advance(10)
    assert ledger.model.count("idle") == 0
    assert ledger.model.threshold("idle") == ledger.model.threshold(())


def test_a_small_group_is_answered_for_by_the_next_larger_one() -> None:
    ledger = Ledger(Grouped(OnlineThreshold(), at_least=2))
    for id, score, label, group in [
        (0, 0.5, 1, ("de", "bonn")),
        (1, 0.25, 0, ("de", "ulm")),
        (2, 0.5, 0, "fr"),
        (3, 0.75, 0, "fr"),
        (4, 0.75, 0, "fr"),
    ]:
        ledger.score(id, score, group=group)
        ledger.label(id, label)

    assert ledger.score("low", 0.25, group=("de", "bonn")) == 0  # by Germany, not by one sample
    assert ledger.score("new", 0.5, group=("de", "bonn")) == 1
    assert ledger.score("other", 0.5, group=("fr", "nice")) == 0  # by France
    assert ledger.score("unknown", 0.5, group="at") == 0  # by all
    assert ledger.model.source(("de", "bonn")) == ("de",)
    assert ledger.threshold(("de", "bonn")) == 0.375  # as of the groups


def test_regret_compares_with_one_threshold_for_all() -> None:
    ledger = Ledger(Grouped(OnlineThreshold()))
    for id, score, label, group in [(0, 0.5, 1, "a"), (1, 0.5, 0, "b")]:
        ledger.score(id, score, answer=label, group=group)  # each group as it should be
        ledger.label(id, label)

    assert (ledger.cost, ledger.regret) == (0.0, -1.0)


def test_a_group_has_costs_of_the_ledger_where_its_model_has_none() -> None:
    ledger = Ledger(Grouped(OnlineCalibrator()), false_negative=5)
    ledger.score("a", 0.5, answer=0, group="x")
    ledger.label("a", 1)

    assert ledger.cost == 5.0
    assert ledger.score("b", 0.5, group="x") == 1
    assert ledger.model.threshold("x", false_negative=5) == -math.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: LastN(OnlineThreshold(), 3),
        lambda: Fading(OnlineThreshold(), 3),
        lambda: LastN(OnlineCut(), 1),
    ],
)
def test_windows_by_number_are_refused_with_the_reason(make: Any) -> None:
    with pytest.raises(ValueError, match="by their number, in each group at another time"):
        Ledger(Grouped(make()))


def test_what_is_wrong_with_a_group_is_said_and_changes_nothing() -> None:
    ledger = book(time_to_live=9)
    before = ledger.to_bytes()
    for group, error in [
        (None, "group is missing"),
        ((), "names no group"),
        (math.nan, "names no group"),
        (("a", None), "names no group"),
        ([1], "unhashable"),
    ]:
        with pytest.raises((TypeError, ValueError), match=error):
            ledger.score("new", 0.5, 9, group=group)
    with pytest.raises(TypeError, match="group is missing"):
        ledger.score("new", 0.5, 9)
    with pytest.raises(TypeError, match="groups are missing"):
        ledger.score_many(["new"], [0.5], [9])
    with pytest.raises(ValueError, match="groups has 2, samples has 1"):
        ledger.score_many(["new"], [0.5], [9], groups=["a", "b"])
    with pytest.raises(ValueError, match="belongs to another group already, got 'b'"):
        ledger.score(0, 0.0, 0, group="b")
    with pytest.raises(ValueError, match="id 0 belongs to another group already"):
        ledger.score_many(["new", 0], [0.5, 0.0], [9, 9], groups=["new", "b"])
    plain = Ledger(OnlineThreshold())
    with pytest.raises(TypeError, match="the model has no groups"):
        plain.score("a", 0.5, group="a")
    with pytest.raises(TypeError, match="the model has none"):
        plain.score_many(["a"], [0.5], groups=["a"])

    assert ledger.to_bytes() == before
    assert list(ledger.model) == [(), ("a",), ("b",), ("b", "c"), ("b", "d")]


def test_groups_belong_to_one_ledger() -> None:
    groups: Any = Grouped(OnlineThreshold())
    ledger = Ledger(groups)
    assert ledger.model is groups
    with pytest.raises(ValueError, match="belongs to a Ledger already"):
        Ledger(groups)
    with pytest.raises(RuntimeError, match="copy or save the ledger"):
        groups.to_bytes()
    for change in (
        lambda: groups.update("a", 0.5, 1),
        lambda: groups.revert("a", 0.5, 1),
        lambda: groups.update_many(["a"], [0.5], [1]),
        lambda: groups.advance(5),
        lambda: groups.merge(Grouped(OnlineThreshold())),
    ):
        with pytest.raises(TypeError, match="these groups belong to a Ledger"):
            change()
    full: Any = Grouped(OnlineThreshold())
    full.update("a", 0.5, 1)
    with pytest.raises(ValueError, match="holds 1 samples already"):
        Ledger(full)


class Mine(OnlineThreshold):
    def update(self, *sample: Any) -> None:
        raise AssertionError


def test_models_of_others_are_refused_in_groups_too() -> None:
    with pytest.raises(TypeError, match="has its own update"):
        Ledger(Grouped(Mine()))


def test_a_group_that_holds_nothing_is_not_stored() -> None:
    ledger, same = book(), book()
    ledger.score("new", 0.5, 9, group=("never", "used"))
    ledger.forget("new")
    same.advance(9)

    assert ledger.to_bytes() == same.to_bytes()
    assert ("never",) not in list(ledger.model)


def test_equal_ledgers_give_equal_bytes_whatever_came_first() -> None:
    def filled(order: list[int]) -> bytes:
        ledger = Ledger(
            Grouped(LastPeriod(OnlineThreshold(), 100)), correctable=10, time_to_live=10
        )
        for id in order:
            ledger.score(id, 0.5, 1, answer=1, group=GROUPS[id])
            ledger.label(id, 1)
        ledger.advance(50)  # all ids are forgotten
        return ledger.to_bytes()

    assert filled([0, 1, 2, 3, 4, 5]) == filled([5, 4, 3, 2, 1, 0]) == filled([2, 5, 0, 4, 1, 3])


def test_what_is_stored_must_fit_together() -> None:
    ledger = book()
    parts, held = ledger.snapshot(), ledger.model._models.held
    states = tuple(innermost(held[key_of(path)])._state() for path in parts["paths"][1:])
    twice = {"state": innermost(ledger.model)._state(), "group_states": states}
    again = Ledger.from_snapshot(book().snapshot())

    assert ledger.to_bytes() == again.to_bytes()
    for change in (
        twice,
        {"paths": ("any", ("a",), ("b",), ("b", "c"))},
        {"paths": ("any", ("a",), ("a",), ("b", "c"), ("b", "d"))},
        {"paths": ("any", ("a",), (), ("b", "c"), ("b", "d"))},
        {"paths": ("any", ("b", "c"), ("a",), ("b",), ("b", "d"))},
        {"paths": ("any", "a", ("b",), ("b", "c"), ("b", "d"))},
        {**twice, "group_states": states[::-1]},
        {**twice, "group_states": states[1:]},
        {**twice, "group_states": ()},
        {"groups": parts["groups"] + 1},
        {"groups": parts["groups"] - 1},
        {"groups": None},
    ):
        with pytest.raises(ValueError, match=r"group|entries"):
            Ledger.from_snapshot({**book().snapshot(), **change})


@pytest.mark.parametrize(
    "make",
    [
        OnlineThreshold,
        lambda: LastPeriod(OnlineThreshold(), 30),
        lambda: Fading(OnlineThreshold(), 4, by="time"),
    ],
)
def test_ledgers_are_merged_by_the_names_of_their_groups(make: Any) -> None:
    def ledger(parts: list[int]) -> Ledger:
        made = Ledger(Grouped(make(), at_least=2), time_to_live=40)
        for time in range(24):
            if time % 3 in parts:
                made.score(time, time * 7 % 10 / 8, time, answer=1, group=GROUPS[time % 6])
                if time % 4:
                    made.label(time, time % 2)
        made.advance(30)
        return made

    # The groups come in another order in each, and some are in one alone.
    together, west, east, south = ledger([0, 1, 2]), ledger([2]), ledger([0]), ledger([1])
    west.merge(east, south)
    west._check()

    assert set(west) == set(together)
    assert set(west.model) == set(together.model)
    assert west.model.thresholds() == together.model.thresholds()
    assert west.cost == pytest.approx(together.cost)
    if not isinstance(make(), Fading):
        assert west.to_bytes() == together.to_bytes()
    before = west.to_bytes()
    with pytest.raises(ValueError, match="both know the id"):
        west.merge(ledger([0]))
    with pytest.raises(ValueError, match="at_least"):
        west.merge(Ledger(Grouped(make(), at_least=3), time_to_live=40))
    with pytest.raises(ValueError, match="at_least"):
        west.merge(Ledger(make(), time_to_live=40))
    assert west.to_bytes() == before


def test_an_old_label_and_an_old_score_change_nothing_in_groups() -> None:
    ledger = Ledger(Grouped(OnlineThreshold()), correctable=30, horizon=30)
    ledger.score("a", 0.5, 1, group="x")
    ledger.label("a", 1, as_of=5)
    ledger.label("a", 0, as_of=7)
    ledger.label("a", 1, as_of=5)
    assert ledger.cost == 0.0
    ledger.advance(31)
    ledger.score("a", 0.5, 1, group="y")
    assert (len(ledger.model), ledger.refused, ledger.model.count("y")) == (1, 1, 0)


def test_datetimes_go_for_all_groups() -> None:
    start = datetime(2026, 1, 1)
    ledger = Ledger(Grouped(LastPeriod(OnlineThreshold(), timedelta(days=30))))
    ledger.score("a", 0.5, start, group="x")
    ledger.label("a", 1)
    ledger.score("b", 0.5, start + timedelta(days=30), group="y")

    assert ledger.model.count("x") == 0
    assert ledger.model.newest == start + timedelta(days=30)


def test_a_group_outlives_its_ledger() -> None:
    ledger = book(LastPeriod(OnlineThreshold(), 50))
    model = ledger.model.model("a")
    del ledger
    gc.collect()

    assert (len(model), model.threshold) == (2, -math.inf)
    with pytest.raises(RuntimeError, match="belongs to a Ledger"):
        model.update(0.5, 1, time=60)


def test_a_model_that_another_thread_uses_is_not_taken_for_a_group() -> None:
    scores = np.random.default_rng(0).random(500_000)  # sorted first, which needs no lock

    def work(model: OnlineThreshold) -> None:
        with contextlib.suppress(RuntimeError):  # where the ledger was faster
            model.update_many(scores, scores > 0.5)

    wait = 0.004
    for _ in range(40):
        ledger, model = Ledger(Grouped(OnlineThreshold())), OnlineThreshold()
        thread, taken = threading.Thread(target=work, args=(model,)), False
        thread.start()
        sleep(wait)  # until it has begun to change the model
        busy = thread.is_alive()
        with contextlib.suppress(RuntimeError):
            ledger._add_group(model, 0)
            taken = True
        thread.join()
        assert len(model) == (0 if taken else len(scores))
        if busy and not taken:
            break
        wait *= 1.4 if taken else 0.8  # too early or too late, however slow this build is
    else:
        pytest.skip("the other thread never ran beside this one")


def test_a_model_becomes_a_group_once_and_only_while_it_is_empty() -> None:
    ledger, model = Ledger(Grouped(OnlineThreshold())), OnlineThreshold()
    model.update(0.5, 1)
    with pytest.raises(RuntimeError, match="and new"):
        ledger._add_group(model, 0)
    model.revert(0.5, 1)  # it is still free
    assert ledger._add_group(model, 0) == 1
    with pytest.raises(RuntimeError, match="belongs to a Ledger"):
        model.update(0.5, 1)
    for other in (ledger, Ledger(Grouped(OnlineThreshold()))):
        with pytest.raises(RuntimeError, match="and new"):
            other._add_group(model, 0)


def test_threads_may_share_a_ledger_over_groups() -> None:
    ledger = Ledger(Grouped(LastPeriod(OnlineThreshold(), 10**6)), time_to_live=10**6)

    def work(name: int) -> None:
        for step in range(150):
            id = (name, step)
            ledger.score_many([id], [step / 150], [step], groups=[("g", step % 40)])
            ledger.label_many([id], [step % 2])
            ledger.model.threshold(("g", step % 40))
            if step % 50 == 0:
                from_bytes(ledger.to_bytes())._check()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger._check()

    assert len(ledger.model) == 600
    assert sorted(ledger.model.count(("g", k)) for k in range(40)) == [12] * 10 + [16] * 30


# ---- interrupts ----


def whole(ledger: Any) -> tuple[Any, ...]:
    ledger._check()
    pickle.loads(pickle.dumps(ledger))._check()
    return ledger.to_bytes(), ledger.model.thresholds(), len(ledger)


@pytest.mark.parametrize(
    "make",
    [
        OnlineThreshold,
        lambda: LastPeriod(OnlineThreshold(), 5),
        lambda: Fading(OnlineThreshold(), 2, by="time"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda book: book.score("new", 0.5, 6, group="a"),
        lambda book: book.score("new", 0.5, 6, group=("new", "group")),
        lambda book: book.score("early", 0.5, 6, group=("new", "group")),
        lambda book: book.score("new", 0.5, 60, group=("b", "d")),
        lambda book: book.label(5, 1),
        lambda book: book.label(3, 0),
        lambda book: book.forget(3),
        lambda book: book.advance(60),
        lambda book: book.score_many(["x", "y"], [0.5, 0.25], [6, 7], groups=["a", ("n", 1)]),
        lambda book: book.label_many([5, 3], [1, 0]),
    ],
)
def test_an_interrupt_leaves_all_groups_as_before_or_as_after(make: Any, call: Any) -> None:
    require_whole(
        lambda: (
            book(make(), time_to_live=9, maturity=3, correctable=7)
            if not isinstance(make(), LastPeriod)
            else book(make(), time_to_live=9, maturity=3)
        ),
        call,
        whole,
    )


def test_a_proposal_for_a_group_that_is_a_number_of_numpy() -> None:
    ledger = Ledger(Grouped(OnlineThreshold()))
    for at in range(200):
        ledger.score(at, at % 10 / 10, at, group=np.int64(at % 2))
        ledger.label(at, int(at % 10 > 6))

    told, again = (ledger.proposal(0.1, age=5, group=group) for group in (np.int64(1), 1))

    assert told == again
