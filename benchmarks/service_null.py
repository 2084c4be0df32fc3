# SPDX-License-Identifier: Apache-2.0
"""How often the policy automatic changes a threshold that is already the best one.

Months of the demonstration's stream: sites drawn with replacement, 200 a day, each label within a
day, and a look of the policy every hour. The threshold in effect at the beginning is the
cheapest one for the sites that are drawn from, so that every change is a mistake. The events go
through the same fold, proposals and policy as in the server, without a disk and HTTP. Once with
demands as in the demonstration, and once with nothing demanded but the evidence. For comparison,
how often a threshold of 0.5 is changed, which costs a third more than the best one.

There limen hardly ever proposes anything, as the samples do not rule the best threshold out. So
candidates are forced too: whenever none is open, one that costs nearly as little as the best and
answers at least 1 % of sites differently is proposed, and only the evidence stands in its way.

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
from limen.service.points.definitions import Change, Definition, as_rule
from limen.service.points.events import Event
from limen.service.points.policy import due, proposed
from limen.service.points.state import State

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


def near(best: float) -> list[float]:
    """Return the thresholds that cost least of those that answer 1 % of sites differently."""
    scores, labels = np.array(load_phishing())[:, 100:]
    cuts = [
        cut
        for cut in np.unique(scores)
        if abs(np.mean(scores < cut) - np.mean(scores < best)) > 0.01
    ]
    costs = [
        np.sum((scores >= cut) & (labels == 0)) + 5 * np.sum((scores < cut) & (labels == 1))
        for cut in cuts
    ]
    return [float(cuts[at]) for at in np.argsort(costs, kind="stable")[:25]]


def month(
    seed: int, threshold: float, demands: dict[str, Any], forced: list[float] | None = None
) -> tuple[int, int]:
    """Return how many versions and how many candidates there were, up to a change if forced."""
    rng = np.random.default_rng((18, seed))
    sites = np.array(load_phishing())[:, 100:]
    terms = {"expires": "7d", **demands}
    change = Change("automatic", **terms, age="1d", at_most_every="1d")
    given = Definition(false_negative=5, start=as_rule(threshold, ">="), change=change)
    state, begin, many = State(lambda upto: []), 1_800_000_000_000_000, A_DAY * DAYS

    def fold(event: Event, id: int | None = None) -> None:
        state.fold(state.seq + 1, event, id)

    fold(Event("define", begin, "p", more=msgspec.to_builtins(given)))
    point = state.points["p"]
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
                fold(Event("label", when, "p", value=int(labels[at])), at)
            else:
                answer = int(scores[at] >= point.version.thresholds[""])
                fold(Event("score", when, "p", when, scores[at], answer=answer), at)
        fold(Event("advance", look, time=look))
        if forced is not None and point.proposal is None:
            fold(proposed(point, {"": float(rng.choice(forced))}, "forced", "nobody", look))
        for event in due(point, look):
            fold(event)
        if forced is not None and point.version.number > 1:
            break
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
            found[f"{name}, from {start}"] = played(f"{name}, from {start}", terms)
    for expires in ("7d", "1d"):
        name = f"the evidence alone, candidates forced for {expires} each"
        demands = {**DEMANDS["the evidence alone"], "expires": expires}
        found[name] = played(name, [(seed, best, demands, near(best)) for seed in range(months)])
    write(RESULT, found)


def played(name: str, terms: list[Any]) -> dict[str, Any]:
    """Play months in all cores, and count those that changed."""
    with get_context("spawn").Pool() as pool:
        runs = pool.starmap(month, terms, chunksize=10)
    changed = sum(version > 1 for version, _ in runs)
    row = {
        "months": len(terms),
        "changed": changed,
        "share": changed / len(terms),
        "candidates_a_month": sum(each for _, each in runs) / len(terms),
    }
    print(name, row, flush=True)
    return row


if __name__ == "__main__":
    main()
