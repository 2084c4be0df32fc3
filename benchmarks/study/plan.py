# SPDX-License-Identifier: Apache-2.0
"""plan.toml, read; and the fingerprint of each part, which its results carry."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

PLAN = tomllib.loads(Path(__file__).with_name("plan.toml").read_text())
COSTS = [tuple(each) for each in PLAN["costs"]]


def named(costs: tuple[int, int]) -> str:
    """1:5 for a false positive that costs 1 and a false negative that costs 5."""
    return f"{costs[0]}:{costs[1]}"


def fingerprint(part: str) -> str:
    """SHA-256 of what the plan says of a part, and of what all parts share."""
    shared = ("seed", "costs", "methods", "sets")
    said = {name: PLAN[name] for name in (*shared, *((part,) if part in PLAN else ()))}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
