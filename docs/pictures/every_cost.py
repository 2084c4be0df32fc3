# SPDX-License-Identifier: Apache-2.0
"""Draw docs/pictures/every_cost.svg: scores, hull, and thresholds for five costs.

python docs/pictures/every_cost.py, with matplotlib installed.
"""

from __future__ import annotations

import csv
import sys
from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import limen

COSTS = (1, 2, 5, 10, 20)
COLOURS = ("#000000", "#0072B2", "#009E73", "#D55E00", "#CC79A7")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v")


def held() -> tuple[np.ndarray, np.ndarray]:
    """Read the scores and labels that the demonstration plays."""
    with (files("limen.demo") / "phishing.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    scores = np.array([float(row["score"]) for row in rows])
    return scores, np.array([int(row["label"]) for row in rows])


def draw(target: Path) -> None:
    """Draw both pictures side by side, the same bytes every time."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "limen", "svg.fonttype": "path", "font.size": 10})
    scores, labels = held()
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(scores, labels)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")

    # Left: the fit over the scores. A threshold is where it rises above the level of its costs.
    edges = np.linspace(0, 1, 41)
    for label, base, direction, place in ((0, -0.02, -1, 0.9), (1, 1.02, 1, 0.02)):
        counts, _ = np.histogram(scores[labels == label], edges)
        heights = direction * 0.16 * counts / max(1, counts.max())
        left.bar(edges[:-1], heights, width=1 / 40, bottom=base, align="edge", color="#bbbbbb")
        left.text(place, base + direction * 0.13, f"label {label}", va="center", fontsize=9)
    blocks = calibrator.blocks()
    left.hlines(blocks.probabilities, blocks.first, blocks.last, color="#333333", lw=2.5)
    grid = np.linspace(0, 1, 4001)
    left.plot(grid, calibrator.probability(grid), color="#333333", lw=1)
    for cost, colour, marker in zip(COSTS, COLOURS, MARKERS, strict=True):
        threshold = calibrator.threshold(false_negative=cost)
        level = 1 / (1 + cost)
        left.vlines(threshold, 0, 1, color=colour, lw=1.2, ls="--")
        left.plot(threshold, level, marker, color=colour, ms=7)
    left.set(xlim=(0, 1), ylim=(-0.2, 1.2), xlabel="score", ylabel="probability of label 1")
    left.set_yticks([0, 0.25, 0.5, 0.75, 1])
    left.set_title("The isotonic fit and the thresholds in it", fontsize=11)

    # Right: the same cuts as points of the ROC curve, all of them corners of its hull.
    order = np.argsort(-scores, kind="stable")
    tp, fp = np.cumsum(labels[order]), np.cumsum(1 - labels[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    right.plot(np.append(0, fp[last]), np.append(0, tp[last]), color="#bbbbbb", lw=3, label="ROC")
    hull = calibrator.roc_hull()
    right.plot(hull.fp, hull.tp, color="#333333", lw=1.2, marker=".", ms=5, label="its hull")
    for cost, colour, marker in zip(COSTS, COLOURS, MARKERS, strict=True):
        best = calibrator.best(limen.metrics.cost(false_negative=cost))
        right.plot(
            best.confusion.fp,
            best.confusion.tp,
            marker,
            color=colour,
            ms=8,
            ls="",
            label=f"1:{cost}, threshold {best.threshold:.3f}",
        )
    right.set(xlabel="false positives", ylabel="true positives")
    right.set_title("The same cuts on the ROC hull", fontsize=11)
    right.legend(title="false positive : false negative", loc="lower right", frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))
