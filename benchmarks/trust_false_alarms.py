# SPDX-License-Identifier: Apache-2.0
"""How often `limen.Evidence` accepts a candidate that is no better, looked at once a day.

Every sample lies between the two thresholds and is a win with the chance that makes both cost the
same. Labels come after a delay that depends on the label. Samples enter either at one age, as they
must, or as soon as their label is known, as they must not.

    python -m benchmarks.trust_false_alarms
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.machine import write
from limen import Evidence

DAYS = 100
PER_DAY = 40
RESULT = Path(__file__).parent / "results" / "trust" / "false_alarms.json"


class Labels(NamedTuple):
    """On which day after the score a label of 1 and of 0 comes, and the one age of entry.

    Of the ones, a share may come later than that.
    """

    ones: int
    zeros: int
    age: int
    late: float = 0.0


DELAYS = {
    "at once": Labels(0, 0, 0),
    "ones a day sooner": Labels(1, 2, 2),
    "zeros a day sooner": Labels(2, 1, 2),
    "zeros after 30 days, ones at once": Labels(0, 30, 30),
    "ones after 30 days, zeros at once": Labels(30, 0, 30),
}
COSTS = {"1 to 1": (1, 1), "1 to 20": (1, 20), "20 to 1": (20, 1)}


def alarms(
    delay: Labels,
    costs: tuple[int, int],
    candidate: float,
    runs: int,
    *,
    one_age: bool,
    heavy: bool = False,
    worst: bool = False,
    seed: int = 20261116,
) -> float:
    """The share of runs in which the evidence was enough on any of 100 days."""
    rng = np.random.default_rng([seed, *delay[:3], *costs, round(10 * candidate)])
    positive, negative = costs
    share = positive / (positive + negative)
    bound = 4 * max(costs) if heavy else None
    found = 0
    for _ in range(runs):
        labels = rng.random((DAYS, PER_DAY)) < share
        weights = rng.choice([0.5, 1, 4], (DAYS, PER_DAY)) if heavy else None
        age = np.where(labels, delay.ones, delay.zeros)
        entry = np.arange(DAYS)[:, None] + (np.full_like(age, delay.age) if one_age else age)
        known = np.where(labels & (rng.random(labels.shape) < delay.late), np.nan, labels)
        evidence = Evidence(
            *(0.5, candidate),
            **{"false_positive": positive, "false_negative": negative, "largest_loss": bound},
        )
        for day in range(DAYS):
            today = entry == day
            scores = np.full(np.count_nonzero(today), (0.5 + candidate) / 2)
            evidence.update_many(scores, known[today], None if weights is None else weights[today])
            if evidence.worst_value >= 20 if worst else evidence.decided:
                found += 1
                break
    return found / runs


def main() -> None:
    runs = 1_000
    found: dict[str, float] = {}
    for delay_name, delay in DELAYS.items():
        for cost_name, costs in COSTS.items():
            for candidate in (0.4, 0.6):
                for one_age in (True, False):
                    rule = "one age" if one_age else "as labels come"
                    where = "candidate below" if candidate < 0.5 else "candidate above"
                    many = runs if one_age else runs // 10
                    name = f"{delay_name}; {cost_name}; {where}; {rule}"
                    found[name] = alarms(delay, costs, candidate, many, one_age=one_age)
                    print(name, found[name], flush=True)
    for cost_name, costs in COSTS.items():
        name = f"weights 0.5, 1, 4; {cost_name}; candidate below; one age"
        found[name] = alarms(DELAYS["at once"], costs, 0.4, runs, one_age=True, heavy=True)
        print(name, found[name], flush=True)
    late = Labels(0, 0, 0, 0.2)
    for worst in (False, True):
        value = "worst_value" if worst else "value"
        name = f"a fifth of the ones missing, {value}; 1 to 1; candidate above; one age"
        found[name] = alarms(late, (1, 1), 0.6, runs // 10, one_age=True, worst=worst)
        print(name, found[name], flush=True)
    raw = {"runs": runs, "days": DAYS, "samples per day": PER_DAY, "false alarms": found}
    write(RESULT, raw)


if __name__ == "__main__":
    main()
