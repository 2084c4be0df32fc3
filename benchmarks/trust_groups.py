# SPDX-License-Identifier: Apache-2.0
"""What thresholds of groups cost on new rows: each group's own, one for all, and in between.

Each group's own are its exact optimum and what `limen.recommend` says of it, the exact one where it
refuses; one for all is the recommended one of all samples; in between is ``by_group(shrink=True)``.

python -m benchmarks.trust_groups DIRECTORY, or make study-trust. DIRECTORY holds CSV files with the
columns score and label, some with a column group. Rows are grouped in four ways: as the file does;
at random, so that groups differ by chance alone; and at random with the scores of each group moved
by a number of its own on the scale of normal scores, so that best thresholds differ, in two sizes.
A cell is a data set, a way of grouping, a number of samples of each group, and costs. Excess is
measured as in `trust_study`, over the cost of the best threshold of each group's rows.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

import limen
from benchmarks.machine import machine
from benchmarks.trust_study import (
    LEAST_NEW,
    LEFT_OUT,
    Sample,
    exact,
    excess_of,
    recommended,
)

RESULT = Path(__file__).parent / "results" / "trust" / "groups.jsonl"
SIZES = (30, 100, 300, 1_000)
COSTS = ((1, 1), (1, 5), (5, 1))
REDRAWS = 20
GROUPS = 5
SHIFTS = {"at random": 0.0, "moved by up to 0.25": 0.25, "moved by up to 1": 1.0}
METHODS = ("exact", "recommended", "shrunk", "one for all")


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Scores, labels, and the groups where the file has them."""
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    scores = np.array([float(row["score"]) for row in rows])
    labels = np.array([int(row["label"]) for row in rows], np.uint8)
    named = np.array([row["group"] for row in rows]) if "group" in rows[0] else None
    return scores, labels, named


def normal_scores(scores: np.ndarray) -> np.ndarray:
    """What a normal law has at the middle of each score's ranks."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(scores)
    return np.array([*map(NormalDist().inv_cdf, middle.tolist())])[place]


def thresholds(sample: Sample, groups: np.ndarray) -> dict[str, dict[Any, float]]:
    """The threshold of every group by each method, in the order of `METHODS`."""
    each = limen.by_group(groups, sample.scores, sample.labels, **sample.named())
    shrunk = limen.by_group(groups, sample.scores, sample.labels, shrink=True, **sample.named())
    one = limen.recommend(sample.scores, sample.labels, **sample.named()).threshold
    found: dict[str, dict[Any, float]] = {method: {} for method in METHODS}
    for name in np.unique(groups):
        part = Sample(*(column[groups == name] for column in sample[:2]), sample.costs)
        best = each.threshold(name)
        few = min(np.bincount(part.labels, minlength=2)) < 5  # too few for a recommendation
        own = best if few else recommended(part, 0)
        for method, threshold in zip(
            METHODS, (best, own, shrunk.threshold(name), one), strict=True
        ):
            found[method][name] = threshold
    return found


def cell(scores, labels, groups, n, costs, redraws, seed) -> dict[str, Any] | None:
    """The cost of each method and of the best on new rows, over all redraws; None if too few."""
    rng = np.random.default_rng(seed)
    totals, best, trivial, used = dict.fromkeys(METHODS, 0), 0, 0, 0
    names = np.unique(groups)
    rows_of = {name: np.flatnonzero(groups == name) for name in names}
    if min(map(len, rows_of.values())) < n + LEAST_NEW // len(names):
        return None
    ideal = {name: exact(Sample(scores[at], labels[at], costs), 0) for name, at in rows_of.items()}
    for _ in range(redraws):
        chosen = np.concatenate([rng.permutation(at)[:n] for at in rows_of.values()])
        sample = Sample(scores[chosen], labels[chosen], costs)
        if not 5 <= sample.labels.sum() <= len(chosen) - 5:
            continue  # too few of a label for a recommendation
        new = np.setdiff1d(np.arange(len(scores)), chosen)
        paid, used = Sample(scores[new], labels[new], costs), used + 1

        def at_each(threshold: dict[Any, float], new: np.ndarray = new) -> np.ndarray:
            return np.array([threshold[name] for name in groups[new]])

        best += paid.cost(paid.scores >= at_each(ideal))
        for name in names:
            part = Sample(paid.scores[groups[new] == name], paid.labels[groups[new] == name], costs)
            trivial += min(part.cost(np.full(len(part.scores), answer)) for answer in (0, 1))
        for method, threshold in thresholds(sample, groups[chosen]).items():
            totals[method] += paid.cost(paid.scores >= at_each(threshold))
    told = {"redraws": used, "best": best, "trivial": trivial, "costs": totals}
    return told if used and best else None


def ways(scores: np.ndarray, named: np.ndarray | None):
    """Each way of grouping: its name, the scores and the groups."""
    if named is not None:
        yield "as in the file", scores, named
    groups = np.random.default_rng(0).permutation(np.arange(len(scores)) % GROUPS)
    x = normal_scores(scores)
    for name, most in SHIFTS.items():
        yield name, x + np.linspace(-most, most, GROUPS)[groups], groups


def stored() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULT.read_text().splitlines()[1:]]


def table(cells: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, float]]:
    """The mean excess of each method, in per cent of the trivial cost, by grouping and size."""
    told = {}
    for how in dict.fromkeys(each["groups"] for each in cells):
        for n in SIZES:
            some = [each for each in cells if (each["groups"], each["n"]) == (how, n)]
            if some:
                told[how, n] = {
                    name: float(np.mean([excess_of(each, name, "trivial") for each in some]))
                    for name in METHODS
                } | {"cells": len(some)}
    return told


def main(directory: Path) -> None:
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"machine": machine(), "redraws": REDRAWS})]
    for path in sorted(directory.glob("*.csv")):
        if path.stem in LEFT_OUT:
            continue
        scores, labels, named = read(path)
        for how, moved, groups in ways(scores, named):
            for n in SIZES:
                for costs in COSTS:
                    found = cell(moved, labels, groups, n, costs, REDRAWS, seed=n)
                    if found is not None:
                        told = {"set": path.stem, "groups": how, "n": n, "fp:fn": costs}
                        lines.append(json.dumps(told | found))
    RESULT.write_text("\n".join(lines) + "\n")
    for (how, n), means in table(stored()).items():
        shown = "  ".join(f"{name} {value:.1f}" for name, value in means.items())
        print(f"{how:22} {n:5} {shown}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
