# SPDX-License-Identifier: Apache-2.0
"""What very many samples cost: to load, to add to, to hold, and to ask while others are loaded.

python -m benchmarks.large [number of samples ...]

Every size runs in a process of its own. Times are CPU time of the process, but for those of the
reader, a second thread that asks for the threshold again and again while all samples are loaded
into an object that holds a thousand: these are times on the clock.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ledger_size import resident, timed
from benchmarks.machine import in_processes
from limen import OnlineThreshold, optimal_threshold

RESULT = Path(__file__).parent / "results" / "large" / "threshold.json"
SIZES = (10_000_000, 100_000_000)
SINGLE = 100_000
MORE = 1_000_000
MOST_SORTED = 20_000_000  # beyond, sorting alone would take longer than all the rest


def drawn(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    labels = np.empty(n, np.uint8)
    np.less(rng.random(n), scores, out=labels.view(bool))
    return scores, labels


def read_meanwhile(scores: Any, labels: Any) -> dict[str, float]:
    """How long a reader waited at most while samples were added, and how often it asked."""
    model = OnlineThreshold()
    model.update_many(scores[:1000], labels[:1000])
    done, waits, told = threading.Event(), [], {model.threshold}

    def read() -> None:
        while not done.is_set():
            start = time.perf_counter()
            told.add(model.threshold)
            waits.append(time.perf_counter() - start)
            time.sleep(0.0005)

    reader = threading.Thread(target=read)
    reader.start()
    start = time.perf_counter()
    model.update_many(scores, labels)
    taken = time.perf_counter() - start
    done.set()
    reader.join()
    assert len(told | {model.threshold}) <= 2, told
    return {
        "seconds of a batch beside a reader": round(taken, 2),
        "most milliseconds the reader waited": round(1e3 * max(waits), 2),
        "times the reader asked": len(waits),
    }


def measure(n: int) -> dict[str, float]:
    """What so many samples cost."""
    scores, labels = drawn(n, 0)
    read = read_meanwhile(scores, labels)
    sorting = timed(lambda: np.argsort(scores))[0] if n <= MOST_SORTED else None
    before = resident()
    model = OnlineThreshold()
    loading, _ = timed(lambda: model.update_many(scores, labels))
    taken = resident() - before
    assert model.threshold == optimal_threshold(scores, labels).threshold
    more, their = drawn(MORE, 1)
    batch, _ = timed(lambda: model.update_many(more, their))
    arrivals = [column.tolist() for column in drawn(SINGLE, 2)]

    def one_by_one() -> None:
        for score, label in zip(*arrivals, strict=True):
            model.update(score, label)
            model.threshold  # noqa: B018 - reading it is half of the job

    single, _ = timed(one_by_one)
    return {
        "ns per sample, update_many into an empty object": round(1e9 * loading / n, 1),
        **({} if sorting is None else {"the same, np.argsort": round(1e9 * sorting / n, 1)}),
        f"ns per sample, update_many of {MORE:,} more": round(1e9 * batch / MORE, 1),
        "ns per sample, update and threshold one by one": round(1e9 * single / SINGLE, 1),
        "bytes per score, as counted": round(sys.getsizeof(model) / model._distinct(), 1),
        "bytes per score, more in memory after loading": round(taken / n, 1),
        **read,
        "largest memory of the process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


if __name__ == "__main__":
    in_processes("benchmarks.large", measure, SIZES, "samples", RESULT)
