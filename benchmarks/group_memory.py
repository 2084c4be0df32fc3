# SPDX-License-Identifier: Apache-2.0
"""What a group of few samples costs: bytes of memory, keys included, and time to add and store.

python -m benchmarks.group_memory

Every case runs in a process of its own. Memory is what the process holds more of after the groups
were filled: the resident set, so that the native part counts too.
"""

from __future__ import annotations

import gc
import json
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

import limen

RESULT = Path(__file__).parent / "results" / "groups" / "memory.json"
MODELS = {"OnlineThreshold": limen.OnlineThreshold, "OnlineCalibrator": limen.OnlineCalibrator}
GROUPS = 1_000_000
SAMPLES = (1, 3, 10)


def resident() -> int:
    """Bytes of this process that lie in memory."""
    return int(re.findall(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text())[0]) * 1024


def measure(kind: str, samples: int, groups: int) -> dict[str, float]:
    """Fill so many groups with so many samples each, as one batch each."""
    rng = np.random.default_rng(0)
    grouped = limen.Grouped(MODELS[kind](), at_least=100)
    everything = MODELS[kind]()
    batches = [(rng.random(groups), rng.random(groups) < 0.3) for _ in range(samples)]
    # The scores of all groups together need memory as well, which is not that of the groups.
    gc.collect()
    before = resident()
    for scores, labels in batches:
        everything.update_many(scores, labels)
    of_all = resident() - before
    seconds = []
    before = resident()
    for scores, labels in batches:
        names = [f"user {number:07}" for number in range(groups)]
        start = time.perf_counter()
        grouped.update_many(names, scores, labels)
        seconds.append(time.perf_counter() - start)
        del names
    gc.collect()
    held = resident() - before - of_all
    start = time.perf_counter()
    stored = grouped.to_bytes()
    saving = time.perf_counter() - start
    start = time.perf_counter()
    assert len(limen.from_bytes(stored)) == groups * samples
    loading = time.perf_counter() - start
    return {
        "bytes per group": round(held / groups),
        "seconds to add the first batch": round(seconds[0], 2),
        "seconds to add the last batch": round(seconds[-1], 2),
        "seconds to store": round(saving, 2),
        "seconds to read": round(loading, 2),
        "stored bytes per group": round(len(stored) / groups),
    }


def processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found.group(1).strip() if found else platform.machine()


def main() -> None:
    if len(sys.argv) > 1:
        kind, samples, groups = sys.argv[1:]
        print(json.dumps(measure(kind, int(samples), int(groups))))
        return
    found = {}
    for kind in MODELS:
        for samples in SAMPLES:
            command = [sys.executable, "-m", "benchmarks.group_memory", kind, str(samples)]
            done = subprocess.run([*command, str(GROUPS)], capture_output=True, check=True)
            found[f"{kind}, {samples} samples"] = json.loads(done.stdout)
            print(kind, samples, found[f"{kind}, {samples} samples"], flush=True)
    machine = {
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "command": "python -m benchmarks.group_memory",
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine, "groups": GROUPS, "found": found}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
