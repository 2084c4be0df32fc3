# SPDX-License-Identifier: Apache-2.0
"""What the paper says of the samples held, in numbers: no monotone map beats the best threshold."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import expit

import limen
from benchmarks.study import data, measures
from benchmarks.study.new_rows import maps_of
from benchmarks.study.plan import COSTS, PLAN, named
from benchmarks.study.results import rounded, run
from benchmarks.trust_study import Sample


def keys() -> Iterable[tuple[str]]:
    return [(name,) for name in PLAN["sets"]]


def by_sigmoid(found: limen.Optimum, scores: np.ndarray) -> np.ndarray | None:
    """The answers of the threshold's sigmoid; None where it answers all rows alike."""
    try:
        a, b = found.as_sigmoid()
    except ValueError:
        return None
    return np.asarray(expit(a * scores + b) >= 0.5)


def by_bins(found: limen.Optimum, scores: np.ndarray) -> np.ndarray:
    edges, chances = found.as_bins()
    place = np.searchsorted(edges[1:-1], scores, "right")
    return np.asarray(np.array(chances)[place] >= 0.5)


def cell(name: str, rows: int | None = None) -> dict[str, Any]:
    """The cost on the rows that were fitted on, of the threshold and of every map."""
    scores, labels = data.read(name)
    scores, labels = scores[:rows], labels[:rows]
    truth = labels.astype(float)
    costs_of: dict[str, dict[str, float | None]] = {}
    for costs in COSTS:
        sample = Sample(scores, labels, costs)
        found = limen.optimal_threshold(scores, labels, **sample.named())
        sigmoid = by_sigmoid(found, scores)
        costs_of[named(costs)] = {
            "exact": rounded(found.loss),
            "its sigmoid": None if sigmoid is None else sample.cost(sigmoid),
            "its bins": sample.cost(by_bins(found, scores)),
        }
    order = np.argsort(scores, kind="stable")
    monotone = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each, _, chance in maps_of(data.Split(scores, labels, scores, truth, {})):
            monotone[each] = bool((np.diff(chance[order]) >= -1e-12).all())
            for costs in COSTS:
                paid = measures.cost(chance >= costs[0] / sum(costs), truth, *costs)
                costs_of[named(costs)][each] = rounded(paid)
    return {"rows": len(scores), "costs": costs_of, "monotone": monotone}


def main() -> None:
    run("claims", keys(), cell)
