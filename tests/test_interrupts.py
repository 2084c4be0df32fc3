# SPDX-License-Identifier: Apache-2.0
"""An exception out of a signal handler leaves everything as before the call, or as after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from interrupts import require_whole

from limen import Fading, LastN, LastPeriod, Ledger, OnlineThreshold

BIG = 2**61  # two of them do not fit together
SCORES, LABELS = [k / 8 for k in range(8)], [0, 1] * 4

Case = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]


def whole(subject: Any) -> tuple[Any, ...]:
    """All that is stored, and what the model holds."""
    model = subject
    while hasattr(model, "model"):
        model._check()
        model = model.model
    model._check()
    return subject.to_bytes(), model._state(), len(subject), subject.threshold


def and_then(go_on: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Look at it, let it go on, and look again: what is queued shows only later."""

    def look(subject: Any) -> tuple[Any, ...]:
        now = whole(subject)
        go_on(subject)
        return now, whole(subject)

    return look


def model() -> OnlineThreshold:
    held = OnlineThreshold()
    held.update_many(SCORES, LABELS)
    return held


def last_n(n: int = 8, weight: int = 1) -> LastN:
    window = LastN(OnlineThreshold(), n)
    for score, label in zip(SCORES, LABELS, strict=True):
        window.update(score, label, weight)
    return window


def last_period(period: int = 8) -> LastPeriod:
    window = LastPeriod(OnlineThreshold(), period)
    for time in (1, 2, 5, 3, 6, 4):  # some in line, some late
        window.update(time / 8, time % 2, time=time)
    return window


def full_period() -> LastPeriod:
    window = LastPeriod(OnlineThreshold(), 8)
    window.update(0.5, 1, BIG, time=1)
    return window


def fading(by: str) -> Fading:
    held = Fading(OnlineThreshold(), 1, by=by)
    for time in range(4):
        held.update(time / 8, time % 2, time=time if by == "time" else None)
    return held


def ledger(window: Any) -> Ledger:
    book = Ledger(window, time_to_live=9, maturity=3, correctable=7)
    for time in range(6):
        book.score(time, time / 8, time)
    for id, label in ((0, 1), (1, 0), (2, 0), (3, 1), (4, 0), ("early", 1)):
        book.label(id, label)
    return book


WINDOWS: dict[str, Callable[[], Any]] = {
    "OnlineThreshold": OnlineThreshold,
    "LastN": lambda: LastN(OnlineThreshold(), 2),
    "LastPeriod": lambda: LastPeriod(OnlineThreshold(), 5),
    "Fading": lambda: Fading(OnlineThreshold(), 2, by="time"),
}

CALLS: dict[str, Callable[[Any], Any]] = {
    "a score": lambda book: book.score("new", 0.5, 6),
    "a late score": lambda book: book.score("new", 0.5, 1),
    "a score whose label waits": lambda book: book.score("early", 0.5, 6),
    "a score that moves the clock far": lambda book: book.score("new", 0.5, 20),
    "a label": lambda book: book.label(5, 1),
    "a label that waits": lambda book: book.label("new", 1),
    "a young negative": lambda book: book.label(5, 0),
    "a correction": lambda book: book.label(3, 0),
    "the correction of a young negative": lambda book: book.label(4, 1),
    "to forget": lambda book: book.forget(3),
    "to forget the young": lambda book: book.forget(4),
    "to advance a little": lambda book: book.advance(6.5),
    "to advance far": lambda book: book.advance(40),
}


def add_more(window: Any) -> None:
    for score in SCORES:
        window.update(score, 1)


def add_later(window: Any) -> None:
    for time in range(20, 34, 2):
        window.update(0.5, 1, time=time)


def tell_more(book: Any) -> None:
    for step in range(8):
        book.score(("later", step), 0.5, 50 + step)
        book.label(("later", step), 1)
    book.advance(100)


CASES: dict[str, Case] = {
    "OnlineThreshold, update": (model, lambda m: m.update(0.5, 1), whole),
    "OnlineThreshold, update_many": (model, lambda m: m.update_many(SCORES, LABELS), whole),
    "OnlineThreshold, merge": (model, lambda m: m.merge(model()), whole),
    "LastN, update": (last_n, lambda w: w.update(0.7, 1), and_then(add_more)),
    "LastN, update before it is full": (
        *(lambda: last_n(20), lambda w: w.update(0.7, 1)),
        and_then(add_more),
    ),
    "LastN, update of a weight": (last_n, lambda w: w.update(0.7, 1, 2), and_then(add_more)),
    "LastN, update where there is room only for one": (
        *(lambda: last_n(1, BIG), lambda w: w.update(0.7, 1, BIG)),
        whole,
    ),
    "LastN, update_many": (
        *(last_n, lambda w: w.update_many([0.7] * 20, [1, 0] * 10)),
        and_then(add_more),
    ),
    "LastN, update_many where there is room only for one": (
        *(lambda: last_n(1, BIG), lambda w: w.update_many([0.7, 0.8], [1, 0], [BIG, BIG])),
        whole,
    ),
    "LastPeriod, update": (
        *(last_period, lambda w: w.update(0.7, 1, time=12)),
        and_then(add_later),
    ),
    "LastPeriod, late update": (
        *(last_period, lambda w: w.update(0.7, 1, time=4.5)),
        and_then(add_later),
    ),
    "LastPeriod, update that comes too late": (
        *(last_period, lambda w: w.update(0.7, 1, time=-3)),
        and_then(add_later),
    ),
    "LastPeriod, update where there is room only for one": (
        *(full_period, lambda w: w.update(0.7, 1, BIG, time=12)),
        whole,
    ),
    "LastPeriod, update_many": (
        *(last_period, lambda w: w.update_many([0.7, 0.8], [1, 0], times=[11, 12])),
        and_then(add_later),
    ),
    "LastPeriod, advance": (last_period, lambda w: w.advance(12), and_then(add_later)),
    "Fading by samples, update": (
        *(lambda: fading("samples"), lambda f: f.update(0.7, 1)),
        and_then(add_more),
    ),
    "Fading by samples, update_many": (
        *(lambda: fading("samples"), lambda f: f.update_many([0.7], [1])),
        and_then(add_more),
    ),
    "Fading by time, update that divides": (
        *(lambda: fading("time"), lambda f: f.update(0.7, 1, time=25)),
        and_then(add_later),
    ),
    "Fading by time, advance that divides": (
        *(lambda: fading("time"), lambda f: f.advance(25)),
        and_then(add_later),
    ),
    **{
        f"Ledger over {name}, {called}": (
            *(lambda window=window: ledger(window()), call),
            and_then(tell_more),
        )
        for name, window in WINDOWS.items()
        for called, call in CALLS.items()
    },
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupt_leaves_what_was_before_or_what_is_after(case: str) -> None:
    require_whole(*CASES[case])
