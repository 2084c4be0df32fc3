# SPDX-License-Identifier: Apache-2.0
"""Objects that are asked while they are busy: by finalisers, signals, numbers, threads, children.

What could hang runs in a process of its own, so that a deadlock fails instead of hanging.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from streams import PATIENCE

import limen

MODELS = [limen.OnlineThreshold, limen.OnlineCut, limen.OnlineCalibrator]


def in_a_process(code: str) -> None:
    script = f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE}, exit=True)\n"
    script += f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    script += textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


ASKED = """
    import gc, os, signal, threading, time
    import numpy as np
    from interrupts import at_random_moments
    import limen

    # Weights and losses beyond 2**53, which are divided as Python integers.
    big = 2**53 + 1
    threshold, cut = limen.OnlineThreshold(), limen.OnlineCut()
    calibrator = limen.OnlineCalibrator()
    for model in (threshold, calibrator):
        model.update(0.25, 0, big)
        model.update(0.5, 1, big)
    cut.update(0.25, 0, big)

    def optimum(model):
        return model.optimum() if callable(model.optimum) else model.optimum

    def ask(model):
        len(model), model._memory(), model._distinct(), model.to_bytes(), optimum(model)

    def refused(model, *sample):
        try:
            model.revert(*sample)
        except limen.NotHeld:
            pass

    def many_refused(model):
        try:
            model.revert_many([0.125], [1], *([[1]] if model is cut else []))
        except limen.NotHeld:
            pass

    calls = [
        *(lambda model=model, call=call: call(model)
          for model in (threshold, calibrator, cut)
          for call in (ask, optimum, repr, many_refused, lambda m: m.copy(), lambda m: m.curve(),
                       lambda m: m.copy().merge(m), lambda m: refused(m, 0.125, 1, 1))),
        lambda: (threshold.threshold, threshold.loss, cut.threshold, cut.loss),
        lambda: (calibrator.blocks(), calibrator.roc_hull(), calibrator.confusion(0.3)),
        lambda: (calibrator.best("f1"), calibrator.threshold(), calibrator.probability([0.3, 1])),
        lambda: (calibrator.probability_interval(0.3), calibrator.probability_interval([0.3, 1])),
    ]
    for call in calls:  # whatever is imported late is imported now
        call()
    threshold.update_many(np.array([]), np.array([], bool))
