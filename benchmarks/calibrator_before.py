# SPDX-License-Identifier: Apache-2.0
"""How much less time does an update of `OnlineCalibrator` take than in an earlier limen?

    python -m benchmarks.calibrator_before FOLDER

FOLDER is where the earlier one was installed by ``pip install --target FOLDER``. Both hold the same
samples and must give the same thresholds; processes of the two take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.machine import RESULTS, machine, write

ROUNDS = 5

WORK = """
import json, time
import numpy as np
from limen import OnlineCalibrator

random = np.random.default_rng(11)
scores = random.random(1_050_000)
labels = random.random(1_050_000) < scores
model = OnlineCalibrator()
model.update_many(scores[:1_000_000], labels[:1_000_000])
rows = list(zip(scores[1_000_000:].tolist(), labels[1_000_000:].tolist()))
for row in rows[:10_000]:
    model.update(*row)
before = time.thread_time_ns()
for score, label in rows[10_000:]:
    model.update(score, label)
spent = (time.thread_time_ns() - before) / 40_000
answers = [model.threshold(false_negative=cost) for cost in (1, 2, 5, 20, 100)]
print(json.dumps([spent, answers]))
"""


def measured(folder: Path | None) -> tuple[float, list[float]]:
    chosen = {} if folder is None else {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", WORK], env=os.environ | chosen, capture_output=True, check=True
    )
    spent, answers = json.loads(done.stdout)
    return spent, answers


def main() -> None:
    folder = Path(sys.argv[1])
    runs: dict[str, list[float]] = {"now": [], "before": []}
    for _ in range(ROUNDS):
        (now, found), (before, expected) = measured(None), measured(folder)
        assert found == expected
        runs["now"].append(now)
        runs["before"].append(before)
    medians = {name: statistics.median(each) for name, each in runs.items()}
    print(f"{medians['now']:.0f} ns, before {medians['before']:.0f} ns")
    print(f"{medians['now'] / medians['before']:.2f} times its time")
    found = {
        "machine": machine(),
        "unit": "CPU nanoseconds per update at 1,000,000 samples",
        "beside other work": os.getloadavg()[0] > 1,
        "medians": medians,
        "runs": runs,
    }
    write(RESULTS / "large" / "calibrator_before.json", found)


if __name__ == "__main__":
    main()
