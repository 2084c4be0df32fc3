# SPDX-License-Identifier: Apache-2.0
"""Two designs of bounded memory on the same streams: runs of scores, and a grid of buckets.

    python -m benchmarks.bounded_designs ../shared/data/open

Runs are what `BoundedThreshold` holds. A grid is what `BoundedCalibrator` holds, asked here for
the same costs. For each stream, pair of costs and capacity: the mean bound on the excess cost over
LOOKS moments, and the excess at the end, in per cent of the cost; then the CPU time of an update,
the designs in turns. `runs and a grid` are kept in the result from commit 092ac03, where a model
of 1,024 or more gave a quarter of its capacity to a grid.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import limen
from benchmarks.bounded import COSTS, cost, read
from benchmarks.bounded_updates import nanoseconds
from benchmarks.machine import write

RESULT = Path(__file__).parent / "results" / "bounded" / "designs.json"
CAPACITIES = (64, 256, 1_024, 4_096)
LOOKS, MADE_UP, ROUNDS, CALLS = 40, 300_000, 9, 20_000


def streams(folder: Path) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Kind, name, scores and labels: open sets that do not fit into 64 scores, and made-up ones."""
    for path in sorted(folder.glob("*.csv")):
        scores, labels = read(path)
        if len(np.unique(scores)) > 64 and limen.optimal_threshold(scores, labels).loss:
            yield "open sets", path.stem, scores, labels
    draw = np.random.default_rng(1)
    n = MADE_UP
    labels = draw.random(n) < 0.3
    scores, moving = draw.normal(labels, 1), 2 * np.arange(n) / n
    yield "stationary", "normal", scores, labels
    yield "stationary", "probabilities", 1 / (1 + np.exp(-4 * scores)), labels
    yield "ties", "two decimals", scores.round(2), labels
    yield "ties", "half of them 0", np.where(draw.random(n) < 0.5, 0.0, scores), labels
    yield "ties", "whole numbers", np.floor(1_000 * scores), labels
    yield "drift", "normal", scores + moving, labels
    yield "drift", "three decimals", (scores + moving).round(3), labels
    yield "drift", "a jump", scores + 3 * (np.arange(n) > n // 2), labels
    yield "no information", "noise", draw.random(n), labels
    order = np.argsort(scores)
    yield "in order", "ascending", scores[order], labels[order]
    inward = np.column_stack([order[: n // 2], order[: n // 2 - 1 : -1]]).ravel()
    yield "in order", "from both ends", scores[inward], labels[inward]


def looks(model: Any, costs: dict[str, int], scores: Any, labels: Any) -> dict[str, float]:
    """The mean bound of LOOKS moments, from a fifth of the stream on; the excess at its end."""
    bounds = []
    for rows in np.array_split(np.arange(len(scores)), LOOKS * 5 // 4):
        model.update_many(scores[rows], labels[rows])
        if isinstance(model, limen.BoundedCalibrator):
            found, bound = model.optimum(**costs), model.loss_bound(**costs)
        else:
            found, bound = model.optimum, model.loss_bound
        bounds.append(100 * bound / max(1.0, found.loss - bound / 2))
    exact = limen.optimal_threshold(scores, labels, **costs).loss
    paid = cost(scores, labels, found.threshold, (costs["false_positive"], costs["false_negative"]))
    assert found.loss - bound <= exact <= paid <= found.loss
    return {
        "bound": float(np.mean(bounds[-LOOKS:])),
        "excess": 100 * (paid - exact) / exact,
        "bytes": model._memory(),
    }


def quality(folder: Path) -> Iterator[dict[str, Any]]:
    for kind, name, scores, labels in streams(folder):
        for capacity in CAPACITIES:
            for fp, fn in COSTS:
                costs = {"false_positive": fp, "false_negative": fn}
                runs = limen.BoundedThreshold(**costs, capacity=capacity)
                grid = limen.BoundedCalibrator(capacity=capacity)
                yield {
                    "stream": f"{kind}: {name}",
                    "capacity": capacity,
                    "costs": f"{fp} to {fn}",
                    "runs": looks(runs, costs, scores, labels),
                    "grid": looks(grid, costs, scores, labels),
                }


def updates(capacity: int) -> dict[str, Any]:
    """What single calls from Python take, in turns, on new scores and on ties."""
    draw = np.random.default_rng(2)
    found: dict[str, Any] = {"capacity": capacity}
    for kind in ("new scores", "ties"):
        models = {
            "runs": limen.OnlineThreshold(capacity=capacity),
            "grid": limen.OnlineCalibrator(capacity=capacity),
        }
        times: dict[str, list[float]] = {"runs": [], "grid": []}
        for turn in range(ROUNDS + 1):
            labels = draw.random(CALLS) < 0.3
            scores = draw.normal(labels, 1)
            scores = scores if kind == "new scores" else scores.round(3)
            for design, model in models.items():
                if turn == 0:  # so that all of them are full
                    model.update_many(np.resize(scores, 200_000), np.resize(labels, 200_000))
                else:
                    times[design].append(nanoseconds(model, scores, labels, False))
        ratios = [grid / runs for runs, grid in zip(times["runs"], times["grid"], strict=True)]
        found[kind] = {design: median(each) for design, each in times.items()}
        found[kind]["grid over runs"] = median(ratios)
    return found


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table in docs/bounded.md: means over the streams of a kind and all costs."""
    shown = [(design, capacity) for capacity in (256, 4_096) for design in ("runs", "grid")]
    yield f"| streams | {' | '.join(f'{design}, {capacity:,}' for design, capacity in shown)} |"
    yield "|---" * 5 + "|"
    for kind in dict.fromkeys(row["stream"].split(":")[0] for row in rows):
        taken = [row for row in rows if row["stream"].startswith(kind)]
        cells = []
        for design, capacity in shown:
            found = [row[design] for row in taken if row["capacity"] == capacity]
            bound, excess = (
                np.mean([each[what] for each in found]) for what in ("bound", "excess")
            )
            cells.append(f"{bound:.3f}, {excess:.3f} %")
        yield f"| {kind} | {' | '.join(cells)} |"


def beside(rows: list[dict[str, Any]], capacity: int) -> tuple[float, int, int]:
    """Of runs against runs and a grid: the geometric mean of the ratio of bounds, and who loses.

    Cases where a bound is 0 have no ratio. One loses where its bound is over twice the other's.
    """
    pairs = [
        (row["runs"]["bound"], row["runs and a grid"]["bound"])
        for row in rows
        if row["capacity"] == capacity
    ]
    logs = [np.log(runs / both) for runs, both in pairs if runs and both]
    wider = sum(runs > 2 * both for runs, both in pairs)
    return float(np.exp(np.mean(logs))), wider, sum(both > 2 * runs for runs, both in pairs)


def main(folder: Path) -> None:
    kept = json.loads(RESULT.read_text())  # of the design that is gone
    rows = []
    for at, row in enumerate(quality(folder)):
        rows.append(kept["rows"][at] | row)
        print(row, flush=True)
    speed = [updates(capacity) for capacity in (64, 1_024, 4_096)]
    write(RESULT, {"rows": rows, "updates, ns": speed, "before": kept["before"]})
    print(*table(rows), *speed, *(beside(rows, each) for each in (1_024, 4_096)), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