"""


def test_a_finaliser_may_use_the_object_that_is_being_asked() -> None:
    in_a_process(
        ASKED
        + """
    class Trash:
        def __init__(self):
            self.me = self

        def __del__(self):
            global finalised
            finalised += 1
            for model in (threshold, calibrator, cut):
                ask(model)
                model.update(0.75, 1, 1)
                model.revert(0.75, 1, 1)

    finalised = 0
    gc.set_threshold(1, 1, 1)
    for call in calls:
        gc.disable()
        Trash()
        gc.enable()
        call()
    gc.disable()
    assert finalised >= len(calls) // 2, finalised
    for model in (threshold, calibrator, cut):
        model._check()
    """
    )


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="no timers")
def test_a_signal_handler_may_use_the_object_that_is_being_changed() -> None:
    in_a_process(
        ASKED
        + """
    asked = 0

    def handler():
        global asked
        asked += 1
        for model in (threshold, calibrator, cut):
            ask(model)

    scores, zeros = np.arange(2000) / 2000, np.zeros(2000, np.int64)
    with at_random_moments(handler):
        while asked < 100:
            for model in (threshold, calibrator):
                model.update_many(scores, zeros)
                model.revert_many(scores, zeros)
            cut.update_many(scores, zeros, zeros + 1)
            cut.revert_many(scores, zeros, zeros + 1)
            for call in calls[:8]:
                call()
    for model in (threshold, calibrator, cut):
        model._check()
    """
    )


@pytest.mark.parametrize("method", ["__float__", "__index__"])
@pytest.mark.parametrize("model", MODELS)
def test_a_number_may_use_the_object_that_reads_it(model, method) -> None:
    held = model()

    def called(self: object) -> float | int:
        held.update(0.25, 0, 1)
        return {"__float__": 1.0, "__index__": 1}[method]

    number = type("Number", (), {method: called})()
    held.update(number, 0, number)
    assert len(held) == 3
    held._check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_during_a_batch_can_use_the_object() -> None:
    in_a_process(
        ASKED
        + """
    rng = np.random.default_rng(1)
    scores, labels = rng.random(200_000), rng.integers(0, 2, 200_000)
    going = True

    def batches():
        while going:
            for model in (threshold, calibrator):
                model.update_many(scores, labels)
                model.probability(scores) if model is calibrator else None
                model.probability_interval(scores) if model is calibrator else None
                model.revert_many(scores, labels)

    thread = threading.Thread(target=batches)
    thread.start()
    for turn in range(8):
        time.sleep(0.011 * (turn + 1))
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            for model in (threshold, calibrator):
                ask(model)
                model.update(0.75, 1)
                model._check()
                model.update_many(scores[:1000], labels[:1000])
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0, (turn, status)
    going = False
    thread.join()
    threshold._check()
    """
    )


# Arrays that another thread changes meanwhile. The answer is that of no array; the rest is sound.


LONG = {
    "a curve": lambda model: model.curve(),
    "bytes": lambda model: model._state(),
    "blocks": lambda model: model._blocks(),
}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (limen.OnlineThreshold, "a curve"),
        (limen.OnlineThreshold, "bytes"),
        (limen.OnlineCalibrator, "a curve"),
        (limen.OnlineCalibrator, "blocks"),
    ],
)
def test_other_threads_run_while_a_large_object_is_read(model, name) -> None:
    scores = np.arange(100_000.0)
    busy = model()
    busy.update_many(scores, np.ones(100_000, int), np.arange(1, 100_001))
    busy.update_many(scores, np.zeros(100_000, int), np.arange(100_000, 0, -1))
    moves, done = [0], threading.Event()

    def move() -> None:
        while not done.wait(0.0002):
            moves[0] += 1

    other = threading.Thread(target=move)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(30)  # nobody is made to let others run: it must be done by itself
    try:
        other.start()
        for _ in range(300):
            before = moves[0]
            LONG[name](busy)
            if moves[0] > before:
                break
        else:
            pytest.fail("no other thread ran")
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()


def while_changing(change, work, times: int) -> None:
    stop = threading.Event()

    def go() -> None:
        while not stop.is_set():
            change()

    thread = threading.Thread(target=go)
    thread.start()
    try:
        for _ in range(times):
            work()
    finally:
        stop.set()
        thread.join()


def test_scores_that_change_during_the_search_do_no_harm() -> None:
    rng = np.random.default_rng(2)
    scores, other = rng.random(200_000), np.repeat([0.5, 0.25], 100_000)
    labels, flags = rng.integers(0, 2, 200_000), rng.integers(0, 2, 200_000).astype(bool)
    spread = scores.copy()

    def change() -> None:
        scores[:] = other
        flags[:] = ~flags
        scores[:] = spread

    def work() -> None:
        limen.optimal_threshold(scores, labels)
        limen.optimal_threshold(scores, flags, weights=labels)
        limen.isotonic(scores, flags)

    while_changing(change, work, 10)


def test_scores_that_become_nan_during_a_batch_are_not_held() -> None:
    scores, labels = np.linspace(0, 1, 50_000), np.tile([0, 1], 25_000)
    spread = scores.copy()

    def change() -> None:
        scores[20_000:] = np.nan
        scores[:] = spread

    def work() -> None:
        for model in (limen.OnlineThreshold(), limen.OnlineCalibrator()):
            with contextlib.suppress(ValueError):
                model.update_many(scores, labels)
            model._check()
            assert not np.isnan(model.curve().thresholds).any()

    while_changing(change, work, 15)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_labels_that_change_while_they_are_read_do_no_harm(dtype) -> None:
    labels = np.zeros(20_000, dtype)

    def change() -> None:
        labels[-1] = 2
        labels[-1] = 0

    def work() -> None:
        _, bad = limen._core.labels_from(labels)
        assert bad in (len(labels) - 1, len(labels))

    while_changing(change, work, 100)


# Windows and ledgers, which work under the lock of their model.


MEMORIES = """
    from datetime import datetime, timedelta
    from uuid import UUID

    window = limen.LastN(limen.OnlineThreshold(), 500)
    period = limen.LastPeriod(limen.OnlineCalibrator(), 500)
    fading = limen.Fading(limen.OnlineCut(), 500)
    ledger = limen.Ledger(limen.LastPeriod(limen.OnlineThreshold(), timedelta(days=500)))
    day, start = timedelta(days=1), datetime(2026, 1, 1)
    big = 2**53 + 1

    def work(step):
        window.update(step % 97 / 97, step % 2, big)
        period.update(step % 97 / 97, step % 2, time=step)
        fading.update(step % 97 / 97, step % 2, 1)
        ledger.score(("id", step), step % 97 / 97, start + step % 700 * day)
        ledger.label(("id", step), step % 2)
        ledger.forget(UUID(int=step))

    def ask_all():
        for memory in (window, period, fading, ledger):
            len(memory), repr(memory), memory.to_bytes(), memory._memory()
        period.newest, period.refused, fading.loss, ledger.newest
        ledger.cost, ledger.regret, ledger.cost_ever, ledger.expired, list(ledger)
        try:
            ledger.score(("id", 1), 2.0)
        except ValueError:
            pass
