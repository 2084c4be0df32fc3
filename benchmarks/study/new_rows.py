# SPDX-License-Identifier: Apache-2.0
"""Probabilities and decisions on rows that were not used to fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.study import data, measures
from benchmarks.study.methods import MAPS, THRESHOLDS, platt
from benchmarks.study.plan import COSTS, PLAN, named
from benchmarks.study.results import rounded, run
from benchmarks.trust_study import Sample

RULES = PLAN["new_rows"]
METHODS = PLAN["methods"]
SCORED = {
    "log loss": measures.log_loss,
    "Brier": measures.brier,
    "ECE, 15 groups": measures.calibration_error,
    "ECE, 10 groups": lambda chance, truth: measures.ten_groups(chance, truth)[0],
}
HELD = "errors on the samples"
Values = dict[str, dict[str, list[float]]]


def keys() -> Iterable[tuple[str, str, int]]:
    """Source, how it is split, and the number of samples."""
    for n in RULES["sizes"]:
        for name in PLAN["sets"]:
            yield name, "random", n
            if name in RULES["in_time"]:
                yield name, "time", n
        for name in RULES["laws"]:
            yield name, "law", n


def are_probabilities(split: data.Split) -> bool:
    return bool(min(split.scores.min(), split.new.min()) >= 0) and bool(
        max(split.scores.max(), split.new.max()) <= 1
    )


def maps_of(split: data.Split) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
    """Each map's name, and what it says about the new rows and about the samples."""
    scores, labels, new = split.scores, split.labels, split.new
    squeezed, squeezed_new = scores, new
    if are_probabilities(split):
        yield METHODS["raw"], new, scores
    else:
        sigmoid = platt.fit(scores, labels)
        squeezed, squeezed_new = sigmoid(scores), sigmoid(new)
    for name in METHODS["maps"]:
        if name == "ABB" and len(scores) > METHODS["abb_up_to"]:
            continue
        if name in METHODS["need_probabilities"]:
            found = MAPS[name](squeezed, labels)
            yield name, found(squeezed_new), found(squeezed)
        else:
            found = MAPS[name](scores, labels)
            yield name, found(new), found(scores)


def pay(values: Values, split: data.Split, rng: np.random.Generator) -> None:
    """Add what every method is worth on one split."""

    def add(name: str, measure: str, value: float) -> None:
        values.setdefault(name, {}).setdefault(measure, []).append(rounded(value))

    held = split.labels.astype(float)
    for name, chance, on_samples in maps_of(split):
        for measure, of in SCORED.items():
            add(name, measure, of(chance, split.truth))
        for costs in COSTS:
            answers = chance >= costs[0] / sum(costs)
            add(name, named(costs), measures.cost(answers, split.truth, *costs))
        add(name, HELD, measures.cost(on_samples >= 0.5, held, 1, 1))
    for name in METHODS["thresholds"]:
        for costs in COSTS:
            threshold = THRESHOLDS[name](Sample(split.scores, split.labels, costs), rng)
            add(name, named(costs), measures.cost(split.new >= threshold, split.truth, *costs))
            if costs == (1, 1):
                add(name, HELD, measures.cost(split.scores >= threshold, held, 1, 1))


def cell(name: str, how: str, n: int, count: int = RULES["splits"]) -> dict[str, Any] | None:
    """Every measure of every method on every split; None where rows are too few."""
    made = data.of_law(name, n, count) if how == "law" else data.of_set(name, how, n, count)
    used = [split for split in made if split.usable()]
    rng = data.seeded(f"folds of {name}", n)
    values: Values = {}
    best: dict[str, list[float]] = {named(costs): [] for costs in COSTS}
    trivial: dict[str, list[float]] = {named(costs): [] for costs in COSTS}
    for split in used:
        for costs in COSTS:
            answers = [np.full(len(split.new), each) for each in (False, True)]
            cheaper = min(measures.cost(each, split.truth, *costs) for each in answers)
            best[named(costs)].append(rounded(split.best[named(costs)]))
            trivial[named(costs)].append(rounded(cheaper))
        pay(values, split, rng)
    if not used:
        return None
    return {"rows": len(used[0].new), "best": best, "trivial": trivial, "methods": values}


def main() -> None:
    run("new_rows", keys(), cell)
