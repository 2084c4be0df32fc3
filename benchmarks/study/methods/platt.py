# SPDX-License-Identifier: Apache-2.0
"""Platt scaling: a sigmoid of the score.

Platt (1999), with the targets that keep it finite, minimised as Lin, Lin and Weng (2007) advise:
Newton's method, with half the step while the likelihood would fall.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit


def coefficients(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """A and B of 1 / (1 + exp(A * score + B))."""
    ones = int(np.count_nonzero(labels))
    zeros = len(labels) - ones
    target = np.where(labels == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    scale = float(np.abs(scores).max()) or 1.0  # so that no score is large
    rows = np.stack([scores / scale, np.ones(len(scores))], axis=1)

    def loss(at: np.ndarray) -> float:
        odds = rows @ at
        return float((np.logaddexp(0, odds) - (1 - target) * odds).sum())

    found = np.array([0.0, np.log((zeros + 1) / (ones + 1))])
    for _ in range(100):
        chance = expit(-rows @ found)
        slope = rows.T @ (target - chance)
        if np.abs(slope).max() < 1e-10 * len(scores):
            break
        bend = rows.T @ (rows * (chance * (1 - chance))[:, None]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(bend, slope)
        part, now = 1.0, loss(found)
        while part > 1e-10 and loss(found - part * step) > now:
            part /= 2
        if part <= 1e-10:
            break  # as near as doubles allow
        found = found - part * step
    return float(found[0] / scale), float(found[1])


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    a, b = coefficients(scores, labels)
    return lambda new: expit(-(a * new + b))