"""


def test_a_finaliser_may_use_the_memory_that_is_being_changed() -> None:
    in_a_process(
        ASKED
        + MEMORIES
        + """
    class Trash:
        def __init__(self):
            self.me = self

        def __del__(self):
            global finalised
            finalised += 1
            work(10**6 + finalised)
            ask_all()

    finalised = 0
    work(0), ask_all()
    gc.set_threshold(1, 1, 1)
    for step in range(30):
        for call in (lambda: work(step), ask_all):
            gc.disable()
            Trash()
            gc.enable()
            call()
    gc.disable()
    assert finalised >= 30, finalised
    for memory in (window, period, fading, ledger):
        memory._check()
    """
    )


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="no timers")
def test_a_signal_handler_may_use_the_memory_that_is_being_changed() -> None:
    in_a_process(
        ASKED
        + MEMORIES
        + """
    asked = 0

    def handler():
        global asked
        asked += 1
        work(10**6 + asked)
        ask_all()

    step = 0
    with at_random_moments(handler):
        while asked < 60:
            step += 1
            work(step)
            ids = [("many", step, k) for k in range(300)]
            ledger.score_many(ids, [0.5] * 300, [start + step % 700 * day] * 300)
            ledger.label_many(ids, [step % 2] * 300)
            window.update_many([0.5] * 300, [1] * 300)
    for memory in (window, period, fading, ledger):
        memory._check()
    """
    )


def test_threads_may_share_windows_and_ledgers() -> None:
    window = limen.LastN(limen.OnlineThreshold(), 100)
    period = limen.LastPeriod(limen.OnlineThreshold(), 100)
    fading = limen.Fading(limen.OnlineThreshold(), 100)
    ledger = limen.Ledger(limen.LastN(limen.OnlineThreshold(), 100))

    def work(name: int) -> None:
        for step in range(300):
            window.update(step / 300, step % 2)
            period.update(step / 300, step % 2, time=step)
            fading.update(step / 300, step % 2)
            ledger.score((name, step), step / 300)
            ledger.label((name, step), step % 2)
            if step % 50 == 0:
                ids = [(name, step, at) for at in range(70)]
                ledger.score_many(ids, np.full(70, 0.5))
                ledger.label_many(ids, np.ones(70, int))
                window.update_many(np.full(70, 0.5), np.ones(70, int))
                assert window.copy().threshold is not None

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for memory in (window, period, fading, ledger):
        memory._check()
    assert (100, 100, 100) == (len(window), len(ledger), len(ledger.model))
    assert 400 == len(period)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_during_a_batch_can_use_the_memory() -> None:
    in_a_process(
        ASKED
        + MEMORIES
        + """
    going = True
    rng = np.random.default_rng(1)
    scores, labels = rng.random(100_000), rng.integers(0, 2, 100_000)

    def batches():
        turn = 0
        while going:
            turn += 1
            ids = np.arange(100_000) + turn * 100_000
            window.update_many(scores, labels)
            book.score_many(ids, scores)
            book.label_many(ids, labels)

    book = limen.Ledger(limen.LastN(limen.OnlineThreshold(), 1000))
    thread = threading.Thread(target=batches)
    thread.start()
    for turn in range(5):
        time.sleep(0.013 * (turn + 1))
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            window.update(0.5, 1)
            book.score("a", 0.5), book.label("a", 1)
            window._check(), book._check()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    going = False
    thread.join()
    """
    )


def test_what_is_still_held_when_python_ends_is_not_told_as_a_leak() -> None:
    """Of a daemon thread Python frees nothing; the system does."""
    program = (
        "import threading, limen\n"
        "held, begun = limen.OnlineThreshold(), threading.Event()\n"
        "def work():\n"
        "    mine = limen.LastN(limen.OnlineThreshold(), 9)\n"
        "    begun.set()\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "begun.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (0, "") == (done.returncode, done.stderr)
