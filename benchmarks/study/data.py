# SPDX-License-Identifier: Apache-2.0
"""Where rows come from: sets in benchmarks/data, and laws whose truth is known."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.study import measures
from benchmarks.study.plan import COSTS, PLAN, named
from benchmarks.trust_laws import LAWS, Law
from benchmarks.trust_study import Sample, exact, splits

FOLDER = Path(__file__).parents[1] / "data"


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The scores and labels of a set; refused where the text is not that of the plan."""
    text = gzip.decompress((FOLDER / f"{name}.csv.gz").read_bytes())
    if hashlib.sha256(text).hexdigest() != PLAN["sets"][name]:
        raise ValueError(f"{name}.csv.gz is not the file that plan.toml names.")
    rows = np.loadtxt(text.decode().splitlines(), delimiter=",", skiprows=1)
    return rows[:, 0], rows[:, 1].astype(np.uint8)


class Split(NamedTuple):
    """Samples to fit on, new rows with their truth, and what the best on these would cost."""

    scores: np.ndarray
    labels: np.ndarray
    new: np.ndarray
    truth: np.ndarray  # labels, or chances of label 1
    best: dict[str, float]

    def usable(self) -> bool:
        least = PLAN["new_rows"]["least_of_a_label"]
        return bool(least <= self.labels.sum() <= len(self.labels) - least)


def seeded(name: str, n: int) -> np.random.Generator:
    return np.random.default_rng([PLAN["seed"], n, zlib.crc32(name.encode())])


def of_set(name: str, how: str, n: int, count: int) -> Iterator[Split]:
    """Splits of a set, at random or in time; none where it has too few rows."""
    scores, labels = read(name)
    in_time = how == "time"
    over_all = {each: exact(Sample(scores, labels, each), None) for each in COSTS}
    for chosen, rest in splits(len(scores), n, in_time, count, seeded(name, n)):
        new, truth = scores[rest], labels[rest].astype(float)
        best = {}
        for costs in COSTS:
            cut = exact(Sample(new, labels[rest], costs), None) if in_time else over_all[costs]
            best[named(costs)] = measures.cost(new >= cut, truth, *costs)
        yield Split(scores[chosen], labels[chosen], new, truth, best)


def of_law(name: str, n: int, count: int) -> Iterator[Split]:
    """Samples drawn anew each time; the new rows are the same in all of them."""
    law: Law = LAWS[name]
    rng = seeded(name, n)
    new = law.scores(rng, PLAN["new_rows"]["law_rows"])
    truth = law.share(new)
    best = {
        named(costs): float(np.minimum(costs[0] * (1 - truth), costs[1] * truth).sum())
        for costs in COSTS
    }
    for _ in range(count):
        scores, labels, _ = law.draw(n, rng)
        yield Split(scores, labels, new, truth, best)
