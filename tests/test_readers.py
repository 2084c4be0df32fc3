# SPDX-License-Identifier: Apache-2.0
"""Threads that ask an object while another one changes it: they see before or after, not between.

How long they wait is measured by ``python -m benchmarks.readers``.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

import limen


def reads_during(model, work) -> tuple[float, set[object]]:
    """The longest wait of a thread that asks meanwhile, as a share of the work, and all answers."""
    done, told, waits = threading.Event(), set[object](), []

    def read() -> None:
        while not done.is_set():
            start = time.perf_counter()
            told.add(model.optimum)
            told.add(len(model))
            waits.append(time.perf_counter() - start)

    reader = threading.Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # nobody waits long for the interpreter
    reader.start()
    try:
        start = time.perf_counter()
        work(model)
        taken = time.perf_counter() - start
    finally:
        done.set()
        reader.join()
        sys.setswitchinterval(interval)
    return max(waits) / taken, told


def batch_of(size: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.random(size), rng.integers(0, 2, size), rng.integers(1, 9, size)


HELD, MORE = batch_of(200_000, 1), batch_of(150_000, 2)


@functools.cache
def others() -> limen.OnlineThreshold:
    model = limen.OnlineThreshold()
    model.update_many(*MORE[:2])
    return model


AT_WORK = {
    "a batch": lambda model: model.update_many(*MORE[:2]),
    "a weighted batch": lambda model: model.update_many(*MORE),
    "taking back": lambda model: model.revert_many(*HELD[:2]),
    "bytes": lambda model: model.to_bytes(),
    "merging": lambda model: model.merge(others()),
}


@pytest.mark.parametrize("name", AT_WORK)
def test_a_thread_that_reads_does_not_wait_for_long_work_and_sees_before_or_after(name) -> None:
    work = AT_WORK[name]
    others()
    quick = tries = 0
    while quick < 3:
        model = limen.OnlineThreshold()
        model.update_many(*HELD[:2])
        before = {model.optimum, len(model)}
        waited, told = reads_during(model, work)
        assert told <= before | {model.optimum, len(model)}
        model._check()
        # Where the machine is busy, the reader waits for that as well, but not every time.
        quick, tries = quick + (waited < 0.5), tries + 1
        assert tries < 60, "the reader waited"


def test_answers_are_those_of_now_after_long_work_that_failed() -> None:
    model = limen.OnlineThreshold()
    model.update_many(*HELD[:2])
    with pytest.raises(KeyError):
        model.revert_many(*MORE[:2])
    model.update(-1.0, 1)
    assert len(model) == 200_001
    assert model.optimum == model.copy().optimum


# ---- every answer is that of before or of after ----


def asked_during(questions: dict[str, Callable[[], Any]], work: Callable[[], Any]) -> None:
    """Let two threads ask while another one works; compare what they were told."""
    before = {name: repr(ask()) for name, ask in questions.items()}
    done = threading.Event()
    told: list[tuple[str, str]] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                told.extend([(name, repr(ask())) for name, ask in questions.items()])
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    for reader in readers:
        reader.start()
    try:
        work()
    finally:
        done.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    after = {name: repr(ask()) for name, ask in questions.items()}
    assert not failures, failures[0]
    assert told
    between = {one for one in told if one[1] not in (before[one[0]], after[one[0]])}
    assert not between, (between, before, after)


def of_calibrator(model: Any) -> dict[str, Callable[[], Any]]:
    scores = np.linspace(0, 1, 40)
    return {
        "len": lambda: len(model),
        "threshold": lambda: model.threshold(false_negative=3),
        "optimum": lambda: model.optimum(false_positive=2),
        "probability": lambda: model.probability(0.37),
        "probabilities": lambda: model.probability(scores).tolist(),
        "blocks": lambda: model.blocks().probabilities.tolist(),
        "hull": lambda: model.roc_hull().tp.tolist(),
        "best": lambda: model.best("youden"),
        "confusion": lambda: model.confusion(0.5),
        "interval": lambda: model.probability_interval(0.6),
    }


SMALL, OTHER = batch_of(20_000, 3), batch_of(15_000, 4)


@functools.cache
def other_calibrator() -> limen.OnlineCalibrator:
    model = limen.OnlineCalibrator()
    model.update_many(*OTHER)
    return model


CALIBRATOR_WORK: dict[str, Callable[[Any], Any]] = {
    "a batch": lambda model: model.update_many(*OTHER[:2]),
    "a weighted batch": lambda model: model.update_many(*OTHER),
    "a few rows": lambda model: model.update_many(*(column[:300] for column in OTHER)),
    "taking back": lambda model: model.revert_many(*(column[:9000] for column in SMALL[:2])),
    "merging": lambda model: model.merge(other_calibrator()),
    "bytes": lambda model: model.to_bytes(),
}


@pytest.mark.parametrize("name", CALIBRATOR_WORK)
def test_threads_that_ask_a_calibrator_see_before_or_after(name) -> None:
    other_calibrator()
    for _ in range(3):
        model = limen.OnlineCalibrator()
        model.update_many(*SMALL[:2])
        asked_during(of_calibrator(model), lambda m=model: CALIBRATOR_WORK[name](m))
        model._check()


def test_threads_that_ask_during_a_batch_that_fails_see_nothing_of_it() -> None:
    model = limen.OnlineCalibrator()
    model.update_many(*SMALL[:2])
    before = model.to_bytes()

    def work() -> None:
        with pytest.raises(limen.NotHeld):
            model.revert_many(
                *(np.append(column, 2) // (1 if column is SMALL[0] else 2) for column in SMALL[:2])
            )

    asked_during(of_calibrator(model), work)
    assert model.to_bytes() == before


def of_window(window: Any) -> dict[str, Callable[[], Any]]:
    return {
        "len": lambda: len(window),
        "threshold": lambda: window.threshold,
        "loss": lambda: window.loss,
        "optimum": lambda: window.optimum,
        "of the model": lambda: len(window.model),
        "newest": lambda: getattr(window, "newest", None),
        "refused": lambda: getattr(window, "refused", None),
    }


TIMES, LATER = np.arange(20_000), np.arange(20_000, 35_000)
WINDOWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "LastN": (lambda: limen.LastN(limen.OnlineThreshold(), 18_000), None),
    "LastPeriod": (lambda: limen.LastPeriod(limen.OnlineThreshold(), 18_000), TIMES),
    "Fading by number": (lambda: limen.Fading(limen.OnlineThreshold(), 9_000), None),
    "Fading by time": (lambda: limen.Fading(limen.OnlineThreshold(), 900, by="time"), TIMES),
    "Fading in bounded memory": (
        lambda: limen.Fading(limen.OnlineThreshold(capacity=256), 9_000),
        None,
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_threads_that_ask_a_window_see_before_or_after_a_batch(name) -> None:
    make, times = WINDOWS[name]
    for _ in range(3):
        window = make()
        named = {} if times is None else {"times": TIMES}
        window.update_many(*SMALL[:2], **named)
        named = {} if times is None else {"times": LATER}
        asked_during(of_window(window), lambda w=window, n=named: w.update_many(*OTHER[:2], **n))
        window._check()


def test_threads_that_ask_a_window_of_a_calibrator_see_before_or_after_a_batch() -> None:
    window = limen.LastN(limen.OnlineCalibrator(), 18_000)
    window.update_many(*SMALL[:2])
    questions = {
        "threshold": lambda: window.threshold(false_negative=2),
        "probability": lambda: window.probability(0.4),
        "len": lambda: len(window),
    }
    asked_during(questions, lambda: window.update_many(*OTHER[:2]))
    window._check()


def of_ledger(ledger: Any) -> dict[str, Callable[[], Any]]:
    names = ("cost", "cost_ever", "regret", "pending", "expired", "refused", "newest", "threshold")
    return {
        "len": lambda: len(ledger),
        "of the model": lambda: len(ledger.model),
        **{name: functools.partial(getattr, ledger, name) for name in names},
    }


LEDGERS: dict[str, Callable[[], Any]] = {
    "all": limen.OnlineThreshold,
    "last n": lambda: limen.LastN(limen.OnlineThreshold(), 12_000),
    "a period": lambda: limen.LastPeriod(limen.OnlineThreshold(), timedelta(seconds=12_000)),
    "fading": lambda: limen.Fading(limen.OnlineThreshold(), timedelta(hours=2), by="time"),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_threads_that_ask_a_ledger_see_before_or_after_scores_and_labels(name) -> None:
    ledger = limen.Ledger(LEDGERS[name](), time_to_live=timedelta(days=1))
    start = datetime(2026, 1, 1)
    times = [start + timedelta(seconds=step) for step in range(20_000)]
    first, second = slice(0, 8_000), slice(8_000, 20_000)
    ids = np.arange(20_000)
    ledger.score_many(ids[first], SMALL[0][first], times[first])
    ledger.label_many(ids[first], SMALL[1][first])
    asked_during(
        of_ledger(ledger),
        lambda: ledger.score_many(ids[second], SMALL[0][second], times[second]),
    )
    asked_during(of_ledger(ledger), lambda: ledger.label_many(ids[second], SMALL[1][second]))
    asked_during(of_ledger(ledger), lambda: ledger.to_bytes())
    ledger._check()


def test_threads_that_ask_the_groups_of_a_ledger_see_before_or_after() -> None:
    ledger = limen.Ledger(limen.Grouped(limen.OnlineThreshold()))
    ids, groups = np.arange(12_000), np.array(["a", "b", "c"])[np.arange(12_000) % 3].tolist()
    ledger.score_many(ids[:3_000], SMALL[0][:3_000], groups=groups[:3_000])
    ledger.label_many(ids[:3_000], SMALL[1][:3_000])
    ledger.score_many(ids[3_000:], SMALL[0][3_000:12_000], groups=groups[3_000:])
    questions: dict[str, Callable[[], Any]] = {
        **{name: lambda group=name: ledger.model.optimum(group) for name in "abc"},
        "len": lambda: len(ledger),
        "cost": lambda: ledger.cost,
    }
    asked_during(questions, lambda: ledger.label_many(ids[3_000:], SMALL[1][3_000:12_000]))
    ledger._check()
