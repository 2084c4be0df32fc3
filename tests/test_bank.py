# SPDX-License-Identifier: Apache-2.0
"""A bank of memories: its members are those memories, and the one that did best of late leads."""

from __future__ import annotations

import math
from threading import Thread
from typing import Any

import numpy as np
import pytest
from interrupts import require_whole

import limen
from limen import _core


def drifting(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A stream whose best threshold jumps half way."""
    random = np.random.default_rng(1)
    scores = random.random(n)
    place = np.where(np.arange(n) < n // 2, 0.2, 0.8)
    return scores, (random.random(n) < 1 / (1 + np.exp(-20 * (scores - place)))).astype(int)


def test_members_answer_before_they_learn_and_the_cheapest_of_late_leads() -> None:
    scores, labels = drifting(600)
    bank = limen.Bank(limen.OnlineThreshold(false_negative=3), (20, 100), patience=50)
    members: list[Any] = [
        limen.OnlineThreshold(false_negative=3),
        limen.Fading(limen.OnlineThreshold(false_negative=3), 20),
        limen.Fading(limen.OnlineThreshold(false_negative=3), 100),
    ]
    spent, leaders = [0.0, 0.0, 0.0], set()
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        for at, member in enumerate(members):
            answer = score >= member.threshold
            price = 0 if answer == label else 1 if answer else 3
            spent[at] = spent[at] * 2.0 ** (-1 / 50) + price
            member.update(score, label)
        bank.update(score, label)
        lead = min(range(3), key=lambda at: (spent[at], at))
        assert bank.leader == (None, 20, 100)[lead]
        assert bank.threshold == members[lead].threshold
        assert list(bank.costs.values()) == pytest.approx(spent)
        leaders.add(lead)
    assert len(leaders) > 1
    assert bank.leader is not None
    assert bank.optimum == members[lead].optimum
    assert bank.recommended == members[lead].recommended
    assert bank.interval() == members[lead].interval()


def test_late_labels_judge_what_members_would_have_answered() -> None:
    bank = limen.Bank(limen.OnlineThreshold(), (20,), patience=50)
    for score, label in ((0.2, 0), (0.8, 1)) * 10:
        bank.update(score, label)
    then = bank.costs[None]
    bank.update(0.5, 1, thresholds=(0.9, 0.1))
    fades = 2.0 ** (-1 / 50)
    assert bank.costs[None] == pytest.approx(then * fades + 1)
    assert bank.leader == 20
    with pytest.raises(ValueError, match="those of 2 members, got 1"):
        bank.update(0.5, 1, thresholds=(0.9,))


def test_many_at_once_copies_and_bytes_are_the_same() -> None:
    scores, labels = drifting(300)
    one = limen.Bank(limen.OnlineThreshold(), (20, 100))
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        one.update(score, label, 2)
    many = one.empty()
    many.update_many(scores, labels, np.full(300, 2))
    assert one.to_bytes() == many.to_bytes()
    again = limen.from_bytes(one.to_bytes())
    again.update(0.5, 1)
    assert len(again) == 301
    assert len(one) == 300
    one.update(0.5, 1)
    assert again.to_bytes() == one.to_bytes()
    assert one.copy().threshold == one.threshold


def test_what_is_refused_changes_no_member() -> None:
    bank = limen.Bank(limen.OnlineThreshold())
    bank.update(0.5, 1)
    before = bank.to_bytes()
    for sample in ((math.nan, 1), (0.5, 2), (0.5, 1, -1), (0.5, 1, 2**62)):
        with pytest.raises((ValueError, OverflowError), match=r"[nN]othing was|must be"):
            bank.update(*sample)
    with pytest.raises(ValueError, match="nan"):
        bank.update_many([0.5, math.nan], [0, 1])
    with pytest.raises(ValueError, match=r"weights\[1\]"):
        bank.update_many([0.5, 0.6], [0, 1], [1, -1])
    with pytest.raises(OverflowError, match="Nothing was added"):
        bank.update_many([0.5, 0.6], [0, 1], [1, 2**62])
    with pytest.raises(ValueError, match="which samples came before which"):
        bank.merge(bank.copy())
    assert bank.to_bytes() == before
    with pytest.raises(TypeError, match="empty OnlineThreshold"):
        limen.Bank(limen.OnlineCalibrator())
    with pytest.raises(ValueError, match="different numbers"):
        limen.Bank(limen.OnlineThreshold(), (5, 5))
    with pytest.raises(ValueError, match="from 1 to"):
        limen.Bank(limen.OnlineThreshold(), (0,))


def test_an_interrupt_leaves_all_members_as_before_or_as_after() -> None:
    scores, labels = drifting(60)

    def made() -> limen.Bank:
        bank = limen.Bank(limen.OnlineThreshold(), (2, 5))
        bank.update_many(scores, labels)
        return bank

    def look(bank: limen.Bank) -> tuple[Any, ...]:
        bank._check()
        return bank.to_bytes(), [len(member) for member in bank._members], bank.costs

    require_whole(made, lambda bank: bank.update_many(scores[:9], labels[:9]), look)
    assert limen.Bank.update is _core.Bank.update  # no Python runs inside: nothing interrupts it


def test_stored_members_that_no_bank_has_are_refused() -> None:
    bank = limen.Bank(limen.OnlineThreshold(), (20, 100))
    bank.update_many(*drifting(100))
    described = bank.snapshot()
    for name, value in (
        ("spent", (0.0, -1.0, 0.0)),
        ("spent", (0.0, 0.0)),
        ("members", described["members"][:2]),
        ("members", (b"", *described["members"][1:])),
        ("bases", (None, None, None)),
        ("count", -1),
    ):
        with pytest.raises(ValueError, match=r"no such bank|count|out of range"):
            limen.Bank.from_snapshot(described | {name: value})
    with pytest.raises(TypeError, match="empty OnlineThreshold"):
        limen.Bank.from_snapshot(described | {"model": limen.OnlineCalibrator()})


def test_threads_share_a_bank_and_a_copy_is_of_one_moment() -> None:
    bank = limen.Bank(limen.OnlineThreshold(), (20, 100))
    scores, labels = (column.tolist() for column in drifting(2000))

    def work() -> None:
        for score, label in zip(scores, labels, strict=True):
            bank.update(score, label)

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        twin = bank.copy()
        assert twin.snapshot()["count"] == len(twin)
    for thread in threads:
        thread.join()
    bank._check()
    assert len(bank) == bank.snapshot()["count"] == 4000
