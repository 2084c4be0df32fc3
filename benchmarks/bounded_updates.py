# SPDX-License-Identifier: Apache-2.0
"""What an update in bounded memory takes, against an exact one of as many distinct scores.

python -m benchmarks.bounded_updates

CPU time of single calls from Python, in turns, and the median of the ratios; runs that are joined
from time to time are included. The longest pause is the CPU time of one call.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import limen
from benchmarks.machine import write

RESULT = Path(__file__).parent / "results" / "bounded" / "updates.json"
ROUNDS, CALLS = 12, 30_000


def nanoseconds(model: Any, scores: Any, labels: Any, read: bool) -> float:
    """What one call takes; with `read`, the threshold is asked for after each."""
    update, samples = model.update, list(zip(scores.tolist(), labels.tolist(), strict=True))
    start = time.process_time()
    for score, label in samples:
        update(score, label)
        if read:
            model.threshold  # noqa: B018
    return (time.process_time() - start) / len(samples) * 1e9


def longest(model: Any, scores: Any, labels: Any) -> float:
    pauses = []
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        start = time.thread_time()
        model.update(score, label)
        pauses.append(time.thread_time() - start)
    return max(pauses) * 1e3


def row(capacity: int) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    bounded, exact = limen.OnlineThreshold(capacity=capacity), limen.OnlineThreshold()
    labels = draw.random(400_000) < 0.3
    scores = draw.normal(labels, 1)
    bounded.update_many(scores, labels)
    pool = scores[:capacity]
    exact.update_many(pool, labels[:capacity])
    exact.update_many(draw.choice(pool, len(labels)), labels)  # it has seen as many samples, too
    found: dict[str, Any] = {"capacity": capacity, "bytes": bounded._memory()}
    for read in (False, True):
        ratios, times = [], []
        for _ in range(ROUNDS):
            labels = draw.random(CALLS) < 0.3
            scores = draw.normal(labels, 1)
            one = nanoseconds(exact, draw.choice(pool, CALLS), labels, read)
            times.append(nanoseconds(bounded, scores, labels, read))
            ratios.append(times[-1] / one)
        name = "update and threshold" if read else "update"
        found[name] = {"ns": median(times), "of exact": median(ratios)}
    found["longest pause, ms"] = longest(bounded, scores, labels)
    return found


if __name__ == "__main__":
    rows = [row(capacity) for capacity in (64, 4096, 65_536)]
    write(RESULT, {"rows": rows})
    print(*rows, sep="\n")
