# SPDX-License-Identifier: Apache-2.0
"""What following a stream costs: exact, recommended, a bank of memories, and the first threshold.

Rows come in the order of time, their labels so many rows later. Each row is answered by the
threshold of that moment, and what the answers cost is added up from row 500 on. The recommended
threshold is read again after every 50 labels; until it exists, the exact one answers.

    python -m benchmarks.trust_streams DATA
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import write
from benchmarks.trust_study import IN_TIME, read
from limen import Bank, OnlineThreshold, recommend

RESULT = Path(__file__).parent / "results" / "trust" / "streams.json"
DELAYS = (1, 30, 300)
COSTS = ((1, 1), (1, 5), (5, 1))
FIRST = 500
MOST = 20_000


def cost_of(scores: Any, labels: Any, costs: tuple[int, int], delay: int) -> dict[str, float]:
    """What the answers of each method cost, over those of the exact threshold of all rows."""
    fp, fn = costs
    given = {"false_positive": fp, "false_negative": fn}
    exact, bank = OnlineThreshold(**given), Bank(OnlineThreshold(**given))
    first = recommend(scores[:FIRST], labels[:FIRST], **given).threshold
    spent = dict.fromkeys(("exact", "recommended", "bank", "first 500, then fixed"), 0)
    advised: float | None = None
    kept: deque[tuple[float, ...]] = deque()  # thresholds of the bank at the moment of scoring
    for at, score in enumerate(scores.tolist()):
        known = at - delay
        if known >= 0:
            sample = float(scores[known]), int(labels[known])
            exact.update(*sample)
            bank.update(*sample, thresholds=kept.popleft())
            if known % 50 == 0:
                advised = exact.recommended
        kept.append(bank.thresholds)
        if at < FIRST + max(DELAYS):
            continue
        chosen = {
            "exact": exact.threshold,
            "recommended": exact.threshold if advised is None else advised,
            "bank": bank.threshold,
            "first 500, then fixed": first,
        }
        for name, threshold in chosen.items():
            answer = score >= threshold
            if answer != labels[at]:
                spent[name] += fp if answer else fn
    return {name: float(value) for name, value in spent.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.csv")):
        if path.stem not in IN_TIME:
            continue
        scores, labels = read(path)
        if len(scores) < 2 * FIRST + max(DELAYS):
            continue
        scores, labels = np.asarray(scores)[:MOST], np.asarray(labels)[:MOST]
        for costs in COSTS:
            for delay in DELAYS:
                name = f"{path.stem}; {costs[0]} to {costs[1]}; labels after {delay}"
                found[name] = cost_of(scores, labels, costs, delay)
                print(name, found[name], flush=True)
        write(RESULT, {"rows at most": MOST, "paid from row": FIRST + max(DELAYS), "cost": found})


if __name__ == "__main__":
    main()
