# SPDX-License-Identifier: Apache-2.0
"""The machine that a result belongs to, and the folder that keeps it."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found.group(1).strip() if found else platform.machine()


def describe() -> dict[str, str]:
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }


def folder(machine: dict[str, str]) -> Path:
    """Return the folder for what was measured on this machine on this day; made if missing."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{machine['date']}-{machine['processor']}".lower())
    made = RESULTS / f"{name.strip('-')}-{machine['cores']}-cores"
    made.mkdir(parents=True, exist_ok=True)
    return made
