# SPDX-License-Identifier: Apache-2.0
"""What a group of few samples costs: bytes of memory, keys included, and time to add and store.

python -m benchmarks.group_memory

Every case runs in a process of its own. Memory is what Python allocates for the groups, their keys
included, plus what models allocate outside of Python; that of the group of all samples is left out.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import limen
from benchmarks.machine import write

RESULT = Path(__file__).parent / "results" / "groups" / "memory.json"
MODELS = {"OnlineThreshold": limen.OnlineThreshold, "OnlineCalibrator": limen.OnlineCalibrator}
GROUPS = {1: 1_000_000, 3: 1_000_000, 10: 200_000}  # by the number of samples in each


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what the work returns."""
    gc.collect()
    start = time.process_time()
    done = work()
    return round(time.process_time() - start, 2), done


def filled(kind: str, samples: int, groups: int) -> tuple[limen.Grouped, list[float]]:
    """So many groups of so many samples, added in batches of one sample for each group."""
    rng = np.random.default_rng(0)
    grouped, seconds = limen.Grouped(MODELS[kind]()), []
    for _ in range(samples):
        names = [f"user {number:07}" for number in range(groups)]
        scores, labels = rng.random(groups), rng.random(groups) < 0.3
        seconds.append(timed(lambda: grouped.update_many(names, scores, labels))[0])  # noqa: B023
    return grouped, seconds


def measure(kind: str, samples: int, groups: int) -> dict[str, float]:
    """What so many groups of so many samples cost."""
    filled(kind, 1, 10)  # NumPy loads a part of itself when it is first used
    grouped, seconds = filled(kind, samples, groups)
    saving, stored = timed(grouped.to_bytes)
    loading, back = timed(lambda: limen.from_bytes(stored))
    assert (groups * samples, groups) == (len(back), sum(1 for _ in back) - 1)
    assert stored == back.to_bytes()
    del grouped, back
    gc.collect()
    tracemalloc.start()
    grouped, _ = filled(kind, samples, groups)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    models = [each for each in grouped._models.held.values() if type(each) is not bytes][1:]
    model = MODELS[kind]()
    model.update_many(np.arange(samples), np.arange(samples) % 2)
    return {
        "bytes per group": round((held + sum(map(sys.getsizeof, models))) / groups),
        "bytes of a model of as many samples": sys.getsizeof(model),
        "seconds to add a sample to each group": max(seconds),
        "seconds to store": saving,
        "seconds to read": loading,
        "stored bytes per group": round(len(stored) / groups),
    }


def main() -> None:
    if len(sys.argv) > 1:
        kind, samples, groups = sys.argv[1:]
        print(json.dumps(measure(kind, int(samples), int(groups))))
        return
    found = {}
    for kind in MODELS:
        for samples, groups in GROUPS.items():
            command = [sys.executable, "-m", "benchmarks.group_memory", kind, str(samples)]
            done = subprocess.run([*command, str(groups)], capture_output=True, check=True)
            key = f"{kind}, {groups:,} groups of {samples}"
            found[key] = json.loads(done.stdout)
            print(key, found[key], flush=True)
    write(RESULT, {"command": "python -m benchmarks.group_memory", "found": found})


if __name__ == "__main__":
    main()
