# SPDX-License-Identifier: Apache-2.0
"""How long a thread waits that asks an object while another one adds a batch to it.

python -m benchmarks.readers [number of samples]

Every object holds so many samples, and another half of them come, in one call. A second thread asks
one question again and again meanwhile, half a millisecond apart. Times are times on the clock, of
a machine with two processors to spare; each row is the median of three runs.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.large import drawn
from benchmarks.machine import RESULTS, write
from limen import Fading, LastN, LastPeriod, Ledger, OnlineCalibrator, OnlineThreshold

RESULT = RESULTS / "large" / "readers.json"

Work = Callable[[], Any]
Case = tuple[Work, Work]  # what is asked, and what is done meanwhile


def waits(ask: Work, work: Work) -> tuple[float, float, int]:
    """How long the work took, how long an answer took at most, and how many there were."""
    done, times = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            start = time.perf_counter()
            ask()
            times.append(time.perf_counter() - start)
            time.sleep(0.0005)

    reader = threading.Thread(target=read)
    reader.start()
    start = time.perf_counter()
    work()
    taken = time.perf_counter() - start
    done.set()
    reader.join()
    return taken, max(times), len(times)


def cases(n: int) -> dict[str, Callable[[], Case]]:
    """What to measure, by name; each is made anew for a run."""
    scores, labels = drawn(n, 0)
    more, their = drawn(n // 2, 1)
    weights = np.random.default_rng(2).integers(1, 1000, n // 2)
    ids, later = np.arange(n + n // 2), np.arange(n, n + n // 2)

    def calibrator() -> OnlineCalibrator:
        model = OnlineCalibrator()
        model.update_many(scores, labels)
        return model

    def asked_for_confusion() -> Case:
        model = calibrator()
        return lambda: model.confusion(0.5), lambda: model.update_many(more, their)

    def batch(*columns: Any) -> Callable[[], Case]:
        def made() -> Case:
            model = calibrator()
            return model.threshold, lambda: model.update_many(*columns)

        return made

    def taken_back() -> Case:
        model = calibrator()
        half = slice(0, n // 2)
        return model.threshold, lambda: model.revert_many(scores[half], labels[half])

    def merged() -> Case:
        model, other = calibrator(), OnlineCalibrator()
        other.update_many(more, their)
        return model.threshold, lambda: model.merge(other)

    def window(make: Callable[[], Any], timed: bool = False) -> Callable[[], Case]:
        def made() -> Case:
            held = make()
            held.update_many(scores, labels, **({"times": ids[:n]} if timed else {}))
            named = {"times": later} if timed else {}
            return lambda: held.threshold, lambda: held.update_many(more, their, **named)

        return made

    def book() -> Ledger:
        ledger = Ledger(OnlineThreshold())
        ledger.score_many(ids[:n], scores)
        ledger.label_many(ids[:n], labels)
        return ledger

    def scored() -> Case:
        ledger = book()
        return lambda: ledger.threshold, lambda: ledger.score_many(later, more)

    def labelled() -> Case:
        ledger = book()
        ledger.score_many(later, more)
        return lambda: ledger.regret, lambda: ledger.label_many(later, their)

    return {
        "OnlineCalibrator.update_many, threshold()": batch(more, their),
        "OnlineCalibrator.update_many with weights, threshold()": batch(more, their, weights),
        "OnlineCalibrator.revert_many, threshold()": taken_back,
        "OnlineCalibrator.merge, threshold()": merged,
        "OnlineCalibrator.update_many, confusion(), which waits": asked_for_confusion,
        "LastN.update_many, threshold": window(lambda: LastN(OnlineThreshold(), n)),
        "LastPeriod.update_many, threshold": window(lambda: LastPeriod(OnlineThreshold(), n), True),
        "Fading.update_many, threshold": window(lambda: Fading(OnlineThreshold(), n // 10)),
        "Ledger.score_many, threshold": scored,
        "Ledger.label_many, regret": labelled,
    }


def measure(n: int) -> dict[str, dict[str, float]]:
    """What each case took, in milliseconds."""
    found = {}
    for name, case in cases(n).items():
        runs = [waits(*case()) for _ in range(3)]
        taken, longest, answers = (statistics.median(column) for column in zip(*runs, strict=True))
        found[name] = {
            "ms of the call": round(1e3 * taken, 1),
            "most ms a thread waited": round(1e3 * longest, 2),
            "answers meanwhile": answers,
        }
        print(f"{name}: {found[name]}", flush=True)
    return found


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    found = measure(size)
    write(RESULT, {"command": "python -m benchmarks.readers", "samples": size, "found": found})
