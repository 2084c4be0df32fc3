# SPDX-License-Identifier: Apache-2.0
"""Bytes and files bring back the same object, or say plainly why they cannot."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import streams
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen import (
    Alarm,
    Evidence,
    Fading,
    Grouped,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
)
from limen.storage import Storable

START = datetime(2026, 1, 1)
DAY = timedelta(days=1)
STORED = json.loads(Path(__file__).with_name("stored.json").read_text())


def threshold() -> OnlineThreshold:
    cut = OnlineThreshold(false_positive=0.1, false_negative=Fraction(3, 10), unit=Decimal("0.01"))
    cut.update_many([0.1, 0.25, -0.0], [0, 1, 0], [1, 2, 0.5])
    return cut


def cut() -> OnlineCut:
    model = OnlineCut()
    model.update_many([0.1, 0.5], [0, -2], [0.5, 3])
    return model


def last_n() -> LastN:
    window = LastN(OnlineThreshold(false_negative=5), 3)
    window.update_many([0.9, 0.2, 0.4, 0.6], [0, 0, 1, 1], [1, 2, 0.25, 3])
    return window


def last_n_of_cuts() -> LastN:
    window = LastN(OnlineCut(unit=0.1), 5)
    window.update(0.5, 2**53 + 1, 0.5)
    return window


def last_period() -> LastPeriod:
    window = LastPeriod(OnlineThreshold(), 10)
    window.update_many([0.9, 0.2, 0.4, 0.6], [0, 0, 1, 1], times=[1, 20.5, 15, 12])
    window.update(0.5, 1, time=3)
    return window


def dated(zone: Any = UTC) -> LastPeriod:
    window = LastPeriod(OnlineThreshold(), timedelta(days=3, microseconds=1))
    start = START.replace(tzinfo=zone)
    for days in (0, 2, 1, 4):
        window.update(days / 8, days % 2, time=start + timedelta(days=days, microseconds=days))
    return window


def undated() -> LastPeriod:
    return dated(zone=None)


def ledger() -> Ledger:
    book = Ledger(OnlineThreshold(false_negative=5), time_to_live=9, maturity=3, correctable=7)
    for step in range(12):
        book.score(f"id {step}", step / 16, weight=1 + step % 2 / 2)
        if step % 3:
            book.label(f"id {step}", step % 2)
    book.label("early", 1)
    return book


def ledger_of_last_n() -> Ledger:
    book = Ledger(LastN(OnlineThreshold(), 3), maturity=timedelta(days=1), correctable=timedelta(2))
    for step, id in enumerate(["a", 7, b"x", UUID(int=9), ("t", 1), "z"]):
        book.score(id, step / 8, START + timedelta(hours=7 * step))
        book.label(id, step % 2)
    return book


def ledger_of_last_period() -> Ledger:
    book = Ledger(LastPeriod(OnlineCut(), 5), correctable=2)
    for step in range(9):
        book.score(step, step / 8, step - step % 3)
        book.label(step, step % 3, step % 2)
    return book


def ledger_of_a_service() -> Ledger:
    periods = {"time_to_live": 9 * DAY, "correctable": 8 * DAY, "horizon": 7 * DAY}
    window = LastPeriod(OnlineThreshold(), 10 * DAY, max_ahead=2 * DAY)
    book = Ledger(window, maturity=DAY / 2, max_ahead=DAY, **periods)
    for step in range(7):
        book.score(2**62 + step, step / 8, START + step * DAY / 2, weight=step / 4)
        book.label(2**62 + step, step % 2, as_of=START + step * DAY)
    book.label(5, 1, as_of=START)
    book.score(6, 0.5, START + 99 * DAY)  # too far ahead
    return book


def calibrator() -> OnlineCalibrator:
    model = OnlineCalibrator(unit=Fraction(1, 8))
    model.update_many([0.1, 0.25, 0.5, np.inf], [0, 1, 0, 1], [1, 2, 0.5, 0.125])
    return model


def last_n_of_calibrators() -> LastN:
    window = LastN(OnlineCalibrator(), 3)
    window.update_many([0.9, 0.2, 0.4, 0.6], [0, 0, 1, 1])
    return window


def fading() -> Fading:
    model = Fading(OnlineThreshold(), 1.5)
    for step in range(40):
        model.update(step % 4 / 8, step % 2)
    return model


def dated_fading() -> Fading:
    model = Fading(OnlineCut(), timedelta(days=1))
    model.update(0.5, 2, 0.5, time=START)
    model.update(0.25, 0, 1, time=START - timedelta(hours=7))
    return model


def ledger_of_fading() -> Ledger:
    book = Ledger(Fading(OnlineCalibrator(), 2), correctable=3, false_negative=5)
    for step in range(5):
        book.score(f"id {step}", step / 8)
        book.label(f"id {step}", step % 2)
    return book


def grouped() -> Grouped:
    shops = Grouped(OnlineThreshold(false_negative=5), at_least=2)
    groups = [("de", "bonn"), ("de", "berlin"), "fr", ("de", "bonn"), ("de", "bonn")]
    shops.update_many(groups, [0.1, 0.9, 0.5, 0.25, 0.75], [0, 1, 0, 0, 1])
    return shops


def empty_ledger() -> Ledger:
    return Ledger(LastPeriod(OnlineCut(), timedelta(1)))


def evidence() -> Evidence:
    gathered = Evidence(0.5, 0.4, false_negative=0.3, age=timedelta(days=30), largest_loss=3)
    gathered.update_many([0.45, 0.4, 0.49, 0.9, 0.41], [1, 0, 1, 1, None], [1, 2.5, 0.5, 1, 1])
    return gathered


def budget():
    found = limen.Budget(max_positive_rate=0.5, last_n=3)
    for score in (0.1, 0.9, 0.4, 0.7):
        found.answer(score)
    return found


def hourly_budget():
    found = limen.Budget(max_positives=2, last_period=60)
    for at, score in enumerate((0.1, 0.9, 0.4, 0.7)):
        found.answer(score, time=at * 25)
    return found


def lower_is_positive():
    model = OnlineThreshold(false_negative=5, direction="<=")
    model.update_many([30, 40, 50], [1, 0, 1])
    return model


def alarm() -> Alarm:
    made = Alarm(0.5, max_cost=0.25, false_negative=2, age=timedelta(days=30))
    made.update_many([0.45, 0.4, 0.49, 0.9, 0.41], [1, 0, 1, 1, None])
    return made


def ledger_with_a_trial() -> Ledger:
    made = Ledger(OnlineThreshold())
    scores = [place % 20 / 20 for place in range(80)]
    for place, score in enumerate(scores):
        made.score(place, score, place)
        made.label(place, score > 0.3)
        made.proposal(0.9, age=3)
    return made


MAKERS: list[Any] = [
    *(OnlineThreshold, threshold, cut, last_n, last_n_of_cuts, last_period, dated, undated),
    *(ledger, ledger_of_last_n, ledger_of_last_period, empty_ledger, ledger_of_a_service),
    *(calibrator, last_n_of_calibrators, fading, dated_fading, ledger_of_fading, grouped, evidence),
    *(lower_is_positive, budget, hourly_budget),
    *(alarm, ledger_with_a_trial),
]
makers = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def models_of(found: Any) -> list[Any]:
    """The models of all groups, large enough to answer or not; else the object itself."""
    if not isinstance(found, Grouped):
        return [found]
    found.at_least = 1
    return [found.model(path) for path in found]


def sealed(body: bytes, version: int = 3) -> bytes:
    """The body as if it had been written, with a right checksum."""
    head = struct.pack("<8sH6xQ", b"\x89limen\r\n", version, len(body))
    return head + body + blake2b(head + body, digest_size=16).digest()


def body_of(stored: bytes) -> bytes:
    return stored[24:-16]


# There and back.


@makers
def test_what_comes_back_is_the_same(make):
    made = make()
    stored = made.to_bytes()
    back = limen.from_bytes(stored)

    assert type(made) is type(back)
    assert stored == back.to_bytes() == type(made).from_bytes(stored).to_bytes()
    assert stored == copy.deepcopy(made).to_bytes()
    assert repr(made) == repr(back)
    if isinstance(made, Grouped):
        assert made.thresholds() == back.thresholds()
        assert [made.source(path) for path in made] == [back.source(path) for path in made]
        return
    for name in ("thresholds", "losses") if hasattr(made, "curve") else ():
        told, again = (getattr(each.curve(), name).tolist() for each in (made, back))
        assert repr(told) == repr(again)  # a threshold may be nan
    assert len(made) == len(back)


@pytest.mark.parametrize(
    "make",
    [*MAKERS, lambda: OnlineThreshold(capacity=8), lambda: limen.OnlineCalibrator(capacity=8)],
)
def test_an_object_made_without_arguments_takes_over_a_state(make):
    made = make()
    back = type(made).__new__(type(made))  # so do skops and others
    back.__setstate__(made.__getstate__())

    assert made.to_bytes() == back.to_bytes()
    assert repr(made) == repr(back)


@makers
def test_what_comes_back_goes_on_alike(make):
    made, back, twin = make(), limen.from_bytes(make().to_bytes()), make().copy()
    for each in (made, back, twin):
        if isinstance(each, Ledger):
            model = getattr(each.model, "model", each.model)
            outcome = (1, 0) if isinstance(model, OnlineCut) else (1,)
            for id in ("a", "id 4", "early", 7, "new"):
                each.label(id, *outcome)
            now: Any = START if each.newest is None else each.newest
            for more in (1, 2, 30):
                each.advance(now + (timedelta(days=more) if isinstance(now, datetime) else more))
        elif isinstance(each, Grouped):
            each.update("de", 0.3, 1)
            each.update(("it", "rome"), 0.3, 1)
        elif isinstance(each, Fading):
            each.update(0.3, 1, 1, time=None if each.newest is None else START)
        elif isinstance(each, LastPeriod):
            late = each.newest - each.period / 2
            each.update(0.3, 1, time=late)
            each.advance(each.newest + each.period / 2)
        elif isinstance(each, limen.Budget):
            timed = each.settings["last_period"] is not None
            each.answer(0.3, **({"time": 80} if timed else {}))
        elif isinstance(each, Alarm):
            each.update(0.3, 1)
        else:
            each.update(0.3, 1, 1)

    assert made.to_bytes() == back.to_bytes() == twin.to_bytes()
    for each in (back, twin):
        getattr(each, "_check", lambda: None)()


def test_another_kind_than_the_expected_one_is_refused(tmp_path):
    cut().save(tmp_path / "cut.limen")

    assert isinstance(limen.load(tmp_path / "cut.limen", OnlineCut), OnlineCut)
    assert isinstance(limen.from_bytes(last_n().to_bytes(), Storable), LastN)
    with pytest.raises(ValueError, match=r"cut\.limen: these bytes hold OnlineCut, not LastN\."):
        limen.load(tmp_path / "cut.limen", LastN)


def test_bytearrays_and_views_will_do():
    stored = threshold().to_bytes()

    assert stored == limen.from_bytes(bytearray(stored)).to_bytes()
    assert stored == limen.from_bytes(memoryview(stored)).to_bytes()


@pytest.mark.parametrize(
    "cost",
    [1, 2**70 // 2**60, 0.3, Fraction(1, 3), Decimal("0.25"), np.float64(0.1), np.int32(7)],
)
def test_costs_come_back_as_they_were_written(cost):
    back = limen.from_bytes(OnlineThreshold(false_negative=cost).to_bytes())
    plain = cost.item() if isinstance(cost, np.generic) else cost

    assert (plain, type(plain)) == (
        back._given["false_negative"],
        type(back._given["false_negative"]),
    )


class Named(OnlineThreshold):
    """A subclass without a kind of its own."""


def test_a_subclass_is_kept_as_what_it_extends():
    named = Named(false_negative=5)
    named.update(0.5, 1)

    assert OnlineThreshold is type(limen.from_bytes(named.to_bytes()))
    assert Named is type(Named.from_bytes(named.to_bytes()))
    assert named._state() == Named.from_bytes(named.to_bytes())._state()


class Counted(OnlineThreshold, kind="tests.Counted"):
    """A subclass that tells more than what is held."""

    def snapshot(self) -> dict[str, Any]:
        return {**super().snapshot(), "copies": vars(self).get("copies", 0)}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Counted:
        known = dict(snapshot)
        copies = known.pop("copies")
        made = super().from_snapshot(known)
        vars(made)["copies"] = copies + 1
        return made


def test_a_subclass_with_snapshots_of_its_own_is_copied_by_them():
    class Below(Counted):
        pass

    for kind in (Counted, Below):
        model = kind()
        model.update(0.5, 1)

        assert 2 == vars(model.copy().copy())["copies"]
        assert model._state() == model.copy()._state()


def test_what_a_subclass_adds_is_part_of_its_state():
    named, counted = Named(false_negative=5), Counted()
    named.update(0.5, 1)
    vars(named)["name"] = "fraud"
    counted.update(0.5, 1)

    for model, more in ((named, {"name": "fraud"}), (counted, {"copies": 1})):
        back = type(model).__new__(type(model))
        back.__setstate__(model.__getstate__())
        assert more == vars(back)
        assert model._state() == back._state()
        assert more == vars(pickle.loads(pickle.dumps(model)))


def test_the_model_of_a_memory_is_copied_as_its_bytes_tell():
    fading = Fading(OnlineThreshold(), half_life=2)
    fading.update_many([0.1, 0.4, 0.4, 0.9], [0, 1, 0, 1])
    model = fading.model

    twin = model.copy()

    assert model.to_bytes() == twin.to_bytes()
    assert twin.to_bytes() == limen.from_bytes(model.to_bytes()).to_bytes()
    twin.update(0.3, 1)
    assert 4 == len(model)


@pytest.mark.parametrize("make", [threshold, cut])
def test_the_order_of_arrival_does_not_show(make):
    scores, labels = streams.ties_everywhere(100)
    one, other = make(), make()
    one.update_many(scores, labels, labels)
    for at in np.random.default_rng(0).permutation(100):
        other.update(scores[at], labels[at], labels[at])

    assert one.to_bytes() == other.to_bytes()


def test_the_order_of_ids_does_not_show():
    def filled(order: list[Any]) -> bytes:
        book = Ledger(OnlineThreshold())
        for id in order:
            book.score(id, 0.5, time=1)
        for id in order:
            book.label(id, 1)
        return book.to_bytes()

    for ids in (["b", "a", "\ud800"], [3, -1, 2**40], [2**70, "a", (1, b"c"), UUID(int=1)]):
        assert filled(ids) == filled(ids[::-1])


@pytest.mark.parametrize("group", [frozenset({1}), object(), (1, frozenset())])
def test_a_group_that_cannot_be_stored_is_named(group):
    groups = Grouped(OnlineThreshold())
    groups.update(group, 0.5, 1)
    with pytest.raises(TypeError, match="which cannot be stored"):
        groups.to_bytes()


def test_groups_that_cannot_be_stored_can_be_copied():
    groups = Grouped(OnlineThreshold())
    for at in (2, 1):
        groups.update(frozenset({at}), at / 4, 1)

    for twin in (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        assert groups.thresholds() == twin(groups).thresholds()


def test_ids_come_back_equal_and_of_the_same_type():
    ids = ["ä", "", "\ud800", 5, -(2**80), 2**63, b"\x00", UUID(int=3), ("a", (1, b"2")), ()]
    book = Ledger(OnlineThreshold())
    for id in ids:
        book.score(id, 0.5)
    back = limen.from_bytes(book.to_bytes())

    assert {(id, type(id)) for id in ids} == {(id, type(id)) for id in back}


# Damage.


@makers
def test_every_flipped_bit_is_noticed(make):
    stored = bytearray(make().to_bytes())
    for at in range(len(stored)):
        for bit in range(8):
            stored[at] ^= 1 << bit
            with pytest.raises(ValueError, match="these bytes"):
                limen.from_bytes(stored)
            stored[at] ^= 1 << bit


@makers
def test_every_missing_end_is_noticed(make):
    stored = make().to_bytes()
    for size in range(len(stored)):
        with pytest.raises(ValueError, match=r"cut short|checksum"):
            limen.from_bytes(stored[:size])
    for more in (b"\0", stored):
        with pytest.raises(ValueError, match="these bytes were changed"):
            limen.from_bytes(stored + more)


def large() -> list[bytes]:
    scores, labels = streams.uniform(3_000)
    window = LastN(OnlineThreshold(), 2_000)
    window.update_many(scores, labels)
    model = OnlineThreshold()
    model.update_many(scores, labels)
    return [model.to_bytes(), window.to_bytes()]


def test_no_damage_to_larger_ones_goes_unnoticed():
    damage = random.Random(1)
    for stored in large():
        for _ in range(400):
            changed = bytearray(stored)
            at, size = damage.randrange(len(stored)), damage.choice([1, 2, 8, 100, 4_096])
            match damage.randrange(5):
                case 0:
                    changed[at : at + size] = damage.randbytes(len(changed[at : at + size]))
                case 1:
                    changed[at : at + size] = bytes(len(changed[at : at + size]))
                case 2:
                    del changed[at : at + size]
                case 3:
                    changed[at:at] = damage.randbytes(size)
                case 4:
                    other = damage.randrange(len(stored))
                    changed[at], changed[other] = changed[other], changed[at]
            if changed != stored:
                with pytest.raises(ValueError, match="these bytes"):
                    limen.from_bytes(changed)


@makers
def test_bytes_that_were_made_up_give_an_error_or_a_sound_object(make):
    """Whoever writes the checksum anew gets no further than the checks behind it."""
    damage = random.Random(2)
    body = body_of(make().to_bytes())
    for at in range(len(body)):
        changed = bytearray(body)
        changed[at] ^= 1 << damage.randrange(8)
        if damage.random() < 0.3:
            changed[damage.randrange(len(body))] = damage.randrange(256)
        try:
            found = limen.from_bytes(sealed(bytes(changed)))
        except ValueError:
            continue
        for each in models_of(found):
            model = each
            while hasattr(model, "model"):
                model._check()
                model = model.model
            model._check()
        found.to_bytes()


class Written(Storable):
    """Whatever somebody claims to be an object of limen."""

    def __init__(self, kind: str, parts: dict[str, Any]) -> None:
        self._kind = kind
        self.parts = parts

    def snapshot(self) -> dict[str, Any]:
        return self.parts


def claims_of(stored: Storable) -> list[tuple[dict[str, Any], str]]:
    """Every part of an object and of those inside it, each as its place among the others."""
    parts = dict(stored.snapshot())
    found = [(parts, name) for name in parts]
    for name, part in parts.items():
        if isinstance(part, Storable):
            inner = claims_of(part)
            parts[name] = Written(part._kind, inner[0][0])
            found += inner
    return found


ABSURD = [
    *(None, 0, -1, 1, 7, 21, 2**62, 2**63, -(2**200), 10**5000, 0.0, -1e308, 1e-320),
    *(float("nan"), float("inf"), "", "text", b"", b"bytes", (), (None,), ("any",), ("text", 1, 2)),
    *(Decimal("1E+30000000"), Decimal("1E-30000000"), Decimal("-1E+999999999"), Decimal("NaN")),
    *(Fraction(1, 3), Fraction(10**400, 3), START, START.replace(tzinfo=UTC), timedelta(days=9**6)),
    *(np.array([]), np.zeros(3, np.uint8), np.full(1, -(2**63)), np.array([float("nan")])),
]


@makers
def test_absurd_parts_give_an_error_or_a_sound_object_quickly(make):
    """As the test above, but by whole values instead of single bytes."""
    whole = make()
    claims = claims_of(whole)
    damage = random.Random(3)
    others = [OnlineThreshold(), OnlineCut(unit=3), LastN(OnlineThreshold(), 1)]
    cases = [(claim, absurd) for claim in claims for absurd in (*ABSURD, *others)]
    began = time.process_time()
    for (parts, name), absurd in damage.sample(cases, min(150, len(cases))):
        kept, parts[name] = parts[name], absurd
        made_up = Written(whole._kind, claims[0][0]).to_bytes()
        parts[name] = kept
        try:
            found = limen.from_bytes(made_up)
        except ValueError:
            continue
        len(found), found.to_bytes(), found.copy(), repr(found)
        for model in models_of(found):
            while hasattr(model, "model"):
                model._check()
                model = model.model
            model._check()
    assert time.process_time() - began < 5


@pytest.mark.parametrize("cost", ["1E+30000000", "1E-30000000", "-1E+999999999", "9E+401"])
@pytest.mark.parametrize("name", ["false_positive", "unit"])
def test_a_number_without_end_is_refused_quickly(cost, name):
    began = time.process_time()
    given = {"false_positive": 1, "false_negative": 1, "unit": None}
    state = OnlineThreshold()._state()
    made_up = Written("OnlineThreshold", {**given, name: Decimal(cost), "state": state}).to_bytes()
    with pytest.raises(ValueError, match=f"{name} must be a number of at most 400 digits"):
        limen.from_bytes(made_up)
    with pytest.raises(ValueError, match=f"{name} must be a number of at most 400 digits"):
        OnlineThreshold(**{name: Decimal(cost)})
    assert time.process_time() - began < 1


def test_a_fraction_without_end_is_refused_quickly():
    began = time.process_time()
    for cost in (Fraction(10**500), 10**500, Fraction(1, 10**500), -(10**500)):
        with pytest.raises(ValueError, match="false_negative must be a number of at most 400"):
            OnlineThreshold(false_negative=cost)
        with pytest.raises(ValueError, match="min_recall must be a number of at most 400"):
            OnlineCalibrator().best("f1", min_recall=cost)
    size = 1 << 20
    part = b"I" + struct.pack("<Q", size) + random.Random(4).randbytes(size - 1) + b"\x01"
    with pytest.raises(ValueError, match="one without end"):
        limen.from_bytes(sealed(b"(" + struct.pack("<Q", 1) + b"q" + part + part))
    assert time.process_time() - began < 2


def test_ids_that_share_one_hash_in_python_are_read_quickly():
    """A dictionary compares each with all that came before; the table of a ledger does not."""
    prime = sys.hash_info.modulus
    book = Ledger(OnlineThreshold())
    ids = [prime * (2**64 + at) for at in range(50_000)]
    book.score_many(ids, np.zeros(50_000))
    stored = book.to_bytes()
    began = time.process_time()
    back = limen.from_bytes(stored)
    assert 50_000 == len(back)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("bits", [-1, 21, 10**9])
def test_binary_places_that_no_weight_needs_are_refused(bits):
    state = bytearray(threshold()._state())
    state[:8] = (bits % 2**64).to_bytes(8, "little")
    with pytest.raises(ValueError, match="do not describe held samples"):
        OnlineCut()._restore(bytes(state))


def test_a_name_that_no_model_has_is_refused():
    parts = {**threshold().snapshot(), "false_neutral": 1}
    with pytest.raises(ValueError, match="false_neutral"):
        limen.from_bytes(Written("OnlineThreshold", parts).to_bytes())


def test_a_window_whose_model_holds_samples_of_its_own_is_refused():
    parts = {**last_n().snapshot(), "model": OnlineThreshold(false_negative=5)}
    parts["model"].update(0.5, 1)
    with pytest.raises(ValueError, match="samples of its own"):
        limen.from_bytes(Written("LastN", parts).to_bytes())


def test_a_ledger_stores_its_samples_once():
    whole, held = Ledger(OnlineThreshold()), OnlineThreshold()
    for id, score, label in [("a", 0.5, 1), ("b", 0.5, 0), ("c", 0.75, 1)]:
        whole.score(id, score, weight=0.5)
        whole.label(id, label)
        held.update(score, label, 0.5)
    parts = whole.snapshot()
    twice = Written("Ledger", {**parts, "state": held._state()}).to_bytes()

    assert parts["state"] is None
    with pytest.raises(ValueError, match="samples that are in the entries already"):
        limen.from_bytes(twice)
    assert held._state() == limen.from_bytes(whole.to_bytes()).model._state()


@pytest.mark.parametrize("claim", [{"state": OnlineThreshold()._state()}, {"cost": 2}])
def test_entries_that_the_model_does_not_hold_are_refused(claim):
    whole = Ledger(OnlineThreshold())
    whole.score("a", 0.5)
    whole.label("a", 1)
    with pytest.raises(ValueError, match="these bytes"):
        limen.from_bytes(Written("Ledger", {**whole.snapshot(), **claim}).to_bytes())


@pytest.mark.parametrize(
    ("column", "at", "value"),
    [
        ("states", 0, 9),
        ("states", 0, 1),  # a score without a label, but it has one
        ("states", 1, 3),  # held, but it has none
        ("answers", 0, 2),
        ("labels", 0, 3),
        ("scores", 0, float("nan")),
        ("ids", 1, 5),  # comes twice
        ("time_kinds", 0, 7),
    ],
)
def test_entries_that_no_ledger_has_are_refused(column, at, value):
    book = Ledger(LastN(OnlineThreshold(), 5))
    book.score(5, 0.5)
    book.label(5, 1)
    book.score(6, 0.5)
    stored = book.snapshot()
    changed = {**stored, column: stored[column].copy()}
    changed[column][at] = value

    assert [3, 1] == stored["states"].tolist()
    assert book.to_bytes() == Ledger.from_snapshot(book.snapshot()).to_bytes()
    with pytest.raises(ValueError, match="no such memory has"):
        Ledger.from_snapshot(changed)


@pytest.mark.parametrize(
    "ids",
    [
        (np.full(1, 1, np.uint8), np.array([2]), b"a"),  # of another size
        (np.full(1, 1, np.uint8), np.array([1]), b"ab"),
        (np.full(1, 1, np.uint8), np.array([1]), b"\xff"),  # no UTF-8
        (np.full(1, 3, np.uint8), np.array([1]), b"a"),  # no UUID
        (np.full(1, 4, np.uint8), np.array([2]), b"\x01\0"),  # a number that has 64 bits
        (np.full(1, 5, np.uint8), np.array([1]), b"a"),  # no tuple
        (np.full(1, 9, np.uint8), np.array([1]), b"a"),
        (np.full(2, 1, np.uint8), np.array([1]), b"a"),
    ],
)
def test_ids_that_no_object_has_are_refused(ids):
    book = Ledger(OnlineThreshold())
    book.score("a", 0.5)
    with pytest.raises(ValueError, match=r"id|decode"):
        Ledger.from_snapshot({**book.snapshot(), "ids": ids})


@settings(max_examples=300 * streams.EFFORT)
@given(st.binary(max_size=64))
def test_any_body_gives_an_error(body):
    with pytest.raises(ValueError, match="do not describe"):
        limen.from_bytes(sealed(body))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"O" + struct.pack("<Q", 6) + b"Future" + bytes(8), "knows no 'Future'; a newer one may"),
        (b"(" + struct.pack("<Q", 1), "beyond the end"),
        (b"b" + struct.pack("<Q", 2**63), "beyond the end"),
        (b"(" + struct.pack("<Q", 1) + b"N", "not one whole object"),
        ((b"(" + struct.pack("<Q", 1)) * 40 + b"N", "nested too deep"),
    ],
)
def test_bodies_that_make_no_sense_are_refused(body, told):
    with pytest.raises(ValueError, match=told):
        limen.from_bytes(sealed(body))


def test_a_future_version_is_told_apart_from_damage():
    body = body_of(threshold().to_bytes())

    assert threshold().to_bytes() == sealed(body)
    with pytest.raises(ValueError, match=r"version 4 of the format.*Install a newer limen"):
        limen.from_bytes(sealed(body, version=4))


def test_another_kind_is_named():
    stored = last_n().to_bytes()
    with pytest.raises(ValueError, match=r"hold LastN, not OnlineThreshold\. Use LastN"):
        OnlineThreshold.from_bytes(stored)
    with pytest.raises(ValueError, match="hold OnlineThreshold, not OnlineCut"):
        OnlineCut.from_bytes(threshold().to_bytes())


@pytest.mark.parametrize("wrong", ["text", None, 5, [1]])
def test_what_is_no_bytes_is_refused(wrong):
    with pytest.raises(TypeError, match="needs bytes"):
        limen.from_bytes(wrong)


@pytest.mark.parametrize("wrong", [b"hello, world", b"\x80\x04\x95", b"PK\x03\x04"])
def test_what_limen_did_not_write_is_told(wrong):
    with pytest.raises(ValueError, match="not written by limen"):
        limen.from_bytes(wrong)


@pytest.mark.parametrize("name", STORED)
def test_bytes_of_the_current_format_are_read(name):
    """stored.json holds an object of most kinds, as an earlier build wrote it."""
    make = next(make for make in MAKERS if make.__name__ == name)
    stored = base64.b64decode(STORED[name])
    back = limen.from_bytes(stored)

    assert repr(make()) == repr(back)
    assert make().to_bytes() == back.to_bytes()
    assert body_of(make().to_bytes()) == body_of(stored)


class Old(Storable):
    """An object whose snapshot is that of before 0.1.0."""

    def __init__(self, kind: str, parts: dict[str, Any]) -> None:
        self._kind, self.parts = kind, parts

    def snapshot(self) -> dict[str, Any]:
        return self.parts


def before(make: Any) -> Old:
    """Windows and ledgers were stored by their samples and without a calendar, groups as models."""
    parts = make().snapshot()
    if make is grouped:
        del parts["sizes"], parts["states"]
        return Old("Grouped", {**parts, "models": ()})
    del parts["calendar"]
    return Old(make()._kind, {**parts, "samples": ()})


@pytest.mark.parametrize("make", [last_n, dated, fading, ledger, ledger_of_last_n, grouped])
def test_a_file_of_before_the_first_release_is_refused_in_one_sentence(make, tmp_path):
    path = tmp_path / "old.limen"
    path.write_bytes(sealed(body_of(before(make).to_bytes()), version=1))
    kind = type(make()).__name__
    with pytest.raises(ValueError, match="no longer read") as refused:
        limen.load(path)
    assert (
        f"{path}: these bytes hold a {kind} in a format from before limen 0.1.0, which is no "
        "longer read. Make it again from its samples, and store that."
    ) == str(refused.value)


class Lying(Storable):
    """A group that says what no group is."""

    def __init__(self, **changed: Any) -> None:
        self.changed = changed

    def snapshot(self) -> dict[str, Any]:
        return grouped().snapshot() | self.changed

    _kind = "Grouped"


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_least": 0},
        {"empty": cut},
        {"empty": threshold},
        {"everything": 5},
        {"groups": ("any", ("a",))},
        {"groups": ("any", ("a",), ("a",), ("b",), ("c",))},
        {"groups": ("any", ("a",), ("b", "c"), ("d",), ("e",))},
        {"groups": ("any", (), "b", "c", "d")},
        {"groups": ("any", "a", ("a",), "c", "d")},
        {"groups": ("any", None, "b", "c", "d")},
        {"states": b""},
        {"sizes": np.array([-8, 136, 96, 64])},
    ],
    ids=lambda wrong: str({name: getattr(part, "__name__", part) for name, part in wrong.items()}),
)
def test_groups_that_somebody_made_up_are_refused(wrong):
    made = {name: part() if callable(part) else part for name, part in wrong.items()}
    with pytest.raises(ValueError, match="do not describe"):
        limen.from_bytes(Lying(**made).to_bytes())


# Files.


@makers
def test_a_file_brings_back_the_same(make, tmp_path):
    made = make()
    for path in (tmp_path / "one.limen", str(tmp_path / "two.limen")):
        made.save(path)

        assert made.to_bytes() == limen.load(path).to_bytes() == type(made).load(path).to_bytes()
    assert {"one.limen", "two.limen"} == set(os.listdir(tmp_path))


def test_a_file_in_the_working_folder_needs_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threshold().save("here.limen")

    assert threshold().to_bytes() == limen.load("here.limen").to_bytes()


def test_a_damaged_file_is_told_with_its_path(tmp_path):
    path = tmp_path / "fraud.limen"
    path.write_bytes(threshold().to_bytes()[:-1])
    with pytest.raises(ValueError, match=r"fraud\.limen: these bytes were cut short"):
        limen.load(path)
    with pytest.raises(FileNotFoundError):
        limen.load(tmp_path / "none")
    cut().save(path)
    with pytest.raises(ValueError, match=r"fraud\.limen: these bytes hold OnlineCut"):
        OnlineThreshold.load(path)


def test_replacing_a_file_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    threshold().save(path)
    link.symlink_to(path)
    path.chmod(0o640)
    cut().save(link)

    assert (0o640, True) == (path.stat().st_mode & 0o777, link.is_symlink())
    assert cut().to_bytes() == path.read_bytes()


def test_a_draft_is_never_more_readable_than_the_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    threshold().save(path)
    path.chmod(0o600)
    modes = []
    real = os.open

    def noted(name, flags, mode=0o777, **given):
        if flags & os.O_CREAT:
            modes.append(mode)
        return real(name, flags, mode, **given)

    monkeypatch.setattr(os, "open", noted)
    cut().save(path)

    assert [0o600] == modes


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    threshold().save(pipe)

    assert threshold().to_bytes() == os.read(reading, 10_000)
    assert ["pipe"] == os.listdir(tmp_path)
    os.close(reading)


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failure_on_the_way_leaves_the_old_file_and_nothing_else(call, tmp_path, monkeypatch):
    path = tmp_path / "model"
    threshold().save(path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space"):
            cut().save(path)

    assert threshold().to_bytes() == path.read_bytes()
    assert ["model"] == os.listdir(tmp_path)


def test_short_writes_are_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, stored: write(file, stored[:7]))
    threshold().save(tmp_path / "model")

    assert threshold().to_bytes() == (tmp_path / "model").read_bytes()


def test_the_new_file_is_on_disk_before_it_replaces_the_old_one(tmp_path, monkeypatch):
    calls = []
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)

        def noted(*given: Any, name: str = name, real: Any = real) -> Any:
            calls.append(name)
            return real(*given)

        monkeypatch.setattr(os, name, noted)
    threshold().save(tmp_path / "model")

    assert ["write", "fsync", "replace", "fsync"] == calls


SAVING = """
import sys, limen
models = [limen.OnlineThreshold(false_negative=n) for n in (1, 2)]
for model in models:
    model.update_many([k / 50_000 for k in range(50_000)], [k % 2 for k in range(50_000)])
models[0].save(sys.argv[1])
print("saved", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_kill_while_saving_leaves_the_old_or_the_new_file(tmp_path):
    path = tmp_path / "model"
    delays = random.Random(3)
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert "saved\n" == child.stdout.readline()
            time.sleep(delays.uniform(0, 0.03))
            child.send_signal(signal.SIGKILL)

        assert 50_000 == len(limen.load(path))


def test_every_kind_is_tried_here():
    """A class that can be stored and is not in the list above would go untested."""
    kinds = {make()._kind for make in MAKERS}

    known = {cls._kind for cls in Storable.__subclasses__() if hasattr(cls, "_kind")}
    assert {kind for kind in known if "." not in kind} <= kinds  # others name theirs with a dot
    models = {"OnlineThreshold", "OnlineCut", "OnlineCalibrator"}
    others = {
        "Alarm",
        "Budget",
        "Evidence",
        "Fading",
        "Grouped",
        "LastN",
        "LastPeriod",
        "Ledger",
    }
    assert models | others == kinds
