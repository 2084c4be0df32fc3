# SPDX-License-Identifier: Apache-2.0
"""How good a threshold in bounded memory is, and how much it says of that, against other sketches.

python -m benchmarks.bounded ../shared/data/open

Each stream is seen once, in its own order. For each way of holding it: by how much the threshold
it would choose costs more than the exact one, in per cent of that, and the bound it gives, where
it gives one. The sketches are written anew here from their documentation:

merging histogram    400 bins; where there are more, the two with the nearest means become one
quantile bins        1,000 bins of as many scores each, from all scores sorted (needs them all)
KLL                  the package datasketches, one sketch for each label, 4,096 items together
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import limen
from benchmarks.machine import write

RESULT = Path(__file__).parent / "results" / "bounded" / "quality.json"
COSTS = ((1, 1), (1, 5), (5, 1))
CAPACITIES = (64, 256, 1024, 4096)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The scores and labels of a scored set."""
    with open(path, encoding="ascii") as file:
        rows = [(float(row["score"]), row["label"] == "1") for row in csv.DictReader(file)]
    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    return scores, labels


def streams(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The sets with more than 1,000 distinct scores, and four made up, each a million long."""
    for path in sorted(folder.glob("*.csv")):
        scores, labels = read(path)
        if len(np.unique(scores)) > 1_000:
            yield path.stem, scores, labels
    draw = np.random.default_rng(1)
    n = 1_000_000
    labels = draw.random(n) < 0.3
    yield "made up: normal", draw.normal(labels, 1), labels
    yield "made up: drift", draw.normal(labels, 1) + 2 * np.arange(n) / n, labels
    yield "made up: noise", draw.random(n), labels
    order = np.argsort(scores := draw.normal(labels, 1))
    yield "made up: ascending", scores[order], labels[order]


def cost(scores: Any, labels: Any, threshold: float, costs: tuple[int, int]) -> float:
    answers = scores >= threshold
    return float(costs[0] * (answers & ~labels).sum() + costs[1] * (~answers & labels).sum())


def cheapest(cuts: Any, zeros: Any, ones: Any, costs: tuple[int, int]) -> float:
    """The cut with the lowest cost, by what a sketch says lies below each of them."""
    losses = costs[0] * (zeros[-1] - zeros) + costs[1] * ones
    return float(cuts[int(np.argmin(losses))])


def merging_histogram(scores: Any, labels: Any, costs: tuple[int, int]) -> float:
    means = np.empty(402)
    counts = np.empty((402, 2))
    size = 0
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        at = int(np.searchsorted(means[:size], score))
        if at < size and means[at] == score:
            counts[at, int(label)] += 1
            continue
        means[at + 1 : size + 1], counts[at + 1 : size + 1] = means[at:size], counts[at:size].copy()
        means[at], counts[at] = score, (0, 0)
        counts[at, int(label)] = 1
        size += 1
        if size > 400:
            at = int(np.argmin(np.diff(means[:size])))
            weights = counts[at : at + 2].sum(axis=1)
            means[at] = means[at : at + 2] @ weights / weights.sum()
            counts[at] += counts[at + 1]
            means[at + 1 : size - 1] = means[at + 2 : size].copy()
            counts[at + 1 : size - 1] = counts[at + 2 : size].copy()
            size -= 1
    middles = (means[1:size] + means[: size - 1]) / 2
    below = np.concatenate([np.zeros((1, 2)), np.cumsum(counts[:size], axis=0)])
    return cheapest(np.concatenate([[-np.inf], middles, [np.inf]]), *below.T, costs)


def quantile_bins(scores: Any, labels: Any, costs: tuple[int, int]) -> float:
    distinct, place = np.unique(scores, return_inverse=True)
    ends = np.unique(np.linspace(0, len(distinct), 1_001).astype(int))[1:-1]
    below = [
        np.concatenate(
            [[0], np.cumsum(np.bincount(place[labels == label], minlength=len(distinct)))]
        )
        for label in (False, True)
    ]
    ends = np.concatenate([[0], ends, [len(distinct)]])
    cuts = np.concatenate([[-np.inf], distinct[ends[1:-1]], [np.inf]])
    return cheapest(cuts, *(column[ends] for column in below), costs)


def kll(scores: Any, labels: Any, costs: tuple[int, int]) -> float:
    from datasketches import kll_doubles_sketch

    sketches, items = [], []
    for label in (False, True):
        sketch = kll_doubles_sketch(680)  # which holds about 2,048 items
        sketch.update(scores[labels == label])
        sketches.append(sketch)
        items += [item for item, _ in sketch]
    cuts = np.concatenate([[-np.inf], np.unique(items), [np.inf]])
    sizes = [(~labels).sum(), labels.sum()]
    below = [
        np.array([0.0, *(size * sketch.get_rank(item) for item in cuts[1:-1].tolist()), size])
        for sketch, size in zip(sketches, sizes, strict=True)
    ]
    return cheapest(cuts, *below, costs)


SKETCHES: dict[str, Callable[..., float]] = {
    "merging histogram, 400 bins": merging_histogram,
    "1,000 quantile bins": quantile_bins,
    "KLL, 4,096 items": kll,
}


def row(name: str, scores: Any, labels: Any, costs: tuple[int, int]) -> dict[str, Any]:
    """What each way of holding one stream makes of it."""
    exact = limen.optimal_threshold(
        scores, labels, false_positive=costs[0], false_negative=costs[1]
    ).loss
    found: dict[str, Any] = {"stream": name, "costs": costs, "samples": len(scores), "exact": exact}
    for capacity in CAPACITIES:
        model = limen.BoundedThreshold(
            false_positive=costs[0], false_negative=costs[1], capacity=capacity
        )
        model.update_many(scores, labels)
        paid = cost(scores, labels, model.threshold, costs)
        assert model.loss - model.loss_bound <= exact <= paid <= model.loss
        found[f"limen, {capacity:,}"] = {
            "excess": 100 * (paid - exact) / exact,
            "bound": 100 * model.loss_bound / exact,
            "bytes": sys.getsizeof(model),
        }
    for sketch, choose in SKETCHES.items():
        if sketch.startswith("merging") and len(scores) > 100_000:
            continue  # written for its answers, not for speed
        paid = cost(scores, labels, choose(scores, labels, costs), costs)
        found[sketch] = {"excess": 100 * (paid - exact) / exact}
    return found


def main(folder: Path) -> None:
    rows = []
    for name, scores, labels in streams(folder):
        for costs in COSTS:
            rows.append(row(name, scores, labels, costs))
            print(name, costs, {key: value for key, value in rows[-1].items() if key != "stream"})
    write(RESULT, {"rows": rows})
    print(*table(rows), sep="\n")


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table in docs/bounded.md: real streams only."""
    yield "| held by | exactly optimal | excess, mean / largest | bound, mean / largest |"
    yield "|---|---|---|---|"
    for way in [key for key, value in rows[0].items() if isinstance(value, dict)]:
        taken = [
            each[way] for each in rows if way in each and not each["stream"].startswith("made")
        ]
        excess = [each["excess"] for each in taken]
        bounds = [each["bound"] for each in taken if "bound" in each]
        shown = f"{np.mean(bounds):.3f} / {max(bounds):.2f} %" if bounds else "none"
        exactly = f"{sum(each == 0 for each in excess)} of {len(excess)}"
        yield f"| {way} | {exactly} | {np.mean(excess):.4f} / {max(excess):.2f} % | {shown} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
