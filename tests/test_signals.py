# SPDX-License-Identifier: Apache-2.0
"""Real signals at random moments, whose handler raises, while windows and ledgers work.

The places of `tests/interrupts.py` are all places in Python; a signal also arrives while native
code runs. Whenever it does, the object is what the calls that came to their end have made of it,
or what these and the interrupted call make.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import streams
from interrupts import at_random_moments

from limen import (
    Fading,
    Grouped,
    LastN,
    LastPeriod,
    Ledger,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
)

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no interval timers"
)

CALLS = 400  # of each object
WAITS = 110 * streams.EFFORT**2  # signals for each kind of object

Call = Callable[[Any], Any]


def samples(random: Random, times: bool) -> list[Call]:
    """Updates of a window, some of them of many samples."""
    calls: list[Call] = []
    for now in range(CALLS):
        score, label = random.random(), random.randint(0, 1)
        time = {"time": now - random.choice([0, 0, 0, 5])} if times else {}
        if now % 16:
            calls.append(lambda w, s=score, y=label, t=time: w.update(s, y, **t))
        else:
            columns = [[random.random() for _ in range(40)], [k % 2 for k in range(40)]]
            moments = {"times": [now] * 40} if times else {}
            calls.append(lambda w, c=columns, t=moments: w.update_many(*c, **t))
    return calls


def losses(random: Random, _: bool) -> list[Call]:
    rows = [(random.random(), random.randint(-1, 2), random.randint(0, 2)) for _ in range(CALLS)]
    return [lambda w, row=row: w.update(*row) for row in rows]


def events(random: Random, times: bool) -> list[Call]:
    """Scores, labels, corrections, and what is forgotten."""
    calls: list[Call] = []
    for now in range(CALLS // 2):
        id, time = f"id {now}", {"time": now} if times else {}
        other = f"id {random.randint(0, now)}"
        score, label = random.random(), random.randint(0, 1)
        calls += [
            lambda b, i=id, s=score, t=time: b.score(i, s, answer=1, **t),
            lambda b, i=other, y=label: b.label(i, y),
        ]
        if now % 9 == 0:
            calls.append(lambda b, i=other: b.forget(i))
    return calls


def events_of_groups(random: Random, times: bool) -> list[Call]:
    """The same of groups, of which new ones come all the time."""
    calls: list[Call] = []
    for now in range(CALLS // 2):
        id, group = f"id {now}", (f"shop {random.randint(0, now // 8)}", random.randint(0, 2))
        other, score, label = f"id {random.randint(0, now)}", random.random(), random.randint(0, 1)
        calls += [
            lambda b, i=id, s=score, t=now, g=group: b.score(i, s, time=t, answer=1, group=g),
            lambda b, i=other, y=label: b.label(i, y),
        ]
        if now % 32 == 31:
            ids, rows = [f"many {now} {k}" for k in range(20)], [k / 20 for k in range(20)]
            groups = [f"shop {k}" for k in range(20)]
            calls += [
                lambda b, i=ids, s=rows, t=now, g=groups: b.score_many(
                    i, s, [t] * len(i), groups=g, answers=[0] * len(i)
                ),
                lambda b, i=ids: b.label_many(i, [k % 2 for k in range(len(i))]),
            ]
    return calls


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Random, bool], list[Call]], bool]] = {
    "LastN": (lambda: LastN(OnlineThreshold(), 50), samples, False),
    "LastN of losses": (lambda: LastN(OnlineCut(), 50), losses, False),
    "LastN of a calibrator": (lambda: LastN(OnlineCalibrator(), 50), samples, False),
    "LastPeriod": (lambda: LastPeriod(OnlineThreshold(), 30), samples, True),
    "Fading by samples": (lambda: Fading(OnlineThreshold(), 3), samples, False),
    "Fading by time": (lambda: Fading(OnlineThreshold(), 3, by="time"), samples, True),
    "Ledger": (
        lambda: Ledger(OnlineThreshold(), time_to_live=40, maturity=5, correctable=60),
        events,
        True,
    ),
    "Ledger over LastN": (lambda: Ledger(LastN(OnlineThreshold(), 20)), events, False),
    "Ledger over LastPeriod": (
        lambda: Ledger(LastPeriod(OnlineThreshold(), 30), maturity=5),
        events,
        True,
    ),
    "Ledger over Fading": (lambda: Ledger(Fading(OnlineThreshold(), 5)), events, False),
    "Ledger of a calibrator": (lambda: Ledger(OnlineCalibrator()), events, False),
    "Ledger over groups": (
        lambda: Ledger(Grouped(OnlineThreshold(), at_least=3), maturity=5),
        events_of_groups,
        True,
    ),
    "Ledger over groups of LastPeriod": (
        lambda: Ledger(Grouped(LastPeriod(OnlineThreshold(), 30), at_least=3)),
        events_of_groups,
        True,
    ),
    "Ledger over groups of Fading": (
        lambda: Ledger(Grouped(Fading(OnlineThreshold(), 3, by="time"), at_least=3)),
        events_of_groups,
        True,
    ),
}


class SignalError(Exception):
    pass


def interrupt(*_: Any) -> None:
    raise SignalError


def after(make: Callable[[], Any], calls: list[Call]) -> bytes:
    subject = make()
    for call in calls:
        call(subject)
    return bytes(subject.to_bytes())


def one_signal(make: Callable[[], Any], calls: list[Call], seconds: float) -> bool:
    """Let a signal arrive so many seconds into the calls: whether it did."""
    subject, done = make(), 0
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        for call in calls:
            call(subject)
            done += 1
    except SignalError:
        pass
    else:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    found = subject.to_bytes()
    # The handler may have run between two calls, and before `done` counted the last one.
    expected = [after(make, calls[: done + more]) for more in (0, 1)]
    assert found in expected, f"neither before call {done} nor after it"
    for call in calls[done + expected.index(found) :]:
        call(subject)
    assert subject.to_bytes() == after(make, calls), "it does not go on as if nothing had been"
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_at_any_moment_leaves_what_was_before_or_what_is_after(kind: str) -> None:
    make, script, times = KINDS[kind]
    random = Random(kind)
    calls = script(random, times)
    before = signal.signal(signal.SIGALRM, interrupt)
    arrived, seconds = 0, 0.002
    try:
        while arrived < WAITS // len(KINDS):
            try:
                reached = one_signal(make, calls, random.uniform(1e-6, seconds))
            except SignalError:  # while the timer was stopped
                continue
            arrived += reached
            seconds *= 1.02 if reached else 0.9
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_takes_longer_than_the_timer_is_never_inside_itself() -> None:
    inside, most, done = 0, 0, 0

    def handler() -> None:
        nonlocal inside, most, done
        inside += 1
        most = max(most, inside)
        sum(range(20_000))  # a multiple of the time until the next signal
        inside, done = inside - 1, done + 1

    with at_random_moments(handler, longest=2e-5):
        while done < 50:
            pass

    assert (most, inside) == (1, 0)


def test_no_timer_of_a_test_goes_off_again_by_itself() -> None:
    """It would interrupt its own handler on a busy machine; `at_random_moments` does not."""
    for path in Path(__file__).parent.glob("*.py"):
        assert not re.findall(r"setitimer\([^()]+,[^()]+,[^()]+\)", path.read_text()), path.name
