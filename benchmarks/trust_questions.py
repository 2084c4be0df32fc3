# SPDX-License-Identifier: Apache-2.0
"""Questions about the recommended threshold and evidence, each verified before it is timed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Finding, in_turns, slower_by, within
from limen import Evidence, optimal_threshold, recommend

ROUNDS = 7
STEPS = 20_000


def recommended_threshold() -> Iterator[Finding]:
    """What it costs to know how sure a threshold is, beside a sort of the scores."""
    rng, n = np.random.default_rng(7), 1_000_000
    scores = rng.random(n)
    labels = (rng.random(n) < 0.5 * scores).astype(np.uint8)
    found = recommend(scores, labels, false_negative=5)
    assert found.optimum == optimal_threshold(scores, labels, false_negative=5)
    assert found.interval[0] <= found.threshold <= found.interval[1]
    runs = in_turns(
        {
            "limen": lambda: recommend(scores, labels, false_negative=5) and None,
            "sort": lambda: np.sort(scores) is None,
        },
        ROUNDS,
        per=n,
    )
    yield slower_by("recommend, beside np.sort of the scores", "1e6", runs, "sort", 3, "ns/sample")


def evidence_update() -> Iterator[Finding]:
    """One sample between the two thresholds."""
    evidence = Evidence(0.5, 0.4, false_negative=5)

    def work() -> None:
        for _ in range(STEPS):
            evidence.update(0.45, 1)

    runs = in_turns({"limen": work}, ROUNDS, per=STEPS)
    assert evidence.wins == STEPS * (ROUNDS + 1)
    yield within("Evidence.update", "", runs, 1_000, "ns")


QUESTIONS = (recommended_threshold, evidence_update)
