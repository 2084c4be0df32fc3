# SPDX-License-Identifier: Apache-2.0
"""plan.toml, read; and its fingerprint, which every result carries."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

_TEXT = Path(__file__).with_name("plan.toml").read_bytes()

PLAN = tomllib.loads(_TEXT.decode())
FINGERPRINT = hashlib.sha256(_TEXT).hexdigest()
COSTS = [tuple(each) for each in PLAN["costs"]]


def named(costs: tuple[int, int]) -> str:
    """1:5 for a false positive that costs 1 and a false negative that costs 5."""
    return f"{costs[0]}:{costs[1]}"
