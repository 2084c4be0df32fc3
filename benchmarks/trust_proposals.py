# SPDX-License-Identifier: Apache-2.0
"""How often `Ledger.proposal` and `limen.Alarm` are wrong on streams, and how soon they are right.

A score is even between 0 and 1 and is also the chance of label 1, so that the best threshold and
the cost of every other are known. One look at the ledger after every hundredth of the stream.
Labels come all after the same delay, after any delay up to that, or ones soon and zeros late;
samples are counted at one age, at which all labels are known, and once before.

    python -m benchmarks.trust_proposals [streams at the null, of each kind] [streams for the power]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import write
from limen import Alarm, Ledger, OnlineThreshold

SAMPLES = 20_000
LOOKS = 100
LATEST = 300  # scores after which the last label has come
AGE = 500  # and a look has passed, with which labels are given to the ledger
RESULT = Path(__file__).parent / "results" / "trust" / "proposals.json"

DELAYS: dict[str, Any] = {
    "all after 300 scores": lambda rng, labels: np.full(len(labels), LATEST),
    "after 1 to 300 scores": lambda rng, labels: rng.integers(1, LATEST + 1, len(labels)),
    "ones after 10, zeros after 300": lambda rng, labels: np.where(labels == 1, 10, LATEST),
}
COSTS = {"1 to 1": (1, 1), "1 to 5": (1, 5)}


def worse_by(share: float, fp: int, fn: int) -> float:
    """A threshold above the best one that costs this share too much."""
    return (fp + math.sqrt(share * fp * fn)) / (fp + fn)


def stream(
    rng: np.random.Generator,
    delay: Any,
    costs: tuple[int, int],
    current: float,
    age: int = AGE,
) -> tuple[int | None, int, bool]:
    """After how many scores a change is proposed; candidates tried; whether an alarm is raised."""
    fp, fn = costs
    scores = rng.random(SAMPLES)
    labels = (rng.random(SAMPLES) < scores).astype(np.uint8)
    comes = np.arange(SAMPLES) + delay(rng, labels)
    in_order = np.argsort(comes, kind="stable")
    comes = comes[in_order]
    ledger = Ledger(OnlineThreshold(false_positive=fp, false_negative=fn), correctable=2 * AGE)
    alarm = Alarm(current, min_precision=(1 + current) / 2)  # just what it is
    raised, known, entered = False, 0, 0
    for end in range(SAMPLES // LOOKS, SAMPLES + 1, SAMPLES // LOOKS):
        start = end - SAMPLES // LOOKS
        ledger.score_many(np.arange(start, end), scores[start:end])
        next_known = int(np.searchsorted(comes, end, side="left"))
        now = in_order[known:next_known]
        ledger.label_many(now, labels[now])
        known = next_known
        if end - AGE > entered:
            alarm.update_many(scores[entered : end - AGE], labels[entered : end - AGE])
            entered = end - AGE
        raised = raised or alarm.raised
        if ledger.proposal(current, age=age):
            return end, ledger.candidates, raised
    return None, ledger.candidates, raised


def main() -> None:
    null, power = (int(each) for each in (sys.argv[1:3] or ("1000", "200")))
    raw: dict[str, Any] = {
        "samples": SAMPLES,
        "looks": LOOKS,
        "age": AGE,
        "streams at the null": null,
        "streams for the power": power,
        "null": {},
        "power": {},
    }
    for cost_name, costs in COSTS.items():
        best = costs[0] / sum(costs)
        for name, delay in DELAYS.items():
            rng = np.random.default_rng([20261116, *costs, len(name)])
            found = [stream(rng, delay, costs, best) for _ in range(null)]
            raw["null"][f"{cost_name}; {name}"] = {
                "proposed": sum(each[0] is not None for each in found) / null,
                "candidates per stream": sum(each[1] for each in found) / null,
                "alarms": sum(each[2] for each in found) / null,
            }
            print(cost_name, name, raw["null"][f"{cost_name}; {name}"], flush=True)
            write(RESULT, raw)
        # Where zeros come only just after the age, ones alone judge: this must fail.
        rng = np.random.default_rng([20261118, *costs])
        delay = DELAYS["ones after 10, zeros after 300"]
        ends = [stream(rng, delay, costs, best, LATEST)[0] for _ in range(null // 10)]
        raw["null"][f"{cost_name}; counted before zeros are known"] = {
            "proposed": sum(end is not None for end in ends) / len(ends)
        }
        print(cost_name, "too young", raw["null"], flush=True)
        for share in (0.05, 0.1, 0.2):
            rng = np.random.default_rng([20261117, *costs, round(100 * share)])
            current = worse_by(share, *costs)
            delay = DELAYS["after 1 to 300 scores"]
            ends = [stream(rng, delay, costs, current)[0] for _ in range(power)]
            after = sorted(math.inf if end is None else end for end in ends)
            raw["power"][f"{cost_name}; {share:.0%} too much"] = {
                "proposed": sum(end is not None for end in ends) / power,
                "scores until then": {
                    part: None if math.isinf(value) else value
                    for part, value in (
                        ("a quarter of the streams", after[power // 4]),
                        ("half", after[power // 2]),
                        ("three quarters", after[3 * power // 4]),
                    )
                },
            }
            print(cost_name, share, raw["power"][f"{cost_name}; {share:.0%} too much"], flush=True)
            write(RESULT, raw)


if __name__ == "__main__":
    main()
