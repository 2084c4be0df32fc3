# SPDX-License-Identifier: Apache-2.0
"""From raw results to tables: a set is one observation, and no claim comes without a test."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.study.plan import COSTS, PLAN, named
from benchmarks.study.results import stored

LEVEL = PLAN["analysis"]["level"]
RANKED_SIZES = PLAN["analysis"]["ranked_sizes"]
MAPS, RAW = PLAN["methods"]["maps"], PLAN["methods"]["raw"]
DECIDING = [*PLAN["methods"]["thresholds"], *MAPS]
Cell = dict[str, Any]


class Interval(NamedTuple):
    """A mean difference and its 95 % interval; on how many sets it is below 0, and of how many."""

    mean: float
    low: float
    high: float
    below: int
    count: int

    @property
    def clear(self) -> bool:
        return self.low > 0 or self.high < 0


class Ranks(NamedTuple):
    """Mean ranks (1 is best), the Friedman test, and Nemenyi's critical difference."""

    mean: dict[str, float]
    statistic: float
    p: float
    critical: float
    sets: int


@functools.cache
def done(part: str) -> list[Cell]:
    """The results of a part, read once."""
    return stored(part)


def cells(how: str, sizes: Iterable[int] | None = None) -> list[Cell]:
    """The cells of new_rows with results."""
    wanted = PLAN["new_rows"]["sizes"] if sizes is None else sizes
    found = [each for each in done("new_rows") if "methods" in each]
    return [each for each in found if each["key"][1] == how and each["key"][2] in wanted]


def excess(cell: Cell, method: str, costs: Iterable[tuple[int, int]] = COSTS) -> float:
    """Cost over the best, in per cent of the trivial cost; the mean over costs. NaN if absent."""
    if method not in cell["methods"]:
        return math.nan
    values = []
    for each in map(named, costs):
        trivial = sum(cell["trivial"][each])
        if trivial:
            paid, best = sum(cell["methods"][method][each]), sum(cell["best"][each])
            values.append(100 * (paid - best) / trivial)
    return float(np.mean(values)) if values else math.nan


def measured(measure: str) -> Callable[[Cell, str], float]:
    """The mean of a measure of probabilities over the splits of a cell."""

    def of(cell: Cell, method: str) -> float:
        values = cell["methods"].get(method, {}).get(measure)
        return float(np.mean(values)) if values else math.nan

    return of


def by_set(
    some: Iterable[Cell], methods: Iterable[str], of: Callable[[Cell, str], float] = excess
) -> tuple[list[str], np.ndarray]:
    """Names of sets, and one row for each: the mean of every method over its cells."""
    sources: dict[str, list[Cell]] = {}
    for cell in some:
        sources.setdefault(cell["key"][0], []).append(cell)
    rows = [
        [float(np.mean([of(cell, method) for cell in group])) for method in methods]
        for group in sources.values()
    ]
    return list(sources), np.array(rows)


def ranks(values: np.ndarray, methods: list[str]) -> Ranks:
    """Rank the methods on every set, the lowest value first."""
    sets, k = values.shape
    order = stats.rankdata(values, axis=1)
    statistic, p = stats.friedmanchisquare(*values.T)
    spread = stats.studentized_range.ppf(1 - LEVEL, k, np.inf) / math.sqrt(2)
    critical = spread * math.sqrt(k * (k + 1) / (6 * sets))
    mean = dict(zip(methods, order.mean(axis=0).tolist(), strict=True))
    return Ranks(mean, float(statistic), float(p), float(critical), sets)


def interval(differences: np.ndarray) -> Interval:
    """Student's interval of the mean of one difference for each set."""
    n = len(differences)
    mean, half = float(differences.mean()), float(stats.t.ppf(1 - LEVEL / 2, n - 1))
    half *= float(differences.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, int((differences < 0).sum()), n)


def difference(
    some: list[Cell], a: str, b: str, of: Callable[[Cell, str], float] = excess
) -> Interval:
    """Method a less method b, over the sets where both take part."""
    _, values = by_set(some, [a, b], of)
    values = values[~np.isnan(values).any(axis=1)]
    return interval(values[:, 0] - values[:, 1])


def within_a_set(some: list[Cell], a: str, b: str) -> Interval:
    """Method a less method b on one set, over its splits, which are the same for both.

    Costs of one split are averaged first, as they share its samples; sizes are drawn apart.
    """
    means, variances, below, count = [], [], 0, 0
    for cell in some:
        per_cost = []
        for each in map(named, COSTS):
            one, other = (np.array(cell["methods"][name][each], float) for name in (a, b))
            per_cost.append(100 * (one - other) / np.mean(cell["trivial"][each]))
        splits = np.mean(per_cost, axis=0)
        means.append(splits.mean())
        variances.append(splits.var(ddof=1) / len(splits))
        below, count = below + int((splits < 0).sum()), count + len(splits)
    mean = float(np.mean(means))
    half = float(stats.t.ppf(1 - LEVEL / 2, count - len(some))) * math.sqrt(sum(variances))
    return Interval(mean, mean - half / len(some), mean + half / len(some), below, count)


def by_size(
    how: str, method: str, of: Callable[[Cell, str], float] = excess
) -> dict[int, tuple[float, int]]:
    """The mean over sets at each size, and how many sets there are."""
    found = {}
    for n in PLAN["new_rows"]["sizes"]:
        values = [of(cell, method) for cell in cells(how, [n])]
        values = [each for each in values if not math.isnan(each)]
        if values:
            found[n] = (float(np.mean(values)), len(values))
    return found


def floors() -> dict[tuple[str, int], dict[str, float]]:
    """For each method and size: how often new rows broke the floor, recall, and no threshold."""
    found = {}
    tried = [each for each in done("floors") if "methods" in each]
    for n in PLAN["floors"]["sizes"]:
        for method in PLAN["floors"]["methods"]:
            runs = [each["methods"][method] for each in tried if each["key"][1] == n]
            precision = [value for one in runs for value in one["precision"]]
            recall = [value for one in runs for value in one["recall"]]
            answered = [value for value in precision if value is not None]
            found[method, n] = {
                "sets": len(runs),
                "runs": len(precision),
                "broken": sum(value < PLAN["floors"]["precision"] for value in answered)
                / len(precision),
                "none": 1 - len(answered) / len(precision),
                "recall": float(np.mean(recall)),
            }
    return found


STREAMS = {
    "games": [name for name in PLAN["streams"]["sets"] if name != "occupancy_light"],
    "occupancy": ["occupancy_light"],
    "no drift": ["none"],
    "drift": [name for name in PLAN["streams"]["drifts"] if name != "none"],
}


def stream_ratios(group: str, delay: int, method: str) -> np.ndarray:
    """Cost over that of exact on all samples, for each stream of a group; the mean over ratios."""
    reference = PLAN["streams"]["methods"][0]
    return np.array(
        [
            np.mean(
                [
                    one["methods"][method][each] / one["methods"][reference][each]
                    for each in map(named, COSTS)
                ]
            )
            for one in done("streams")
            if one["key"][0] in STREAMS[group] and one["key"][1] == delay
        ]
    )


def work() -> dict[int, dict[str, dict[str, float]]]:
    """For each size what every method took."""
    return {one["key"][0]: one["methods"] for one in done("work")}
