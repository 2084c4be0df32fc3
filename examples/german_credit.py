# SPDX-License-Identifier: Apache-2.0
"""The German credit example of scikit-learn's documentation, with the exact threshold beside it.

Granting a bad credit costs 5, refusing a good one costs 1. The threshold is chosen on the
out-of-fold scores of 750 customers and then meets 250 new ones.

    python examples/german_credit.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import limen

HERE = Path(__file__).parent
MISSED = 5


def load(name: str) -> limen.columns.Columns:
    """Scores and labels of one file; label 1 is bad credit."""
    with open(HERE / f"german_credit_{name}.csv", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    columns = {key: [float(row[key]) for row in rows] for key in ("score", "label")}
    return limen.columns.from_frame(columns)


def cost(samples: limen.columns.Columns, threshold: float) -> float:
    """Add up what the mistakes at a threshold cost."""
    answers = samples.scores >= threshold
    return float(np.where(samples.labels == 1, MISSED * ~answers, answers).sum())


def best_of_a_hundred(samples: limen.columns.Columns) -> float:
    """Take the best of 100 evenly spaced thresholds, as scikit-learn's tuner does."""
    grid = np.linspace(samples.scores.min(), samples.scores.max(), 100)
    return float(grid[int(np.argmin([cost(samples, threshold) for threshold in grid]))])


def main() -> None:
    """Print what each threshold costs on the rows it was chosen on, and on new ones."""
    known, new = load("out_of_fold"), load("new")
    exact = limen.optimal_threshold(known.scores, known.labels, false_negative=MISSED)
    thresholds = {
        "0.5, the default": 0.5,
        "1 / 6, if scores were probabilities": 1 / 6,
        "best of 100, as scikit-learn tunes": best_of_a_hundred(known),
        "exact": exact.threshold,
    }
    print("cost of bad credits granted (5 each) and good ones refused (1 each)\n")
    print(f"{'threshold':38}{'':>9}{'750 known':>12}{'250 new':>10}")
    for name, threshold in thresholds.items():
        line = (
            f"{name:38}{threshold:9.4f}{cost(known, threshold):12.0f}{cost(new, threshold):10.0f}"
        )
        print(line)
    assert exact.loss == cost(known, exact.threshold)

    grid = thresholds["best of 100, as scikit-learn tunes"]
    hindsight = limen.optimal_threshold(new.scores, new.labels, false_negative=MISSED)
    there = [cost(new, exact.threshold), cost(new, grid), hindsight.loss]
    print(
        f"\nNo threshold costs less than {exact.loss:.0f} on the known rows. A better cost on them"
    )
    print(f"need not be better on new rows: there the exact one costs {there[0]:.0f}, that of the")
    print(f"grid {there[1]:.0f}, and the best in hindsight {there[2]:.0f}.")

    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(known.scores, known.labels)
    print("\nThe same scores at other costs of a bad credit:")
    for missed in (1, 2, 5, 10):
        optimum = calibrator.optimum(false_negative=missed)
        print(f"{missed:4}  threshold {optimum.threshold:.4f}  cost {optimum.loss:.0f}")


if __name__ == "__main__":
    main()
