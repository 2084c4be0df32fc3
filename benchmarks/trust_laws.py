# SPDX-License-Identifier: Apache-2.0
"""Laws of scores and labels whose best threshold is known, smooth and unkind ones.

The share of ones among rows of a score crosses false_positive / (false_positive + false_negative)
at the best threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Law(NamedTuple):
    """How rows are drawn, what mistakes cost, and the best threshold of all rows."""

    scores: Callable[[np.random.Generator, int], np.ndarray]
    share: Callable[[np.ndarray], np.ndarray]
    best: float
    false_negative: int = 1
    weights: Callable[[np.random.Generator, int], np.ndarray] | None = None

    def draw(self, n: int, rng: np.random.Generator):
        """Scores, labels and weights of n rows."""
        scores = self.scores(rng, n)
        labels = (rng.random(n) < self.share(scores)).astype(np.uint8)
        return scores, labels, None if self.weights is None else self.weights(rng, n)


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


LEVELS = np.array([0.1, 0.3, 0.6, 0.7, 0.9])

LAWS = {
    "smooth": Law(uniform, lambda x: x, 0.5),
    "smooth, 1 to 5": Law(normal, lambda x: logistic(1.5 * x - 1), (1 - math.log(5)) / 1.5, 5),
    "jump left": Law(uniform, lambda x: np.where(x < 0.5, 0.1, 0.5 + 0.8 * (x - 0.5)), 0.5),
    "jump right": Law(uniform, lambda x: np.where(x < 0.5, 0.5 + 0.8 * (x - 0.5), 0.9), 0.5),
    "best at the lower end": Law(uniform, lambda x: 0.5 + 0.5 * x, -math.inf),
    "best at the upper end": Law(uniform, lambda x: 0.5 * x, math.inf),
    "five levels": Law(
        lambda rng, n: rng.integers(0, 5, n) / 4, lambda x: LEVELS[(4 * x).astype(int)], 0.4
    ),
    "2 % of ones, 1 to 20": Law(
        normal, lambda x: logistic(2 * x - 5.5), (5.5 - math.log(20)) / 2, 20
    ),
    "unequal weights": Law(uniform, lambda x: x, 0.5, 1, lambda rng, n: rng.pareto(3, n) + 1),
}
