# SPDX-License-Identifier: Apache-2.0
"""How often the policy automatic changes a threshold that is already the best one.

Months of the demonstration's stream: sites drawn with replacement, 200 a day, each label within a
day, and a look of the policy every hour. The threshold in effect at the beginning is the
cheapest one for the sites that are drawn from, so that every change is a mistake. The events go
through the same fold, proposals and policy as in the server, without a disk and HTTP. Once with
demands as in the demonstration, and once with nothing demanded but the evidence. For comparison,
how often a threshold of 0.5 is changed, which costs a third more than the best one.

    python -m benchmarks.service_null [months]
"""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.machine import write
from limen import optimal_threshold
from limen.demo import load_phishing
from limen.service.changes import Changes
from limen.service.definitions import Change, Definition, as_rule
from limen.service.events import Event
from limen.service.state import State

DAY = 86_400_000_000
A_DAY, DAYS, EVERY = 200, 30, DAY // 24
RESULT = Path(__file__).parent / "results" / "service" / "null.json"

DEMANDS = {
    "as in the demonstration": {
        "at_least": 400, "different": 30, "least_saving": 0.02, "shadow": "1d",
        "most_answered": 0.25,
    },
    "the evidence alone": {
        "at_least": 100, "different": 1, "least_saving": 0.0, "shadow": "1s",
        "most_answered": 1e9,
    },
}  # fmt: skip


class Rehearsal(Changes):
    """The policy of a point without a log: events are folded and forgotten."""

    def __init__(self, definition: Definition) -> None:
        self.state, self.clock = State(lambda upto: []), 1_800_000_000_000_000
        self._fold(Event("define", self.clock, "p", more=msgspec.to_builtins(definition)))

    def now(self) -> int:
        """Return the time of the stream."""
        return self.clock

    def require_open(self) -> None:
        """Take every event."""

    def _fold(self, event: Event, id: Any = None, then: Any = None) -> int:
        self.state.fold(self.state.seq + 1, event, id)
        return self.state.seq


def month(seed: int, threshold: float, demands: dict[str, Any]) -> tuple[int, int]:
    """Return how many versions and how many candidates of limen's there were."""
    rng = np.random.default_rng((18, seed))
    sites = np.array(load_phishing())[:, 100:]
    change = Change("automatic", **demands, age="1d", expires="7d", at_most_every="1d")
    desk = Rehearsal(Definition(false_negative=5, start=as_rule(threshold), change=change))
    point, begin, many = desk.state.points["p"], desk.clock, A_DAY * DAYS
    scores, labels = sites[:, rng.integers(sites.shape[1], size=many)]
    times = begin + np.sort(rng.integers(DAY * DAYS, size=many))
    known = times + rng.integers(DAY, size=many)
    rows = [(int(times[at]), 0, at) for at in range(many)]
    rows += [(int(known[at]), 1, at) for at in range(many)]
    place = 0
    rows.sort()
    for look in range(begin + EVERY, begin + DAYS * DAY + 1, EVERY):
        while place < len(rows) and rows[place][0] < look:
            when, kind, at = rows[place]
            place += 1
            if kind:
                point.label(Event("label", when, "p", value=int(labels[at])), at)
            else:
                answer = int(scores[at] >= point.version.thresholds[""])
                point.score(Event("score", when, "p", when, scores[at], answer=answer), at)
        desk.clock = look
        desk._fold(Event("advance", look, time=look))
        desk._act(point, look)
    candidates = [each for each in point.proposals if each.back_to is None]
    return point.version.number, len(candidates)


def main() -> None:
    """Play the months, print how many changed, and keep it."""
    months = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    scores, labels = np.array(load_phishing())[:, 100:]
    best = float(optimal_threshold(scores, labels.astype(int), false_negative=5).threshold)
    found: dict[str, Any] = {"months": months, "sites_a_day": A_DAY, "looks_a_day": DAY // EVERY}
    for name, demands in DEMANDS.items():
        for start, threshold, many in (("best", best, months), ("0.5", 0.5, months // 5)):
            terms = [(seed, threshold, demands) for seed in range(many)]
            with get_context("spawn").Pool() as pool:
                runs = pool.starmap(month, terms, chunksize=10)
            changed = sum(version > 1 for version, _ in runs)
            found[f"{name}, from {start}"] = {
                "months": many,
                "changed": changed,
                "share": changed / many,
                "candidates_a_month": sum(each for _, each in runs) / many,
            }
            print(name, start, found[f"{name}, from {start}"], flush=True)
    write(RESULT, found)


if __name__ == "__main__":
    main()
