# SPDX-License-Identifier: Apache-2.0
"""What a ledger of many ids costs: bytes per id, time per call, time to save and to load.

python -m benchmarks.ledger_size [number of ids ...]

Every size runs in a process of its own. Ids are texts of 14 characters. Times are CPU time of the
process; bytes are what the process has in memory more than before.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ledger_questions import named
from benchmarks.machine import in_processes
from benchmarks.workloads import by_sorting
from limen import Ledger, OnlineThreshold, from_bytes

RESULT = Path(__file__).parent / "results" / "ledger" / "size.json"
SIZES = (1_000_000, 10_000_000)
BATCH = 10_000
SINGLE = 20_000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what the work returns."""
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def resident() -> int:
    """How many bytes of memory this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def filled(ids: int, scores: Any, labels: Any) -> tuple[bytes, dict[str, float]]:
    """Store a ledger of so many ids, each with a score and a label, and say what it cost."""
    before = resident()
    ledger, adding = Ledger(OnlineThreshold()), 0.0
    for at in range(0, ids, BATCH):
        names, part = named(at, BATCH), slice(at, at + BATCH)
        adding += timed(lambda: ledger.score_many(names, scores[part]))[0]  # noqa: B023
        adding += timed(lambda: ledger.label_many(names, labels[part]))[0]  # noqa: B023
    taken = resident() - before
    rows = list(zip(named(ids, SINGLE), scores[ids:].tolist(), labels[ids:].tolist(), strict=True))

    def one_by_one() -> None:
        for id, score, label in rows:
            ledger.score(id, score)
            ledger.label(id, label)

    calling, _ = timed(one_by_one)
    assert ledger.threshold == by_sorting(scores, labels)
    saving, stored = timed(ledger.to_bytes)
    return stored, {
        "bytes per id with its sample in the model": round(taken / ids, 1),
        "bytes per id without the model, as counted": round(ledger._memory() / (ids + SINGLE), 1),
        "ns per id, score_many and label_many": round(adding / ids * 1e9),
        "ns per id, score and label": round(calling / SINGLE * 1e9),
        "stored bytes per id": round(len(stored) / (ids + SINGLE), 1),
        "seconds to save": round(saving, 2),
    }


def measure(ids: int) -> dict[str, float]:
    """What so many ids cost."""
    rng = np.random.default_rng(0)
    scores = rng.random(ids + SINGLE)
    labels = np.empty(ids + SINGLE, np.uint8)
    np.less(rng.random(ids + SINGLE), scores, out=labels.view(bool))
    stored, found = filled(ids, scores, labels)
    loading, back = timed(lambda: from_bytes(stored))
    assert (len(back), back.threshold) == (ids + SINGLE, by_sorting(scores, labels))
    assert "order 00000000" in back
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found | {
        "seconds to load": round(loading, 2),
        "largest memory of the process, MB": peak,
    }


if __name__ == "__main__":
    in_processes("benchmarks.ledger_size", measure, SIZES, "ids", RESULT)
