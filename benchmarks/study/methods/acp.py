# SPDX-License-Identifier: Apache-2.0
"""Adaptive calibration of predictions: the share of label 1 inside the prediction's own interval.

Jiang, Osl, Kim and Ohno-Machado (2012) take the 95 % interval of a logistic model's prediction from
the covariance of its features. Here are scores alone, so this is an adaptation: the model is a
logistic regression of the label on logit(score), and the interval is that of its fitted value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

WIDTH = 1.959963984540054  # of a normal law, 95 %


def columns(scores: np.ndarray) -> np.ndarray:
    odds = logit(np.clip(scores, 1e-6, 1 - 1e-6))
    return np.stack([np.ones(len(odds)), odds], axis=1)


def regression(rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients by Newton's method, and their covariance."""
    found = np.zeros(2)
    for _ in range(50):
        chance = expit(rows @ found)
        spread = np.maximum(chance * (1 - chance), 1e-9)
        bend = rows.T @ (rows * spread[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(bend, rows.T @ (labels - chance))
        found = found + np.clip(step, -5, 5)  # separable samples have no end
        if np.abs(step).max() < 1e-10:
            break
    return found, np.linalg.inv(bend)


def fit(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    rows = columns(scores)
    found, covariance = regression(rows, labels)
    fitted = rows @ found
    order = np.argsort(fitted, kind="stable")
    fitted, ones = fitted[order], np.append(0, np.cumsum(labels[order], dtype=float))

    def predict(new: np.ndarray) -> np.ndarray:
        at = columns(new)
        middle = at @ found
        half = WIDTH * np.sqrt(np.einsum("ij,jk,ik->i", at, covariance, at))
        first = np.searchsorted(fitted, middle - half, "left")
        last = np.searchsorted(fitted, middle + half, "right")
        count = last - first
        share = (ones[last] - ones[first]) / np.maximum(count, 1)
        return np.where(count > 0, share, expit(middle))

    return predict
