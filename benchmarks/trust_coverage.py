# SPDX-License-Identifier: Apache-2.0
"""How often the interval of `limen.recommend` holds the best threshold of all rows.

python -m benchmarks.trust_coverage
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.machine import write
from benchmarks.trust_laws import LAWS, Law
from limen import _core, optimal_threshold
from limen.confidence import SAFE, SMOOTH
from limen.samples import Samples

SIZES = (300, 1_000, 3_000)
RESULT = Path(__file__).parent / "results" / "trust" / "coverage.json"


def coverage(law: Law, n: int, redraws: int, seed: int) -> dict[str, float]:
    """The share of intervals that hold the best threshold, and of the rows that lie inside."""
    rng = np.random.default_rng(seed)
    held = {0.8: 0, 0.9: 0, 0.95: 0, 0.99: 0}
    smooth, width, used = 0, 0.0, 0
    while used < redraws:
        scores, labels, weights = law.draw(n, rng)
        if not 5 <= labels.sum() <= n - 5:
            continue  # refused: nothing is said
        used += 1
        columns = Samples.of(scores, labels, weights).columns
        ranked = _core.Ranked(*columns, 1, law.false_negative, "auto", False)
        counted = np.sort(scores if weights is None else scores[weights > 0])
        for level in held:
            held[level] += ranked.keeps(law.best, SAFE[level])
        _, low, high, _ = ranked.recommend(SAFE[0.95])
        width += float(np.diff(np.searchsorted(counted, (low, high)))[0]) / n
        smooth += ranked.keeps(law.best, SMOOTH[0.95])
    told = {str(level): round(count / redraws, 4) for level, count in held.items()}
    share = {"0.95, reach of a smooth minimum": round(smooth / redraws, 4)}
    return {**told, **share, "mean share of rows inside at 0.95": round(width / redraws, 4)}


def bootstrap_coverage(law: Law, n: int, redraws: int, seed: int) -> float:
    """The same for the middle 95 % of the optima of 200 resamples, which many would try first."""
    rng, held = np.random.default_rng(seed), 0
    for _ in range(redraws):
        scores, labels, weights = law.draw(n, rng)
        optima = []
        for _ in range(200):
            rows = rng.integers(0, n, n)
            each = None if weights is None else weights[rows]
            costs = {"false_negative": law.false_negative, "weights": each}
            optima.append(optimal_threshold(scores[rows], labels[rows], **costs).threshold)
        low, high = np.sort(optima)[[5, 194]]
        places = [np.count_nonzero(scores < threshold) for threshold in (low, law.best, high)]
        held += places[0] <= places[1] <= places[2]
    return round(held / redraws, 4)


def main() -> None:
    redraws, seed = 2_000, 20261116
    found = {}
    for name, law in LAWS.items():
        for n in SIZES:
            found[f"{name}, n = {n}"] = told = coverage(law, n, redraws, seed)
            print(
                f"{name}, n = {n}:", *(f"{key} {value};" for key, value in told.items()), flush=True
            )
    bootstrap = {name: bootstrap_coverage(law, 300, 200, seed) for name, law in LAWS.items()}
    print("bootstrap, n = 300:", bootstrap)
    raw = {"redraws": redraws, "seed": seed, "coverage": found, "bootstrap, n = 300": bootstrap}
    write(RESULT, raw)


if __name__ == "__main__":
    main()
