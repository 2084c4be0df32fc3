# SPDX-License-Identifier: Apache-2.0
"""What a million groups of bounded models cost: bytes by which the process grows, and CPU time.

python -m benchmarks.bounded_groups [groups]

Each group holds 64 nodes at most and gets 100 samples of 100 distinct scores. The last groups are
compared with exact models of the same samples: the bound must hold.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import limen
from benchmarks.machine import RESULTS, machine, write

CAPACITY, SAMPLES, AT_ONCE = 64, 100, 20_000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    groups = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    draw = np.random.default_rng(0)
    grouped = limen.Grouped(limen.OnlineThreshold(capacity=CAPACITY))
    before, begun = resident(), time.process_time()
    for first in range(0, groups, AT_ONCE):
        keys = np.repeat(np.arange(first, min(first + AT_ONCE, groups)), SAMPLES)
        labels = draw.random(len(keys)) < 0.3
        scores = draw.normal(labels, 1)
        grouped.update_many(keys, scores, labels)
        if sys.stderr.isatty():
            print(f"\r{min(first + AT_ONCE, groups):,} of {groups:,}", end="", file=sys.stderr)
    grown, seconds = resident() - before, time.process_time() - begun
    for key in np.unique(keys)[-100:].tolist():
        own = keys == key
        exact = limen.optimal_threshold(scores[own], labels[own])
        model = grouped.model(key)
        answers = scores[own] >= model.threshold
        assert exact.loss <= np.sum(answers != labels[own]) <= exact.loss + model.loss_bound
    found = {
        "machine": machine(),
        "groups": groups,
        "capacity": CAPACITY,
        "samples in each": SAMPLES,
        "bytes per group": round(grown / groups),
        "CPU seconds": round(seconds),
        "CPU nanoseconds per sample": round(seconds / groups / SAMPLES * 1e9),
    }
    print(found)
    write(RESULTS / "bounded" / "groups.json", found)


if __name__ == "__main__":
    main()
