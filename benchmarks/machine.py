# SPDX-License-Identifier: Apache-2.0
"""What a result was found on, described alike in every result."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found.group(1).strip() if found else platform.machine()


def here() -> dict[str, str]:
    """The date and the machine."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }


def machine(*packages: str) -> dict[str, str]:
    """The date, the machine, and the versions of NumPy, limen and the packages named."""
    from limen import _core  # here, because the trees alone are measured without limen installed

    return {
        **here(),
        "instruction set in use": _core.isa,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", *packages, "limen")},
    }


def write(path: Path, found: dict[str, Any]) -> None:
    """Keep what was found, with the machine it was found on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine(), **found}, indent=1) + "\n")


def in_processes(
    module: str,
    measure: Callable[[int], dict[str, float]],
    sizes: Sequence[int],
    what: str,
    result: Path,
) -> None:
    """Measure each size in a process of its own, as ``python -m module [size ...]`` asks."""
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
        return
    found = {}
    for size in map(int, sys.argv[1:] or sizes):
        command = [sys.executable, "-m", module, "--one", str(size)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        found[f"{size:,} {what}"] = json.loads(done.stdout)
        print(f"{size:,} {what}", found[f"{size:,} {what}"], flush=True)
        write(result, {"command": f"python -m {module}", "found": found})


def folder_of(described: dict[str, str]) -> Path:
    """Return the folder for what was measured on this machine on this day; made if missing."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{described['date']}-{described['processor']}".lower())
    made = RESULTS / f"{name.strip('-')}-{described['cores']}-cores"
    made.mkdir(parents=True, exist_ok=True)
    return made
