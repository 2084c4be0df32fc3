# SPDX-License-Identifier: Apache-2.0
"""How often new rows break a floor that was demanded of a cut, with a confidence and without.

For precision also how often a plainer procedure finds no cut: eight sequences of tests that begin
in even ratios up to all samples, and take over nothing from each other.

python -m benchmarks.trust_floors
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import limen
from benchmarks.machine import write
from benchmarks.trust_laws import LAWS, Law
from limen.floors import least_trials, passes

RESULT = Path(__file__).parent / "results" / "trust" / "floors.json"
SIZES = (300, 1_000)
DEMANDS = ("min_precision", "min_recall", "max_false_positive_rate")
UNWEIGHTED = {name: law for name, law in LAWS.items() if law.weights is None}


class Truth:
    """The rates of any threshold on all rows of a law, from a large even sample of its scores."""

    def __init__(self, law: Law) -> None:
        scores = np.sort(law.scores(np.random.default_rng(0), 400_000))
        share = law.share(scores)
        self.scores, self.ones = scores, np.append(0, np.cumsum(share))

    def rate(self, demand: str, threshold: float) -> float:
        place = int(np.searchsorted(self.scores, threshold))
        rows, ones = len(self.scores) - place, self.ones[-1] - self.ones[place]
        if demand == "min_precision":
            return ones / rows if rows else 0.0
        if demand == "min_recall":
            return ones / self.ones[-1]
        return (rows - ones) / (len(self.scores) - self.ones[-1])

    def bound(self, demand: str) -> float:
        """A bound that a cut well inside meets: at three tenths of the rows from its easy end."""
        share = 0.3 if demand == "min_recall" else 0.7
        threshold = self.scores[int(share * len(self.scores))]
        return round(float(self.rate(demand, threshold)), 3)


def eight_sequences(scores: np.ndarray, labels: np.ndarray, floor: float, error: float) -> int:
    """The most rows answered 1 whose precision eight plain sequences prove; 0 where none."""
    order = np.argsort(-scores, kind="stable")
    cuts = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits, trials = np.cumsum(labels[order], dtype=np.int64)[cuts], cuts + 1
    passed = passes(hits, trials, floor, error / 8)
    least, best = least_trials(floor, error / 8), 0
    if least > len(scores):
        return 0
    for start in np.ceil(np.geomspace(least, len(scores), 8) - 1e-6):
        begin = int(np.searchsorted(trials, start))
        failed = np.flatnonzero(~passed[begin:])
        end = begin + int(failed[0]) if len(failed) else len(trials)
        if end > begin:
            best = max(best, int(trials[end - 1]))
    return best


def broken(
    law: Law, demand: str, n: int, redraws: int, seed: int, confidence: float | None
) -> dict[str, float]:
    """The share of redraws whose cut breaks the bound on all rows, and that have no cut."""
    compared = demand == "min_precision" and confidence is not None
    plain = []
    rng, truth = np.random.default_rng(seed), Truth(law)
    bound, failed, none, answered = truth.bound(demand), 0, 0, 0.0
    goal = "specificity" if demand == "min_recall" else "recall"
    for _ in range(redraws):
        scores, labels, _ = law.draw(n, rng)
        model = limen.OnlineCalibrator()
        model.update_many(scores, labels)
        if compared:
            plain.append(eight_sequences(scores, labels, bound, 1 - confidence))
        try:
            found = model.best(goal, **{demand: bound}, confidence=confidence)
        except limen.Infeasible:
            none += 1
            continue
        rate = truth.rate(demand, found.threshold)
        failed += rate < bound if demand.startswith("min_") else rate > bound
        answered += found.confusion.positive_rate
    return {
        "bound": bound,
        "broken": failed / redraws,
        "no cut": none / redraws,
        "mean share answered 1": round(answered / max(1, redraws - none), 4),
    } | ({"no cut by eight plain sequences": plain.count(0) / redraws} if compared else {})


def main() -> None:
    redraws, seed, found = 1_000, 20261116, {}
    for name, law in UNWEIGHTED.items():
        for demand in DEMANDS:
            for n in SIZES:
                for confidence in (None, 0.95):
                    key = f"{name}; {demand}; n = {n}; confidence {confidence}"
                    found[key] = broken(law, demand, n, redraws, seed, confidence)
                    print(key, found[key], flush=True)
    write(RESULT, {"redraws": redraws, "seed": seed, "floors": found})


if __name__ == "__main__":
    main()
